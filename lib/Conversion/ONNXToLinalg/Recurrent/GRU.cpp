//===- GRU.cpp - GRU and RNN ----------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Recurrent/Gates.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The operands that GRU and RNN have in common.
template <typename OpT>
RecurrentOperands getOperands(Lowering<OpT> &b, int64_t gates) {
  RecurrentOperands operands;
  operands.input = b.in.getX();
  operands.inputWeights = b.in.getW();
  operands.stateWeights = b.in.getR();
  operands.bias = b.in.getB();
  operands.lengths = b.in.getSequenceLens();
  operands.initialHidden = b.in.getInitialH();
  operands.gates = gates;
  operands.direction = b.op.getDirection();
  operands.batchFirst = b.op.getLayout() != 0;
  if (b.op.getClip())
    operands.clip = b.op.getClip()->convertToFloat();
  return operands;
}

/// Gates in the order of the weights.
enum Gate { UpdateGate, ResetGate, HiddenGate };

struct Direction {
  Value projections[3];
  /// The weights of the gates that look at the state as such, and where the
  /// hidden gate does not, its own.
  Value weights, hiddenWeights;
  /// The state's bias of the hidden gate when it is multiplied with the reset
  /// gate; null when the projection has it already.
  Value hiddenBias;
  Activation f, g;
  bool linearBeforeReset;
};

SmallVector<Value> createStep(TensorBuilder &s, RecurrentBuilder &r,
                              const Direction &direction, Value time,
                              Value state) {
  // One product for these gates, which threads meet at once for.
  Value products = createMatMul2D(s, state, direction.weights);
  auto project = [&](Gate gate) {
    return s.subTensor(direction.projections[gate], 0, time);
  };
  auto gate = [&](Gate which, bool timesState) {
    SmallVector<Value> inputs{r.getGate(s, products, which), project(which)};
    if (timesState)
      inputs.push_back(state);
    return r
        .cellwise(s, inputs, {}, 1,
                  [&](TensorBuilder &body, ValueRange x) -> SmallVector<Value> {
                    Value value = direction.f.apply(
                        body, r.clip(body, body.add(x[0], x[1])));
                    return {timesState ? body.mul(value, x[2]) : value};
                  })
        .front();
  };
  Value update = gate(UpdateGate, false);
  // Without linear_before_reset this is already reset * state.
  bool linear = direction.linearBeforeReset;
  Value reset = gate(ResetGate, !linear);
  Value product = linear ? r.getGate(s, products, HiddenGate)
                         : createMatMul2D(s, reset, direction.hiddenWeights);
  SmallVector<Value> inputs{product, project(HiddenGate), update, state};
  if (linear)
    inputs.push_back(reset);
  SmallVector<Value> vectors;
  if (direction.hiddenBias)
    vectors.push_back(direction.hiddenBias);
  return r.cellwise(
      s, inputs, vectors, 1,
      [&](TensorBuilder &body, ValueRange x) -> SmallVector<Value> {
        Value recurrent = x[0];
        if (direction.hiddenBias)
          recurrent = body.add(recurrent, x.back());
        if (linear)
          recurrent = body.mul(recurrent, x[4]);
        Value hidden =
            direction.g.apply(body, r.clip(body, body.add(recurrent, x[1])));
        Value rest = body.sub(body.scalar(hidden.getType(), 1), x[2]);
        return {body.add(body.mul(rest, hidden), body.mul(x[2], x[3]))};
      });
}

LogicalResult lowerGRU(Lowering<onnx::GRUOp> &b) {
  StringRef why;
  FailureOr<RecurrentBuilder> r =
      RecurrentBuilder::create(b, getOperands(b, 3), why);
  if (failed(r))
    return b.refuse(why);
  FailureOr<SmallVector<Activation>> activations = getActivations(
      b.op.getActivations(), b.op.getActivationAlpha(),
      b.op.getActivationBeta(), {Activation::Sigmoid, Activation::Tanh},
      r->getDirections());
  if (failed(activations))
    return b.refuseAlways("unknown activation function");
  for (int64_t d = 0; d < r->getDirections(); ++d) {
    Direction direction;
    direction.linearBeforeReset = b.op.getLinearBeforeReset() != 0;
    for (int64_t gate = 0; gate < 3; ++gate) {
      bool apart = gate == HiddenGate && direction.linearBeforeReset;
      direction.projections[gate] = r->getProjection(d, gate, !apart);
      if (apart)
        direction.hiddenBias = r->getStateBias(d, gate);
    }
    int64_t ofState = direction.linearBeforeReset ? 3 : 2;
    direction.weights = r->getStateWeights(d, 0, ofState);
    if (!direction.linearBeforeReset)
      direction.hiddenWeights = r->getStateWeights(d, HiddenGate);
    direction.f = (*activations)[2 * d];
    direction.g = (*activations)[2 * d + 1];
    r->run(d, r->getInitialState(b.in.getInitialH(), d),
           [&](TensorBuilder &s, Value time, ValueRange states) {
             return createStep(s, *r, direction, time, states[0]);
           });
  }
  Type element = elementTypeOf(b.in.getX());
  return b.replace(r->getResults({b.op.getY(), b.op.getYH()}, element));
}

LogicalResult lowerRNN(Lowering<onnx::RNNOp> &b) {
  StringRef why;
  FailureOr<RecurrentBuilder> r =
      RecurrentBuilder::create(b, getOperands(b, 1), why);
  if (failed(r))
    return b.refuse(why);
  FailureOr<SmallVector<Activation>> activations = getActivations(
      b.op.getActivations(), b.op.getActivationAlpha(),
      b.op.getActivationBeta(), {Activation::Tanh}, r->getDirections());
  if (failed(activations))
    return b.refuseAlways("unknown activation function");
  for (int64_t d = 0; d < r->getDirections(); ++d) {
    Value projection = r->getProjection(d, 0, true);
    Value weights = r->getStateWeights(d, 0);
    r->run(d, r->getInitialState(b.in.getInitialH(), d),
           [&](TensorBuilder &s, Value time, ValueRange states) {
             Value product = createMatMul2D(s, states[0], weights);
             return r->cellwise(
                 s, {product, s.subTensor(projection, 0, time)}, {}, 1,
                 [&](TensorBuilder &body, ValueRange x) -> SmallVector<Value> {
                   Value sum = r->clip(body, body.add(x[0], x[1]));
                   return {(*activations)[d].apply(body, sum)};
                 });
           });
  }
  Type element = elementTypeOf(b.in.getX());
  return b.replace(r->getResults({b.op.getY(), b.op.getYH()}, element));
}

} // namespace

void populateGRUPatterns(const TypeConverter &converter,
                         RewritePatternSet &patterns) {
  addLowering<onnx::GRUOp, lowerGRU>(patterns, converter);
  addLowering<onnx::RNNOp, lowerRNN>(patterns, converter);
}

} // namespace sardonyx
