//===- BodyOnLanes.h - What of a body differs between lanes -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_BODYONLANES_H
#define SARDONYX_LIB_TARGETS_CPU_BODYONLANES_H

#include "Rows/ReductionGroup.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <optional>

namespace sardonyx::cpu {

/// The integers of 32 bits that `place`, the last index of elements that bodies
/// read, is; null where it is no such number, or something else, too. Gathers
/// take these as they are.
mlir::Value getShortPlace(mlir::Value place);

/// An index that is the position along the lanes or, as the run says, one that
/// is the same in all lanes.
struct LaneChoice {
  /// From outside the body; `fixed` may be a constant in it.
  mlir::Value condition, fixed;
  /// What `condition` is where the index is the position.
  bool isPositionIf;
};

/// The positions along the lanes from `low` on, `size` of them, for which
/// bodies ask: each reads there at its position less `low`. Both are from
/// outside of the bodies, or known.
struct LaneRun {
  mlir::OpFoldResult low, size;

  bool operator==(const LaneRun &other) const {
    return low == other.low && size == other.size;
  }
};

/// The run that the bodies of `group` read along `lane`; none where there are
/// several, or it is known to be shorter than two positions.
std::optional<LaneRun> findLaneRun(ReductionGroup &group, int64_t lane);

/// How the values of a body depend on the position along the lanes.
class BodyOnLanes {
public:
  BodyOnLanes(ReductionGroup &group, RowStage &stage, int64_t lane)
      : group(group), stage(stage), lane(lane), run(findLaneRun(group, lane)) {}

  /// Whether the body can be computed on vectors.
  bool fits();

  /// Bits of the widest value that differs between lanes.
  unsigned widest = 8;
  /// Vectors that the body loads by itself.
  unsigned loads = 0;
  /// The reads of elements whose last index is another one in each lane.
  llvm::SmallVector<mlir::Operation *> gathers;
  /// The reads of elements whose last index is the position along the lanes, or
  /// the same in all of them.
  llvm::SmallDenseMap<mlir::Operation *, LaneChoice> choices;
  /// Whether a position is in the run, and the reads there.
  llvm::SmallVector<mlir::Operation *> isInRun, readsOfRun;

private:
  /// The same in all lanes; the position along the lanes; that or a fixed
  /// position, as a value from outside says; in the run the position less where
  /// the run begins; anything else.
  enum Kind { Uniform, Position, Either, Shifted, Varying };

  Kind get(mlir::Value value) {
    auto it = kinds.find(value);
    return it == kinds.end() ? Uniform : it->second;
  }
  Kind getArgument(RowAccess &access);
  std::optional<Kind> getResult(mlir::Operation &op);
  std::optional<Kind> getExtract(mlir::tensor::ExtractOp op);
  bool isOutsideOfRun(mlir::Value value);

  ReductionGroup &group;
  RowStage &stage;
  int64_t lane;
  std::optional<LaneRun> run;
  llvm::DenseMap<mlir::Value, Kind> kinds;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_BODYONLANES_H
