//===- ConstantOnly.h - What follows from constants -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TRANSFORMS_CONSTANTONLY_H
#define SARDONYX_TRANSFORMS_CONSTANTONLY_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

namespace sardonyx {

/// Whether an operator always gives the same of the same operands.
bool isRepeatable(mlir::Operation *op);

/// Adds to `makers` all operations that `value` follows from, if these are
/// constants, and operators on them that are among `allowed`. False for others,
/// and where there are more than `limit`.
bool collectConstantMakers(
    mlir::Value value, llvm::SetVector<mlir::Operation *> &makers,
    llvm::function_ref<bool(mlir::Operation *)> allowed = isRepeatable,
    size_t limit = 4096);

/// Whether `value` follows from constants alone.
bool isConstantOnly(mlir::Value value);

} // namespace sardonyx

#endif // SARDONYX_TRANSFORMS_CONSTANTONLY_H
