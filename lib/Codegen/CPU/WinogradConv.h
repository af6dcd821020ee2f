//===- WinogradConv.h - Winograd's algorithm for 3x3 ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CODEGEN_CPU_WINOGRADCONV_H
#define SARDONYX_LIB_CODEGEN_CPU_WINOGRADCONV_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringRef.h"

namespace sardonyx::cpu {

/// On `sdx.conv` and `sdx.pack_conv_weights`: the weights are transformed for
/// F(4x4, 3x3), so that K counts 36 values a channel, channels innermost.
inline constexpr llvm::StringLiteral kWinogradAttr = "sdx.winograd";

/// Values that a filter of 3x3 becomes.
inline constexpr int64_t kWinogradTaps = 36;

/// Vectors of `lanes` tiles that cover an output of `height` x `width`.
int64_t countWinogradGroups(int64_t lanes, int64_t height, int64_t width);

/// Emits the transform of filters [OC,C,3,3] to [1,Ob,36*C,Rt].
void emitWinogradWeights(mlir::ImplicitLocOpBuilder &b, mlir::Value source,
                         mlir::Value dest);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_CODEGEN_CPU_WINOGRADCONV_H
