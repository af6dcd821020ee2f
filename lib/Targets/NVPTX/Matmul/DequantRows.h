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
// Where columns are few, several warps share them, each with a part of K.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_DEQUANTROWS_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_DEQUANTROWS_H

#include "Kernel/PointEvaluator.h"
#include "Matmul/PackedWeights.h"

#include "dialects/NV/NV.h"

namespace sardonyx::nv {

/// The kernel of an sdx.dequant_matmul, some rows at a time.
class DequantRows {
public:
  /// `rows` of the result have the same block.
  DequantRows(sdx::DequantMatmulOp op, KernelBody &body, int64_t rows,
              TargetAttr target);

  /// Puts the loop over the blocks at the builder's place. It has none where
  /// not `isWanted`.
  void emit(mlir::ImplicitLocOpBuilder &b, mlir::Value isWanted);

private:
  /// What goes from one step along K to the next: the sums, then the pieces of
  /// the columns that have been read.
  using State = llvm::SmallVector<mlir::Value>;

  void choosePlan(TargetAttr target);
  int64_t stepPieces() const { return parts * 32; }
  /// Of a row of a chunk in shared memory: a gap after each piece keeps lanes
  /// out of each other's banks.
  int64_t pitch() const { return weights.countValues() + 4; }
  int64_t rowPitch() const { return chunkSteps * stepPieces() * pitch(); }

  void emitBlock(mlir::ImplicitLocOpBuilder &b, mlir::Value block);
  State loadPieces(mlir::ImplicitLocOpBuilder &b, mlir::Value step);
  void copyRows(mlir::ImplicitLocOpBuilder &b, mlir::Value chunk);
  mlir::Value loadLhs(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                      mlir::Value k);
  State emitChunks(mlir::ImplicitLocOpBuilder &b);
  State emitChunk(mlir::ImplicitLocOpBuilder &b, mlir::Value chunk,
                  mlir::ValueRange state);
  State multiply(mlir::ImplicitLocOpBuilder &b, mlir::Value stepOfChunk,
                 mlir::ValueRange state);
  void storeSums(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange sums);
  void emitResults(mlir::ImplicitLocOpBuilder &b);

  sdx::DequantMatmulOp op;
  KernelBody &body;
  PointEvaluator points;
  PackedWeights weights;
  const int64_t rows, depth, columns;
  /// Warps that share columns, steps along K, and those of a chunk.
  int64_t parts = 1, steps = 1, chunkSteps = 1;
  mlir::Value lhs, numRows;
  // Of the code of a block.
  mlir::Value thread, lane, part, row0, col0, warpCol, chunkOfRows, sums;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_DEQUANTROWS_H
