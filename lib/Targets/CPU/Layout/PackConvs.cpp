//===- PackConvs.cpp - Convolutions by packed weights ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Layout.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUPACKCONVS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// `op`, of f32, by weights in blocks of output channels.
static Value packConv(OpBuilder &b, sdx::ConvOp op) {
  Location loc = op.getLoc();
  const int64_t group = op.getGroup();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, op.getWeights());
  AffineExpr size = b.getAffineDimExpr(0);
  auto apply = [&](AffineExpr expr, OpFoldResult operand) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, {operand});
  };
  int64_t taps = ShapedType::getNumElements(op.getKernelShape());
  Value empty = tensor::EmptyOp::create(
      b, loc,
      {b.getIndexAttr(group),
       apply(size.floorDiv(group).ceilDiv(kConvBlockRows), sizes[0]),
       apply(size * taps, sizes[1]), b.getIndexAttr(kConvBlockRows)},
      b.getF32Type());
  auto filters = FiltersAttr::getF32(b.getContext(), kConvBlockRows);
  auto packed =
      PackConvWeightsOp::create(b, loc, op.getWeights(), empty, filters);
  return ConvOp::create(b, loc, op.getInput(), packed->getResult(0),
                        op.getInit(), filters, op.getKernelShape(),
                        op.getStrides(), op.getDilations(), op.getPadsBegin(),
                        op.getPadsEnd(), group, op.getExact())
      .getResult();
}

namespace {

struct PackConvsPass : sardonyx::impl::CPUPackConvsBase<PackConvsPass> {
  void runOnOperation() override {
    SmallVector<sdx::ConvOp> convs;
    SmallVector<sdx::MaxPoolOp> pools;
    getOperation().walk([&](Operation *op) {
      if (auto conv = dyn_cast<sdx::ConvOp>(op);
          conv && conv.hasPureTensorSemantics())
        convs.push_back(conv);
      // Poolings have vectors of f32 only.
      if (auto pool = dyn_cast<sdx::MaxPoolOp>(op);
          pool && pool.hasPureTensorSemantics() &&
          !pool.getInput().getType().getElementType().isF32())
        pools.push_back(pool);
    });
    IRRewriter rewriter(&getContext());
    for (sdx::MaxPoolOp op : pools) {
      rewriter.setInsertionPoint(op);
      rewriter.replaceOp(op, decomposeToLinalg(rewriter, op));
    }
    for (sdx::ConvOp op : convs) {
      rewriter.setInsertionPoint(op);
      bool isF32 = llvm::all_of(op->getOperandTypes(), [](Type type) {
        return getElementTypeOrSelf(type).isF32();
      });
      rewriter.replaceOp(op, isF32 ? packConv(rewriter, op)
                                   : decomposeToLinalg(rewriter, op));
    }
  }
};

} // namespace
