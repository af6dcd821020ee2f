//===- RowPlan.h - How the loops of a group are laid out --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ROWPLAN_H
#define SARDONYX_LIB_TARGETS_CPU_ROWPLAN_H

#include "Rows/ReductionGroup.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sardonyx::cpu {

/// How an access walks memory as the lane dimension advances by one.
enum class AccessPattern { Uniform, Contiguous, Strided, Irregular };

AccessPattern getAccessPattern(const RowAccess &access, int64_t lane);

/// The constant distance of lanes in memory when it is so small that loading
/// all elements between pays; else 0.
int64_t getInterleave(const RowAccess &access, int64_t lane);

/// The static coefficients of `lane` in the results of the access's map.
/// Fails when one is not linear.
bool getLaneCoefficients(const RowAccess &access, int64_t lane,
                         llvm::SmallVectorImpl<int64_t> &coefficients);

/// Decisions about a group, before anything is emitted.
struct RowPlan {
  /// The dimension along the lanes, or -1 for scalar code.
  int64_t lane = -1;
  bool laneReduced = false;
  /// A parallel dimension along which the accesses that stride along the lanes
  /// are contiguous, or -1: square tiles of the two are transposed in
  /// registers.
  int64_t transposed = -1;
  /// Lanes of a vector, and vectors that the main loop works on at a time.
  int64_t lanes = 1;
  unsigned unroll = 1;
  /// Vectors are right only if each of these values is as said: it selects
  /// between the position along the lanes and a fixed one.
  llvm::SmallVector<std::pair<mlir::Value, bool>> conditions;
  /// Whether the tail may run on vectors with a mask.
  bool maskedTail = true;

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
};

/// `vectorBits` 0 asks for scalar code.
RowPlan makeRowPlan(ReductionGroup &group, unsigned vectorBits);

/// A rough count of the cycles that a body takes.
int64_t estimateBody(mlir::Block &body);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ROWPLAN_H
