//===- CPU.h - Processors and packed operations -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cpu dialect: what the CPU target makes of dense operations, and the
// machines it knows. Everything about it is included from here.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_CPU_CPU_H
#define SARDONYX_DIALECTS_CPU_CPU_H

#include "dialects/SDX/SDX.h"

namespace sardonyx::cpu {

struct Winograd; // Winograd.h

/// Columns in a panel of a packed right-hand side.
inline constexpr int64_t kPanelWidth = 32;
/// Output channels in a block of packed convolution weights.
inline constexpr int64_t kConvBlockRows = 8;
/// Of fewer rows sums of weights cost more than the product that Strassen's
/// algorithm saves.
inline constexpr int64_t kMinStrassenRows = 48;
/// Values of k whose numbers of 21 bits share eight bytes.
inline constexpr int64_t kW21Group = 3;
/// Values of k of 2, 4 or 8 bits that have a byte each of the same 32 bits.
inline constexpr int64_t kQuantizedGroup = 4;
/// Filters, and values of K, in a block of convolution weights that are sums of
/// bf16, and the bf16 of a number.
inline constexpr int64_t kBf16x2Block = 32, kBf16x2Terms = 2;
/// The bits of 2^-50. Of rows and columns of nothing but numbers below it parts
/// would be lost: tile registers take subnormal ones as zero.
inline constexpr int64_t kSmallestSplit = int64_t(127 - 50) << 23;

} // namespace sardonyx::cpu

#include "dialects/CPU/CPUDialect.h.inc"
#include "dialects/CPU/CPUEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/CPU/CPUAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/CPU/CPUOps.h.inc"

namespace sardonyx {
namespace cpu {

/// The name of a kernel's plan.
inline constexpr llvm::StringLiteral kPlanAttr = "cpu.plan";

/// The processor that the code of `op` is for: what it or the nearest operation
/// around it says; null where none does, or where it is another target's.
TargetAttr getTarget(mlir::Operation *op);
/// The same, and what passes assume where nothing is said.
TargetAttr getTargetOrDefault(mlir::Operation *op);

} // namespace cpu

/// Lets one-shot bufferization handle the cpu operations.
void registerCPUBufferization(mlir::DialectRegistry &registry);

} // namespace sardonyx

#endif // SARDONYX_DIALECTS_CPU_CPU_H
