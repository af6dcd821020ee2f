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
/// sequence of `emitNarrowBytes` makes bytes of.
int64_t countNarrowedTogether(TargetAttr target, int64_t width);

/// Vectors of i32, of one length, as bytes, each the nearest to its integer:
/// unsigned ones or signed ones. Four registers become one.
llvm::SmallVector<mlir::Value> emitNarrowBytes(mlir::ImplicitLocOpBuilder &b,
                                               TargetAttr target,
                                               mlir::ValueRange vectors,
                                               bool isUnsigned);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_NARROWBYTES_H
