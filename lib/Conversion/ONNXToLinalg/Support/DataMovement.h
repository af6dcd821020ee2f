//===- DataMovement.h - Views, slices, gathers and scatters -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_DATAMOVEMENT_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_DATAMOVEMENT_H

#include "Support/Common.h"

namespace sardonyx {

bool isStatic(mlir::RankedTensorType type);
/// The sizes of a static type as attributes.
Sizes getDeclaredSizes(mlir::OpBuilder &b, mlir::RankedTensorType type);

/// arith.cmpi on integer or index values.
mlir::Value compare(mlir::OpBuilder &b, mlir::Location loc,
                    mlir::arith::CmpIPredicate predicate, mlir::Value x,
                    mlir::Value y);
/// An integer as an index; an index as it is.
mlir::Value toIndex(mlir::OpBuilder &b, mlir::Location loc,
                    mlir::Value integer);

/// A tensor of these sizes whose element at `indices` is what `body` returns
/// (as stored). The body may read other tensors with tensor.extract.
mlir::Value
createIndexed(mlir::OpBuilder &b, mlir::Location loc,
              llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Type elementType,
              llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                             mlir::ValueRange indices)>
                  body);

class TensorBuilder;
/// `data` without the dimensions that `list`, which arrives at run time, names
/// as axes, or with them as new ones of size 1. Fails when the number of axes
/// is not known or they do not fit. `declared` (may be null) is the result's
/// type.
mlir::FailureOr<mlir::Value> reshapeByAxes(TensorBuilder &b, mlir::Value data,
                                           mlir::Value list, bool drops,
                                           mlir::RankedTensorType declared);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_DATAMOVEMENT_H
