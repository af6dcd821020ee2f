//===- WinogradTiles.h - Tiles of pictures and of filters -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_PLAN_WINOGRADTILES_H
#define SARDONYX_LIB_TARGETS_CPU_PLAN_WINOGRADTILES_H

#include "dialects/CPU/Winograd.h"

#include "llvm/Support/MathExtras.h"

namespace sardonyx::cpu {

/// The lanes of a vector hold the tiles of a group: those of `rows` rows of
/// tiles and `lanes / rows` columns, so that their inputs and outputs are runs
/// of consecutive elements.
struct WinogradGroups {
  int64_t rows;
  /// How many of them cover an output.
  int64_t count;

  /// The fewest, for an output of `height` x `width`.
  static WinogradGroups get(const Winograd &algorithm, int64_t lanes,
                            int64_t height, int64_t width);
};

/// Filters of a block of weights that become the rows of tiles on vectors of
/// 256 bits: 16 registers have room for the sums of six by two vectors.
inline constexpr int64_t kWinogradRowsOf8Lanes = 6;

/// Whether few rows are without a filter where tiles have `rows` of them, next
/// to tiles of four.
inline bool wastesFewRows(int64_t filters, int64_t rows) {
  int64_t least = llvm::alignTo(filters, 4);
  return 8 * (int64_t(llvm::alignTo(filters, rows)) - least) <= filters;
}

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_PLAN_WINOGRADTILES_H
