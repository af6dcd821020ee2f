//===- RecomposeActivations.cpp - Gelu, HardSigmoid, HardSwish ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompose.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;

namespace {

const double sqrtHalf = std::sqrt(0.5);
const double sqrtTwoOverPi = std::sqrt(2.0 / 3.14159265358979323846);

/// Whether `value` is `x` times `wanted`, written as Mul or Div.
bool isScaled(Value value, Value x, double wanted) {
  double scalar = 1;
  SmallVector<Value> factors;
  collectFactors(value, scalar, factors);
  return factors.size() == 1 && factors[0] == x &&
         isSameScalar(x.getType(), scalar, wanted);
}

/// Whether `value` is the third power of `x`, times `scalar`.
bool isCube(Value value, Value x, double &scalar) {
  SmallVector<Value> factors;
  collectFactors(value, scalar, factors);
  unsigned power = 0;
  for (Value factor : factors) {
    auto pow = factor.getDefiningOp<onnx::PowOp>();
    if (factor == x) {
      ++power;
    } else if (pow && pow.getX() == x) {
      if (isScalarFor(pow.getY(), x, 3))
        power += 3;
      else if (isScalarFor(pow.getY(), x, 2))
        power += 2;
      else
        return false;
    } else {
      return false;
    }
  }
  return power == 3;
}

/// Whether `value` is sqrt(2 / pi) * (x + 0.044715 * x^3).
bool isTanhArgument(Value value, Value x) {
  double scalar = 1;
  SmallVector<Value> factors;
  collectFactors(value, scalar, factors);
  if (factors.size() != 1 || !isSameScalar(x.getType(), scalar, sqrtTwoOverPi))
    return false;
  auto sum = factors[0].getDefiningOp<onnx::AddOp>();
  if (!sum || (sum.getA() != x && sum.getB() != x))
    return false;
  double cubic = 1;
  return isCube(sum.getA() == x ? sum.getB() : sum.getA(), x, cubic) &&
         isSameScalar(x.getType(), cubic, 0.044715);
}

/// 0.5 * x * (1 + f(x)), the factors in any order and grouping.
struct RecomposeGelu : OpRewritePattern<onnx::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::MulOp op,
                                PatternRewriter &rewriter) const override {
    double scalar = 1;
    SmallVector<Value> factors;
    collectFactors(op.getC(), scalar, factors);
    if (factors.size() != 2)
      return rewriter.notifyMatchFailure(op, "not a product of two");
    if (!isSameScalar(op.getType(), scalar, 0.5))
      return rewriter.notifyMatchFailure(op, "not halved");
    for (unsigned i : {0, 1}) {
      Value x = factors[i];
      if (x.getType() != op.getType())
        continue;
      Value inner =
          matchWithScalar(factors[1 - i].getDefiningOp<onnx::AddOp>(), 1.0);
      if (!inner)
        continue;
      StringRef approximate;
      if (auto erf = inner.getDefiningOp<onnx::ErfOp>())
        approximate = isScaled(erf.getInput(), x, sqrtHalf) ? "none" : "";
      else if (auto tanh = inner.getDefiningOp<onnx::TanhOp>())
        approximate = isTanhArgument(tanh.getInput(), x) ? "tanh" : "";
      if (approximate.empty())
        continue;
      rewriter.replaceOpWithNewOp<onnx::GeluOp>(op, op.getType(), x,
                                                approximate);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "not Gelu");
  }
};

/// The x of Clip(x + 3, 0, 6); null if `value` isn't one.
Value matchRelu6OfShifted(Value value) {
  Value shifted;
  if (auto clip = value.getDefiningOp<onnx::ClipOp>()) {
    shifted = clip.getInput();
    if (!clip.getMin() || !clip.getMax() ||
        !isScalarFor(clip.getMin(), shifted, 0) ||
        !isScalarFor(clip.getMax(), shifted, 6))
      return {};
  } else if (auto min = value.getDefiningOp<onnx::MinOp>()) {
    auto relu = matchWithScalar(min, 6);
    auto op = relu ? relu.getDefiningOp<onnx::ReluOp>() : onnx::ReluOp();
    if (!op)
      return {};
    shifted = op.getX();
  } else {
    return {};
  }
  return matchWithScalar(shifted.getDefiningOp<onnx::AddOp>(), 3);
}

/// Clip(x + 3, 0, 6) / 6, and the same times x.
template <typename RootOp>
struct RecomposeHardSwish : OpRewritePattern<RootOp> {
  using OpRewritePattern<RootOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(RootOp op,
                                PatternRewriter &rewriter) const override {
    double scalar = 1;
    SmallVector<Value> factors;
    Type type = op->getResult(0).getType();
    collectFactors(op->getResult(0), scalar, factors);
    if (factors.size() == 2 && isSameScalar(type, scalar, 1))
      return matchSigmoid(op, factors, rewriter);
    if (!isSameScalar(type, scalar, 1.0 / 6.0))
      return rewriter.notifyMatchFailure(op, "not a sixth");
    if (factors.size() == 1) {
      Value x = matchRelu6OfShifted(factors[0]);
      if (!x || x.getType() != type)
        return rewriter.notifyMatchFailure(op, "not HardSigmoid");
      rewriter.replaceOpWithNewOp<onnx::HardSigmoidOp>(
          op, type, x, APFloat(1.0f / 6.0f), APFloat(0.5f));
      return success();
    }
    for (unsigned i : {0, 1})
      if (factors.size() == 2 && factors[i].getType() == type &&
          matchRelu6OfShifted(factors[1 - i]) == factors[i]) {
        rewriter.replaceOpWithNewOp<onnx::HardSwishOp>(op, type, factors[i]);
        return success();
      }
    return rewriter.notifyMatchFailure(op, "not HardSwish");
  }

private:
  LogicalResult matchSigmoid(RootOp op, ArrayRef<Value> factors,
                             PatternRewriter &rewriter) const {
    for (unsigned i : {0, 1}) {
      auto sigmoid = factors[1 - i].getDefiningOp<onnx::HardSigmoidOp>();
      if (!sigmoid || sigmoid.getX() != factors[i])
        continue;
      auto f32 = Float32Type::get(op.getContext());
      if (!isSameScalar(f32, sigmoid.getAlpha().convertToFloat(), 1.0 / 6.0) ||
          !isSameScalar(f32, sigmoid.getBeta().convertToFloat(), 0.5))
        continue;
      rewriter.replaceOpWithNewOp<onnx::HardSwishOp>(
          op, op->getResult(0).getType(), factors[i]);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "not x * HardSigmoid(x)");
  }
};

} // namespace

void sardonyx::populateRecomposeActivationPatterns(
    RewritePatternSet &patterns) {
  patterns.add<RecomposeGelu, RecomposeHardSwish<onnx::MulOp>,
               RecomposeHardSwish<onnx::DivOp>>(patterns.getContext());
}
