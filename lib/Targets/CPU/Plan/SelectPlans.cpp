//===- SelectPlans.cpp - How kernels are computed -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/ConvPlan.h"

#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUSELECTPLANS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

struct SelectPlansPass : sardonyx::impl::CPUSelectPlansBase<SelectPlansPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration())
      return;
    auto convs = func.getOps<ConvOp>();
    if (convs.empty() || !(*convs.begin()).hasPureTensorSemantics())
      return;
    ConvFacts facts(*convs.begin(), cpu::getTargetOrDefault(func));
    Attribute given = func->getAttr(kPlanAttr);
    if (!given)
      return func->setAttr(kPlanAttr, selectConvPlan(facts));
    auto plan = dyn_cast<ConvPlanAttr>(given);
    std::string reason =
        plan ? whyNot(facts, plan) : "it is for another kind of kernel";
    if (reason.empty())
      return;
    emitError(facts.getOp().getLoc())
        << describeMisfit(given, func.getName(), reason);
    signalPassFailure();
  }
};

} // namespace
