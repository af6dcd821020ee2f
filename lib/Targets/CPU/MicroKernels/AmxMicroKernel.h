//===- AmxMicroKernel.h - Products by tile registers ---------------*- C++
//-*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AMX has eight registers of 16 rows of 64 bytes, and instructions that
// multiply two of them onto a third.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_AMXMICROKERNEL_H
#define SARDONYX_LIB_TARGETS_CPU_AMXMICROKERNEL_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace sardonyx::cpu {

/// Rows of a tile register, and its columns of 32 bits.
inline constexpr int64_t kTileRows = 16;
/// Bytes of a row of a tile register.
inline constexpr int64_t kTileBytes = 64;

/// Bytes in memory: `address` (i64) is that of the first row, `stride` (i64)
/// the bytes from one row to the next.
struct TileOperand {
  mlir::Value address, stride;
};

/// The address of element `indices` of `memref`, of identity layout, and the
/// stride of its last dimension but one.
TileOperand getTileOperand(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                           mlir::ValueRange indices);

/// Where a left-hand side has its values of k: `steps` * 64 bytes of them
/// follow each other, then come those `stride` (i64) bytes after the first.
struct TileLines {
  int64_t steps;
  mlir::Value stride;
};

/// Emits dest[i, j] = sum_k lhs[i, k] * rhs[k, j] for `rowTiles` * 16 rows, two
/// times 16 columns and `steps` (index) * 64 bytes of k: of bf16 (`type`) onto
/// f32, or of unsigned times signed bytes onto i32. Row q of `rhs` holds the
/// q-th group of values of k, of 32 bits, for each column. Sums start from what
/// `start` has (none: from zero). In each step `meanwhile` is called to emit
/// what else there is to do.
void emitTileProduct(mlir::ImplicitLocOpBuilder &b, mlir::Type type,
                     int64_t rowTiles, mlir::Value steps, TileOperand lhs,
                     TileOperand rhs, TileOperand dest,
                     std::optional<TileOperand> start = std::nullopt,
                     llvm::function_ref<void(mlir::Value step)> meanwhile = {},
                     std::optional<TileLines> lines = std::nullopt);

/// How many bf16 make an f32 (see Bf16x3Product.h).
inline constexpr int64_t kBf16x3Terms = 3;
/// Values of k of a step, the columns of a tile register of bf16.
inline constexpr int64_t kStepDepth = kTileBytes / 2;
/// Rows, and columns, of the result that a step adds to: two registers of rows
/// and two of columns leave four for the sums.
inline constexpr int64_t kBlockRows = 2 * kTileRows;
inline constexpr int64_t kBlockColumns = 2 * kTileRows;

/// The columns of a panel as tile registers.
inline constexpr int64_t kColumnTiles = 2;

/// Parts of a block of rows: [block, step, part, row, value of k], one to three
/// of each number, from `step` on (null: the first).
struct SplitRows {
  mlir::Value memref, block, step;
};
/// Parts of a panel of columns, three or one of each number, from `step` on
/// (null: the first), and how many tile registers have columns.
struct SplitPanel {
  mlir::Value memref, slot;
  int64_t tiles = kColumnTiles;
  mlir::Value step = {};
};

/// Emits dest[i, j] += sum_k lhs[i, k] * rhs[k, j], or without what there was,
/// on f32, for `rowTiles` * 16 rows, from the parts of rows `lhs` and of
/// columns `rhs`. Before each of the products of a step, six for three parts by
/// three (numbered from 0), `meanwhile` is called to emit what else there is to
/// do.
void emitBf16x3Product(
    mlir::ImplicitLocOpBuilder &b, int64_t rowTiles, mlir::Value steps,
    bool startsFromZero, SplitRows lhs, SplitPanel rhs, TileOperand dest,
    llvm::function_ref<void(mlir::Value step, int64_t product)> meanwhile);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_AMXMICROKERNEL_H
