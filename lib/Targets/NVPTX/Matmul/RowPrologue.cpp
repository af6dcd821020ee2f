//===- RowPrologue.cpp - Rows that a product computes itself --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/RowPrologue.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// The most bytes of shared memory for rows.
static constexpr int64_t kMostBytes = 32 * 1024;

static int64_t countBytes(RankedTensorType type) {
  return type.getNumElements() * (type.getElementTypeBitWidth() / 8);
}

RowPrologue::RowPrologue(Value lhs, KernelBody &body) : lhs(lhs), source(lhs) {
  while (isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp>(source.getDefiningOp()))
    source = source.getDefiningOp()->getOperand(0);
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  if (Operation *op = source.getDefiningOp();
      !op || failed(getBackwardSlice(op, &slice, options)))
    return;
  SmallVector<linalg::GenericOp> ops;
  for (Operation *op : slice)
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      ops.push_back(generic);
  rows = std::make_unique<RowsKernel>(ops, body);
}

bool RowPrologue::isPossible() {
  auto type = dyn_cast<RankedTensorType>(lhs.getType());
  auto shape = dyn_cast<RankedTensorType>(source.getType());
  return rows && type && type.hasStaticShape() && type.getRank() == 2 &&
         shape && shape.hasStaticShape() && countBytes(type) <= kMostBytes &&
         shape.getShape().back() == type.getShape().back() &&
         rows->isPossible(source) && rows->reducesLast(source);
}

Value RowPrologue::emit(ImplicitLocOpBuilder &b, Value thread) {
  auto type = cast<RankedTensorType>(lhs.getType());
  auto shape = cast<RankedTensorType>(source.getType());
  Value shared = allocateShared(b, countBytes(type));
  Type element = type.getElementType();
  Value written = viewShared(b, shared, 0, shape.getShape(), element);
  rows->emitRows(b, thread, type.getDimSize(0), {{source, written}});
  gpu::BarrierOp::create(b);
  return viewShared(b, shared, 0, type.getShape(), element);
}
