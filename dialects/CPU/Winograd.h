//===- Winograd.h - Winograd's algorithm for 3x3 ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the attribute `winograd` of cpu.conv and cpu.pack_conv_weights means.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_CPU_WINOGRAD_H
#define SARDONYX_DIALECTS_CPU_WINOGRAD_H

#include "llvm/ADT/ArrayRef.h"

namespace sardonyx::cpu {

/// The algorithm F(m x m, 3 x 3) in one dimension: the matrices, row by row,
/// for tiles of m outputs.
///
/// With a stride of 2 outputs are sums of those of two convolutions: of even
/// inputs by the outer two of three weights, which go by F(m, 2), and of odd
/// inputs by the weight between them, as they are. The values of the former
/// come first; those of the latter are all multiplied by the same number.
struct Winograd {
  int64_t outputs, stride;
  llvm::ArrayRef<double> input;  ///< values() x inputs()
  llvm::ArrayRef<double> filter; ///< numbers() x 3
  llvm::ArrayRef<double> output; ///< outputs x values()

  /// Inputs of a tile, and how far the next tile's are.
  int64_t inputs() const { return stride * (outputs - 1) + 3; }
  int64_t step() const { return stride * outputs; }
  /// What the inputs of a tile become, and three weights of a filter.
  int64_t values() const { return input.size() / inputs(); }
  int64_t numbers() const { return filter.size() / 3; }
  /// Values that a tile of inputs becomes.
  int64_t products() const { return values() * values(); }
  /// Values that a filter of 3x3 becomes.
  int64_t taps() const { return numbers() * numbers(); }
};

/// The one for tiles of 2 or 4 outputs and a stride of 1 or 2.
const Winograd &getWinograd(int64_t outputs, int64_t stride = 1);

/// The taps() values that a filter of 3x3, row by row, becomes.
void transformFilter(const Winograd &algorithm, llvm::ArrayRef<float> filter,
                     llvm::MutableArrayRef<float> values);

} // namespace sardonyx::cpu

#endif // SARDONYX_DIALECTS_CPU_WINOGRAD_H
