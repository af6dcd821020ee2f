//===- ShortOperands.cpp - Numbers of 16 bits in f32 ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/ShortOperands.h"

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;

Value nv::findWidenedSource(Value tensor) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || !isElementwiseGeneric(op) || op.getNumDpsInputs() != 1 ||
      op->getNumResults() != 1 ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return nullptr;
  Block *body = op.getBody();
  auto extend = dyn_cast<arith::ExtFOp>(body->front());
  if (!extend || body->getOperations().size() != 2 ||
      extend.getIn() != body->getArgument(0) ||
      body->getTerminator()->getOperand(0) != extend.getOut())
    return nullptr;
  Type type = extend.getIn().getType();
  return (type.isF16() || type.isBF16()) && extend.getOut().getType().isF32()
             ? op.getDpsInputs()[0]
             : nullptr;
}

bool nv::isMovement(Operation *op) {
  return isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                         linalg::TransposeOp>(op);
}
