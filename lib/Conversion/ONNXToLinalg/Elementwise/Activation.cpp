//===- Activation.cpp - Elementwise functions of one operand --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise/Arithmetic.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

using Args = ValueRange;

//===----------------------------------------------------------------------===//
// Plain functions
//===----------------------------------------------------------------------===//

/// An op of the math dialect; integers pass through those that round.
template <typename MathOp>
static Value mathOp(ScalarBuilder &s, Operation *, Args args) {
  return s.isFloat() ? s.createOrFold<MathOp>(args[0]) : args[0];
}

template <Value (ScalarBuilder::*method)(Value)>
static Value unary(ScalarBuilder &s, Operation *, Args args) {
  return (s.*method)(args[0]);
}

static Value reciprocal(ScalarBuilder &s, Operation *, Args args) {
  return s.div(s.constant(1), args[0]);
}

/// Zero and NaN are returned as they are.
static Value sign(ScalarBuilder &s, Operation *, Args args) {
  Value x = args[0], zero = s.constant(0);
  Value positive = s.select(s.lt(zero, x), s.constant(1), x);
  if (s.isUnsigned())
    return positive;
  return s.select(s.lt(x, zero), s.constant(-1), positive);
}

static Value isNaN(ScalarBuilder &s, Operation *, Args args) {
  return s.createOrFold<arith::CmpFOp>(arith::CmpFPredicate::UNO, args[0],
                                       args[0]);
}

static Value isInf(ScalarBuilder &s, Operation *op, Args args) {
  auto isInfOp = cast<onnx::IsInfOp>(op);
  Value x = args[0];
  Value infinity = createHighest(s, s.getLoc(), s.getOnnxType());
  Value result = s.boolean(false);
  if (isInfOp.getDetectPositive())
    result = s.eq(x, infinity);
  if (isInfOp.getDetectNegative())
    result = s.createOrFold<arith::OrIOp>(result, s.eq(x, s.neg(infinity)));
  return result;
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

static Value relu(ScalarBuilder &s, Operation *, Args args) {
  return s.isUnsigned() ? args[0] : s.atLeast(args[0], s.constant(0));
}

static Value leakyRelu(ScalarBuilder &s, Operation *op, Args args) {
  double alpha = toDouble(cast<onnx::LeakyReluOp>(op).getAlpha());
  Value x = args[0];
  return s.select(s.lt(x, s.constant(0)), s.mul(s.constant(alpha), x), x);
}

static Value thresholdedRelu(ScalarBuilder &s, Operation *op, Args args) {
  double alpha = toDouble(cast<onnx::ThresholdedReluOp>(op).getAlpha());
  return s.select(s.gt(args[0], s.constant(alpha)), args[0], s.constant(0));
}

/// scale * (e^(x / divisor) - 1) below zero, else x.
static Value exponentialUnit(ScalarBuilder &s, Value x, double scale,
                             double divisor) {
  Value scaled = divisor == 1 ? x : s.div(x, s.constant(divisor));
  Value below = s.mul(s.constant(scale), s.sub(s.exp(scaled), s.constant(1)));
  return s.select(s.lt(x, s.constant(0)), below, x);
}

static Value elu(ScalarBuilder &s, Operation *op, Args args) {
  double alpha = toDouble(cast<onnx::EluOp>(op).getAlpha());
  return exponentialUnit(s, args[0], alpha, 1);
}

static Value celu(ScalarBuilder &s, Operation *op, Args args) {
  double alpha = toDouble(cast<onnx::CeluOp>(op).getAlpha());
  return exponentialUnit(s, args[0], alpha, alpha);
}

static Value selu(ScalarBuilder &s, Operation *op, Args args) {
  auto seluOp = cast<onnx::SeluOp>(op);
  Value inner =
      exponentialUnit(s, args[0], toDouble(seluOp.getAlpha()), /*divisor=*/1);
  return s.mul(s.constant(toDouble(seluOp.getGamma())), inner);
}

static Value clampToUnit(ScalarBuilder &s, Value x) {
  return s.atMost(s.atLeast(x, s.constant(0)), s.constant(1));
}

static Value hardSigmoid(ScalarBuilder &s, Operation *op, Args args) {
  auto hard = cast<onnx::HardSigmoidOp>(op);
  Value line = s.add(s.mul(s.constant(toDouble(hard.getAlpha())), args[0]),
                     s.constant(toDouble(hard.getBeta())));
  return clampToUnit(s, line);
}

static Value hardSwish(ScalarBuilder &s, Operation *, Args args) {
  Value line = s.add(s.mul(s.constant(1.0 / 6), args[0]), s.constant(0.5));
  return s.mul(args[0], clampToUnit(s, line));
}

static Value mish(ScalarBuilder &s, Operation *, Args args) {
  return s.mul(args[0], s.tanh(s.softplus(args[0])));
}

static Value swish(ScalarBuilder &s, Operation *op, Args args) {
  double alpha = toDouble(cast<onnx::SwishOp>(op).getAlpha());
  Value x = args[0];
  return s.mul(x, s.sigmoid(alpha == 1 ? x : s.mul(s.constant(alpha), x)));
}

static Value softsign(ScalarBuilder &s, Operation *, Args args) {
  return s.div(args[0], s.add(s.constant(1), s.abs(args[0])));
}

static Value gelu(ScalarBuilder &s, Operation *op, Args args) {
  Value x = args[0], inner;
  if (cast<onnx::GeluOp>(op).getApproximate() == "tanh") {
    Value cube = s.mul(s.mul(x, x), x);
    Value sum = s.add(x, s.mul(s.constant(0.044715), cube));
    inner = s.tanh(s.mul(s.constant(0.7978845608028654), sum));
  } else {
    inner =
        s.createOrFold<math::ErfOp>(s.mul(x, s.constant(0.7071067811865476)));
  }
  Value half = s.mul(s.constant(0.5), x);
  return s.mulAdd(half, inner, half);
}

static Value shrink(ScalarBuilder &s, Operation *op, Args args) {
  auto shrinkOp = cast<onnx::ShrinkOp>(op);
  Value x = args[0];
  // Integers are compared and shifted as floats, then truncated.
  Type onnxType = s.getOnnxType();
  Type computeOnnx = s.isFloat() ? onnxType : Type(s.getF32Type());
  ScalarBuilder f(s, s.getLoc(), computeOnnx);
  Value value = castScalar(f, f.getLoc(), x, onnxType, computeOnnx);
  Value lambda = f.constant(toDouble(shrinkOp.getLambd()));
  Value bias = f.constant(toDouble(shrinkOp.getBias()));
  Value middle =
      f.select(f.gt(value, lambda), f.sub(value, bias), f.constant(0));
  Value result =
      f.select(f.lt(value, f.neg(lambda)), f.add(value, bias), middle);
  return castScalar(f, f.getLoc(), result, computeOnnx, onnxType);
}

void populateActivationPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  static const ElementwiseRow rows[] = {
      {"onnx.Abs", unary<&ScalarBuilder::abs>},
      {"onnx.Neg", unary<&ScalarBuilder::neg>},
      {"onnx.Reciprocal", reciprocal},
      {"onnx.Sign", sign},
      {"onnx.IsNaN", isNaN},
      {"onnx.IsInf", isInf},
      {"onnx.Acos", mathOp<math::AcosOp>},
      {"onnx.Acosh", mathOp<math::AcoshOp>},
      {"onnx.Asin", mathOp<math::AsinOp>},
      {"onnx.Asinh", mathOp<math::AsinhOp>},
      {"onnx.Atan", mathOp<math::AtanOp>},
      {"onnx.Atanh", mathOp<math::AtanhOp>},
      {"onnx.Ceil", mathOp<math::CeilOp>},
      {"onnx.Cos", mathOp<math::CosOp>},
      {"onnx.Cosh", mathOp<math::CoshOp>},
      {"onnx.Erf", mathOp<math::ErfOp>},
      {"onnx.Exp", mathOp<math::ExpOp>},
      {"onnx.Floor", mathOp<math::FloorOp>},
      {"onnx.Log", mathOp<math::LogOp>},
      {"onnx.Round", mathOp<math::RoundEvenOp>},
      {"onnx.Sin", mathOp<math::SinOp>},
      {"onnx.Sinh", mathOp<math::SinhOp>},
      {"onnx.Sqrt", mathOp<math::SqrtOp>},
      {"onnx.Tan", mathOp<math::TanOp>},
      {"onnx.Tanh", mathOp<math::TanhOp>},
      {"onnx.Sigmoid", unary<&ScalarBuilder::sigmoid>},
      {"onnx.Softplus", unary<&ScalarBuilder::softplus>},
      {"onnx.Softsign", softsign},
      {"onnx.Relu", relu},
      {"onnx.LeakyRelu", leakyRelu},
      {"onnx.ThresholdedRelu", thresholdedRelu},
      {"onnx.Elu", elu},
      {"onnx.Celu", celu},
      {"onnx.Selu", selu},
      {"onnx.HardSigmoid", hardSigmoid},
      {"onnx.HardSwish", hardSwish},
      {"onnx.Mish", mish},
      {"onnx.Swish", swish},
      {"onnx.Gelu", gelu},
      {"onnx.Shrink", shrink},
  };
  addElementwiseRows(converter, patterns, rows);
}

} // namespace sardonyx
