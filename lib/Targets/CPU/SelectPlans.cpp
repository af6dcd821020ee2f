//===- SelectPlans.cpp - How kernels are computed -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionPlan.h"
#include "Plan/ChannelWindowPlan.h"
#include "Plan/ConvPlan.h"
#include "Plan/MatmulPlan.h"
#include "Plan/NarrowConvPlan.h"
#include "Plan/Plan.h"
#include "Plan/PoolPlan.h"
#include "Rows/RowsPlan.h"
#include "lib/Dispatch/KernelWork.h"

#include "sardonyx/Targets/CPU/Passes.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUSELECTPLANS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Has `kernel` be plain loops, for a reason that a remark tells.
static void setLoops(func::FuncOp kernel, bool onVectors, StringRef reason) {
  MLIRContext *context = kernel.getContext();
  kernel->setAttr(kPlanAttr, LoopsAttr::get(context, onVectors));
  kernel->setAttr(kPlanReasonAttr, StringAttr::get(context, reason));
  remarkFallback(kernel, reason);
}

/// Gives `kernel`, around `root`, the plan that its facts ask for, or verifies
/// the one that it has. A kernel that no loops of its kind are made for is
/// plain loops.
template <typename PlanT, typename FactsT>
static LogicalResult setPlan(func::FuncOp kernel, Operation *root,
                             const FactsT &facts) {
  if (!kernel->hasAttr(kPlanAttr)) {
    PlanT selected = selectPlan(facts);
    std::string reason = whyNot(facts, selected);
    if (reason.empty())
      kernel->setAttr(kPlanAttr, selected);
    else
      setLoops(kernel, /*onVectors=*/false, reason);
    return success();
  }
  FailureOr<PlanT> plan = getPlan<PlanT>(kernel, root, facts);
  if (failed(plan))
    return failure();
  kernel->setAttr(kPlanAttr, *plan);
  return success();
}

/// The operation on tensors that `kernel` is around; null if there is none.
template <typename OpT> static OpT findFirst(func::FuncOp kernel) {
  auto roots = kernel.getOps<OpT>();
  return roots.empty() || !(*roots.begin()).hasPureTensorSemantics()
             ? OpT()
             : *roots.begin();
}

/// Has no plan but loops: another one that `kernel` has is an error at `root`.
static LogicalResult refusePlan(func::FuncOp kernel, Operation *root) {
  Attribute given = kernel->getAttr(kPlanAttr);
  return given ? emitMisfit(kernel, root, given,
                            "it is for another kind of kernel")
               : success();
}

/// A kernel around no operation: its operations share loops, or else are loops
/// one after the other.
static LogicalResult setRowsPlan(func::FuncOp kernel, TargetAttr target) {
  Operation *last = kernel.getBody().back().getTerminator()->getPrevNode();
  if (!last)
    return success();
  // The sizes of the group are operations, made in a copy.
  OwningOpRef<func::FuncOp> copy = kernel.clone();
  OpBuilder b(copy->getBody().back().getTerminator());
  std::string reason;
  FailureOr<ReductionGroup> group = buildGroup(b, *copy, reason);
  if (succeeded(group)) {
    collapseDims(b, *group);
    return setPlan<RowsPlanAttr>(kernel, last,
                                 RowsFacts(*group, b.getContext(), target));
  }
  if (failed(refusePlan(kernel, last)))
    return failure();
  setLoops(kernel, /*onVectors=*/true, reason);
  return success();
}

static LogicalResult setPlan(func::FuncOp kernel) {
  TargetAttr target = cpu::getTargetOrDefault(kernel);
  if (auto op = findFirst<PackedMatmulOp>(kernel))
    return setPlan<MatmulPlanAttr>(kernel, op, MatmulFacts(op, target));
  if (auto op = findFirst<ConvOp>(kernel))
    return setPlan<ConvPlanAttr>(kernel, op, ConvFacts(op, target));
  if (auto op = findFirst<NarrowConvOp>(kernel))
    return setPlan<NarrowConvPlanAttr>(kernel, op, NarrowConvFacts(op, target));
  if (auto op = findFirst<DepthwiseNarrowConvOp>(kernel))
    return setPlan<ChannelWindowPlanAttr>(kernel, op,
                                          ChannelWindowFacts(op, target));
  if (auto op = findFirst<ChannelsLastMaxPoolOp>(kernel))
    return setPlan<ChannelWindowPlanAttr>(kernel, op,
                                          ChannelWindowFacts(op, target));
  if (auto op = findFirst<sdx::MaxPoolOp>(kernel))
    return setPlan<PoolPlanAttr>(kernel, op, PoolFacts(op, target));
  if (auto op = findFirst<sdx::AveragePoolOp>(kernel))
    return setPlan<PoolPlanAttr>(kernel, op, PoolFacts(op, target));
  if (auto op = findFirst<sdx::AttentionOp>(kernel))
    return setPlan<AttentionPlanAttr>(kernel, op, AttentionFacts(op, target));
  // A packing has nothing to choose.
  for (Operation &op : kernel.getOps())
    if (isa<PackRhsOp, PackConvWeightsOp>(op))
      return refusePlan(kernel, &op);
  return setRowsPlan(kernel, target);
}

namespace {

struct SelectPlansPass : sardonyx::impl::CPUSelectPlansBase<SelectPlansPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    // Any kernel can be plain loops.
    if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration() ||
        func->hasAttrOfType<LoopsAttr>(kPlanAttr))
      return;
    if (failed(setPlan(func)))
      signalPassFailure();
  }
};

} // namespace
