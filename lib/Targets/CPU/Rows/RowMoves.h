//===- RowMoves.h - Long rows that are copied or filled ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ROWS_ROWMOVES_H
#define SARDONYX_LIB_TARGETS_CPU_ROWS_ROWMOVES_H

#include "Rows/ReductionGroup.h"

namespace sardonyx::cpu {

/// Where `group` is a broadcast of open sizes, emits the cases in which its
/// last dimensions are as long in what it reads, so that they are copied as one
/// piece. The builder is then where code for the other case is to be.
void emitBroadcastCopies(mlir::OpBuilder &b, ReductionGroup &group);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ROWS_ROWMOVES_H
