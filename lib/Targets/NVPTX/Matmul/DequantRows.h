//===- DequantRows.h - A few rows times packed weights ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where rows are few, reading the weights is what takes the time. A warp has
// some columns: its lanes read neighbouring pieces of them, and the next ones
// while they multiply, by rows that lie in shared memory as f32. Sums are f32.
// Rows of f16 lie there as they are, and two products at a time are added up in
// f16, of a piece, at most those of a block that has one scale; sums of pieces
// are f32.
// Where columns are few, several warps share them, each with a part of K.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_DEQUANTROWS_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_DEQUANTROWS_H

#include "Kernel/PointEvaluator.h"
#include "Matmul/HeadEpilogue.h"
#include "Matmul/PackedWeights.h"
#include "Matmul/RowPrologue.h"

#include "dialects/NV/NV.h"

namespace sardonyx::nv {

/// Rows for which reading packed weights takes longer than multiplying.
inline constexpr int64_t kFewPackedRows = 8;
/// The most rows that a block has.
inline constexpr int64_t kPackedRowsOfBlock = 4;

/// The kernel of an sdx.dequant_matmul, some rows at a time; or of several
/// whose left-hand side is the same, which it may compute, and whose weights
/// are of the same sizes and form. What hangs on two columns of a head it
/// computes in a block that has both.
class DequantRows {
public:
  /// `rows` of the result have the same block.
  DequantRows(llvm::ArrayRef<sdx::DequantMatmulOp> products, KernelBody &body,
              int64_t rows, TargetAttr target);

  /// Of so many rows those that a block has.
  static int64_t rowsOfBlock(int64_t known);

  /// Whether all that the kernel computes can be computed so.
  bool isPossible();

  /// Puts the loop over the blocks at the builder's place. It has none where
  /// not `isWanted`.
  void emit(mlir::ImplicitLocOpBuilder &b, mlir::Value isWanted);

private:
  static constexpr int64_t kWarps = 8, kThreads = 32 * kWarps;
  /// What goes from one step along K to the next: the sums, then the pieces of
  /// the columns that have been read.
  using State = llvm::SmallVector<mlir::Value>;

  void choosePlan(TargetAttr target);
  BlockColumns getBlockColumns() const {
    return {warpColumns * kWarps / parts, heads ? heads->getDistance() : 0};
  }
  /// What a warp has of all products: columns, and sums.
  int64_t columnsOfProducts() const {
    return warpColumns * static_cast<int64_t>(products.size());
  }
  int64_t countSums() const { return rows * columnsOfProducts(); }
  int64_t stepPieces() const { return parts * 32; }
  /// Of a row of a chunk in shared memory: a gap after each piece keeps lanes
  /// out of each other's banks.
  int64_t pitch() const { return countValues() + kPitchGap / elementBytes(); }
  int64_t elementBytes() const { return isPaired ? 2 : 4; }
  static constexpr int64_t kPitchGap = 16; // bytes
  int64_t countValues() const { return weights.front().countValues(); }
  int64_t piecesOfRow() const { return weights.front().piecesOfRow(); }
  int64_t rowPitch() const { return chunkSteps * stepPieces() * pitch(); }

  void emitBlock(mlir::ImplicitLocOpBuilder &b, mlir::Value block);
  void prefetchWeights(mlir::ImplicitLocOpBuilder &b);
  State loadPieces(mlir::ImplicitLocOpBuilder &b, mlir::Value step);
  void copyRows(mlir::ImplicitLocOpBuilder &b, mlir::Value chunk);
  mlir::Value loadLhs(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                      mlir::Value k);
  State emitChunks(mlir::ImplicitLocOpBuilder &b);
  State emitChunk(mlir::ImplicitLocOpBuilder &b, mlir::Value chunk,
                  mlir::ValueRange state);
  State multiply(mlir::ImplicitLocOpBuilder &b, mlir::Value stepOfChunk,
                 mlir::ValueRange state);
  using PieceOf = llvm::function_ref<mlir::ValueRange(int64_t column)>;
  State multiplyAll(mlir::ImplicitLocOpBuilder &b, mlir::Value from,
                    PieceOf pieceOf);
  State multiplyPairs(mlir::ImplicitLocOpBuilder &b, mlir::Value from,
                      PieceOf pieceOf);
  void storeSums(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> placeOf(mlir::ImplicitLocOpBuilder &b,
                                         int64_t which, mlir::Value r,
                                         mlir::Value c);
  void emitResults(mlir::ImplicitLocOpBuilder &b);

  llvm::SmallVector<sdx::DequantMatmulOp> products;
  sdx::DequantMatmulOp op; // the first of them
  KernelBody &body;
  PointEvaluator points;
  RowPrologue prologue;
  std::optional<HeadEpilogue> heads;
  llvm::SmallVector<PackedWeights> weights; // of each product
  const int64_t rows, depth, columns;
  /// Columns of a warp.
  const int64_t warpColumns;
  /// Whether rows are multiplied as f16, two elements at a time.
  bool isPaired = false;
  /// Warps that share columns, steps along K, and those of a chunk.
  int64_t parts = 1, steps = 1, chunkSteps = 1;
  mlir::Value lhs, numRows;
  // Of the code of a block.
  mlir::Value thread, lane, part, row0, col0, warpCol, chunkOfRows, sums;
  mlir::Value pairsOfRows; // the chunk as words
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_DEQUANTROWS_H
