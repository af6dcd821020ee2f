//===- MemoryAccess.cpp - Which elements an operation touches -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/MemoryAccess.h"
#include "sardonyx/NodeName.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sardonyx;

std::optional<MemoryAccess> MemoryAccess::get(Operation *op) {
  MemoryAccess access;
  auto fill = [&](Value memref, ValueRange indices) {
    access.memref = dyn_cast<TypedValue<MemRefType>>(memref);
    access.indices = indices;
    return bool(access.memref);
  };
  auto onVector = [&](Value memref, ValueRange indices, VectorType type) {
    access.lanes = type.getNumElements();
    return type.getRank() == 1 && fill(memref, indices);
  };
  bool known = llvm::TypeSwitch<Operation *, bool>(op)
                   .Case([&](memref::LoadOp load) {
                     return fill(load.getMemRef(), load.getIndices());
                   })
                   .Case([&](memref::StoreOp store) {
                     access.isStore = true;
                     return fill(store.getMemRef(), store.getIndices());
                   })
                   .Case([&](vector::LoadOp load) {
                     return onVector(load.getBase(), load.getIndices(),
                                     load.getVectorType());
                   })
                   .Case([&](vector::StoreOp store) {
                     access.isStore = true;
                     return onVector(store.getBase(), store.getIndices(),
                                     store.getVectorType());
                   })
                   .Case([&](vector::MaskedLoadOp load) {
                     access.mask = load.getMask();
                     return onVector(load.getBase(), load.getIndices(),
                                     load.getVectorType());
                   })
                   .Case([&](vector::MaskedStoreOp store) {
                     access.isStore = true;
                     access.mask = store.getMask();
                     return onVector(store.getBase(), store.getIndices(),
                                     store.getVectorType());
                   })
                   .Case([&](vector::GatherOp gather) {
                     access.mask = gather.getMask();
                     access.offsets = gather.getIndices();
                     return onVector(gather.getBase(), gather.getOffsets(),
                                     gather.getVectorType());
                   })
                   .Case([&](vector::ScatterOp scatter) {
                     access.isStore = true;
                     access.mask = scatter.getMask();
                     access.offsets = scatter.getIndices();
                     return onVector(scatter.getBase(), scatter.getOffsets(),
                                     scatter.getVectorType());
                   })
                   .Default([](Operation *) { return false; });
  if (!known)
    return std::nullopt;
  MemRefType type = access.memref.getType();
  // The last one but for those of size 1, if its elements follow each other.
  int64_t last = type.getRank() - 1;
  access.laneDim = last;
  while (last > 0 && type.getDimSize(last) == 1)
    --last;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (last >= 0 && succeeded(type.getStridesAndOffset(strides, offset)) &&
      strides[last] == 1)
    access.laneDim = last;
  return access;
}

std::string sardonyx::describeNode(Operation *op) {
  std::string node = sardonyx::describeNode(op->getLoc());
  auto func = op->getParentOfType<FunctionOpInterface>();
  return node.empty() && func ? sardonyx::describeNode(func.getLoc()) : node;
}
