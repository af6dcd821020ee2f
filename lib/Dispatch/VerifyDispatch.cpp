//===- VerifyDispatch.cpp - Host functions only call kernels ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXVERIFYDISPATCH
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

static bool belongsInKernel(Operation *op) {
  return isa<linalg::LinalgDialect>(op->getDialect()) ||
         isa<sdx::DenseOpInterface, scf::ForallOp, scf::ParallelOp>(op);
}

/// Whether `op` reads or writes an element whose place hangs on what is
/// computed: what goes through elements does, and a size or condition that the
/// host reads has a place of its own.
static bool accessesAnyElement(Operation *op) {
  auto isAny = [](Value index) { return !matchPattern(index, m_Constant()); };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<tensor::ExtractOp, tensor::InsertOp, memref::LoadOp,
            memref::StoreOp>(
          [&](auto access) { return llvm::any_of(access.getIndices(), isAny); })
      .Default(false);
}

static LogicalResult verifyArguments(func::FuncOp func) {
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i) {
    unsigned origins = 0;
    for (StringRef name :
         {sdx::kInputAttr, sdx::kConstantAttr, sdx::kPersistentAttr})
      origins += func.getArgAttr(i, name) ? 1 : 0;
    if (origins != 1)
      return func.emitOpError("argument ")
             << i << " must have exactly one of 'sdx.input', 'sdx.constant' "
             << "and 'sdx.persistent', has " << origins;
  }
  return success();
}

namespace {

struct VerifyDispatchPass
    : sardonyx::impl::SDXVerifyDispatchBase<VerifyDispatchPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!isHostFunction(func))
        continue;
      if (failed(verifyArguments(func)))
        return signalPassFailure();
      WalkResult result = func.walk<WalkOrder::PreOrder>(
          [&](Operation *op) { return verifyHostOp(op); });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
  }

private:
  WalkResult verifyHostOp(Operation *op) {
    if (belongsInKernel(op)) {
      op->emitOpError("is left on the host; it belongs in a kernel");
      return WalkResult::interrupt();
    }
    if (accessesAnyElement(op)) {
      op->emitOpError("accesses an element on the host at a place that is not "
                      "constant; it belongs in a kernel");
      return WalkResult::interrupt();
    }
    if (!bufferized)
      return WalkResult::advance();
    auto isTensor = llvm::IsaPred<TensorType>;
    if (llvm::any_of(op->getOperandTypes(), isTensor) ||
        llvm::any_of(op->getResultTypes(), isTensor)) {
      op->emitOpError("works on tensors after bufferization");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  }
};

} // namespace
