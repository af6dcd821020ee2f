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
// itself. A float bias that is added to n * s is divided as well.
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

/// Whether multiplication by factor / step, and the sum with bias / step, give
/// other integers than multiplication by `factor`, the sum with `bias` and
/// division by `step` more often than by chance: for whole n with
/// n * factor + bias next to (k + 1/2) * step. Of any numbers the n-th part of
/// a boundary is as near to n as three roundings are wrong with a chance of
/// about n * 2^-23. Scales such as 0.1 and 0.6 are near to all.
static bool differs(float factor, float bias, float step) {
  constexpr int kLevels = 255;
  const double ratio = static_cast<double>(step) / factor,
               offset = static_cast<double>(bias) / factor;
  double expected = 0;
  int differences = 0;
  // Without a bias those below zero are like those above.
  for (int k = bias == 0 ? 0 : -kLevels; k < kLevels; ++k) {
    const double whole = (k + 0.5) * ratio, boundary = whole - offset,
                 n = std::nearbyint(boundary),
                 size = std::max(std::abs(whole), std::abs(boundary));
    if (std::abs(n) > static_cast<double>(INT32_MAX))
      continue;
    expected += std::min(1.0, std::ldexp(size, -23));
    if (std::abs(n - boundary) > std::ldexp(size, -20))
      continue;
    const float sum = static_cast<float>(n), value = sum * factor + bias,
                merged = sum * (factor / step) + bias / step;
    differences += std::nearbyint(value / step) != std::nearbyint(merged);
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

namespace {

/// Floats n * factor + bias of sums n of integers; lists of one element, or of
/// one for each filter.
struct ScaledSums {
  SmallVector<float> factors, biases = {0};

  /// The same in multiples of `step`; nothing where the division decides.
  std::optional<ScaledSums> divide(float step) const;
};

} // namespace

std::optional<ScaledSums> ScaledSums::divide(float step) const {
  // Of larger biases, which sums have to cancel, roundings are larger, too.
  constexpr int kFewBits = 16, kMostLevels = 256;
  bool allExact = true, areRounded = false;
  auto isKept = [&](float number) {
    const float quotient = number / step;
    allExact &= isQuotientExact(number, step);
    return std::isnormal(number) && std::isnormal(quotient);
  };
  const size_t count = std::max(factors.size(), biases.size());
  for (size_t i = 0; i < count; ++i) {
    const float factor = factors[i % factors.size()],
                bias = biases[i % biases.size()];
    if (!(factor > 0) || !isKept(factor) || (bias != 0 && !isKept(bias)) ||
        std::abs(bias) > kMostLevels * step || differs(factor, bias, step))
      return std::nullopt;
    areRounded |= countBits(factor) > kFewBits;
  }
  if (!allExact && !areRounded)
    return std::nullopt;
  ScaledSums result = *this;
  for (SmallVector<float> *numbers : {&result.factors, &result.biases})
    for (float &number : *numbers)
      number /= step;
  return result;
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
    auto add = op.getX().getDefiningOp<onnx::AddOp>();
    onnx::MulOp mul = findScaling(op.getX());
    Value bias;
    for (unsigned i = 0; add && add->hasOneUse() && i < 2 && !mul; ++i) {
      mul = findScaling(add->getOperand(i));
      bias = add->getOperand(1 - i);
    }
    if (!mul || (bias && add.getType() != mul.getType()))
      return rewriter.notifyMatchFailure(op, "not of scaled sums of integers");
    Value sum = mul.getA(), scale = mul.getB();
    if (!isSumOfIntegers(sum))
      std::swap(sum, scale);
    std::optional<ScaledSums> sums = read(scale, bias);
    if (sums)
      sums = sums->divide(*step);
    if (!sums)
      return rewriter.notifyMatchFailure(op, "scales that need the division");
    Location loc = op.getLoc();
    Value merged = createFloats(rewriter, loc, scale.getType(), sums->factors);
    Value product =
        onnx::MulOp::create(rewriter, loc, mul.getType(), sum, merged);
    if (bias)
      product = onnx::AddOp::create(
          rewriter, loc, mul.getType(), product,
          createFloats(rewriter, loc, bias.getType(), sums->biases));
    to->scale = createFloats(rewriter, loc, to->scale.getType(), {1.0f});
    Value bytes = to->createQuantize(rewriter, loc, product);
    bytes.setType(op.getType());
    rewriter.replaceOp(op, bytes);
    return success();
  }

private:
  /// The multiplication of sums of integers that gives `value` and nothing
  /// else; null if none does.
  static onnx::MulOp findScaling(Value value) {
    auto mul = value.getDefiningOp<onnx::MulOp>();
    return mul && mul->hasOneUse() &&
                   (isSumOfIntegers(mul.getA()) || isSumOfIntegers(mul.getB()))
               ? mul
               : onnx::MulOp();
  }

  /// A scale and a bias, which may be null, that are known and of one element,
  /// or of one shape but for ones in front.
  static std::optional<ScaledSums> read(Value scale, Value bias) {
    auto isWhole = [](Value value, const auto &numbers) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      return numbers && type && type.hasStaticShape() && !numbers->empty() &&
             static_cast<int64_t>(numbers->size()) == type.getNumElements();
    };
    auto shape = [](Value value) {
      return cast<RankedTensorType>(value.getType())
          .getShape()
          .drop_while([](int64_t size) { return size == 1; });
    };
    auto factors = readScales(scale);
    if (!isWhole(scale, factors))
      return std::nullopt;
    ScaledSums sums{*factors};
    if (!bias)
      return sums;
    auto biases = readScales(bias);
    if (!isWhole(bias, biases) || (factors->size() > 1 && biases->size() > 1 &&
                                   shape(scale) != shape(bias)))
      return std::nullopt;
    sums.biases = *biases;
    return sums;
  }
};

} // namespace

void sardonyx::populateQuantizedScalePatterns(RewritePatternSet &patterns) {
  patterns.add<MergeScales>(patterns.getContext());
}
