//===- Bf16x3Product.h - Numbers of f32 as sums of bf16 -----------*- C++
//-*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An f32 has 24 significant bits, so it is exactly the sum of three bf16 of 8
// bits each, its parts: x = x0 + x1 + x2. Of the nine products of the parts of
// two numbers those six count of which the greater is at least 2^-16 of the
// whole,
//
//   x * y = x0 y0 + x0 y1 + x1 y0 + x0 y2 + x1 y1 + x2 y0 + O(2^-23 x y),
//
// and processors that multiply bf16 by tile registers do them in less than half
// the time of one multiply-add in f32. Tile registers take subnormal numbers as
// zero, and an infinity has no parts; what is multiplied is therefore checked.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_BF16X3PRODUCT_H
#define SARDONYX_LIB_TARGETS_CPU_BF16X3PRODUCT_H

#include "MicroKernels/AmxMicroKernel.h"

namespace sardonyx::cpu {

/// The parts of `blocks` times `kBlockRows` rows of a left-hand side, for
/// `steps` steps: [block, step, part, row, value of k].
mlir::MemRefType getSplitRowsType(mlir::MLIRContext *context, int64_t blocks,
                                  int64_t steps, int64_t parts = kBf16x3Terms);
/// The parts of `kBlockColumns` columns of a right-hand side, of some panels:
/// [slot, step, part, half of the columns, pair of values of k, column and
/// which of the pair].
mlir::MemRefType getSplitColumnsType(mlir::MLIRContext *context, int64_t slots,
                                     int64_t steps,
                                     int64_t parts = kBf16x3Terms);
/// The largest magnitudes of these columns, as bits: [slot, half, column].
mlir::MemRefType getMagnitudesType(mlir::MLIRContext *context, int64_t slots);

/// Some values of k: from `first` to `end`, that is (index) `steps` steps, the
/// last maybe not full.
struct DepthRange {
  mlir::Value first, end, steps;
};

/// Writes the parts, three or one, of rows `row` and following of a matrix (the
/// last two dimensions of `source`, at `lead`) to block `block` of `parts`;
/// rows from `endRow` on repeat the last. `isFull` tells that no step has fewer
/// values of k than others. Gives (i1) whether products of them would be wrong:
/// a number is not finite, or all of a row are tiny.
mlir::Value emitRowParts(mlir::ImplicitLocOpBuilder &b, mlir::Value source,
                         mlir::ValueRange lead, mlir::Value row,
                         mlir::Value endRow, const DepthRange &depth,
                         bool isFull, mlir::Value parts, mlir::Value block);

/// Pairs of values of k in a step.
inline constexpr int64_t kStepPairs = kStepDepth / 2;

/// Where the parts of a panel of columns go, and how many halves it has.
struct ColumnParts {
  mlir::Value parts, magnitudes, slot;
  int64_t halves = kColumnTiles;
};

/// Begins with a panel: nothing large has been seen.
void emitClearMagnitudes(mlir::ImplicitLocOpBuilder &b, const ColumnParts &to);

/// Writes the parts of some pairs of values of k, from `firstPair` to
/// `endPair`, of which `load` gives those of one value in half of the columns.
void emitColumnParts(
    mlir::ImplicitLocOpBuilder &b, mlir::Value firstPair, mlir::Value endPair,
    llvm::function_ref<mlir::Value(mlir::Value k, int64_t half)> load,
    const ColumnParts &to);

/// Two values of k of some columns as bf16, pair by pair: rounded, or (not
/// `isRounded`) without what bf16 have no bits for.
mlir::Value emitBf16Pairs(mlir::ImplicitLocOpBuilder &b, mlir::Value even,
                          mlir::Value odd, bool isRounded);

/// Whether (i1) products of the columns would be wrong: as of rows.
mlir::Value emitAreColumnsBad(mlir::ImplicitLocOpBuilder &b,
                              const ColumnParts &columns);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_BF16X3PRODUCT_H
