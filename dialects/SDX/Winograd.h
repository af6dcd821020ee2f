//===- Winograd.h - Winograd's algorithm for 3x3 ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the attribute `winograd` of sdx.conv and sdx.pack_conv_weights means.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_SDX_WINOGRAD_H
#define SARDONYX_DIALECTS_SDX_WINOGRAD_H

#include "llvm/ADT/ArrayRef.h"

namespace sardonyx::sdx {

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

/// The taps() values that a filter of 3x3, row by row, becomes.
void transformFilter(const Winograd &algorithm, llvm::ArrayRef<float> filter,
                     llvm::MutableArrayRef<float> values);

} // namespace sardonyx::sdx

#endif // SARDONYX_DIALECTS_SDX_WINOGRAD_H
