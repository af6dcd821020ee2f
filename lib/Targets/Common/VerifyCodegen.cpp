//===- VerifyCodegen.cpp - What code generation must leave behind ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDX.h"
#include "sardonyx/Targets/Common/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXVERIFYCODEGEN
#include "sardonyx/Targets/Common/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;

/// Whether `op` is in a sequential loop with no other loop inside.
static bool isInInnermostLoop(Operation *op) {
  auto loop = op->getParentOfType<LoopLikeOpInterface>();
  if (!loop || isa<scf::ParallelOp>(loop))
    return false;
  bool hasInner = false;
  loop->walk([&](LoopLikeOpInterface inner) { hasInner |= inner != loop; });
  return !hasInner;
}

namespace {

struct VerifyCodegenPass
    : sardonyx::impl::SDXVerifyCodegenBase<VerifyCodegenPass> {
  void runOnOperation() override {
    bool isKernel = getOperation()->hasAttr("sdx.kernel");
    bool ok = true;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op->getDialect() &&
          isa<linalg::LinalgDialect, sardonyx::sdx::SDXDialect>(
              op->getDialect()) &&
          !isa<sardonyx::sdx::ThreadCountOp>(op)) {
        op->emitOpError("is left after code generation");
        ok = false;
        return WalkResult::skip();
      }
      auto isTensor = [](Type type) { return isa<TensorType>(type); };
      if (llvm::any_of(op->getResultTypes(), isTensor) ||
          llvm::any_of(op->getOperandTypes(), isTensor)) {
        op->emitOpError("still works on tensors after code generation");
        ok = false;
        return WalkResult::skip();
      }
      if (auto loop = dyn_cast<scf::ParallelOp>(op);
          loop && loop.getNumReductions() != 0) {
        op->emitOpError("reduces after code generation, which the threads of "
                        "the runtime do not");
        ok = false;
      }
      if (isKernel && isa<memref::AllocOp>(op) && isInInnermostLoop(op)) {
        op->emitOpError("allocates memory in an innermost loop");
        ok = false;
      }
      return WalkResult::advance();
    });
    if (!ok)
      signalPassFailure();
  }
};

} // namespace
