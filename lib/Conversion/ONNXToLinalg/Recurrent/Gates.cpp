//===- Gates.cpp - What LSTM, GRU and RNN share ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recurrent/Gates.h"

#include "Contraction/Products.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

static std::optional<Activation::Kind> getActivationKind(StringRef name) {
  return llvm::StringSwitch<std::optional<Activation::Kind>>(name.lower())
      .Case("relu", Activation::Relu)
      .Case("tanh", Activation::Tanh)
      .Case("sigmoid", Activation::Sigmoid)
      .Case("affine", Activation::Affine)
      .Case("leakyrelu", Activation::LeakyRelu)
      .Case("thresholdedrelu", Activation::ThresholdedRelu)
      .Case("scaledtanh", Activation::ScaledTanh)
      .Case("hardsigmoid", Activation::HardSigmoid)
      .Case("elu", Activation::Elu)
      .Case("softsign", Activation::Softsign)
      .Case("softplus", Activation::Softplus)
      .Default(std::nullopt);
}

FailureOr<SmallVector<Activation>>
getActivations(std::optional<ArrayAttr> names,
               std::optional<ArrayRef<float>> alphas,
               std::optional<ArrayRef<float>> betas,
               ArrayRef<Activation::Kind> defaults, int64_t directions) {
  SmallVector<Activation> result;
  size_t count = defaults.size() * directions;
  if (names && !names->empty()) {
    if (names->size() < count)
      return failure();
    for (StringAttr name : names->getAsRange<StringAttr>()) {
      std::optional<Activation::Kind> kind = getActivationKind(name.getValue());
      if (!kind)
        return failure();
      result.push_back({*kind});
    }
    result.truncate(count);
  } else {
    for (int64_t i = 0; i < directions; ++i)
      for (Activation::Kind kind : defaults)
        result.push_back({kind});
  }
  // Each function that has a parameter takes the next value of its list.
  ArrayRef<float> nextAlpha = alphas.value_or(ArrayRef<float>());
  ArrayRef<float> nextBeta = betas.value_or(ArrayRef<float>());
  auto take = [](ArrayRef<float> &list, double absent) {
    if (list.empty())
      return absent;
    double value = list.front();
    list = list.drop_front();
    return value;
  };
  for (Activation &function : result) {
    switch (function.kind) {
    case Activation::Affine:
    case Activation::ScaledTanh:
      function.alpha = take(nextAlpha, 1.0);
      function.beta =
          take(nextBeta, function.kind == Activation::Affine ? 0.0 : 1.0);
      break;
    case Activation::HardSigmoid:
      function.alpha = take(nextAlpha, 0.2);
      function.beta = take(nextBeta, 0.5);
      break;
    case Activation::LeakyRelu:
      function.alpha = take(nextAlpha, 0.01);
      break;
    case Activation::ThresholdedRelu:
    case Activation::Elu:
      function.alpha = take(nextAlpha, 1.0);
      break;
    default:
      break;
    }
  }
  return result;
}

Value Activation::apply(TensorBuilder &b, Value x) const {
  Type type = x.getType();
  Value zero = b.scalar(type, 0), one = b.scalar(type, 1);
  Value a = b.scalar(type, alpha), c = b.scalar(type, beta);
  auto exp = [&](Value value) -> Value {
    return math::ExpOp::create(b, value);
  };
  switch (kind) {
  case Relu:
    return b.maximum(x, zero);
  case Tanh:
    return math::TanhOp::create(b, x);
  case Sigmoid:
    return arith::DivFOp::create(b, one,
                                 b.add(one, exp(arith::NegFOp::create(b, x))));
  case Affine:
    return b.add(b.mul(a, x), c);
  case LeakyRelu:
    return b.select(b.greater(zero, x), b.mul(a, x), x);
  case ThresholdedRelu:
    return b.select(b.greater(a, x), zero, x);
  case ScaledTanh:
    return b.mul(a, math::TanhOp::create(b, b.mul(c, x)));
  case HardSigmoid:
    return b.minimum(b.maximum(b.add(b.mul(a, x), c), zero), one);
  case Elu:
    return b.select(b.greater(zero, x), b.mul(a, math::ExpM1Op::create(b, x)),
                    x);
  case Softsign:
    return arith::DivFOp::create(b, x, b.add(one, math::AbsFOp::create(b, x)));
  case Softplus: {
    // log(1 + e^x) without overflow.
    Value magnitude = math::AbsFOp::create(b, x);
    Value tail =
        math::Log1pOp::create(b, exp(arith::NegFOp::create(b, magnitude)));
    return b.add(b.maximum(x, zero), tail);
  }
  }
  return x;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

FailureOr<RecurrentBuilder>
RecurrentBuilder::create(TensorBuilder &b, const RecurrentOperands &operands,
                         StringRef &why) {
  RecurrentBuilder r(b, operands);
  RecurrentOperands &ops = r.ops;
  auto hasRank = [](Value value, int64_t rank) {
    return !value || rankedType(value).getRank() == rank;
  };
  if (!hasRank(ops.input, 3) || !hasRank(ops.inputWeights, 3) ||
      !hasRank(ops.stateWeights, 3) || !hasRank(ops.bias, 2) ||
      !hasRank(ops.lengths, 1) || !hasRank(ops.initialHidden, 3) ||
      !hasRank(ops.initialCell, 3) || !hasRank(ops.peepholes, 2)) {
    why = "an operand has the wrong rank";
    return failure();
  }
  if (ops.direction == "bidirectional")
    r.directions = 2;
  else if (ops.direction != "forward" && ops.direction != "reverse") {
    why = "unknown direction";
    return failure();
  }
  RankedTensorType weights = rankedType(ops.stateWeights);
  r.hidden = weights.getDimSize(2);
  if (ShapedType::isDynamic(r.hidden)) {
    why = "the hidden size is not known";
    return failure();
  }
  Type element = elementTypeOf(ops.input);
  if (!isa<FloatType>(element)) {
    why = "only floats are supported";
    return failure();
  }
  r.type = getAccumulatorType(element);
  ops.input = b.convertElements(ops.input, r.type);
  ops.inputWeights = b.convertElements(ops.inputWeights, r.type);
  ops.stateWeights = b.convertElements(ops.stateWeights, r.type);
  if (ops.bias)
    ops.bias = b.convertElements(ops.bias, r.type);
  if (ops.batchFirst)
    ops.input = b.transpose(ops.input, {1, 0, 2});
  r.time = b.dim(ops.input, 0);
  r.batch = b.dim(ops.input, 1);

  // Every slice below stays within these sizes.
  auto fits = [&](Value value, int64_t dim, OpFoldResult size,
                  const char *message = "an operand has the wrong size") {
    return !value || b.sameSize(b.dim(value, dim), size, message);
  };
  auto fitsBatch = [&](Value state) {
    return fits(state, ops.batchFirst ? 0 : 1, r.batch,
                "an initial state has the wrong batch size");
  };
  OpFoldResult directions = b.size(r.directions);
  OpFoldResult rows = b.size(ops.gates * r.hidden);
  int64_t stateDim = ops.batchFirst ? 1 : 0;
  if (!fits(ops.inputWeights, 0, directions) ||
      !fits(ops.inputWeights, 1, rows) ||
      !fits(ops.inputWeights, 2, b.dim(ops.input, 2),
            "W takes another size than the input has") ||
      !fits(ops.stateWeights, 0, directions) ||
      !fits(ops.stateWeights, 1, rows) || !fits(ops.bias, 0, directions) ||
      !fits(ops.bias, 1, b.times(rows, 2)) || !fits(ops.lengths, 0, r.batch) ||
      !fits(ops.initialHidden, stateDim, directions) ||
      !fits(ops.initialHidden, 2, b.size(r.hidden)) ||
      !fits(ops.initialCell, stateDim, directions) ||
      !fits(ops.initialCell, 2, b.size(r.hidden)) ||
      !fitsBatch(ops.initialHidden) || !fitsBatch(ops.initialCell) ||
      !fits(ops.peepholes, 0, directions) ||
      !fits(ops.peepholes, 1, b.size(3 * r.hidden))) {
    why = "sizes of the operands do not fit";
    return failure();
  }
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, 2);
  appendGroup(groups, 2, 1);
  r.flatInput = b.collapse(ops.input, groups);
  return r;
}

Value RecurrentBuilder::getGateVector(Value tensor, int64_t direction,
                                      int64_t gate, int64_t count) {
  return b.slice(tensor, {b.size(direction), b.size(gate * hidden)},
                 {b.size(1), b.size(count * hidden)}, {0});
}

/// `count` rows from `first` on of [directions, gates * hidden, depth],
/// transposed.
static Value getGateMatrix(TensorBuilder &b, Value weights, int64_t direction,
                           int64_t first, int64_t count) {
  Value rows = b.slice(weights, {b.size(direction), b.size(first), b.size(0)},
                       {b.size(1), b.size(count), b.dim(weights, 2)}, {0});
  return b.transpose(rows, {1, 0});
}

Value RecurrentBuilder::getStateWeights(int64_t direction, int64_t gate,
                                        int64_t count) {
  return getGateMatrix(b, ops.stateWeights, direction, gate * hidden,
                       count * hidden);
}

Value RecurrentBuilder::getGate(TensorBuilder &s, Value gates, int64_t gate,
                                Value at) {
  Sizes offsets{s.size(0), s.size(gate * hidden)}, sizes{batch, s.size(hidden)};
  if (!at)
    return s.slice(gates, offsets, sizes);
  offsets.insert(offsets.begin(), at);
  sizes.insert(sizes.begin(), s.size(1));
  return s.slice(gates, offsets, sizes, {0});
}

Value RecurrentBuilder::getStateBias(int64_t direction, int64_t gate) {
  return ops.bias ? getGateVector(ops.bias, direction, ops.gates + gate)
                  : Value();
}

Value RecurrentBuilder::getProjection(int64_t direction, int64_t gate,
                                      bool withStateBias, int64_t count) {
  Value projection =
      createMatMul2D(b, flatInput,
                     getGateMatrix(b, ops.inputWeights, direction,
                                   gate * hidden, count * hidden));
  if (ops.bias) {
    Value bias = getGateVector(ops.bias, direction, gate, count);
    if (withStateBias)
      bias = b.map(
          {bias, getGateVector(ops.bias, direction, ops.gates + gate, count)},
          type, [](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
            return {s.add(args[0], args[1])};
          });
    projection = b.elementwise(b.dims(projection), {projection, bias},
                               {b.identityMap(2), b.dimsMap(2, {1})}, {type},
                               [](TensorBuilder &s,
                                  ValueRange args) -> SmallVector<Value> {
                                 return {s.add(args[0], args[1])};
                               })
                     .front();
  }
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, 2);
  appendGroup(groups, 2, 1);
  return b.expand(projection, groups, {time, batch, b.size(count * hidden)});
}

Value RecurrentBuilder::getInitialState(Value initial, int64_t direction) {
  if (!initial)
    return b.zeros({batch, b.size(hidden)}, type);
  initial = b.convertElements(initial, type);
  int64_t dim = ops.batchFirst ? 1 : 0;
  Value state = b.subTensor(initial, dim, b.size(direction));
  Sizes sizes{batch, b.size(hidden)};
  return b.cast(state, getTensorType(sizes, type));
}

//===----------------------------------------------------------------------===//
// The loop over time
//===----------------------------------------------------------------------===//

SmallVector<Value> RecurrentBuilder::cellwise(TensorBuilder &s,
                                              ValueRange states,
                                              ValueRange vectors,
                                              int64_t results, Body body) {
  SmallVector<Value> inputs(states);
  SmallVector<AffineMap> maps(states.size(), s.identityMap(2));
  inputs.append(vectors.begin(), vectors.end());
  maps.append(vectors.size(), s.dimsMap(2, {1}));
  return s.elementwise({batch, s.size(hidden)}, inputs, maps,
                       SmallVector<Type>(results, type), body);
}

Value RecurrentBuilder::clip(TensorBuilder &s, Value x) {
  if (!ops.clip || *ops.clip <= 0)
    return x;
  return s.minimum(s.maximum(x, s.scalar(type, -*ops.clip)),
                   s.scalar(type, *ops.clip));
}

SmallVector<Value> RecurrentBuilder::keepEnded(TensorBuilder &s, Value at,
                                               ValueRange before,
                                               ValueRange after) {
  // Results: the output, then the states.
  SmallVector<Value> inputs(before);
  inputs.append(after.begin(), after.end());
  SmallVector<AffineMap> maps(inputs.size(), s.identityMap(2));
  inputs.push_back(ops.lengths);
  maps.push_back(s.dimsMap(2, {0}));
  size_t count = before.size();
  SmallVector<Type> types(count + 1, type);
  return s.elementwise(
      {batch, s.size(hidden)}, inputs, maps, types,
      [&](TensorBuilder &body, ValueRange args) -> SmallVector<Value> {
        Value length = body.convert(args[2 * count], body.getIndexType());
        Value runs = body.compare(arith::CmpIPredicate::slt, at, length);
        SmallVector<Value> kept{
            body.select(runs, args[count], body.zero(type))};
        for (size_t i = 0; i < count; ++i)
          kept.push_back(body.select(runs, args[count + i], args[i]));
        return kept;
      });
}

SmallVector<Value> RecurrentBuilder::clearEmpty(ValueRange states) {
  SmallVector<Value> inputs(states);
  SmallVector<AffineMap> maps(inputs.size(), b.identityMap(2));
  inputs.push_back(ops.lengths);
  maps.push_back(b.dimsMap(2, {0}));
  return b.elementwise(
      {batch, b.size(hidden)}, inputs, maps,
      SmallVector<Type>(states.size(), type),
      [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
        Value some = s.greater(args.back(), s.zero(args.back().getType()));
        SmallVector<Value> kept;
        for (Value state : args.drop_back())
          kept.push_back(s.select(some, state, s.zero(type)));
        return kept;
      });
}

void RecurrentBuilder::run(int64_t direction, ValueRange initialStates,
                           Step step) {
  if (!output)
    output = b.empty({time, b.size(directions), batch, b.size(hidden)}, type);
  bool backwards = direction == 1 || ops.direction == "reverse";
  SmallVector<Value> inits(initialStates);
  inits.push_back(output);
  Value last = b.index(b.plus(time, -1));
  auto loop = scf::ForOp::create(
      b, b.index(int64_t(0)), b.index(time), b.index(1), inits,
      [&](OpBuilder &builder, Location loc, Value i, ValueRange args) {
        TensorBuilder s(loc, builder);
        Value at = backwards ? s.sub(last, i) : i;
        ValueRange before = args.drop_back();
        SmallVector<Value> after = step(s, at, before);
        Value shown = after.front();
        if (ops.lengths) {
          SmallVector<Value> kept = keepEnded(s, at, before, after);
          shown = kept.front();
          after.assign(kept.begin() + 1, kept.end());
        }
        Value written = s.insert(shown, args.back(),
                                 {at, s.size(direction), s.size(0), s.size(0)},
                                 {s.size(1), s.size(1), batch, s.size(hidden)});
        after.push_back(written);
        scf::YieldOp::create(s, after);
      });
  output = loop.getResults().back();
  finalStates.emplace_back(loop.getResults().drop_back());
  if (ops.lengths)
    finalStates.back() = clearEmpty(finalStates.back());
}

SmallVector<Value> RecurrentBuilder::getResults(ArrayRef<Value> declared,
                                                Type elementType) {
  SmallVector<Value> results;
  for (auto [i, result] : llvm::enumerate(declared)) {
    if (!result)
      continue;
    if (result.use_empty())
      results.push_back(Value());
    else
      results.push_back(i == 0 ? getOutput(elementType)
                               : getFinalState(i - 1, elementType));
  }
  return results;
}

Value RecurrentBuilder::getOutput(Type elementType) {
  Value result = b.convertElements(output, elementType);
  return ops.batchFirst ? b.transpose(result, {2, 0, 1, 3}) : result;
}

Value RecurrentBuilder::getFinalState(int64_t state, Type elementType) {
  Value result = unsqueeze(b, b.getLoc(), finalStates[0][state], {0});
  if (directions == 2) {
    Sizes sizes{b.size(2), batch, b.size(hidden)};
    Sizes part{b.size(1), batch, b.size(hidden)};
    Value both = b.empty(sizes, type);
    for (int64_t direction = 0; direction < 2; ++direction)
      both = b.insert(finalStates[direction][state], both,
                      {b.size(direction), b.size(0), b.size(0)}, part);
    result = both;
  }
  result = b.convertElements(result, elementType);
  return ops.batchFirst ? b.transpose(result, {1, 0, 2}) : result;
}

} // namespace sardonyx
