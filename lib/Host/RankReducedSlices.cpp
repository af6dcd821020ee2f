//===- RankReducedSlices.cpp - Slices that drop some dimensions of size 1 -===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which dimensions a view of a buffer has dropped is clear where it has dropped
// all that are of size 1. Otherwise upstream tells it from the strides that are
// left (`memref::SubViewOp::getDroppedDims`): with open ones, `[1, %m, 1, %n]`
// as `1x?x?` may have lost the first dimension as well as the third; and steps
// change them, so that it may find no answer at all. There a slice keeps all
// dimensions, and a reshape drops some.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

/// The dimensions of the whole that each dimension of the smaller tensor stands
/// for, of a slice that has dropped some of those of size 1; otherwise none.
template <typename SliceOp>
static std::optional<SmallVector<ReassociationIndices>> findGroups(SliceOp op) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  int64_t units = llvm::count_if(op.getMixedSizes(), isOneInteger);
  if (dropped.none() || units == static_cast<int64_t>(dropped.count()))
    return std::nullopt;
  return sardonyx::groupWithDropped(dropped);
}

static void reshape(RewriterBase &b, tensor::ExtractSliceOp op) {
  auto groups = findGroups(op);
  if (!groups)
    return;
  b.setInsertionPoint(op);
  Value whole = tensor::ExtractSliceOp::create(
      b, op.getLoc(), op.getSource(), op.getMixedOffsets(), op.getMixedSizes(),
      op.getMixedStrides());
  b.replaceOpWithNewOp<tensor::CollapseShapeOp>(op, op.getType(), whole,
                                                *groups);
}

static void reshape(RewriterBase &b, tensor::InsertSliceOp op) {
  auto groups = findGroups(op);
  if (!groups)
    return;
  // Where it can, so that the tensor is put into its place as soon as it is
  // there, and its memory is free again.
  if (op.getSizes().empty())
    b.setInsertionPointAfterValue(op.getSource());
  else
    b.setInsertionPoint(op);
  auto type =
      RankedTensorType::get(op.getStaticSizes(), op.getType().getElementType());
  Value whole = tensor::ExpandShapeOp::create(
      b, op.getLoc(), type, op.getSource(), *groups, op.getMixedSizes());
  b.setInsertionPoint(op);
  b.replaceOpWithNewOp<tensor::InsertSliceOp>(
      op, whole, op.getDest(), op.getMixedOffsets(), op.getMixedSizes(),
      op.getMixedStrides());
}

void sardonyx::reshapeReducedSlices(Operation *root) {
  IRRewriter b(root->getContext());
  root->walk([&](Operation *op) {
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      reshape(b, slice);
    else if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
      reshape(b, slice);
  });
}
