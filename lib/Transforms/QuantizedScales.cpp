//===- QuantizedScales.cpp - One factor from sums to bytes ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum of products of integers, n, stands for n * s, which QuantizeLinear
// divides by its scale t and rounds. One multiplication by s / t does that,
// with one rounding less. Which of two integers comes out hangs on the
// roundings only where n * s / t is as near to half way between them as these
// are wrong: for one number in 10^6, unless s / t is next to a ratio of small
// integers. Then, and where scales have so few bits that nothing but the
// division rounds, it stays. Else s, which is a product of scales, is rounded
// itself.
//
//===----------------------------------------------------------------------===//

#include "Quantized.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace sardonyx;

/// How many bits of an f32 are in use, from the first one to the last.
static int countBits(float number) {
  int exponent;
  constexpr int kDigits = std::numeric_limits<float>::digits;
  const auto whole =
      static_cast<uint64_t>(std::ldexp(std::frexp(number, &exponent), kDigits));
  return kDigits - llvm::countr_zero(whole);
}

/// Whether multiplication by factor / step, rounded, gives other integers than
/// multiplication by `factor` and division by `step` more often than by chance:
/// for whole n with n * factor next to (k + 1/2) * step. Of any numbers the
/// n-th part of a boundary is as near to n as three roundings are wrong with a
/// chance of about n * 2^-23. Scales such as 0.1 and 0.6 are near to all.
static bool differs(float factor, float step) {
  constexpr int kLevels = 255;
  const double ratio = static_cast<double>(step) / factor;
  double expected = 0;
  int differences = 0;
  for (int k = 0; k < kLevels; ++k) {
    const double boundary = (k + 0.5) * ratio, n = std::nearbyint(boundary);
    if (n > static_cast<double>(INT32_MAX))
      break;
    expected += std::min(1.0, std::ldexp(n, -23));
    if (std::abs(n - boundary) > std::ldexp(boundary, -20))
      continue;
    const float whole = static_cast<float>(n), product = whole * factor,
                merged = whole * (factor / step);
    differences += std::nearbyint(product / step) != std::nearbyint(merged);
  }
  return differences > 2 + 4 * expected;
}

/// Whether a / b is an f32.
static bool isQuotientExact(float a, float b) {
  return static_cast<double>(a / b) * static_cast<double>(b) ==
         static_cast<double>(a);
}

/// The elements of a scale, which is a constant, one of another shape, or a
/// product of two, in its order.
static std::optional<SmallVector<float>> readScales(Value scale) {
  if (auto floats = readFloats(scale))
    return floats;
  if (auto reshape = scale.getDefiningOp<onnx::ReshapeOp>())
    return readScales(reshape.getData());
  auto mul = scale.getDefiningOp<onnx::MulOp>();
  if (!mul)
    return std::nullopt;
  auto a = readScales(mul.getA()), b = readScales(mul.getB());
  if (!a || !b || a->empty() || b->empty() || (a->size() > 1 && b->size() > 1))
    return std::nullopt;
  const float one = a->size() > 1 ? b->front() : a->front();
  SmallVector<float> products = a->size() > 1 ? *a : *b;
  for (float &product : products)
    product *= one;
  return products;
}

/// Factors by which sums become multiples of `step`; nothing where the division
/// decides.
static std::optional<SmallVector<float>> divide(ArrayRef<float> factors,
                                                float step) {
  constexpr int kFewBits = 16;
  SmallVector<float> quotients;
  bool allExact = true, areRounded = false;
  for (float factor : factors) {
    const float quotient = factor / step;
    if (!(factor > 0) || !std::isnormal(factor) || !std::isnormal(quotient))
      return std::nullopt;
    if (differs(factor, step))
      return std::nullopt;
    allExact &= isQuotientExact(factor, step);
    areRounded |= countBits(factor) > kFewBits;
    quotients.push_back(quotient);
  }
  if (!allExact && !areRounded)
    return std::nullopt;
  return quotients;
}

static bool isSumOfIntegers(Value value) {
  auto cast = value.getDefiningOp<onnx::CastOp>();
  return cast && getElementTypeOrSelf(cast.getInput()).isInteger(32) &&
         getElementTypeOrSelf(cast.getType()).isF32();
}

static Value createFloats(OpBuilder &b, Location loc, Type like,
                          ArrayRef<float> floats) {
  auto type = RankedTensorType::get(cast<RankedTensorType>(like).getShape(),
                                    b.getF32Type());
  return onnx::createConstant(b, loc, DenseElementsAttr::get(type, floats));
}

namespace {

struct MergeScales : OpRewritePattern<onnx::QuantizeLinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::QuantizeLinearOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Quantization> to = Quantization::get(op);
    std::optional<float> step = to ? to->getScale() : std::nullopt;
    if (!step || to->axis || *step == 1 || !(*step > 0) ||
        !std::isnormal(*step) || to->integer.getWidth() != 8)
      return rewriter.notifyMatchFailure(op, "scale is not known, or is one");
    auto mul = op.getX().getDefiningOp<onnx::MulOp>();
    if (!mul || !mul->hasOneUse())
      return rewriter.notifyMatchFailure(op, "not of a product");
    Value sum = mul.getA(), scale = mul.getB();
    if (!isSumOfIntegers(sum))
      std::swap(sum, scale);
    auto type = dyn_cast<RankedTensorType>(scale.getType());
    if (!isSumOfIntegers(sum) || !type || !type.hasStaticShape())
      return rewriter.notifyMatchFailure(op, "not of sums of integers");
    std::optional<SmallVector<float>> factors = readScales(scale);
    if (factors)
      factors = divide(*factors, *step);
    if (!factors ||
        static_cast<int64_t>(factors->size()) != type.getNumElements())
      return rewriter.notifyMatchFailure(op, "scales that need the division");
    Location loc = op.getLoc();
    Value merged = createFloats(rewriter, loc, type, *factors);
    Value product =
        onnx::MulOp::create(rewriter, loc, mul.getType(), sum, merged);
    to->scale = createFloats(rewriter, loc, to->scale.getType(), {1.0f});
    Value bytes = to->createQuantize(rewriter, loc, product);
    bytes.setType(op.getType());
    rewriter.replaceOp(op, bytes);
    return success();
  }
};

} // namespace

void sardonyx::populateQuantizedScalePatterns(RewritePatternSet &patterns) {
  patterns.add<MergeScales>(patterns.getContext());
}
