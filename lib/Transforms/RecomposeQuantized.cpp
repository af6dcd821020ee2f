//===- RecomposeQuantized.cpp - Products of what was dequantised ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Quantised models compute in f32 between DequantizeLinear and QuantizeLinear
// and leave it to the compiler to multiply the integers. With one scale for
// the left-hand side, and one for each column of the right-hand side at most,
//   sum (a - za) sa (b - zb) sb = sa sb sum (a - za) (b - zb).
// The sum of integers is exact, where that of floats rounds. So are
// convolutions with one scale for the input, and one for each filter at most; a
// bias that was quantised by the product of both scales is added to the
// integers.
//
//===----------------------------------------------------------------------===//

#include "Quantized.h"
#include "Recompose.h"

using namespace mlir;
using namespace sardonyx;

/// The operation that made `value` of 8-bit integers; null if none did.
static onnx::DequantizeLinearOp getDequantized(Value value) {
  auto op = value.getDefiningOp<onnx::DequantizeLinearOp>();
  if (!op || op.getBlockSize() != 0 || !op.getXScale() ||
      !getElementTypeOrSelf(op.getXScale()).isF32() ||
      !getElementTypeOrSelf(op.getType()).isF32() ||
      !getElementTypeOrSelf(op.getX()).isInteger(8) ||
      !isa<RankedTensorType>(op.getX().getType()))
    return nullptr;
  return op;
}

/// Whether every sum of `length` products of differences of bytes is an int32,
/// also with a number of magnitude `added`: each difference is at most 255.
static bool fitsInt32(int64_t length, int64_t added = 0) {
  constexpr int64_t kMaxProduct = 255 * 255;
  return length <= (INT32_MAX - added) / kMaxProduct;
}

/// Whether integers are probabilities, which softmax made along the last
/// dimension: those of a row add up to one, and each is rounded by a half at
/// most. So `length` products by differences of bytes have a sum of at most
/// (1 / scale + length / 2) * 255, which is an int32 for any row there is
/// memory for.
static bool areProbabilities(Value integers) {
  constexpr float kLeastScale = 0x1p-14f;
  auto op = integers.getDefiningOp<onnx::QuantizeLinearOp>();
  auto softmax = op ? op.getX().getDefiningOp<onnx::SoftmaxOp>() : nullptr;
  auto type = softmax ? dyn_cast<RankedTensorType>(softmax.getType())
                      : RankedTensorType();
  auto given = type ? Quantization::get(op) : std::nullopt;
  std::optional<float> scale = given ? given->getScale() : std::nullopt;
  return scale && *scale >= kLeastScale &&
         (softmax.getAxis() + type.getRank()) % type.getRank() ==
             type.getRank() - 1;
}

/// The largest magnitude of a constant of i32; that of all i32 for others.
static int64_t getLargest(Value integers) {
  int64_t largest = 0;
  auto known = readIntegers(integers);
  if (!known)
    return INT32_MAX;
  for (int64_t integer : *known)
    largest = std::max(largest, std::abs(integer));
  return largest;
}

/// Whether the scale, and with it the zero point, is one number or, if `axis`
/// is given, one for each index of that dimension.
static bool isScaledAlong(onnx::DequantizeLinearOp op,
                          std::optional<int64_t> axis) {
  Value zero = op.getXZeroPoint();
  if (zero && getElementTypeOrSelf(zero) != getElementTypeOrSelf(op.getX()))
    return false;
  if (hasOneElement(op.getXScale()))
    return !zero || hasOneElement(zero);
  int64_t rank = cast<RankedTensorType>(op.getX().getType()).getRank();
  auto isList = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() == 1;
  };
  return isList(op.getXScale()) && (!zero || isList(zero)) &&
         (op.getAxis() + rank) % rank == axis;
}

namespace {

/// A product of two dequantised matrices.
struct ByteProduct {
  onnx::DequantizeLinearOp lhs, rhs;
  /// Whether the right-hand side is [N,K].
  bool transposed;

  static std::optional<ByteProduct> match(Value a, Value b, bool transposed) {
    ByteProduct product{getDequantized(a), getDequantized(b), transposed};
    if (!product.lhs || !product.rhs)
      return std::nullopt;
    auto left = cast<RankedTensorType>(product.lhs.getX().getType());
    auto right = cast<RankedTensorType>(product.rhs.getX().getType());
    if (left.getRank() < 2 || right.getRank() < 2 ||
        !isScaledAlong(product.lhs, std::nullopt))
      return std::nullopt;
    int64_t depth = right.getDimSize(right.getRank() - (transposed ? 1 : 2));
    if (ShapedType::isDynamic(depth))
      depth = left.getShape().back();
    if (ShapedType::isDynamic(depth) ? !areProbabilities(product.lhs.getX())
                                     : !fitsInt32(depth))
      return std::nullopt;
    // Matrices that are computed have one scale for all columns.
    const bool areWeights = right.getRank() == 2 && right.hasStaticShape();
    if (!isScaledAlong(product.rhs, areWeights
                                        ? std::optional(transposed ? 0 : 1)
                                        : std::nullopt))
      return std::nullopt;
    return product;
  }

  /// The integers that `bias`, which may be null, adds to the sums; null where
  /// it is another one, or sums might leave 32 bits.
  Value getIntegers(Value bias) {
    auto right = cast<RankedTensorType>(rhs.getX().getType());
    const int64_t depth =
        right.getDimSize(right.getRank() - (transposed ? 1 : 2));
    Value integers = getIntegerBias(bias, lhs.getXScale(), rhs.getXScale());
    return integers && !ShapedType::isDynamic(depth) &&
                   fitsInt32(depth, getLargest(integers))
               ? integers
               : Value();
  }

  /// The product in f32, of `type`, with `integers` added unless they are null.
  Value build(PatternRewriter &rewriter, Location loc, Type type,
              Value integers = {}) {
    auto result = cast<TensorType>(type);
    Value right = rhs.getX();
    auto rightType = cast<RankedTensorType>(right.getType());
    if (transposed)
      right = onnx::TransposeOp::create(
          rewriter, loc,
          rightType.clone({rightType.getDimSize(1), rightType.getDimSize(0)}),
          right, rewriter.getDenseI64ArrayAttr({1, 0}));
    auto zeroPoint = [](onnx::DequantizeLinearOp op) {
      return isZeroPointZero(op.getXZeroPoint()) ? Value() : op.getXZeroPoint();
    };
    Value sum = onnx::MatMulIntegerOp::create(
        rewriter, loc, result.clone(rewriter.getI32Type()), lhs.getX(), right,
        zeroPoint(lhs), zeroPoint(rhs));
    if (integers)
      sum = onnx::AddOp::create(rewriter, loc, sum.getType(), sum, integers);
    Value whole =
        onnx::CastOp::create(rewriter, loc, result, sum, /*round_mode=*/"up",
                             /*saturate=*/1, kOnnxFloat);
    auto scales = cast<RankedTensorType>(rhs.getXScale().getType());
    auto one = cast<RankedTensorType>(lhs.getXScale().getType());
    Value scale = onnx::MulOp::create(
        rewriter, loc, scales.getRank() < one.getRank() ? one : scales,
        lhs.getXScale(), rhs.getXScale());
    return onnx::MulOp::create(rewriter, loc, result, whole, scale);
  }

  /// TensorProto.FLOAT.
  static constexpr int64_t kOnnxFloat = 1;
};

struct QuantizedMatMul : OpRewritePattern<onnx::MatMulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::MatMulOp op,
                                PatternRewriter &rewriter) const override {
    auto product = ByteProduct::match(op.getA(), op.getB(), false);
    if (!product || !isa<RankedTensorType>(op.getType()))
      return rewriter.notifyMatchFailure(op, "not of dequantised bytes");
    rewriter.replaceOp(op, product->build(rewriter, op.getLoc(), op.getType()));
    return success();
  }
};

struct QuantizedGemm : OpRewritePattern<onnx::GemmOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::GemmOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getTransA() || !op.getAlpha().isExactlyValue(1.0f) ||
        (op.getC() && !op.getBeta().isExactlyValue(1.0f)) ||
        !isa<RankedTensorType>(op.getType()))
      return rewriter.notifyMatchFailure(op, "is no plain product");
    auto product = ByteProduct::match(op.getA(), op.getB(), op.getTransB());
    if (!product)
      return rewriter.notifyMatchFailure(op, "not of dequantised bytes");
    Value integers = product->getIntegers(op.getC());
    Value result =
        product->build(rewriter, op.getLoc(), op.getType(), integers);
    if (op.getC() && !integers)
      result = onnx::AddOp::create(rewriter, op.getLoc(), op.getType(), result,
                                   op.getC());
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct QuantizedConv : OpRewritePattern<onnx::ConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::ConvOp op,
                                PatternRewriter &rewriter) const override {
    onnx::DequantizeLinearOp input = getDequantized(op.getX()),
                             weights = getDequantized(op.getW());
    auto result = dyn_cast<RankedTensorType>(op.getType());
    if (!input || !weights || !result || !isScaledAlong(input, std::nullopt) ||
        !isScaledAlong(weights, 0))
      return rewriter.notifyMatchFailure(op, "not of dequantised bytes");
    auto filters = cast<RankedTensorType>(weights.getX().getType());
    if (!filters.hasStaticShape() || filters.getRank() < 3 ||
        filters.getRank() > 5 || filters.getDimSize(0) < 1 ||
        !fitsInt32(filters.getNumElements() / filters.getDimSize(0)))
      return rewriter.notifyMatchFailure(op, "has no kernel of bytes");
    // Sums of windows, which other zero points ask for, are those of all
    // channels.
    if (op.getGroup() != 1 && !isZeroPointZero(weights.getXZeroPoint()))
      return rewriter.notifyMatchFailure(op, "has zero points of groups");
    Location loc = op.getLoc();
    Value sum = onnx::ConvIntegerOp::create(
        rewriter, loc, result.clone(rewriter.getI32Type()), input.getX(),
        weights.getX(), input.getXZeroPoint(),
        isZeroPointZero(weights.getXZeroPoint()) ? Value()
                                                 : weights.getXZeroPoint(),
        op.getAutoPadAttr(), op.getDilationsAttr(), op.getGroupAttr(),
        op.getKernelShapeAttr(), op.getPadsAttr(), op.getStridesAttr());
    const int64_t depth = filters.getNumElements() / filters.getDimSize(0);
    Value bias = op.getB(), integers;
    if (bias)
      integers = getIntegerBias(bias, input.getXScale(), weights.getXScale());
    if (integers && !fitsInt32(depth, getLargest(integers)))
      integers = nullptr;
    if (integers)
      sum = onnx::AddOp::create(
          rewriter, loc, sum.getType(), sum,
          alongChannels(rewriter, loc, integers, filters.getRank() - 2));
    Value whole = onnx::CastOp::create(rewriter, loc, result, sum,
                                       /*round_mode=*/"up", /*saturate=*/1,
                                       ByteProduct::kOnnxFloat);
    Value scales = weights.getXScale();
    auto type = cast<RankedTensorType>(scales.getType());
    Value scale = onnx::MulOp::create(
        rewriter, loc, type.getRank() ? type : input.getXScale().getType(),
        input.getXScale(), scales);
    if (!hasOneElement(scales))
      scale = alongChannels(rewriter, loc, scale, filters.getRank() - 2);
    Value value = onnx::MulOp::create(rewriter, loc, result, whole, scale);
    if (bias && !integers)
      value = onnx::AddOp::create(
          rewriter, loc, result, value,
          alongChannels(rewriter, loc, bias, filters.getRank() - 2));
    rewriter.replaceOp(op, value);
    return success();
  }

private:
  /// [C] as [C,1,...] with `ones` ones.
  static Value alongChannels(OpBuilder &b, Location loc, Value list,
                             int64_t ones) {
    auto type = cast<RankedTensorType>(list.getType());
    SmallVector<int64_t> shape(type.getShape()), wanted = {-1};
    shape.resize(shape.size() + ones, 1);
    wanted.resize(wanted.size() + ones, 1);
    const auto rank = static_cast<int64_t>(wanted.size());
    Value sizes = onnx::createConstant(
        b, loc,
        DenseElementsAttr::get(RankedTensorType::get(rank, b.getI64Type()),
                               ArrayRef<int64_t>(wanted)));
    return onnx::ReshapeOp::create(b, loc, type.clone(shape), list, sizes,
                                   /*allowzero=*/0);
  }
};

} // namespace

void sardonyx::populateRecomposeQuantizedPatterns(RewritePatternSet &patterns) {
  patterns.add<QuantizedMatMul, QuantizedGemm, QuantizedConv>(
      patterns.getContext());
}
