//===- NarrowBytes.h - Integers as bytes -----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_NARROWBYTES_H
#define SARDONYX_LIB_TARGETS_CPU_NARROWBYTES_H

#include "dialects/CPU/CPU.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::cpu {

/// Whether vectors of `width` integers can be narrowed by `emitNarrowBytes`.
bool canNarrowBytes(TargetAttr target, int64_t width);

/// How many vectors of `width` integers fill the registers that one instruction
/// sequence of `emitNarrowBytes` makes integers of `bits` of.
int64_t countNarrowedTogether(TargetAttr target, int64_t width, unsigned bits);

/// Vectors of i32, of one length, and `zeros` (of the same types; none: 0),
/// added to them, as bytes, each the nearest to its sum: unsigned ones or
/// signed ones. Four registers become one. With 16 `bits` these bytes are
/// widened, and two registers become one; no sum may be larger than a byte
/// then.
llvm::SmallVector<mlir::Value> emitNarrowBytes(mlir::ImplicitLocOpBuilder &b,
                                               TargetAttr target,
                                               mlir::ValueRange vectors,
                                               mlir::ValueRange zeros,
                                               bool isUnsigned, unsigned bits);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_NARROWBYTES_H
