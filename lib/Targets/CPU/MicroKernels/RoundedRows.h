//===- RoundedRows.h - Rows of f32 as signed bytes --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numbers of a row that are multiplied by a block of weights become
// integers from -127 to 127 times a scale, which is that of the largest.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ROUNDEDROWS_H
#define SARDONYX_LIB_TARGETS_CPU_ROUNDEDROWS_H

#include "dialects/CPU/CPU.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::cpu {

/// Rows as bytes [row, k], with zeros after the last value of k, and (f32) the
/// scales of their blocks and minus the sums of what the integers of a block
/// stand for: [row, block, 0 and 1].
struct RoundedRows {
  mlir::Value bytes, scales;
};

/// Memory for `rows` (index) rows of `depth` values of k.
RoundedRows emitRoundedBuffers(mlir::ImplicitLocOpBuilder &b, mlir::Value rows,
                               int64_t depth, int64_t block, TargetAttr target);

/// Rounds row `row` of `source` [row, k].
void emitRoundedRow(mlir::ImplicitLocOpBuilder &b, mlir::Value source,
                    mlir::Value row, int64_t depth, int64_t block,
                    TargetAttr target, const RoundedRows &to);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ROUNDEDROWS_H
