//===- RowMemory.h - Loads and stores of a group's loops --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ROWMEMORY_H
#define SARDONYX_LIB_TARGETS_CPU_ROWMEMORY_H

#include "Rows/RowPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

namespace sardonyx::cpu {

/// For each copy of the unrolled loop a value; one for all when it is uniform.
using Copies = llvm::SmallVector<mlir::Value>;

inline mlir::Value pick(const Copies &copies, unsigned i) {
  return copies[copies.size() == 1 ? 0 : i];
}

/// Where in the iteration space code is being emitted.
struct Point {
  /// For each dimension its position; null where no loop is around yet.
  llvm::SmallVector<mlir::Value> ivs;
  unsigned copies = 1;
  bool onVectors = false;
  /// The copies lie along the transposed dimension, not along the lanes.
  bool isTile = false;
  mlir::Value mask;
  /// Lanes up to the end of the loop, where there is a mask.
  mlir::Value left;
  int level = -1;
  /// All positions along the lanes are in the run (RowPlan::run).
  bool isInRun = false;
  /// In the first loop over a row.
  bool isFirstPass = false;
};

/// Emits the accesses of a group's stages to memory.
class RowMemory {
public:
  RowMemory(mlir::OpBuilder &b, ReductionGroup &group, const RowPlan &plan)
      : b(b), loc(group.loc), group(group), plan(plan), keptIn(plan.keptIn) {}

  /// The values that `access` reads at `point`.
  Copies load(const RowAccess &access, const Point &point);
  void store(const RowAccess &access, const Point &point, const Copies &values);
  /// Calls `write` for all positions of `access` that get what is computed once
  /// (RowPlan::repeated), unless `point` is one of them. Whether there are any.
  bool repeat(const RowAccess &access, const Point &point,
              llvm::function_ref<void(const Point &)> write);
  /// Fetches what the next row reads and writes along the lanes at `point`.
  void prefetchNextRow(const Point &point);
  /// Memory for one row of values of `type`.
  RowAccess makeScratch(mlir::Type type);

protected:
  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  mlir::Value getSize(unsigned d) {
    return mlir::getValueOrCreateConstantIndexOp(b, loc, group.sizes[d]);
  }
  llvm::ArrayRef<int64_t> shape(const Point &point) {
    return point.onVectors ? llvm::ArrayRef<int64_t>(plan.lanes)
                           : llvm::ArrayRef<int64_t>();
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  ReductionGroup &group;
  const RowPlan &plan;
  /// Where kept results are: as `plan` says, or in scratch.
  llvm::SmallVector<llvm::SmallVector<RowAccess>> keptIn;
  /// Scratch that is to be freed at the end of the task.
  llvm::SmallVector<mlir::Value> buffers;

  /// Where in its memory `access` is at `point`; `copy` says of which of the
  /// vectors.
  llvm::SmallVector<mlir::Value> getIndices(const RowAccess &access,
                                            const Point &point, unsigned copy);

private:
  mlir::Value loadInterleaved(const RowAccess &access, const Point &point,
                              llvm::SmallVector<mlir::Value> indices);
  std::pair<mlir::Value, llvm::SmallVector<mlir::Value>>
  flattenPositions(const RowAccess &access, const Point &point);
  Copies loadDeinterleaved(const RowAccess &access, const Point &point);
  Copies loadTransposed(const RowAccess &access, const Point &point);
  void storeInterleaved(const RowAccess &access, const Point &point,
                        const Copies &values);
  /// `mask`, or one of all lanes for what always wants a mask.
  mlir::Value getFullMask(mlir::Value mask);
  mlir::Value getLaneOffsets(const RowAccess &access);
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ROWMEMORY_H
