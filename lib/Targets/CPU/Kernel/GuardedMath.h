//===- GuardedMath.h - Functions of usual operands on vectors ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_GUARDEDMATH_H
#define SARDONYX_LIB_TARGETS_CPU_GUARDEDMATH_H

#include "mlir/IR/PatternMatch.h"

namespace sardonyx::cpu {

/// Patterns that expand sin, cos, tan and powf on vectors of f32 and, with
/// multiply-adds in one instruction, remainders and the functions of f64. Each
/// holds for operands of usual size; where a lane has another one, all lanes
/// call the library.
void populateGuardedExpansions(mlir::RewritePatternSet &patterns,
                               bool hasMultiplyAdd);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_GUARDEDMATH_H
