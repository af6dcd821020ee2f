//===- HoistHost.cpp - Operations move ahead in the host program ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bufferize.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sardonyx;

/// Moves an operation to where its operands in the same block are known.
static void hoist(Operation *op) {
  Operation *after = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (def && def->getBlock() == op->getBlock() &&
        (!after || after->isBeforeInBlock(def)))
      after = def;
  }
  if (after)
    op->moveAfter(after);
  else
    op->moveBefore(&op->getBlock()->front());
}

void sardonyx::hoistCheap(Value value,
                          llvm::SmallPtrSetImpl<Operation *> &moved) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() || !isMemoryEffectFree(op) ||
      (isa<ShapedType>(value.getType()) && !isa<tensor::EmptyOp>(op)) ||
      !moved.insert(op).second)
    return;
  for (Value operand : op->getOperands())
    hoistCheap(operand, moved);
  hoist(op);
}

void sardonyx::hoistInsertions(func::FuncOp func) {
  llvm::SmallPtrSet<Operation *, 16> moved;
  func.walk([&](tensor::InsertSliceOp op) {
    for (Value operand : llvm::drop_begin(op->getOperands()))
      hoistCheap(operand, moved);
    hoist(op);
  });
}

/// Calls `visit` with the operations of the same block that `op` needs.
static void forEachNeed(Operation *op,
                        llvm::function_ref<void(Operation *)> visit) {
  Block *block = op->getBlock();
  op->walk([&](Operation *part) {
    for (Value operand : part->getOperands())
      if (Operation *def = operand.getDefiningOp())
        if (Operation *here = block->findAncestorOpInBlock(*def))
          if (here != op)
            visit(here);
  });
}

void sardonyx::hoistChecks(Block &block) {
  if (block.getOps<sdx::CheckOp>().empty())
    return;
  // Definitions come before uses, so that one pass forwards tells what is made
  // of sizes only.
  llvm::SmallPtrSet<Operation *, 16> onSizes;
  for (Operation &op : block) {
    bool only = isa<sdx::CheckOp, bufferization::ToTensorOp>(op) ||
                llvm::none_of(op.getResultTypes(), llvm::IsaPred<TensorType>);
    forEachNeed(&op, [&](Operation *need) { only &= onSizes.contains(need); });
    if (only)
      onSizes.insert(&op);
  }
  llvm::SetVector<Operation *> first;
  SmallVector<std::pair<Operation *, bool>> stack; // whether its needs are done
  auto take = [&](sdx::CheckOp check) {
    stack.push_back({check, false});
    while (!stack.empty()) {
      auto [op, complete] = stack.pop_back_val();
      if (complete) {
        first.insert(op);
        continue;
      }
      if (first.contains(op))
        continue;
      stack.push_back({op, true});
      forEachNeed(op, [&](Operation *need) { stack.push_back({need, false}); });
    }
  };
  for (bool wanted : {true, false})
    for (auto check : block.getOps<sdx::CheckOp>())
      if (onSizes.contains(check) == wanted)
        take(check);
  Operation *last = nullptr;
  for (Operation *op : first) {
    if (last)
      op->moveAfter(last);
    else
      op->moveBefore(&block, block.begin());
    last = op;
  }
}
