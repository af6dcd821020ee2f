//===- LowerViews.cpp - Write expanding views as sizes and strides --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Codegen/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx {
#define GEN_PASS_DEF_LOWERVIEWSPASS
#include "sardonyx/Codegen/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;

namespace {

/// The offset and strides of a view, as constants where its type knows them.
std::pair<OpFoldResult, SmallVector<OpFoldResult>>
getPlacement(ImplicitLocOpBuilder &b, TypedValue<MemRefType> view) {
  auto [strides, offset] = view.getType().getStridesAndOffset();
  if (!ShapedType::isDynamic(offset) && !ShapedType::isDynamicShape(strides))
    return {b.getIndexAttr(offset),
            getAsIndexOpFoldResult(b.getContext(), strides)};
  auto metadata = memref::ExtractStridedMetadataOp::create(b, view);
  return {metadata.getConstifiedMixedOffset(),
          metadata.getConstifiedMixedStrides()};
}

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

/// Constants, and what only the run knows.
SmallVector<int64_t> decompose(ArrayRef<OpFoldResult> values) {
  return llvm::map_to_vector(values, [](OpFoldResult value) {
    return getConstantIntValue(value).value_or(ShapedType::kDynamic);
  });
}

/// Of the dimensions that one dimension is split into, the last has its
/// stride, and each other one the stride of what follows it.
void lowerExpandShape(memref::ExpandShapeOp op) {
  MemRefType type = op.getResultType();
  if (type.getRank() == 0)
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto [offset, outer] =
      getPlacement(b, cast<TypedValue<MemRefType>>(op.getSrc()));
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  // What a tensor of one element without dimensions is split into has size 1.
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  for (auto [group, last] :
       llvm::zip_equal(op.getReassociationIndices(), outer)) {
    OpFoldResult stride = last;
    for (int64_t dim : llvm::reverse(group)) {
      strides[dim] = stride;
      stride = multiply(b, stride, sizes[dim]);
    }
  }
  // The type of a reinterpret_cast states its strides.
  auto strided = MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(
          b.getContext(),
          getConstantIntValue(offset).value_or(ShapedType::kDynamic),
          decompose(strides)),
      type.getMemorySpace());
  Value view = memref::ReinterpretCastOp::create(b, strided, op.getSrc(),
                                                 offset, sizes, strides);
  op.replaceAllUsesWith(memref::CastOp::create(b, type, view).getResult());
  op.erase();
}

struct LowerViewsPass : sardonyx::impl::LowerViewsPassBase<LowerViewsPass> {
  void runOnOperation() override { getOperation().walk(lowerExpandShape); }
};

} // namespace
