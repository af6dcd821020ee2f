//===- RecomposeNormalizations.cpp - Layer and RMS normalisation ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompose.h"

#include "dialects/SDX/SDX.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// The input of a ReduceMean over the last dimensions that keeps them, and how
/// many these are.
struct TrailingMean {
  Value input;
  int64_t dimensions;
};

std::optional<TrailingMean> matchTrailingMean(Value value) {
  auto mean = value.getDefiningOp<onnx::ReduceMeanOp>();
  DenseIntElementsAttr axes;
  if (!mean || !mean.getKeepdims() || !mean.getAxes() ||
      !matchPattern(mean.getAxes(), m_Constant(&axes)) ||
      axes.getNumElements() == 0)
    return std::nullopt;
  auto type = dyn_cast<RankedTensorType>(mean.getData().getType());
  SmallVector<int64_t> fromEnd;
  for (const APInt &axis : axes.getValues<APInt>()) {
    int64_t a = axis.getSExtValue();
    if (a >= 0 && !type)
      return std::nullopt;
    fromEnd.push_back(a < 0 ? a : a - type.getRank());
  }
  llvm::sort(fromEnd);
  for (auto [i, axis] : llvm::enumerate(llvm::reverse(fromEnd)))
    if (axis != -1 - static_cast<int64_t>(i))
      return std::nullopt;
  return TrailingMean{mean.getData(), static_cast<int64_t>(fromEnd.size())};
}

/// The base of a square.
Value matchSquare(Value value) {
  if (auto pow = value.getDefiningOp<onnx::PowOp>())
    if (isScalarFor(pow.getY(), pow.getX(), 2))
      return pow.getX();
  if (auto mul = value.getDefiningOp<onnx::MulOp>())
    if (mul.getA() == mul.getB())
      return mul.getA();
  return {};
}

/// value / sqrt(meanSquare + epsilon)
struct Normalized {
  Value value;
  Value meanSquare;
  double epsilon;
};

/// The argument of a square root of which `value` is the reciprocal.
Value matchReciprocalSqrt(Value value) {
  Value root;
  if (auto reciprocal = value.getDefiningOp<onnx::ReciprocalOp>())
    root = reciprocal.getX();
  else if (auto div = value.getDefiningOp<onnx::DivOp>())
    root = isScalarFor(div.getA(), div.getB(), 1) ? div.getB() : Value();
  else if (auto pow = value.getDefiningOp<onnx::PowOp>())
    return isScalarFor(pow.getY(), pow.getX(), -0.5) ? pow.getX() : Value();
  auto sqrt = root ? root.getDefiningOp<onnx::SqrtOp>() : onnx::SqrtOp();
  return sqrt ? sqrt.getX() : Value();
}

std::optional<Normalized> finish(Value value, Value radicand) {
  auto sum = radicand.getDefiningOp<onnx::AddOp>();
  if (!sum)
    return std::nullopt;
  for (auto [term, epsilon] : {std::pair<Value, Value>(sum.getA(), sum.getB()),
                               std::pair<Value, Value>(sum.getB(), sum.getA())})
    if (auto number = getScalarFor(epsilon, term))
      return Normalized{value, term, *number};
  return std::nullopt;
}

std::optional<Normalized> matchNormalized(Value value) {
  if (auto div = value.getDefiningOp<onnx::DivOp>()) {
    auto sqrt = div.getB().getDefiningOp<onnx::SqrtOp>();
    return sqrt ? finish(div.getA(), sqrt.getX()) : std::nullopt;
  }
  if (auto mul = value.getDefiningOp<onnx::MulOp>())
    for (auto [factor, other] :
         {std::pair<Value, Value>(mul.getA(), mul.getB()),
          std::pair<Value, Value>(mul.getB(), mul.getA())})
      if (Value radicand = matchReciprocalSqrt(other))
        return finish(factor, radicand);
  return std::nullopt;
}

/// Whether `value` has exactly the shape of the last `count` dimensions of `x`.
bool hasTrailingShape(Value value, Value x, int64_t count) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto whole = dyn_cast<RankedTensorType>(x.getType());
  return type && whole && type.hasStaticShape() && whole.getRank() >= count &&
         type.getShape() == whole.getShape().take_back(count) &&
         type.getElementType() == whole.getElementType();
}

/// Both operators compute in f32 unless told otherwise, as the chain does when
/// it is f32.
bool isSinglePrecision(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}

/// The sum of `product` and a bias, if that is all that becomes of `product`.
onnx::AddOp findBias(onnx::MulOp product, Value x, int64_t count, Value &bias) {
  if (!sdx::hasOneReader(product))
    return {};
  auto reader = llvm::find_if_not(product->getUsers(), sdx::isObservation);
  auto sum = dyn_cast<onnx::AddOp>(*reader);
  if (!sum || sum.getType() != product.getType())
    return {};
  bias = sum.getA() == product.getC() ? sum.getB() : sum.getA();
  return hasTrailingShape(bias, x, count) ? sum : onnx::AddOp();
}

/// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * scale + bias
struct RecomposeLayerNormalization : OpRewritePattern<onnx::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::MulOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [value, scale] : {std::pair<Value, Value>(op.getA(), op.getB()),
                                std::pair<Value, Value>(op.getB(), op.getA())})
      if (succeeded(rewrite(op, value, scale, rewriter)))
        return success();
    return rewriter.notifyMatchFailure(op, "not a normalised value scaled");
  }

private:
  LogicalResult rewrite(onnx::MulOp op, Value value, Value scale,
                        PatternRewriter &rewriter) const {
    std::optional<Normalized> normalized = matchNormalized(value);
    if (!normalized)
      return failure();
    auto variance = matchTrailingMean(normalized->meanSquare);
    auto centered = normalized->value.getDefiningOp<onnx::SubOp>();
    if (!variance || !centered)
      return failure();
    Value x = centered.getA(), squared = matchSquare(variance->input);
    auto mean = matchTrailingMean(centered.getB());
    if (!squared || !mean || mean->input != x ||
        mean->dimensions != variance->dimensions || !isSinglePrecision(x) ||
        x.getType() != op.getType() ||
        !hasTrailingShape(scale, x, mean->dimensions))
      return failure();
    // Exporters compute x - mean(x) a second time for the variance.
    auto again = squared.getDefiningOp<onnx::SubOp>();
    if (squared != centered.getC() &&
        (!again || again.getA() != x || !isMeanOf(again.getB(), *mean)))
      return failure();

    Value bias;
    onnx::AddOp sum = findBias(op, x, mean->dimensions, bias);
    Operation *last = sum ? sum.getOperation() : op.getOperation();
    rewriter.setInsertionPoint(last);
    rewriter.replaceOpWithNewOp<onnx::LayerNormalizationOp>(
        last, x.getType(), Type(), Type(), x, scale, sum ? bias : Value(),
        -mean->dimensions, APFloat(static_cast<float>(normalized->epsilon)));
    return success();
  }

  static bool isMeanOf(Value value, const TrailingMean &mean) {
    auto other = matchTrailingMean(value);
    return other && other->input == mean.input &&
           other->dimensions == mean.dimensions;
  }
};

/// x / sqrt(mean(x^2) + epsilon) * scale
struct RecomposeRMSNormalization : OpRewritePattern<onnx::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::MulOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [value, scale] :
         {std::pair<Value, Value>(op.getA(), op.getB()),
          std::pair<Value, Value>(op.getB(), op.getA())}) {
      std::optional<Normalized> normalized = matchNormalized(value);
      if (!normalized)
        continue;
      Value x = normalized->value;
      auto mean = matchTrailingMean(normalized->meanSquare);
      if (!mean || matchSquare(mean->input) != x || !isSinglePrecision(x) ||
          x.getType() != op.getType() ||
          !hasTrailingShape(scale, x, mean->dimensions))
        continue;
      rewriter.replaceOpWithNewOp<onnx::RMSNormalizationOp>(
          op, op.getType(), x, scale, -mean->dimensions,
          APFloat(static_cast<float>(normalized->epsilon)));
      return success();
    }
    return rewriter.notifyMatchFailure(op, "not a normalised value scaled");
  }
};

} // namespace

void sardonyx::populateRecomposeNormalizationPatterns(
    RewritePatternSet &patterns) {
  patterns.add<RecomposeLayerNormalization, RecomposeRMSNormalization>(
      patterns.getContext());
}
