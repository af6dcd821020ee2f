//===- FewRows.h - Products of few rows -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_FEWROWS_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_FEWROWS_H

#include "Kernel/PointEvaluator.h"

#include "dialects/NV/NV.h"

#include <optional>

namespace sardonyx::nv {

/// The plan of a product whose rows are so few that reading the right-hand side
/// takes longer than multiplying; none for others.
std::optional<FewRowsPlanAttr> chooseFewRows(mlir::Operation *op,
                                             TargetAttr target);

/// The kernel of such a product [M,K] x [K,N]. A warp reads 16 bytes of a row
/// of the right-hand side by each of `lanes` threads, and as many rows at a
/// time as it has threads left.
class FewRows {
public:
  FewRows(sdx::MatmulOp op, FewRowsPlanAttr plan, KernelBody &body);

  bool isPossible();
  /// Puts the loop over the blocks at the builder's place.
  void emit(mlir::ImplicitLocOpBuilder &b);

private:
  llvm::SmallVector<mlir::Value> addProducts(mlir::ImplicitLocOpBuilder &b,
                                             mlir::Value k,
                                             mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> sumRows(mlir::ImplicitLocOpBuilder &b);
  void combine(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange sums);
  void emitResults(mlir::ImplicitLocOpBuilder &b);

  sdx::MatmulOp op;
  KernelBody &body;
  PointEvaluator points;
  const int64_t lanes, rows;
  int64_t width = 1; // columns of a thread
  mlir::Value lhs, rhs, depth, columns;
  // Of the code of a block.
  mlir::Value thread, col0, col, partials;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_FEWROWS_H
