//===- ConstantOnly.h - What follows from constants -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TRANSFORMS_CONSTANTONLY_H
#define SARDONYX_TRANSFORMS_CONSTANTONLY_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SetVector.h"

namespace sardonyx {

/// Adds to `makers` all operations that `value` follows from, if these are
/// operators on constants that always give the same; the constants are among
/// them. False for others, and where there are thousands.
bool collectConstantMakers(mlir::Value value,
                           llvm::SetVector<mlir::Operation *> &makers);

/// Whether `value` follows from constants alone.
bool isConstantOnly(mlir::Value value);

} // namespace sardonyx

#endif // SARDONYX_TRANSFORMS_CONSTANTONLY_H
