//===- SelectPlans.cpp - How kernels are computed -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionPlan.h"
#include "ListPlans.h"
#include "Matmul/FewRows.h"
#include "Matmul/MatmulPlan.h"
#include "Matmul/ProductKernel.h"

#include "sardonyx/Targets/NVPTX/Passes.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVSELECTPLANS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Null: the product has neither form.
static Attribute selectPlan(Operation *product, TargetAttr target) {
  if (std::optional<FewRowsPlanAttr> plan = chooseFewRows(product, target))
    return *plan;
  std::optional<MatmulPlanAttr> plan = choosePlan(product, target);
  return plan ? Attribute(*plan) : Attribute();
}

static Attribute selectPlan(sdx::AttentionOp op, TargetAttr target) {
  std::optional<AttentionPlanAttr> plan = choosePlan(op, target);
  return plan ? Attribute(*plan) : Attribute();
}

/// Why the kernel cannot go by `given`; empty where it can.
static std::string whyNotGiven(Attribute given, Operation *product,
                               sdx::AttentionOp attention, TargetAttr target) {
  if (auto plan = dyn_cast<FewRowsPlanAttr>(given);
      plan && product && chooseFewRows(product, target))
    return whyNot(cast<sdx::MatmulOp>(product), plan);
  if (auto plan = dyn_cast<MatmulPlanAttr>(given); plan && product)
    return isOnlyForFewRows(product)
               ? "the kernel computes more than a product, which only one of "
                 "few rows does"
               : whyNot(product, plan, target);
  if (auto plan = dyn_cast<AttentionPlanAttr>(given); plan && attention)
    return whyNot(attention, plan, target);
  return "it is for another kind of kernel";
}

namespace {

struct SelectPlansPass : sardonyx::impl::NVSelectPlansBase<SelectPlansPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration())
      return;
    Attribute given = func->getAttr(kPlanAttr);
    if (isa_and_nonnull<LoopsAttr>(given))
      return;
    Operation *product = findAnyProduct(func);
    auto attention = findProduct<sdx::AttentionOp>(func);
    TargetAttr target = getTargetOrDefault(func);
    if (!given) {
      Attribute plan = product     ? selectPlan(product, target)
                       : attention ? selectPlan(attention, target)
                                   : Attribute();
      if (plan)
        func->setAttr(kPlanAttr, plan);
      return;
    }
    std::string reason = whyNotGiven(given, product, attention, target);
    if (reason.empty())
      return;
    func.emitError("the plan ") << given << " of kernel '" << func.getName()
                                << "' does not fit: " << reason;
    signalPassFailure();
  }
};

} // namespace
