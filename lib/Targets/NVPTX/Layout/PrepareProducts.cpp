//===- PrepareProducts.cpp - Products in forms that have kernels ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/ShortOperands.h"
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

static RankedTensorType withElement(Value tensor, Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return RankedTensorType::get(type.getShape(), element);
}

/// The tensor of which `tensor` is the same numbers in f32, maybe in another
/// shape or order; null if there is none. With `b` it is built in that shape
/// and order.
static Value findShort(Value tensor, OpBuilder *b) {
  Operation *op = tensor.getDefiningOp();
  if (!nv::isMovement(op))
    return nv::findWidenedSource(tensor);
  Value source = findShort(op->getOperand(0), b);
  if (!source || !b)
    return source;
  Location loc = op->getLoc();
  Type element = getElementTypeOrSelf(source);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return tensor::CollapseShapeOp::create(*b, loc,
                                           withElement(tensor, element), source,
                                           collapse.getReassociationIndices());
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return tensor::ExpandShapeOp::create(
        *b, loc, withElement(tensor, element), source,
        expand.getReassociationIndices(), expand.getMixedOutputShape());
  return createTranspose(*b, loc, source,
                         cast<linalg::TransposeOp>(op).getPermutation());
}

/// Products of f16 and bf16 are exact in f32: tensor cores take them as they
/// are.
static void narrow(Operation *op, OpOperand &lhs, OpOperand &rhs) {
  Value shortLhs = findShort(lhs.get(), nullptr);
  Value shortRhs = findShort(rhs.get(), nullptr);
  if (!shortLhs || !shortRhs ||
      getElementTypeOrSelf(shortLhs) != getElementTypeOrSelf(shortRhs))
    return;
  OpBuilder b(op);
  lhs.set(findShort(lhs.get(), &b));
  rhs.set(findShort(rhs.get(), &b));
}

/// The same where the other side is packed weights.
static void narrow(sdx::DequantMatmulOp op) {
  OpBuilder b(op);
  if (findShort(op.getLhs(), nullptr))
    op.getLhsMutable().assign(findShort(op.getLhs(), &b));
}

/// Tensor cores take bytes that follow each other along K.
static void transposeBytes(sdx::MatmulOp op) {
  if (op.getTransposed() ||
      !op.getLhs().getType().getElementType().isInteger(8))
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
        narrow(op, matmul.getLhsMutable(), matmul.getRhsMutable());
        transposeBytes(matmul);
        if (nv::hasTiles(matmul))
          continue;
      } else if (auto conv = dyn_cast<sdx::ConvOp>(op.getOperation())) {
        narrow(op, conv.getInputMutable(), conv.getWeightsMutable());
        continue;
      } else if (isa<sdx::MaxPoolOp>(op.getOperation())) {
        continue;
      } else if (auto dequant =
                     dyn_cast<sdx::DequantMatmulOp>(op.getOperation())) {
        if (nv::hasTiles(dequant)) {
          narrow(dequant);
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
