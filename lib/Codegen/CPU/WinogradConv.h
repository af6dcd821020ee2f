//===- WinogradConv.h - Winograd's algorithm for 3x3 ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CODEGEN_CPU_WINOGRADCONV_H
#define SARDONYX_LIB_CODEGEN_CPU_WINOGRADCONV_H

#include "dialects/SDX/Winograd.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::cpu {

/// Vectors of `lanes` tiles that cover an output of `height` x `width`.
int64_t countWinogradGroups(const sdx::Winograd &algorithm, int64_t lanes,
                            int64_t height, int64_t width);

/// Emits the transform of filters [OC,C,3,3] to [1,Ob,taps*C,Rt], or with
/// `scales` to three bytes each, by registers of `lanes` f32.
void emitWinogradWeights(mlir::ImplicitLocOpBuilder &b,
                         const sdx::Winograd &algorithm, mlir::Value source,
                         mlir::Value scales, mlir::Value dest, int64_t lanes);

/// Weights [1,Ob,taps*C,X] as a panel for each block and value, [Ob*taps,C,X].
mlir::Value emitWinogradPanels(mlir::ImplicitLocOpBuilder &b,
                               mlir::Value weights, int64_t taps);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_CODEGEN_CPU_WINOGRADCONV_H
