//===- YieldInPlace.cpp - Loops yield into the memory they read -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bufferize.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;

/// True if `value` is `argument` with elements written over: it will be made
/// in the argument's memory.
static bool isMadeIn(Value value, Value argument) {
  while (value != argument) {
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      return false;
    Operation *op = result.getOwner();
    unsigned index = result.getResultNumber();
    if (auto insert = dyn_cast<tensor::InsertOp>(op)) {
      value = insert.getDest();
    } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      value = insert.getDest();
    } else if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                   tensor::CastOp>(op)) {
      value = op->getOperand(0);
    } else if (auto call = dyn_cast<sdx::CallOp>(op)) {
      if (!call.updatesOut(index))
        return false;
      value = call.getOuts()[index];
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (!isMadeIn(loop.getYieldedValues()[index],
                    loop.getRegionIterArg(index)))
        return false;
      value = loop.getInitArgs()[index];
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      return llvm::all_of(op->getRegions(), [&](Region &region) {
        return isMadeIn(region.front().getTerminator()->getOperand(index),
                        argument);
      });
    } else {
      return false;
    }
  }
  return true;
}

/// The tensors whose memory `value` may turn out to be.
static void collectOrigins(Value value,
                           llvm::SmallPtrSetImpl<void *> &origins) {
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!isa<TensorType>(next.getType()) ||
        !origins.insert(next.getAsOpaquePointer()).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (!op || isa<sdx::RuntimeCallOp>(op))
      continue;
    if (auto call = dyn_cast<sdx::CallOp>(op)) {
      unsigned index = cast<OpResult>(next).getResultNumber();
      if (call.updatesOut(index))
        work.push_back(call.getOuts()[index]);
      continue;
    }
    llvm::append_range(work, op->getOperands());
    for (Region &region : op->getRegions())
      if (!region.empty())
        llvm::append_range(work, region.back().getTerminator()->getOperands());
  }
}

static void yieldInto(Block::BlockArgListType arguments, scf::YieldOp yield) {
  llvm::SmallPtrSet<void *, 16> origins;
  SmallVector<bool> made;
  for (auto [argument, value] : llvm::zip(arguments, yield.getOperands())) {
    made.push_back(isa<RankedTensorType>(argument.getType()) &&
                   isMadeIn(value, argument));
    if (!made.back())
      collectOrigins(value, origins);
  }
  OpBuilder b(yield);
  for (auto [argument, operand, inPlace] :
       llvm::zip(arguments, yield->getOpOperands(), made)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape() || inPlace ||
        origins.contains(argument.getAsOpaquePointer()))
      continue;
    operand.set(bufferization::MaterializeInDestinationOp::create(
                    b, yield.getLoc(), type, operand.get(), argument)
                    .getResult());
  }
}

void sardonyx::yieldInPlace(func::FuncOp func) {
  func.walk([](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      yieldInto(loop.getRegionIterArgs(),
                cast<scf::YieldOp>(loop.getBody()->getTerminator()));
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      if (llvm::equal(loop.getConditionOp().getArgs(),
                      loop.getBeforeArguments()))
        yieldInto(loop.getAfterArguments(), loop.getYieldOp());
  });
}

void sardonyx::undoYieldInPlace(func::FuncOp func) {
  func.walk([](bufferization::MaterializeInDestinationOp op) {
    if (op->getNumResults() == 0)
      return;
    op->getResult(0).replaceAllUsesWith(op.getSource());
    op.erase();
  });
}
