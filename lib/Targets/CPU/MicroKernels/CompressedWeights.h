//===- CompressedWeights.h - f32 in 21 or 24 bits -------------------*- C++
//-*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How cpu.pack_rhs keeps numbers in three bytes, or three of them ("a triple")
// in eight, and how products get them back.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_COMPRESSEDWEIGHTS_H
#define SARDONYX_LIB_TARGETS_CPU_COMPRESSEDWEIGHTS_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <algorithm>

namespace sardonyx::cpu {

/// Numbers of 24 and of 21 bits are read as 2^8 and 2^11 times themselves.
inline constexpr int kW24Shift = 8, kW21Shift = 11;

/// What such numbers meet in products is made 2^kRangeShift times smaller, so
/// that no product leaves the range of f32.
inline constexpr int kRangeShift = 31;

/// A panel of numbers in memory.
struct CompressedPanel {
  mlir::Value memory, number;
  /// Its columns, and how many of them a register holds.
  int64_t width, lanes;

  /// With registers of `lanes` f32; a register is no longer than half of a row.
  static CompressedPanel get(mlir::Value memory, mlir::Value number,
                             int64_t width, int64_t lanes) {
    return {memory, number, width, std::clamp<int64_t>(lanes, 4, width / 2)};
  }
};

/// Packs [k, width] `numbers` that are that many times larger than `scales`
/// say, in three bytes each.
void packW24(mlir::ImplicitLocOpBuilder &b, mlir::Value numbers,
             mlir::Value scales, mlir::Value k, const CompressedPanel &to);

/// Packs [k, width] `numbers` as triples; there is memory for [3 * ceil(k / 3),
/// width] numbers.
void packW21(mlir::ImplicitLocOpBuilder &b, mlir::Value numbers,
             mlir::Value scales, mlir::Value k, const CompressedPanel &to);

/// `width` of the `scales` of a panel for sums of products of numbers, read as
/// 2^shift times themselves, with others that were made smaller.
mlir::Value emitCompressedScales(mlir::ImplicitLocOpBuilder &b,
                                 mlir::Value scales, mlir::Value panel,
                                 int64_t column, int64_t width, int shift);

/// 2^kW24Shift times the integers of a panel at one value of k, as f32.
mlir::Value emitW24Numbers(mlir::ImplicitLocOpBuilder &b,
                           const CompressedPanel &panel, mlir::Value k);

/// 2^kW21Shift times those at the values of k of triples number `triple`.
llvm::SmallVector<mlir::Value> emitW21(mlir::ImplicitLocOpBuilder &b,
                                       const CompressedPanel &panel,
                                       mlir::Value triple);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_COMPRESSEDWEIGHTS_H
