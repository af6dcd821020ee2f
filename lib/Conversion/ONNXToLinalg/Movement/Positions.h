//===- Positions.h - Places that data decide --------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_POSITIONS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_POSITIONS_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// `raw` counted from the end when negative; fails the run unless the result
/// lies in [0, size), and stays inside even then.
mlir::Value checkedIndex(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value raw, mlir::Value size);

/// Fails the run unless `have` is as large as `want` in every
/// dimension but `except`.
void checkReaches(mlir::OpBuilder &b, mlir::Location loc,
                  llvm::ArrayRef<mlir::OpFoldResult> want,
                  llvm::ArrayRef<mlir::OpFoldResult> have, int64_t except = -1);

/// The elements of `data` at other positions along `dims`: those that the
/// table of each, integers, names. `sizes` are those of the result. `placeLast`
/// may give another position along the last dimension than what is picked for
/// an index of the result.
mlir::Value
pickAlong(TensorBuilder &b, mlir::Value data, llvm::ArrayRef<int64_t> dims,
          mlir::ValueRange tables, llvm::ArrayRef<mlir::OpFoldResult> sizes,
          llvm::function_ref<mlir::Value(TensorBuilder &, mlir::Value index,
                                         mlir::Value picked)>
              placeLast = nullptr);

/// Integers that hold the positions of a dimension, those of 32 bits if its
/// size is known to be small enough.
mlir::Type getPositionType(TensorBuilder &b, mlir::OpFoldResult size);

/// [rows, extent, length] x [count] -> [rows, count, length]: the slices of
/// `flat` along its second dimension that `list` names, with checked indices.
mlir::Value takeSlices(TensorBuilder &b, mlir::Value flat, mlir::Value list);

/// The position that the index tuple `indices[prefix..., :]` names in `data`,
/// after `batch` leading dimensions that both share.
llvm::SmallVector<mlir::Value> getTuple(mlir::OpBuilder &b, mlir::Location loc,
                                        mlir::Value indices,
                                        mlir::ValueRange prefix, int64_t tuple,
                                        llvm::ArrayRef<mlir::Value> extents,
                                        int64_t batch);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_POSITIONS_H
