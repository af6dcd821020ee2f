//===- PrepareProducts.cpp - Products in forms that have kernels ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/ShortOperands.h"
#include "Matmul/MatmulPlan.h"

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVPREPAREPRODUCTS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Tensor cores take bytes that follow each other along K. Warpgroups take f32
/// so, too, for which weights are transposed once.
static bool isWantedAlongK(sdx::MatmulOp op) {
  if (op.getLhs().getType().getElementType().isInteger(8))
    return true;
  return op->hasAttr(nv::kTF32Attr) && nv::getTargetOrDefault(op).hasWgmma() &&
         isWeight(op.getRhs());
}

static void transposeRhs(sdx::MatmulOp op) {
  if (op.getTransposed() || !isWantedAlongK(op))
    return;
  OpBuilder b(op);
  SmallVector<int64_t> order = {1, 0};
  if (op.isRhsBatched())
    order = {0, 2, 1};
  op.getRhsMutable().assign(
      createTranspose(b, op.getLoc(), op.getRhs(), order));
  op.setTransposed(true);
}

namespace {

struct PrepareProductsPass
    : sardonyx::impl::NVPrepareProductsBase<PrepareProductsPass> {
  void runOnOperation() override {
    SmallVector<sdx::DenseOpInterface> ops;
    getOperation().walk([&](sdx::DenseOpInterface op) { ops.push_back(op); });
    for (sdx::DenseOpInterface op : ops) {
      if (auto matmul = dyn_cast<sdx::MatmulOp>(op.getOperation())) {
        narrowOperands(op, matmul.getLhsMutable(), matmul.getRhsMutable());
        transposeRhs(matmul);
        if (nv::hasTiles(matmul))
          continue;
      } else if (auto conv = dyn_cast<sdx::ConvOp>(op.getOperation())) {
        narrowOperands(op, conv.getInputMutable(), conv.getWeightsMutable());
        continue;
      } else if (auto pool = dyn_cast<sdx::MaxPoolOp>(op.getOperation())) {
        ShapedType input = pool.getInput().getType(),
                   init = pool.getInit().getType();
        if (isa<FloatType>(input.getElementType()) && !input.isDynamicDim(2) &&
            !input.isDynamicDim(3) && !init.isDynamicDim(2) &&
            !init.isDynamicDim(3))
          continue;
      } else if (auto dequant =
                     dyn_cast<sdx::DequantMatmulOp>(op.getOperation())) {
        if (nv::hasTiles(dequant)) {
          narrowOperand(op, dequant.getLhsMutable());
          continue;
        }
      }
      OpBuilder b(op);
      if (Value loops = decomposeToLinalg(b, op)) {
        op->getResult(0).replaceAllUsesWith(loops);
        op->erase();
      }
    }
  }
};

} // namespace
