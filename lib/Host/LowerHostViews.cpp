//===- LowerHostViews.cpp - Write expanding views as sizes and strides ----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXLOWERHOSTVIEWS
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;

namespace {

OpFoldResult multiply(ImplicitLocOpBuilder &b, OpFoldResult x, OpFoldResult y) {
  std::optional<int64_t> known = getConstantIntValue(x),
                         other = getConstantIntValue(y);
  if (known && other)
    return b.getIndexAttr(*known * *other);
  if (known == 1 || other == 1)
    return known == 1 ? y : x;
  return arith::MulIOp::create(
             b, getValueOrCreateConstantIndexOp(b, b.getLoc(), x),
             getValueOrCreateConstantIndexOp(b, b.getLoc(), y))
      .getResult();
}

/// Of the dimensions that one dimension is split into, the last has its
/// stride, and each other one the stride of what follows it.
void lowerExpandShape(memref::ExpandShapeOp op) {
  MemRefType type = op.getResultType();
  if (type.getRank() == 0)
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto source = memref::ExtractStridedMetadataOp::create(b, op.getSrc());
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  // What a tensor of one element without dimensions is split into has size 1.
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  for (auto [group, last] : llvm::zip_equal(
           op.getReassociationIndices(), source.getConstifiedMixedStrides())) {
    OpFoldResult stride = last;
    for (int64_t dim : llvm::reverse(group)) {
      strides[dim] = stride;
      stride = multiply(b, stride, sizes[dim]);
    }
  }
  Value view = memref::ReinterpretCastOp::create(
      b, op.getSrc(), source.getConstifiedMixedOffset(), sizes, strides);
  op.replaceAllUsesWith(memref::CastOp::create(b, type, view).getResult());
  op.erase();
}

struct LowerViewsPass : sardonyx::impl::SDXLowerHostViewsBase<LowerViewsPass> {
  void runOnOperation() override { getOperation().walk(lowerExpandShape); }
};

} // namespace
