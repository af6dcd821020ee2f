//===- ReductionGroup.h - Operations that share one loop nest ---------*- C++
//-*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group of linalg operations in terms of one iteration space: each loop of
// each operation is a dimension of the group. A dimension that some operation
// reduces over is a dimension *of the row*; the others are parallel. Results
// that only the group reads are never in memory unless the emitter decides so.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_REDUCTIONGROUP_H
#define SARDONYX_LIB_TARGETS_CPU_REDUCTIONGROUP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallBitVector.h"

namespace sardonyx::cpu {

/// Where an argument of a stage's body comes from.
struct RowAccess {
  enum Kind { None, Scalar, Memory, Stage };
  Kind kind = None;
  /// Scalar: the value. Memory: the memref.
  mlir::Value value;
  /// Memory: from the group's dimensions to those of the memref.
  mlir::AffineMap map;
  /// Memory: the results of `map` that are a dimension of the group as long as
  /// the memref's. A window may also be indexed by one dimension alone, that of
  /// a pooling with one output is, but is only a part of its memref.
  llvm::SmallBitVector whole;
  /// Stage: a result of an earlier stage at the same point.
  unsigned stage = 0, result = 0;
};

/// One linalg operation of a group.
struct RowStage {
  mlir::Block *body = nullptr;
  /// The group's dimension of each loop; -1 for a loop of one iteration.
  llvm::SmallVector<int64_t> dims;
  /// For each argument of the body; an unused argument has kind None. Those
  /// from `numInputs` on are initial values.
  llvm::SmallVector<RowAccess> args;
  unsigned numInputs = 0;
  /// The group's dimensions that the stage iterates over.
  llvm::SmallBitVector domain;
  bool isReduction = false;
  /// For each result, the memory that it goes to; kind None for none.
  llvm::SmallVector<RowAccess> stores;
  llvm::SmallVector<mlir::Type> resultTypes;
  /// The memref that each `tensor.extract` of the body reads.
  llvm::DenseMap<mlir::Operation *, mlir::Value> extracts;
};

struct ReductionGroup {
  mlir::Location loc;
  /// Extent of each dimension.
  llvm::SmallVector<mlir::OpFoldResult> sizes;
  /// Dimensions that a stage reduces over.
  llvm::SmallBitVector reduced;
  llvm::SmallVector<RowStage, 4> stages;

  unsigned getNumDims() const { return sizes.size(); }
  /// The extent of dimension `d`, or -1 when it is dynamic.
  int64_t getStaticSize(unsigned d) const;
};

/// The results of a linalg operation's indexing map that are a loop: linalg
/// makes such a loop as long as the operand's dimension.
llvm::SmallBitVector getWholeResults(mlir::AffineMap map);

/// The group of a single operation on memrefs, or of scalars only.
llvm::FailureOr<ReductionGroup> buildGroup(mlir::OpBuilder &b,
                                           mlir::linalg::LinalgOp op);

/// The group of all linalg operations of a kernel on tensors. Fails with a
/// reason when they do not share an iteration space; `b` may then have made
/// operations without uses.
llvm::FailureOr<ReductionGroup>
buildGroup(mlir::OpBuilder &b, mlir::func::FuncOp kernel, std::string &reason);

/// Merges neighbouring dimensions that every access walks in step, so that
/// inner loops get longer.
void collapseDims(mlir::OpBuilder &b, ReductionGroup &group);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_REDUCTIONGROUP_H
