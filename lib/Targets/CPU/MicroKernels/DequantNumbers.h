//===- DequantNumbers.h - Weights of a few bits in registers ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_DEQUANTNUMBERS_H
#define SARDONYX_LIB_TARGETS_CPU_DEQUANTNUMBERS_H

#include "MicroKernels/MicroKernel.h"

#include <array>

namespace sardonyx::cpu {

/// The columns of a tile in one panel and one block of a quantised right-hand
/// side.
class DequantNumbers {
public:
  DequantNumbers(mlir::ImplicitLocOpBuilder &b, const PackedTile &tile,
                 mlir::Value panel, mlir::Value block);

  /// What 32 bits a column of group `group` of values of k lie in (i32).
  mlir::Value load(mlir::Value group);
  /// The integers of value `place` of a group less their zero points, as f32.
  mlir::Value emit(mlir::Value words, mlir::Value place);
  /// The integers of a group, a byte each (i32).
  mlir::Value emitBytes(mlir::Value words);
  /// Zero points (f32).
  mlir::Value getZeroPoints();

private:
  llvm::SmallVector<mlir::Value> emitShifted(mlir::Value loaded,
                                             mlir::Value start);

  mlir::ImplicitLocOpBuilder &b;
  const PackedTile &tile;
  const mlir::Value panel;
  const int64_t bits;
  /// Columns that lie in the words of a group, those of the tile that do, and
  /// how often a register has them.
  int64_t words, width, repeats;
  /// Which of the integers of a byte is the first, and the first word.
  mlir::Value part, first;
  /// Zero points, unless the table has them; the table, where there is one.
  mlir::Value zero, table;
};

/// `width` scales or zero points from `indices` on, as f32.
mlir::Value emitLoadParameters(mlir::ImplicitLocOpBuilder &b,
                               mlir::Value memref, mlir::ValueRange indices,
                               int64_t width);

/// The numbers of value `k` of a tile's panel in its columns.
mlir::Value emitDequantized(mlir::ImplicitLocOpBuilder &b,
                            const PackedTile &tile, mlir::Value k);

/// The same of the values of k of `group`, which share scales; times these, or
/// (not `isScaled`) without.
std::array<mlir::Value, kQuantizedGroup>
emitDequantizedGroup(mlir::ImplicitLocOpBuilder &b, const PackedTile &tile,
                     mlir::Value group, bool isScaled);

/// accs + scales * sums, block after block; `emitSums` gives the sums of the
/// `size` values of k of one.
llvm::SmallVector<mlir::Value> emitDequantBlocks(
    mlir::ImplicitLocOpBuilder &b, const PackedTile &tile,
    llvm::SmallVector<mlir::Value> accs,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value block,
                                                      int64_t size)>
        emitSums);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_DEQUANTNUMBERS_H
