//===- ReductionKinds.h - Reductions over known axes ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_REDUCTION_REDUCTIONKINDS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_REDUCTION_REDUCTIONKINDS_H

#include "Support/ScalarBuilder.h"

namespace sardonyx {

enum class ReductionKind {
  Sum,
  Mean,
  Max,
  Min,
  Prod,
  L1,
  L2,
  LogSum,
  LogSumExp,
  SumSquare
};

/// Reduces the `axes` (ascending), which disappear. Small floats accumulate in
/// f32; an empty range gives the identity.
mlir::Value reduceAxes(mlir::OpBuilder &b, mlir::Location loc,
                       TypedTensor input, llvm::ArrayRef<int64_t> axes,
                       ReductionKind kind);

/// The i64 positions of the largest (smallest) elements along `axis`, which
/// disappears; of equal ones the first or the last.
mlir::Value createArgReduction(mlir::OpBuilder &b, mlir::Location loc,
                               TypedTensor input, int64_t axis, bool isMax,
                               bool lastOfEqual);

// Called by populateReductionPatterns.

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_REDUCTION_REDUCTIONKINDS_H
