//===- DotMicroKernels.h - Sums of products of narrow numbers -----*- C++
//-*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_DOTMICROKERNELS_H
#define SARDONYX_LIB_TARGETS_CPU_DOTMICROKERNELS_H

#include "dialects/CPU/CPU.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::cpu {

/// accumulator[i] + sum_j lhs[4 * i + j] * rhs[4 * i + j] for j in 0..3, exact
/// modulo 2^32. All are vectors of i32 of one length; `lhs` stands for four
/// unsigned bytes in each lane, `rhs` for four signed ones. Registers have
/// `vectorBits`.
mlir::Value emitByteProduct(mlir::ImplicitLocOpBuilder &b,
                            cpu::Int8Product kind, unsigned vectorBits,
                            mlir::Value lhs, mlir::Value rhs,
                            mlir::Value accumulator);

/// accumulator[i] + sum_j lhs[2 * i + j] * rhs[2 * i + j] for j in 0..1, where
/// `lhs` and `rhs`, vectors of i32, stand for two bf16 in each lane and the
/// accumulator is of f32. The instructions take subnormal numbers as zero.
mlir::Value emitBf16Product(mlir::ImplicitLocOpBuilder &b,
                            cpu::Bf16Product kind, unsigned vectorBits,
                            mlir::Value lhs, mlir::Value rhs,
                            mlir::Value accumulator);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_DOTMICROKERNELS_H
