//===- RowsPlan.h - How elementwise and row kernels are computed *- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What of the loops of a group hangs on the machine: functions of the group,
// whose dimensions have been collapsed, and of the width of vectors.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ROWS_ROWSPLAN_H
#define SARDONYX_LIB_TARGETS_CPU_ROWS_ROWSPLAN_H

#include "Rows/ReductionGroup.h"

#include "dialects/CPU/CPU.h"

#include <string>

namespace sardonyx::cpu {

/// What the loops of a group may follow from.
struct RowsFacts {
  RowsFacts(ReductionGroup &group, mlir::MLIRContext *context,
            TargetAttr target)
      : group(group), context(context), vectorBits(target.getVectorBits()),
        l1Bytes(int64_t(target.getL1Kib()) << 10) {}

  ReductionGroup &group;
  mlir::MLIRContext *context;
  unsigned vectorBits;
  int64_t l1Bytes;
};

/// The plan that is known to be fastest.
RowsPlanAttr selectPlan(const RowsFacts &facts);

/// A plan says all.
inline RowsPlanAttr completePlan(const RowsFacts &facts, RowsPlanAttr plan) {
  return plan;
}

/// The plan of loops over scalars, which any group has.
RowsPlanAttr getScalarRowsPlan(mlir::MLIRContext *context);

/// Why a group cannot be computed by a plan, as the end of a sentence; empty if
/// it can.
std::string whyNot(const RowsFacts &facts, RowsPlanAttr plan);

/// Tells those who ask for remarks of missed forms that the kernel `func` goes
/// by plain loops.
void remarkFallback(mlir::func::FuncOp func, llvm::StringRef reason);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ROWS_ROWSPLAN_H
