//===- Optimizers.cpp - Momentum, Adagrad, Adam ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One step of training: new values of tensors and of their states, element by
// element. Any number of tensors is a step for each of them.
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"

#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// Computes on elements of one type, in that type.
struct Arithmetic {
  TensorBuilder &b;
  Type type;

  Value number(double value) { return b.scalar(type, value); }
  Value scale(const APFloat &factor, Value x) {
    return b.mul(number(factor.convertToDouble()), x);
  }
  Value divide(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value root(Value x) { return math::SqrtOp::create(b, x); }
  Value power(const APFloat &base, Value exponent) {
    return math::PowFOp::create(b, number(base.convertToDouble()), exponent);
  }
};

/// Computes from an element, its gradient and its states (in this order) the
/// new element and the new states.
using Rule = function_ref<Values(Arithmetic, ValueRange)>;

/// The inputs are lists of all tensors, then of all gradients, then of all
/// states of one kind after the other; the results are without the gradients.
template <typename OpT>
LogicalResult optimize(Lowering<OpT> &b, size_t states, Rule rule) {
  SmallVector<Value> inputs(b.in.getInputs());
  size_t parts = states + 2, count = inputs.size() / parts;
  if (inputs.size() % parts || b.op->getNumResults() != count * (parts - 1))
    return b.refuse("the numbers of tensors and of their states do not fit");
  Values results(b.op->getNumResults());
  for (size_t i = 0; i < count; ++i) {
    Values tensors;
    for (size_t part = 0; part < parts; ++part)
      tensors.push_back(inputs[part * count + i]);
    Sizes sizes = b.dims(tensors.front());
    Type type = elementTypeOf(tensors.front());
    for (Value tensor : ArrayRef(tensors).drop_front()) {
      if (b.rank(tensor) != int64_t(sizes.size()) ||
          elementTypeOf(tensor) != type)
        return b.refuse("a tensor and its states differ in type or rank");
      for (auto [dim, size] : llvm::enumerate(sizes)) {
        size = b.sameSize(size, b.dim(tensor, dim),
                          "a tensor and its states differ in size");
        if (!size)
          return b.refuse("a tensor and its states differ in size");
      }
    }
    SmallVector<AffineMap> maps(parts, b.identityMap(sizes.size()));
    SmallVector<Type> types(parts - 1, type);
    Values made = b.elementwise(
        sizes, tensors, maps, types,
        [&](TensorBuilder &s, ValueRange in) { return rule({s, type}, in); });
    for (auto [part, value] : llvm::enumerate(made))
      results[part * count + i] = value;
  }
  return b.replace(results);
}

/// The learning rate and the update count, which is a float as well then.
struct Step {
  Value rate, count;

  template <typename OpT> static Step of(Lowering<OpT> &b) {
    Value rate = getScalar(b, b.getLoc(), b.in.getR());
    Value count = getScalar(b, b.getLoc(), b.in.getT());
    return {rate, b.convert(count, b.getF64Type())};
  }
  Value isLater(TensorBuilder &b) const {
    return b.greater(count, b.scalar(b.getF64Type(), 0));
  }
};

LogicalResult lowerMomentum(Lowering<onnx::TrainingMomentumOp> &b) {
  StringRef mode = b.op.getMode();
  if (mode != "standard" && mode != "nesterov")
    return b.refuseAlways("mode '" + mode + "' is not known");
  Step step = Step::of(b);
  // In the first iteration all of the gradient counts.
  Type f64 = b.getF64Type();
  Value beta =
      b.select(step.isLater(b), b.scalar(f64, b.op.getBeta().convertToDouble()),
               b.scalar(f64, 1));
  APFloat alpha = b.op.getAlpha(), norm = b.op.getNormCoefficient();
  return optimize(b, 1, [&](Arithmetic a, ValueRange in) -> Values {
    TensorBuilder &s = a.b;
    Value gradient = s.add(a.scale(norm, in[0]), in[1]);
    Value share = s.mul(s.convert(beta, a.type), gradient);
    Value state = s.add(a.scale(alpha, in[2]), share);
    Value direction =
        mode == "standard" ? state : s.add(gradient, a.scale(alpha, state));
    Value change = s.mul(s.convert(step.rate, a.type), direction);
    return {s.sub(in[0], change), state};
  });
}

LogicalResult lowerAdagrad(Lowering<onnx::TrainingAdagradOp> &b) {
  Step step = Step::of(b);
  APFloat norm = b.op.getNormCoefficient();
  double epsilon = b.op.getEpsilon().convertToDouble();
  Arithmetic a = {b, b.getF64Type()};
  Value decay = b.add(a.number(1), a.scale(b.op.getDecayFactor(), step.count));
  Value rate = a.divide(b.convert(step.rate, a.type), decay);
  return optimize(b, 1, [&](Arithmetic a, ValueRange in) -> Values {
    TensorBuilder &s = a.b;
    Value gradient = s.add(a.scale(norm, in[0]), in[1]);
    Value state = s.add(in[2], s.mul(gradient, gradient));
    Value divisor = s.add(a.root(state), a.number(epsilon));
    Value change = s.mul(s.convert(rate, a.type), gradient);
    return {s.sub(in[0], a.divide(change, divisor)), state};
  });
}

LogicalResult lowerAdam(Lowering<onnx::TrainingAdamOp> &b) {
  Step step = Step::of(b);
  APFloat alpha = b.op.getAlpha(), beta = b.op.getBeta();
  APFloat norm = b.op.getNormCoefficient();
  double epsilon = b.op.getEpsilon().convertToDouble();
  double after = 1 - b.op.getNormCoefficientPost().convertToDouble();
  auto rest = [](const APFloat &share) { return 1 - share.convertToDouble(); };
  // The states begin at zero, which is made up for.
  Arithmetic a = {b, b.getF64Type()};
  Value given = b.convert(step.rate, a.type);
  Value squares = a.root(b.sub(a.number(1), a.power(beta, step.count)));
  Value sums = b.sub(a.number(1), a.power(alpha, step.count));
  Value rate =
      b.select(step.isLater(b), a.divide(b.mul(given, squares), sums), given);
  return optimize(b, 2, [&](Arithmetic a, ValueRange in) -> Values {
    TensorBuilder &s = a.b;
    Value gradient = s.add(a.scale(norm, in[0]), in[1]);
    Value mean =
        s.add(a.scale(alpha, in[2]), s.mul(a.number(rest(alpha)), gradient));
    Value square = s.mul(gradient, gradient);
    square = s.add(a.scale(beta, in[3]), s.mul(a.number(rest(beta)), square));
    Value divisor = s.add(a.root(square), a.number(epsilon));
    Value change = s.mul(s.convert(rate, a.type), a.divide(mean, divisor));
    return {s.mul(a.number(after), s.sub(in[0], change)), mean, square};
  });
}

} // namespace

void populateOptimizerPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  addLowering<onnx::TrainingMomentumOp, lowerMomentum>(patterns, converter);
  addLowering<onnx::TrainingAdagradOp, lowerAdagrad>(patterns, converter);
  addLowering<onnx::TrainingAdamOp, lowerAdam>(patterns, converter);
}

} // namespace sardonyx
