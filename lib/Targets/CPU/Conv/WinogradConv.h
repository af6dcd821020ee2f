//===- WinogradConv.h - Winograd's algorithm for 3x3 ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_WINOGRADCONV_H
#define SARDONYX_LIB_TARGETS_CPU_WINOGRADCONV_H

#include "dialects/CPU/Winograd.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/MathExtras.h"

#include <optional>

namespace sardonyx::cpu {

/// Products of so many channels are added up before these sums are: rounding
/// errors of products are what transforms of outputs enlarge.
inline int64_t getWinogradSumDepth(std::optional<int64_t> channels) {
  constexpr int64_t kDepth = 32;
  return channels.value_or(2 * kDepth) > kDepth ? kDepth : kDepth / 2;
}

/// matrix * tile * transpose(matrix) of a square tile in row-major order, for a
/// matrix of `rows` rows.
llvm::SmallVector<mlir::Value>
emitWinogradSquare(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<double> matrix,
                   int64_t rows, llvm::ArrayRef<mlir::Value> tile);

/// Emits the transform of filters [OC,C,3,3] to [1,Ob,taps*C,Rt].
void emitWinogradWeights(mlir::ImplicitLocOpBuilder &b,
                         const cpu::Winograd &algorithm, mlir::Value source,
                         mlir::Value dest);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_WINOGRADCONV_H
