//===- DecomposeTensorOps.cpp - tensor.pad, concat, generate, splat -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXDECOMPOSETENSOROPS
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct SplatToFill : OpRewritePattern<tensor::SplatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::SplatOp op,
                                PatternRewriter &rewriter) const override {
    Value empty = tensor::EmptyOp::create(
        rewriter, op.getLoc(), op.getType().getShape(),
        op.getType().getElementType(), op.getDynamicSizes());
    rewriter.replaceOpWithNewOp<linalg::FillOp>(op, op.getInput(), empty);
    return success();
  }
};

struct GenerateToGeneric : OpRewritePattern<tensor::GenerateOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::GenerateOp op,
                                PatternRewriter &rewriter) const override {
    return linalg::rewriteInDestinationPassingStyle(rewriter, op);
  }
};

/// The value of a pad must not depend on the position; then it is a fill and
/// an inserted slice.
struct PadToFillAndInsert : OpRewritePattern<tensor::PadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::PadOp op,
                                PatternRewriter &rewriter) const override {
    Value value = op.getConstantPaddingValue();
    if (!value)
      return linalg::rewriteInDestinationPassingStyle(rewriter, op);
    Location loc = op.getLoc();
    SmallVector<OpFoldResult> low = op.getMixedLowPad();
    SmallVector<OpFoldResult> high = op.getMixedHighPad();
    SmallVector<OpFoldResult> inner =
        tensor::getMixedSizes(rewriter, loc, op.getSource());
    AffineExpr a, b, c;
    bindDims(getContext(), a, b, c);
    SmallVector<Value> dynamic;
    RankedTensorType type = op.getResultType();
    for (int64_t i = 0, e = type.getRank(); i < e; ++i)
      if (type.isDynamicDim(i))
        dynamic.push_back(getValueOrCreateConstantIndexOp(
            rewriter, loc,
            affine::makeComposedFoldedAffineApply(
                rewriter, loc, a + b + c, {low[i], inner[i], high[i]})));
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType(), dynamic);
    Value filled =
        linalg::FillOp::create(rewriter, loc, value, empty).getResult(0);
    SmallVector<OpFoldResult> strides(type.getRank(), rewriter.getIndexAttr(1));
    rewriter.replaceOpWithNewOp<tensor::InsertSliceOp>(
        op, op.getSource(), filled, low, inner, strides);
    return success();
  }
};

struct DecomposeTensorOpsPass
    : sardonyx::impl::SDXDecomposeTensorOpsBase<DecomposeTensorOpsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    tensor::populateDecomposeTensorConcatPatterns(patterns);
    patterns.add<SplatToFill, GenerateToGeneric, PadToFillAndInsert>(
        &getContext());
    rewriteGreedily(getOperation(), std::move(patterns));
  }
};

} // namespace
