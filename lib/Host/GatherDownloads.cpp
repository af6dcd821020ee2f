//===- GatherDownloads.cpp - Copies that are waited for together ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who reads an element that a device has computed waits for it. Of several the
// copies stand in a row, so that the last one waits for all.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace sardonyx;

/// Whether `op` copies from a device to memory of the host's that was made for
/// it.
static bool isDownload(Operation *op) {
  auto copy = dyn_cast<memref::CopyOp>(op);
  return copy && copy.getTarget().getDefiningOp<memref::AllocOp>() &&
         cast<MemRefType>(copy.getSource().getType()).getMemorySpace() &&
         !cast<MemRefType>(copy.getTarget().getType()).getMemorySpace();
}

/// The copy before `download` up to which nothing is written, and nothing read
/// but by the host, and not what `download` writes; null where there is none.
static Operation *findPlace(Operation *download) {
  Value target = cast<memref::CopyOp>(download).getTarget();
  for (Operation *op = download->getPrevNode(); op; op = op->getPrevNode()) {
    if (llvm::is_contained(op->getOperands(), target))
      return nullptr;
    if (isDownload(op))
      return op;
    if (!isMemoryEffectFree(op) && !isa<memref::LoadOp, memref::AllocOp>(op))
      return nullptr;
  }
  return nullptr;
}

/// What `download` needs of the operations behind `place`, and itself, in
/// order; nothing where one of them reads what has been copied.
static SmallVector<Operation *> findNeeded(Operation *download,
                                           Operation *place) {
  llvm::SmallSetVector<Operation *, 8> needed;
  needed.insert(download);
  SmallVector<Operation *> inOrder;
  for (Operation *op = download; op != place; op = op->getPrevNode()) {
    if (!needed.contains(op))
      continue;
    if (isa<memref::LoadOp>(op))
      return {};
    inOrder.push_back(op);
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp())
        needed.insert(def);
  }
  std::reverse(inOrder.begin(), inOrder.end());
  return inOrder;
}

void sardonyx::gatherDownloads(func::FuncOp func) {
  SmallVector<Operation *> downloads;
  func.walk([&](memref::CopyOp copy) {
    if (isDownload(copy))
      downloads.push_back(copy);
  });
  for (Operation *download : downloads) {
    Operation *place = findPlace(download);
    if (!place)
      continue;
    SmallVector<Operation *> needed = findNeeded(download, place);
    for (Operation *op : needed)
      op->moveBefore(place);
  }
}
