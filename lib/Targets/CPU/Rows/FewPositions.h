//===- FewPositions.h - Cases of transposes of few positions ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ROWS_FEWPOSITIONS_H
#define SARDONYX_LIB_TARGETS_CPU_ROWS_FEWPOSITIONS_H

#include "Rows/RowsPlan.h"

namespace sardonyx::cpu {

/// Emits the loops of `group` by `plan`. Where that transposes squares of two
/// open dimensions, either may be shorter than a square: there are cases of a
/// few positions, as an image has channels, which are interleaved or taken
/// apart. Broadcasts of open sizes have the cases of emitBroadcastCopies.
void emitCasesOfRowGroup(mlir::OpBuilder &b, ReductionGroup &group,
                         RowsPlanAttr plan, TargetAttr target);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ROWS_FEWPOSITIONS_H
