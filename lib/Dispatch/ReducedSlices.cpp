//===- ReducedSlices.cpp - Slices that drop some dimensions of size 1 -----===//
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

#include "Utils.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace {

/// A slice and the tensor that has its elements, of whose dimensions it may
/// have dropped some.
template <typename SliceOp> struct ReducedSlice {
  SliceOp op;
  SmallVector<OpFoldResult> sizes;
  llvm::SmallBitVector dropped;

  explicit ReducedSlice(SliceOp op)
      : op(op), sizes(op.getMixedSizes()), dropped(op.getDroppedDims()) {}

  bool isUnclear() const {
    return dropped.any() && llvm::count_if(sizes, isOneInteger) >
                                static_cast<int64_t>(dropped.count());
  }

  /// The dimensions of the whole that each dimension of the tensor stands for.
  SmallVector<ReassociationIndices> getGroups() const {
    SmallVector<ReassociationIndices> groups;
    ReassociationIndices leading;
    for (int64_t dim = 0, rank = sizes.size(); dim < rank; ++dim) {
      if (!dropped.test(dim)) {
        groups.push_back(std::move(leading));
        leading.clear();
      }
      (groups.empty() ? leading : groups.back()).push_back(dim);
    }
    return groups;
  }
};

} // namespace

static void reshape(RewriterBase &b, tensor::ExtractSliceOp op) {
  ReducedSlice slice(op);
  if (!slice.isUnclear())
    return;
  b.setInsertionPoint(op);
  Value whole = tensor::ExtractSliceOp::create(
      b, op.getLoc(), op.getSource(), op.getMixedOffsets(), slice.sizes,
      op.getMixedStrides());
  b.replaceOpWithNewOp<tensor::CollapseShapeOp>(op, op.getType(), whole,
                                                slice.getGroups());
}

static void reshape(RewriterBase &b, tensor::InsertSliceOp op) {
  ReducedSlice slice(op);
  if (!slice.isUnclear())
    return;
  SmallVector<Value> open;
  SmallVector<int64_t> shape;
  dispatchIndexOpFoldResults(slice.sizes, open, shape);
  // Where it can, so that the tensor is put into its place as soon as it is
  // there, and its memory is free again.
  if (open.empty())
    b.setInsertionPointAfterValue(op.getSource());
  else
    b.setInsertionPoint(op);
  auto type = RankedTensorType::get(shape, op.getType().getElementType());
  Value whole = tensor::ExpandShapeOp::create(
      b, op.getLoc(), type, op.getSource(), slice.getGroups(), slice.sizes);
  b.setInsertionPoint(op);
  b.replaceOpWithNewOp<tensor::InsertSliceOp>(op, whole, op.getDest(),
                                              op.getMixedOffsets(), slice.sizes,
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
