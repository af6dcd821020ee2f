//===- WarpgroupStore.h - How warpgroups store results ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warpgroup writes its results to shared memory, some columns of its 64 rows
// at a time, and has the hardware copy them from there (TMA), which leaves out
// what is beyond the matrix. While a copy is under way the next columns are
// written to other bytes.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_WARPGROUPSTORE_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_WARPGROUPSTORE_H

#include "Matmul/BlockTile.h"

namespace sardonyx::nv {

class WarpgroupStore {
public:
  /// Of the results of `thread`, of `type`. They lie in `bytes`, the block's,
  /// from `from` on. `map` is the nv.tensor_map that `makeMap` has made.
  WarpgroupStore(MatmulPlanAttr plan, mlir::Type type, mlir::Value bytes,
                 int64_t from, mlir::Value thread, mlir::Value map);

  /// Whether results of `type` can be stored so, in rows of so many.
  static bool isPossible(MatmulPlanAttr plan, mlir::Type type, int64_t columns);
  /// The map of a tensor of results, whose sizes begin with the innermost one,
  /// the columns, and the rows. The host makes it.
  static mlir::Value makeMap(mlir::ImplicitLocOpBuilder &b, MatmulPlanAttr plan,
                             mlir::Value memref,
                             llvm::ArrayRef<mlir::Value> sizes);

  /// Computes the results of the thread in columns 8 * `piece` + 2 * (lane mod
  /// 4) and the next one, in row lane div 4 of the warp's or, with `half` = 1,
  /// eight rows below.
  using FindPair = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      int64_t half, int64_t piece)>;
  /// Stores all columns. `place` are the coordinates in the tensor of column
  /// `col` of the tile, in the warpgroup's first row.
  void
  emit(mlir::ImplicitLocOpBuilder &b, FindPair findPair,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(int64_t col)> place);
  /// Waits for all copies.
  void finish(mlir::ImplicitLocOpBuilder &b);

private:
  static int64_t boxBytes(MatmulPlanAttr plan, mlir::Type type);
  int64_t elementBytes() const { return type.getIntOrFloatBitWidth() / 8; }
  int64_t boxCols() const { return boxBytes(plan, type) / elementBytes(); }
  int64_t countBoxes() const { return plan.getTileN() / boxCols(); }
  /// Boxes that have bytes of their own, which are taken in turn.
  int64_t countSlots() const { return countBoxes() % 2 ? 1 : 2; }
  mlir::Value group(mlir::ImplicitLocOpBuilder &b);
  mlir::Value slotAt(mlir::ImplicitLocOpBuilder &b, int64_t box);
  mlir::Value byteAt(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                     int64_t chunk, mlir::Value more, mlir::Value slot);
  mlir::Value packWord(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange pair);
  void storeMatrices(mlir::ImplicitLocOpBuilder &b, int64_t box,
                     FindPair findPair);
  void storePairs(mlir::ImplicitLocOpBuilder &b, int64_t box,
                  FindPair findPair);
  void joinGroup(mlir::ImplicitLocOpBuilder &b);
  void ifFirst(mlir::ImplicitLocOpBuilder &b, llvm::function_ref<void()> emit);
  void waitForCopies(mlir::ImplicitLocOpBuilder &b, int64_t most,
                     bool onlyRead);

  MatmulPlanAttr plan;
  mlir::Type type;
  mlir::Value bytes;
  int64_t from;
  mlir::Value thread, map;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_WARPGROUPSTORE_H
