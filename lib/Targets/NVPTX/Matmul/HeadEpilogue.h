//===- HeadEpilogue.h - What follows a product, by heads --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of a few rows makes queries, keys and values of a token. Queries
// and keys are rotated: an element hangs on two columns of its head, which lie
// half of the head apart, or next to each other. Keys and values then come
// behind those of the tokens before, in a tensor that is larger. A kernel of
// its own for that would take longer to start than to compute.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_HEADEPILOGUE_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_HEADEPILOGUE_H

#include "Kernel/BodyReads.h"
#include "Kernel/PointEvaluator.h"

namespace sardonyx::nv {

/// The columns that a block has of a product: neighbours, or two runs of them,
/// the second one `distance` columns behind the first, so that blocks share
/// twice as many columns.
struct BlockColumns {
  int64_t count, distance = 0;

  /// Whether each block has columns n and n + distance together. So many
  /// `neighbours` are read at a time.
  bool fits(int64_t neighbours) const;
  bool hasTwoRuns() const { return distance && count % (2 * distance) != 0; }
  mlir::Value first(mlir::ImplicitLocOpBuilder &b, mlir::Value block) const;
  /// Its column number `number`, and the number of a column of its; some number
  /// of columns that it has not.
  mlir::Value column(mlir::ImplicitLocOpBuilder &b, mlir::Value first,
                     mlir::Value number) const;
  mlir::Value number(mlir::ImplicitLocOpBuilder &b, mlir::Value first,
                     mlir::Value column) const;
};

/// What the kernel of a product [M,N] computes behind it, where an element of a
/// result hangs on the column at its place in the order of elements and on one
/// `getDistance()` before or behind it, and where the product may be but a part
/// of the results.
class HeadEpilogue {
public:
  HeadEpilogue(mlir::Value product, KernelBody &body);

  /// Whether the kernel reads the product at other places than where it writes,
  /// or in other shapes.
  static bool isNeeded(mlir::Value product);
  bool isPossible();

  /// Of each pair of columns that an element hangs on: column n and the one so
  /// far behind it, n being in the first half of twice as many. 0 without
  /// pairs.
  int64_t getDistance() const { return distance; }

  /// Computes all results at the product's element `flat`, and writes them.
  void emit(mlir::ImplicitLocOpBuilder &b, PointEvaluator &points,
            mlir::Value flat);

  /// Blocks of so many threads for what the product is no part of.
  int64_t countBlocks(int64_t threads) const;
  /// The code of these blocks.
  void emitOthers(mlir::ImplicitLocOpBuilder &b, PointEvaluator &points,
                  mlir::Value block, mlir::Value thread, int64_t threads);

private:
  /// Places in a tensor.
  struct Box {
    llvm::SmallVector<int64_t> from, sizes;
  };
  using Distances = llvm::SmallSetVector<int64_t, 4>;

  llvm::SmallVector<mlir::Value> placeOf(mlir::ImplicitLocOpBuilder &b,
                                         mlir::Value result, mlir::Value flat);
  bool findDerived();
  bool isWhole(mlir::Value tensor) const;
  bool findBox(mlir::linalg::GenericOp op);
  bool findOthers();
  bool findDistance();
  bool addDistances(mlir::Value tensor, int64_t at, int64_t period,
                    Distances &found);
  std::optional<int64_t> distanceOf(const BodyReads::Read &read,
                                    llvm::ArrayRef<int64_t> shape,
                                    std::optional<int64_t> last);
  llvm::ArrayRef<int64_t> shapeOfOthers() const;
  int64_t countTogether() const;
  llvm::SmallVector<KernelBody::Output> makeOthers();

  mlir::Value product;
  KernelBody &body;
  /// The product and what is computed of it, in order; those of `larger` are
  /// operations whose results the product is a part of, `box` which.
  llvm::SetVector<mlir::Value> derived;
  llvm::SmallVector<mlir::linalg::GenericOp> larger;
  Box box;
  /// The dimension along which it is a part, and where the others lie in it.
  unsigned along = 0;
  int64_t from = 0, to = 0;
  int64_t distance = 0;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_HEADEPILOGUE_H
