//===- LowerAttention.cpp - Attention to loops over tiles -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Kernel/RootKernel.h"
#include "Plan/Plan.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERATTENTION
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

struct LowerAttentionPass
    : sardonyx::impl::CPULowerAttentionBase<LowerAttentionPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    FailureOr<sdx::AttentionOp> root =
        findRoot<sdx::AttentionOp>(func, "attention");
    if (failed(root))
      return signalPassFailure();
    if (!*root)
      return;
    AttentionFacts facts(*root, cpu::getTargetOrDefault(func));
    FailureOr<AttentionPlanAttr> plan =
        getPlan<AttentionPlanAttr>(func, *root, facts);
    if (failed(plan))
      return signalPassFailure();
    func->removeAttr(kPlanAttr);
    KernelBody body(func);
    AttentionKernel kernel(facts, *plan, body);
    if (failed(emitKernel(func, *root, body, kernel)))
      signalPassFailure();
  }
};

} // namespace
