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

namespace sardonyx {
#define GEN_PASS_DEF_LOWERVIEWSPASS
#include "sardonyx/Codegen/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;

namespace {

void lowerExpandShape(memref::ExpandShapeOp op) {
  MemRefType type = op.getResultType();
  if (!type.getLayout().isIdentity() || type.getRank() == 0)
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  SmallVector<OpFoldResult> strides(sizes.size());
  OpFoldResult stride = b.getIndexAttr(1);
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    strides[dim] = stride;
    std::optional<int64_t> x = getConstantIntValue(stride),
                           y = getConstantIntValue(sizes[dim]);
    if (x && y)
      stride = b.getIndexAttr(*x * *y);
    else
      stride = arith::MulIOp::create(
                   b, loc, getValueOrCreateConstantIndexOp(b, loc, stride),
                   getValueOrCreateConstantIndexOp(b, loc, sizes[dim]))
                   .getResult();
  }
  // The type of a reinterpret_cast states its strides.
  auto strided = MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(
          b.getContext(), 0,
          llvm::map_to_vector(strides,
                              [](OpFoldResult s) {
                                return getConstantIntValue(s).value_or(
                                    ShapedType::kDynamic);
                              })),
      type.getMemorySpace());
  Value view = memref::ReinterpretCastOp::create(
      b, loc, strided, op.getSrc(), b.getIndexAttr(0), sizes, strides);
  op.replaceAllUsesWith(memref::CastOp::create(b, loc, type, view).getResult());
  op.erase();
}

struct LowerViewsPass : sardonyx::impl::LowerViewsPassBase<LowerViewsPass> {
  void runOnOperation() override { getOperation().walk(lowerExpandShape); }
};

} // namespace
