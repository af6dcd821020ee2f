//===- IndexValues.h - Index values as polynomials --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_COMMON_INDEXVALUES_H
#define SARDONYX_LIB_TARGETS_COMMON_INDEXVALUES_H

#include "Common/IndexBounds.h"
#include "Common/MemoryAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace sardonyx {

/// What the index values and the sizes of buffers of one function are, in one
/// run of it.
class IndexValues {
public:
  explicit IndexValues(IndexBounds &bounds) : bounds(bounds) {}

  Polynomial get(mlir::Value value);
  Polynomial getSize(mlir::Value memref, int64_t dim);

  /// Sizes of an entry point's arguments that have one name are equal.
  void nameSizes(mlir::func::FuncOp func);
  /// `arg` is `value` of the caller; a text that tells what was bound.
  std::string bind(mlir::BlockArgument arg, mlir::Value value,
                   IndexValues &caller);
  /// From here on `condition` is as said, to the end of the function if it is
  /// so `always`.
  void assume(mlir::Value condition, bool holds, bool always = false);

  /// What of the access may lie outside; empty if nothing does.
  std::string findUncovered(const MemoryAccess &access);

private:
  Polynomial compute(mlir::Value value);
  Polynomial computeArgument(mlir::BlockArgument arg);
  Polynomial computeSize(mlir::Value memref, int64_t dim);
  Polynomial getExpr(mlir::AffineExpr expr, llvm::ArrayRef<Polynomial> operands,
                     unsigned numDims);
  Polynomial get(mlir::OpFoldResult value);
  void assumeComparison(mlir::arith::CmpIOp compare, bool holds, bool always);
  /// The lanes that a mask lets through at most, if it is a prefix.
  std::optional<Polynomial> countLanes(mlir::Value mask);
  /// The distance between lanes that lie in equal steps.
  std::optional<Polynomial> getLaneStep(mlir::Value offsets);
  std::string findUncoveredGather(const MemoryAccess &access,
                                  const Polynomial &lanes);

  IndexBounds &bounds;
  llvm::DenseMap<mlir::Value, Polynomial> values;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, Polynomial> sizes;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_TARGETS_COMMON_INDEXVALUES_H
