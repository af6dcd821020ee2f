//===- LowerRows.cpp - Elementwise and row kernels to vector loops --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/Plan.h"
#include "Plan/RunsOnce.h"
#include "Rows/FewPositions.h"
#include "Rows/RowEmitter.h"
#include "Rows/RowsPlan.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERROWS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

static bool isOnTensors(func::FuncOp func) {
  return llvm::any_of(func.getOps(), [](Operation &op) {
    return llvm::any_of(op.getResultTypes(), llvm::IsaPred<TensorType>);
  });
}

/// Removes what worked on tensors; sizes are asked of the buffers.
static void eraseTensorOps(func::FuncOp func, Operation *end) {
  SmallVector<Operation *> ops;
  for (Operation &op : func.getBody().front()) {
    if (&op == end)
      break;
    ops.push_back(&op);
  }
  for (Operation *op : ops)
    if (auto dim = dyn_cast<tensor::DimOp>(op))
      if (auto leaf =
              dim.getSource().getDefiningOp<bufferization::ToTensorOp>()) {
        OpBuilder b(dim);
        dim.replaceAllUsesWith(memref::DimOp::create(b, dim.getLoc(),
                                                     leaf.getBuffer(),
                                                     dim.getIndex())
                                   .getResult());
      }
  for (Operation *op : llvm::reverse(ops)) {
    bool onTensors =
        isa<bufferization::MaterializeInDestinationOp>(op) ||
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>) ||
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>);
    if (onTensors && op->use_empty())
      op->erase();
  }
}

namespace {

struct LowerRowsPass : sardonyx::impl::CPULowerRowsBase<LowerRowsPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || !func->hasAttr(sdx::kKernelAttr) ||
        func->hasAttrOfType<LoopsAttr>(kPlanAttr))
      return;
    // A marker where the kernel's own operations end and the emitted begin.
    Operation *terminator = func.getBody().back().getTerminator();
    Operation *last = terminator->getPrevNode();
    if (!last)
      return;
    OpBuilder b(terminator);
    std::string reason;
    auto group = buildGroup(b, func, reason);
    Attribute given = func->getAttr(kPlanAttr);
    if (failed(group)) {
      if (given) {
        (void)emitMisfit(func, last, given, "it is for another kind of kernel");
        return signalPassFailure();
      }
      // Other passes have left loops of most kernels.
      if (isOnTensors(func))
        remarkFallback(func, reason);
      for (Operation *op = terminator->getPrevNode(); op && op != last;) {
        Operation *previous = op->getPrevNode();
        if (op->use_empty())
          op->erase();
        op = previous;
      }
      return;
    }
    Operation *firstEmitted = last->getNextNode();
    collapseDims(b, *group);
    const TargetAttr target = getTargetOrDefault(func);
    FailureOr<RowsPlanAttr> plan = getPlan<RowsPlanAttr>(
        func, last, RowsFacts(*group, &getContext(), target));
    if (failed(plan))
      return signalPassFailure();
    func->removeAttr(kPlanAttr);
    if (func->hasAttr(kRunsOnceAttr))
      emitRowGroup(b, *group, *plan);
    else
      emitCasesOfRowGroup(b, *group, *plan, target);
    if (firstEmitted == terminator)
      firstEmitted = last->getNextNode();
    eraseTensorOps(func, firstEmitted);
  }
};

} // namespace
