//===- PropagateQuantization.cpp - Compute on integers --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Quantized.h"
#include "sardonyx/Transforms/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXPROPAGATEQUANTIZATION
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// Q(DQ(q)) is q: (k * s) / s is off k by far less than a half.
struct QuantizeDequantized : OpRewritePattern<onnx::QuantizeLinearOp> {
  explicit QuantizeDequantized(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/4) {}

  LogicalResult matchAndRewrite(onnx::QuantizeLinearOp op,
                                PatternRewriter &rewriter) const override {
    auto to = Quantization::get(op);
    auto from = Quantization::ofDequantized(op.getX());
    if (!to || !from || !to->isSame(*from) || !to->isInvertible())
      return rewriter.notifyMatchFailure(op, "quantised otherwise");
    Value integers = op.getX().getDefiningOp<onnx::DequantizeLinearOp>().getX();
    if (integers.getType() != op.getType())
      return rewriter.notifyMatchFailure(op, "sizes are known of one only");
    rewriter.replaceOp(op, integers);
    return success();
  }
};

/// Tools write a DequantizeLinear for each reader; one is enough.
struct MergeDequantized : OpRewritePattern<onnx::DequantizeLinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::DequantizeLinearOp op,
                                PatternRewriter &rewriter) const override {
    auto own = Quantization::get(op);
    if (!own)
      return rewriter.notifyMatchFailure(op, "of another form");
    for (Operation *user : op.getX().getUsers()) {
      auto other = dyn_cast<onnx::DequantizeLinearOp>(user);
      if (!other || other == op || other->getBlock() != op->getBlock() ||
          other.getX() != op.getX() || other.getType() != op.getType() ||
          !other->isBeforeInBlock(op))
        continue;
      auto its = Quantization::get(other);
      if (!its || !its->isSame(*own))
        continue;
      rewriter.replaceOp(op, other);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "the first one");
  }
};

struct OnnxPropagateQuantizationPass
    : sardonyx::impl::OnnxPropagateQuantizationBase<
          OnnxPropagateQuantizationPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<QuantizeDequantized, MergeDequantized>(&getContext());
    populateQuantizedMovementPatterns(patterns);
    populateQuantizedOrderPatterns(patterns);
    populateQuantizedTablePatterns(patterns);
    populateQuantizedScalePatterns(patterns);
    populateQuantizedTransposedConvPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
