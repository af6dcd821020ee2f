//===- FewRows.h - Products of few rows -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_FEWROWS_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_FEWROWS_H

#include "Kernel/PointEvaluator.h"
#include "Matmul/HeadEpilogue.h"
#include "Matmul/RowPrologue.h"

#include "dialects/NV/NV.h"

#include <optional>

namespace sardonyx::nv {

/// Rows for which reading the right-hand side takes longer than multiplying.
inline constexpr int64_t kFewRows = 4;

/// The plan of a product that has so few rows; none for others, and where their
/// number is open unless `mayBeOpen`.
std::optional<FewRowsPlanAttr>
chooseFewRows(mlir::Operation *op, TargetAttr target, bool mayBeOpen = false);

/// Why the product's kernel cannot go by `plan`; empty where it can.
std::string whyNot(sdx::MatmulOp op, FewRowsPlanAttr plan);

/// The kernel of such a product of `rows` rows, or, where their number is open,
/// of at most so many; or of several products of equal sizes that have the
/// left-hand side in common, to be read in one go. The kernel may compute that
/// side, too, and what hangs on two columns of a head: a block then has both.
/// `lanes` threads of a warp read a row of the right-hand side, 16 bytes each,
/// and the others other rows: of [K,N] each thread has columns of the result,
/// and part of their sums; of [N,K] a part of the sum of one column.
class FewRows {
public:
  FewRows(llvm::ArrayRef<sdx::MatmulOp> products, FewRowsPlanAttr plan,
          KernelBody &body, int64_t rows);

  bool isPossible();
  /// Puts the loop over the blocks at the builder's place. It has none where
  /// not `isWanted`, if that is given.
  void emit(mlir::ImplicitLocOpBuilder &b, mlir::Value isWanted = {});

private:
  void measure(mlir::ImplicitLocOpBuilder &b);
  void emitBlock(mlir::ImplicitLocOpBuilder &b, mlir::Value block);
  void startBlock(mlir::ImplicitLocOpBuilder &b, mlir::Value block);
  int64_t columnsOfBlock() const;
  BlockColumns getBlockColumns() const {
    return {columnsOfBlock(), heads ? heads->getDistance() : 0};
  }
  /// The block's column number `number`.
  mlir::Value columnOf(mlir::ImplicitLocOpBuilder &b, mlir::Value number) {
    return getBlockColumns().column(b, col0, number);
  }
  mlir::Value placeOf(mlir::ImplicitLocOpBuilder &b, mlir::Value k);
  mlir::Value firstDepth(mlir::ImplicitLocOpBuilder &b);
  /// From one element along K that a thread has to its next one.
  int64_t depthStep() const;
  void prefetchWeights(mlir::ImplicitLocOpBuilder &b);
  mlir::Value rowOf(mlir::ImplicitLocOpBuilder &b, int64_t row);
  llvm::SmallVector<mlir::Value> loadPiece(mlir::ImplicitLocOpBuilder &b,
                                           mlir::Value buffer, mlir::Value at);
  /// Sums that a thread has of a row of each product.
  int64_t sumsOfRow() const { return isTransposed ? 1 : width; }
  llvm::SmallVector<mlir::Value> addProducts(mlir::ImplicitLocOpBuilder &b,
                                             mlir::Value k,
                                             mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> sumUp(mlir::ImplicitLocOpBuilder &b);
  void combine(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange sums);
  void forEachElement(
      mlir::ImplicitLocOpBuilder &b,
      llvm::function_ref<void(mlir::Value m, mlir::Value number)> emit);
  mlir::Value totalOf(mlir::ImplicitLocOpBuilder &b, int64_t number,
                      mlir::ValueRange index, mlir::Value m, mlir::Value c,
                      PointEvaluator::Point &known);
  void emitResults(mlir::ImplicitLocOpBuilder &b);
  void emitHeads(mlir::ImplicitLocOpBuilder &b);

  llvm::SmallVector<sdx::MatmulOp> products;
  sdx::MatmulOp op; // the first of them
  KernelBody &body;
  PointEvaluator points;
  RowPrologue prologue;
  std::optional<HeadEpilogue> heads;
  const int64_t lanes, rows;
  const bool isTransposed, isOpen;
  const int64_t width; // elements of a row that a thread reads at a time
  llvm::SmallVector<mlir::Value> weights; // of each product
  mlir::Value lhs, pairs, depth, columns, numRows;
  // Of the code of a block: its pair of matrices, its first column, and the
  // column that the thread begins with; the sums of its columns.
  mlir::Value thread, pair, col0, col, partials;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_FEWROWS_H
