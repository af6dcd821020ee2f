//===- TaskScalars.cpp - Numbers of tasks, computed by threads ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement/TaskScalars.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

bool TaskScalars::isOfBuffer(Value tensor) {
  while (true) {
    if (KernelBody::hasBuffer(tensor))
      return true;
    Operation *op = tensor.getDefiningOp();
    if (!isa_and_nonnull<tensor::ExtractSliceOp, tensor::CastOp>(op))
      return false;
    tensor = op->getOperand(0);
  }
}

bool TaskScalars::isPossible(Operation &op) {
  if (isa<sdx::CheckOp>(op))
    return true;
  if (isa<tensor::ExtractSliceOp, tensor::CastOp, tensor::ExtractOp>(op))
    return isOfBuffer(op.getOperand(0));
  if (isa<tensor::DimOp>(op))
    return KernelBody::hasBuffer(op.getOperand(0));
  auto isNumber = [](Type type) { return type.isIntOrIndexOrFloat(); };
  auto isOperand = [&](Value value) {
    return isNumber(value.getType()) || isa<MemRefType>(value.getType());
  };
  return isMemoryEffectFree(&op) && op.getNumRegions() == 0 &&
         llvm::all_of(op.getOperands(), isOperand) &&
         llvm::all_of(op.getResultTypes(), isNumber);
}

void TaskScalars::clone(ImplicitLocOpBuilder &b, Operation &op,
                        IRMapping &mapping) {
  if (isa<tensor::ExtractSliceOp, tensor::CastOp>(op))
    return;
  auto load = dyn_cast<tensor::ExtractOp>(op);
  if (!load) {
    b.clone(op, mapping);
    return;
  }
  SmallVector<Value> index;
  for (Value value : load.getIndices())
    index.push_back(mapping.lookupOrDefault(value));
  Place place = find(b, mapping, load.getTensor(), index);
  mapping.map(load.getResult(),
              memref::LoadOp::create(b, place.buffer, place.index).getResult());
}

TaskScalars::Place TaskScalars::find(ImplicitLocOpBuilder &b,
                                     const IRMapping &mapping, Value tensor,
                                     ArrayRef<Value> index) {
  Place place{{}, SmallVector<Value>(index)};
  while (true) {
    place.buffer = known.lookup(tensor);
    if (!place.buffer)
      place.buffer = body.getBuffer(tensor);
    if (place.buffer)
      return place;
    Operation *op = tensor.getDefiningOp();
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      place.index = placeOf(b, slice, mapping, place.index);
    tensor = op->getOperand(0);
  }
}

Value TaskScalars::sizeOfWhole(ImplicitLocOpBuilder &b, Value tensor,
                               int64_t dim) {
  while (true) {
    if (Value buffer = body.getBuffer(tensor))
      return sizeOf(b, buffer, dim);
    Operation *op = tensor.getDefiningOp();
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      llvm::SmallBitVector kept = slice.getDroppedDims().flip();
      int64_t whole = kept.find_first();
      for (; dim > 0; --dim)
        whole = kept.find_next(whole);
      dim = whole;
    }
    tensor = op->getOperand(0);
  }
}

SmallVector<Value> TaskScalars::placeOf(ImplicitLocOpBuilder &b,
                                        ArrayRef<OpFoldResult> offsets,
                                        ArrayRef<OpFoldResult> strides,
                                        const llvm::SmallBitVector &dropped,
                                        const IRMapping &mapping,
                                        ArrayRef<Value> index) {
  Indices i(b);
  auto valueOf = [&](OpFoldResult value) -> Value {
    if (auto known = dyn_cast<Value>(value))
      return mapping.lookupOrDefault(known);
    return i.constant(*getConstantIntValue(value));
  };
  SmallVector<Value> place;
  size_t next = 0;
  for (auto [dim, offset] : llvm::enumerate(offsets)) {
    Value at = valueOf(offset);
    if (!dropped.test(dim))
      at = i.add(at, i.mul(index[next++], valueOf(strides[dim])));
    place.push_back(at);
  }
  return place;
}
