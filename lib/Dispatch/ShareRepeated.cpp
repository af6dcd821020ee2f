//===- ShareRepeated.cpp - Products by a matrix repeated for batches ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Grouped queries: several heads of queries meet the same head of keys and of
// values, which exporters repeat by an Expand and a Reshape. The rows of these
// heads are rows of one product with the head that they share; nothing is
// repeated then, and less is packed.
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXSHAREREPEATED
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// A batch [G * R, ...] of matrices of which R in a row are one of `distinct`
/// [G..., ...].
struct Repeated {
  Value distinct;
  int64_t times;
};

} // namespace

/// The result's dimension that `op` repeats its input along, if that is all it
/// does.
static std::optional<int64_t> findRepeatedDim(linalg::LinalgOp op) {
  std::optional<SmallVector<int64_t>> dims;
  if (auto broadcast = dyn_cast<linalg::BroadcastOp>(*op))
    dims = llvm::to_vector(broadcast.getDimensions());
  else if (auto generic = dyn_cast<linalg::GenericOp>(*op))
    dims = linalg::isaBroadcastOpInterface(generic);
  if (!dims || dims->size() != 1)
    return std::nullopt;
  return dims->front();
}

/// What a batch of matrices repeats, along the last of the dimensions that its
/// batches come from.
static std::optional<Repeated> findRepeated(Value batch) {
  auto collapse = batch.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse)
    return std::nullopt;
  SmallVector<ReassociationIndices> groups = collapse.getReassociationIndices();
  auto copy = collapse.getSrc().getDefiningOp<linalg::LinalgOp>();
  if (!copy || groups.size() != 3 || groups[0].size() < 2 ||
      groups[1].size() != 1 || groups[2].size() != 1)
    return std::nullopt;
  std::optional<int64_t> dim = findRepeatedDim(copy);
  int64_t times = dim ? collapse.getSrcType().getDimSize(*dim) : 0;
  if (!dim || *dim != groups[0].back() || ShapedType::isDynamic(times) ||
      times < 2)
    return std::nullopt;
  return Repeated{copy.getDpsInputs()[0], times};
}

/// [G..., A, B] as [G, A, B].
static Value collapseBatches(OpBuilder &b, Location loc, Value tensor) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  if (rank == 3)
    return tensor;
  ReassociationIndices batches =
      llvm::to_vector<4>(llvm::seq<int64_t>(0, rank - 2));
  return tensor::CollapseShapeOp::create(
      b, loc, tensor,
      ArrayRef<ReassociationIndices>{batches, {rank - 2}, {rank - 1}});
}

/// [G, R, M, N] for a `type` of [G * R, M, N].
static RankedTensorType splitBatches(RankedTensorType type, OpFoldResult groups,
                                     int64_t times) {
  int64_t count = getConstantIntValue(groups).value_or(ShapedType::kDynamic);
  return RankedTensorType::get(
      {count, times, type.getDimSize(1), type.getDimSize(2)},
      type.getElementType());
}

/// [G * R, M, N] as [G, R * M, N].
static Value joinRows(OpBuilder &b, Location loc, Value tensor,
                      OpFoldResult groups, int64_t times) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  Value parts = tensor::ExpandShapeOp::create(
      b, loc,
      splitBatches(cast<RankedTensorType>(tensor.getType()), groups, times),
      tensor, ArrayRef<ReassociationIndices>{{0, 1}, {2}, {3}},
      {groups, b.getIndexAttr(times), sizes[1], sizes[2]});
  return tensor::CollapseShapeOp::create(
      b, loc, parts, ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}});
}

namespace {

struct ShareRepeated : OpRewritePattern<linalg::BatchMatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::BatchMatmulOp op,
                                PatternRewriter &b) const override {
    if (!op.hasPureTensorSemantics() || op.hasUserDefinedMaps())
      return b.notifyMatchFailure(op, "not a plain product of tensors");
    Value right = op.getInputs()[1];
    auto transpose = right.getDefiningOp<linalg::TransposeOp>();
    if (transpose && transpose.getPermutation() != ArrayRef<int64_t>{0, 2, 1})
      return b.notifyMatchFailure(op, "batches are transposed");
    std::optional<Repeated> repeated =
        findRepeated(transpose ? transpose.getInput() : right);
    if (!repeated ||
        cast<RankedTensorType>(repeated->distinct.getType()).getRank() < 3)
      return b.notifyMatchFailure(op, "no matrix is repeated");
    // A number of batches that is known comes of a known number of groups.
    auto hasOpenBatches = [](Value batch) {
      auto type = cast<RankedTensorType>(batch.getType());
      return ShapedType::isDynamicShape(type.getShape().drop_back(2));
    };
    bool isOpen = hasOpenBatches(repeated->distinct);
    if (hasOpenBatches(op.getInputs()[0]) != isOpen ||
        hasOpenBatches(op.getOutputs()[0]) != isOpen)
      return b.notifyMatchFailure(op,
                                  "batches are known of some operands only");
    Location loc = op.getLoc();
    Value shared = collapseBatches(b, loc, repeated->distinct);
    OpFoldResult groups = tensor::getMixedSize(b, loc, shared, 0);
    if (transpose)
      shared = createTranspose(b, loc, shared, transpose.getPermutation());
    auto join = [&](Value tensor) {
      return joinRows(b, loc, tensor, groups, repeated->times);
    };
    Value init = op.getOutputs()[0];
    // The sizes of results that come apart again.
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, init);
    auto type = cast<RankedTensorType>(op.getResultTypes()[0]);
    Value product = linalg::BatchMatmulOp::create(
                        b, loc, ValueRange{join(op.getInputs()[0]), shared},
                        ValueRange{join(init)})
                        .getResult(0);
    Value parts = tensor::ExpandShapeOp::create(
        b, loc, splitBatches(type, groups, repeated->times), product,
        ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}},
        {groups, b.getIndexAttr(repeated->times), sizes[1], sizes[2]});
    b.replaceOpWithNewOp<tensor::CollapseShapeOp>(
        op, type, parts, ArrayRef<ReassociationIndices>{{0, 1}, {2}, {3}});
    return success();
  }
};

struct SDXShareRepeatedPass
    : sardonyx::impl::SDXShareRepeatedBase<SDXShareRepeatedPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ShareRepeated>(&getContext());
    tensor::populateFoldTensorEmptyPatterns(patterns);
    linalg::FillOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns,
                                                         &getContext());
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
