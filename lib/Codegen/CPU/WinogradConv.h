//===- WinogradConv.h - Winograd's algorithm for 3x3 ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CODEGEN_CPU_WINOGRADCONV_H
#define SARDONYX_LIB_CODEGEN_CPU_WINOGRADCONV_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/ArrayRef.h"

namespace sardonyx::cpu {

/// The algorithm F(m x m, 3 x 3) in one dimension: the matrices, row by row,
/// for tiles of m outputs.
struct Winograd {
  int64_t outputs;
  llvm::ArrayRef<double> input;  ///< inputs() x inputs()
  llvm::ArrayRef<double> filter; ///< inputs() x 3
  llvm::ArrayRef<double> output; ///< outputs x inputs()

  int64_t inputs() const { return outputs + 2; }
  /// Values that a filter of 3x3 becomes.
  int64_t taps() const { return inputs() * inputs(); }
};

/// The one for tiles of 2 or 4 outputs.
const Winograd &getWinograd(int64_t outputs);

/// Vectors of `lanes` tiles that cover an output of `height` x `width`.
int64_t countWinogradGroups(const Winograd &algorithm, int64_t lanes,
                            int64_t height, int64_t width);

/// Emits the transform of filters [OC,C,3,3] to [1,Ob,taps*C,Rt].
void emitWinogradWeights(mlir::ImplicitLocOpBuilder &b,
                         const Winograd &algorithm, mlir::Value source,
                         mlir::Value dest);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_CODEGEN_CPU_WINOGRADCONV_H
