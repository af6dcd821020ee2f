//===- Copies.h - Elements of windows and lines in scratch memory ---===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_CONV_COPIES_H
#define SARDONYX_LIB_TARGETS_CPU_CONV_COPIES_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::cpu {

/// Copies `size` elements of `from`, of one dimension, from `at` on to `column`
/// and following of row `row` of `to`.
void emitCopy(mlir::ImplicitLocOpBuilder &b, mlir::Value from, mlir::Value at,
              mlir::Value to, mlir::Value row, mlir::Value column,
              int64_t size);

/// Fills them with an integer; floats become zero.
void emitFill(mlir::ImplicitLocOpBuilder &b, int64_t value, mlir::Value to,
              mlir::Value row, mlir::Value column, int64_t size);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_CONV_COPIES_H
