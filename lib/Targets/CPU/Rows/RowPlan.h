//===- RowPlan.h - How the loops of a group are laid out --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ROWPLAN_H
#define SARDONYX_LIB_TARGETS_CPU_ROWPLAN_H

#include "Rows/BodyOnLanes.h"

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sardonyx::cpu {

/// So many tasks occupy the threads while rows are computed side by side.
inline constexpr int64_t kEnoughRowTasks = 16;
/// Rows of as many vectors or fewer are computed side by side.
inline constexpr int64_t kVectorsOfShortRow = 16;

/// How the loops of a group are laid out: its #cpu.rows_plan, and what follows
/// from that and the group. Nothing is emitted yet.
struct RowPlan {
  /// The dimension along the lanes, or -1 for scalar code.
  int64_t lane = -1;
  bool laneReduced = false;
  /// A parallel dimension along which the accesses that stride along the lanes
  /// are contiguous, or -1: square tiles of the two are transposed in
  /// registers.
  int64_t transposed = -1;
  /// It is the stores instead that stride along the lanes: those of all
  /// positions of the transposed dimension are interleaved in registers.
  bool interleaves = false;
  /// Or it is loads whose vectors have all positions of the transposed
  /// dimension, which are taken apart.
  bool deinterleaves = false;
  /// Dimensions of a few positions that nothing read depends on: what is
  /// computed is stored to all of them.
  llvm::SmallVector<unsigned, 2> repeated;
  /// Lanes of a vector, and vectors that the main loop works on at a time.
  int64_t lanes = 1;
  unsigned unroll = 1;
  /// Positions along the lanes that are one task; 0 for all of them.
  int64_t chunk = 0;
  /// The first loop over a row fetches what the next row reads and writes.
  bool prefetch = false;
  /// Neighbouring rows that are computed side by side.
  int64_t rows = 1;
  /// The reads of bodies along the lanes that are of one element in some runs.
  llvm::SmallDenseMap<mlir::Operation *, LaneChoice> choices;
  /// The reads of bodies whose last index is another one in each lane.
  llvm::SmallPtrSet<mlir::Operation *, 4> gathers;
  /// The positions along the lanes that bodies ask for: these go by vectors,
  /// the others one by one. What asks, and the reads there.
  std::optional<LaneRun> run;
  llvm::SmallPtrSet<mlir::Operation *, 4> isInRun, readsOfRun;
  /// Whether the tail may run on vectors with a mask.
  bool maskedTail = true;
  /// Whether the last vector may begin earlier instead, where there are lanes
  /// enough, and store some elements once more.
  bool overlapsTail = false;

  /// The pass over the row in which each stage is computed; -1 before all.
  /// A stage that doesn't iterate over the row is computed after that pass.
  llvm::SmallVector<int> level;
  int maxLevel = -1;
  /// Whether the stage runs inside of the loops over the row.
  llvm::SmallVector<bool> inner;
  /// Elementwise stages whose results a later pass reads again; the memory is
  /// a row of scratch when its kind is None.
  llvm::SmallVector<bool> kept;
  llvm::SmallVector<llvm::SmallVector<RowAccess>> keptIn;
  /// For each reduction and result, how values combine (lane reduced only).
  llvm::SmallVector<llvm::SmallVector<mlir::vector::CombiningKind>> kinds;
  /// Whether all of them give the same in any order (lane reduced only).
  bool isExact = false;
};

/// `choice` fits the group (Plan/RowsPlan.h).
RowPlan makeRowPlan(ReductionGroup &group, RowsPlanAttr choice);

/// Whether the stage runs inside of the loops over the row.
bool isInnerStage(const ReductionGroup &group, const RowStage &stage);

/// Whether each result of the reduction is one combining operation on its
/// accumulator, which then may be split over lanes; how values combine.
bool matchReduction(RowStage &stage,
                    llvm::SmallVectorImpl<mlir::vector::CombiningKind> &kinds);

/// A rough count of the cycles that a body takes.
int64_t estimateBody(mlir::Block &body);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ROWPLAN_H
