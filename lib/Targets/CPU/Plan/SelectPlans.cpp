//===- SelectPlans.cpp - How kernels are computed -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/ConvPlan.h"
#include "Plan/MatmulPlan.h"
#include "Plan/Plan.h"

#include "sardonyx/Targets/CPU/Passes.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUSELECTPLANS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

LogicalResult cpu::emitMisfit(func::FuncOp kernel, Operation *root,
                              Attribute plan, StringRef reason) {
  return emitError(root->getLoc())
         << "the plan " << plan << " of kernel '" << kernel.getName()
         << "' does not fit: " << reason;
}

/// Gives a kernel around an `OpT` its plan, if it is one.
template <typename OpT, typename FactsT, typename PlanT>
static LogicalResult setPlan(func::FuncOp kernel) {
  auto roots = kernel.getOps<OpT>();
  if (roots.empty() || !(*roots.begin()).hasPureTensorSemantics())
    return success();
  OpT root = *roots.begin();
  FailureOr<PlanT> plan = getPlan<PlanT>(
      kernel, root, FactsT(root, cpu::getTargetOrDefault(kernel)));
  if (failed(plan))
    return failure();
  kernel->setAttr(kPlanAttr, *plan);
  return success();
}

namespace {

struct SelectPlansPass : sardonyx::impl::CPUSelectPlansBase<SelectPlansPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration())
      return;
    // Any kernel can be plain loops.
    if (func->hasAttrOfType<LoopsAttr>(kPlanAttr))
      return;
    if (failed(setPlan<ConvOp, ConvFacts, ConvPlanAttr>(func)) ||
        failed(setPlan<PackedMatmulOp, MatmulFacts, MatmulPlanAttr>(func)))
      signalPassFailure();
  }
};

} // namespace
