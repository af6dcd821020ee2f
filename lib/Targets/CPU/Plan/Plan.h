//===- Plan.h - Plans of kernels, given or selected -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_PLAN_PLAN_H
#define SARDONYX_LIB_TARGETS_CPU_PLAN_PLAN_H

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace sardonyx::cpu {

/// Says that a plan of `kernel`, around `root`, does not fit; `reason` is the
/// end of the sentence.
llvm::LogicalResult emitMisfit(mlir::func::FuncOp kernel, mlir::Operation *root,
                               mlir::Attribute plan, llvm::StringRef reason);

/// The plan that `kernel`, around `root`, has, and that fits `facts`, with
/// numbers for those that it leaves open, or else the one that is selected.
template <typename PlanT, typename FactsT>
llvm::FailureOr<PlanT> getPlan(mlir::func::FuncOp kernel, mlir::Operation *root,
                               const FactsT &facts) {
  mlir::Attribute given = kernel->getAttr(kPlanAttr);
  if (!given)
    given = selectPlan(facts);
  auto plan = llvm::dyn_cast<PlanT>(given);
  std::string reason =
      plan ? whyNot(facts, plan) : "it is for another kind of kernel";
  if (reason.empty())
    return completePlan(facts, plan);
  return emitMisfit(kernel, root, given, reason);
}

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_PLAN_PLAN_H
