//===- AttentionTile.h - What threads have of a tile ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONTILE_H
#define SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONTILE_H

#include "Attention/AttentionPlan.h"
#include "Matmul/TileCopy.h"

#include <memory>

namespace sardonyx::nv {

/// What a thread has: the scores of some queries, its rows, with some of the
/// keys of a tile, and columns of the results of the same rows. Threads that
/// share rows have neighbouring numbers.
class AttentionShare {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  virtual ~AttentionShare() = default;

  /// The numbers, within the tile, of the thread's rows, keys and columns.
  virtual Values rows(mlir::ImplicitLocOpBuilder &b) const = 0;
  virtual Values keys(mlir::ImplicitLocOpBuilder &b) const = 0;
  virtual Values columns(mlir::ImplicitLocOpBuilder &b) const = 0;
  /// So many columns follow each other, from a multiple of that number on.
  virtual int64_t columnWidth() const = 0;
  /// How many threads share rows.
  virtual int64_t threadsOfRow() const = 0;
};

/// How the threads of a block compute the scores of a tile of queries and one
/// of keys, and the sums of a tile of values.
class AttentionTile : public AttentionShare {
public:
  virtual TileLayout queryLayout() const = 0;
  virtual TileLayout keyLayout() const = 0;
  virtual TileLayout valueLayout() const = 0;
  /// Shared memory that `accumulate` needs.
  virtual int64_t countExchangeBytes() const { return 0; }

  /// What is kept of the queries in registers.
  virtual Values loadQueries(mlir::ImplicitLocOpBuilder &,
                             mlir::Value queries) const {
    return {};
  }
  /// The scores, row by row, with the keys that begin at element `offset`.
  virtual Values multiply(mlir::ImplicitLocOpBuilder &b, mlir::Value queries,
                          mlir::ValueRange loaded, mlir::Value keys,
                          mlir::Value offset) const = 0;
  /// `sums`, row by row, plus the values that begin at element `offset`, each
  /// times its element of `factors`, which are as scores.
  virtual Values accumulate(mlir::ImplicitLocOpBuilder &b,
                            mlir::ValueRange factors, mlir::Value exchange,
                            mlir::Value values, mlir::Value offset,
                            mlir::ValueRange sums) const = 0;
};

/// The tiles of a plan, for the thread of this number.
std::unique_ptr<AttentionTile> createMmaAttention(mlir::Type type,
                                                  const AttentionPlan &plan,
                                                  mlir::Value thread);
std::unique_ptr<AttentionTile> createFmaAttention(const AttentionPlan &plan,
                                                  mlir::Value thread);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_ATTENTIONTILE_H
