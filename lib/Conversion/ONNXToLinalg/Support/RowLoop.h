//===- RowLoop.h - Programs that run once for each row ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a linalg operation cannot say, as each element of a result hangs on
// those before it: sorting, selecting. Rows do not know each other, so that
// all of them are one kernel.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_ROWLOOP_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_ROWLOOP_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

using Values = llvm::SmallVector<mlir::Value>;

/// Runs `body` for each row of `results`, matrices of as many rows that hold
/// nothing or one value before: it gets their rows and returns them changed. It
/// must not build linalg operations.
Values forEachRow(TensorBuilder &b, mlir::ValueRange results,
                  llvm::function_ref<Values(TensorBuilder &, mlir::Value row,
                                            mlir::ValueRange rows)>
                      body);

/// scf.for from `from` to `to`.
Values loop(TensorBuilder &b, mlir::Value from, mlir::Value to,
            mlir::ValueRange state,
            llvm::function_ref<Values(TensorBuilder &, mlir::Value i,
                                      mlir::ValueRange state)>
                body);

/// scf.if whose branches return as many values as `otherwise` has, which are
/// the results where the condition does not hold.
Values when(TensorBuilder &b, mlir::Value condition, mlir::ValueRange otherwise,
            llvm::function_ref<Values(TensorBuilder &)> then);

/// Whether `test` (i1) holds for an index in [from, to); it is not asked after
/// the first for which it does.
mlir::Value holdsForAny(
    TensorBuilder &b, mlir::Value from, mlir::Value to,
    llvm::function_ref<mlir::Value(TensorBuilder &, mlir::Value i)> test);

/// `tensor` with `value` at a place.
mlir::Value put(TensorBuilder &b, mlir::Value value, mlir::Value tensor,
                mlir::ValueRange at);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_ROWLOOP_H
