//===- QuantizedOrder.cpp - Clamps before quantisation --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// QuantizeLinear does not decrease where its scale is positive, so it commutes
// with maxima and minima: Q(min(max(x, a), b)) = min(max(Q(x), Q(a)), Q(b)). A
// bound at the end of the integers' range says nothing and is left out, as that
// of a Relu whose zero is the least integer. (Of NaN ONNX leaves open what
// QuantizeLinear makes.)
//
//===----------------------------------------------------------------------===//

#include "Quantized.h"
#include "Recompose.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// An operation that keeps the elements of `x` within bounds.
struct Clamp {
  Value x;
  std::optional<float> low, high;

  static std::optional<Clamp> match(Operation *op);
};

} // namespace

/// A bound of Clip, which may be left out; false if it is not known.
static bool readBound(Value value, std::optional<float> &bound) {
  if (!value)
    return true;
  auto floats = readFloats(value);
  if (!floats || floats->size() != 1)
    return false;
  bound = floats->front();
  return true;
}

std::optional<Clamp> Clamp::match(Operation *op) {
  if (auto relu = dyn_cast_if_present<onnx::ReluOp>(op))
    return Clamp{relu.getX(), 0.0f, std::nullopt};
  if (auto clip = dyn_cast_if_present<onnx::ClipOp>(op)) {
    Clamp clamp{clip.getInput(), std::nullopt, std::nullopt};
    if (!readBound(clip.getMin(), clamp.low) ||
        !readBound(clip.getMax(), clamp.high))
      return std::nullopt;
    return clamp;
  }
  if (!isa_and_present<onnx::MaxOp, onnx::MinOp>(op) ||
      op->getNumOperands() != 2)
    return std::nullopt;
  for (unsigned i = 0; i < 2; ++i) {
    Value x = op->getOperand(i), bound = op->getOperand(1 - i);
    std::optional<double> number = getScalarFor(bound, x);
    if (!number || x.getType() != op->getResult(0).getType())
      continue;
    Clamp clamp{x, std::nullopt, std::nullopt};
    (isa<onnx::MaxOp>(op) ? clamp.low : clamp.high) =
        static_cast<float>(*number);
    return clamp;
  }
  return std::nullopt;
}

namespace {

struct ClampIntegers : OpRewritePattern<onnx::QuantizeLinearOp> {
  explicit ClampIntegers(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/3) {}

  LogicalResult matchAndRewrite(onnx::QuantizeLinearOp op,
                                PatternRewriter &rewriter) const override {
    auto given = Quantization::get(op);
    auto clamp = Clamp::match(op.getX().getDefiningOp());
    if (!given || !clamp || !isa<TensorType>(clamp->x.getType()) ||
        !given->isIncreasing() || !given->getScale() || !given->getZeroPoint())
      return rewriter.notifyMatchFailure(op, "no clamp by known numbers");
    // Who reads the clamped floats keeps them, and would be given x as well.
    if (!llvm::all_of(op.getX().getUsers(),
                      llvm::IsaPred<onnx::QuantizeLinearOp>))
      return rewriter.notifyMatchFailure(op, "the floats are read as well");
    // A table computes the clamp with all the rest, unless there is no rest.
    auto before = Quantization::ofDequantized(clamp->x);
    if (!(before && before->isSame(*given)) && isTableOfBytes(op))
      return rewriter.notifyMatchFailure(op, "goes into a table");
    auto bound = [&](std::optional<float> number, int64_t end) {
      return number ? given->quantize(*number) : std::optional(end);
    };
    auto low = bound(clamp->low, given->getLowest());
    auto high = bound(clamp->high, given->getHighest());
    if (!low || !high)
      return rewriter.notifyMatchFailure(op, "a bound is no number");
    Location loc = op.getLoc();
    Value q = given->createQuantize(rewriter, loc, clamp->x);
    auto integer = [&](int64_t value) {
      return given->createInteger(rewriter, loc, value);
    };
    if (*low > given->getLowest())
      q = onnx::MaxOp::create(rewriter, loc, q.getType(),
                              ValueRange{q, integer(*low)});
    if (*high < given->getHighest())
      q = onnx::MinOp::create(rewriter, loc, q.getType(),
                              ValueRange{q, integer(*high)});
    rewriter.replaceOp(op, q);
    return success();
  }
};

} // namespace

void sardonyx::populateQuantizedOrderPatterns(RewritePatternSet &patterns) {
  patterns.add<ClampIntegers>(patterns.getContext());
}
