//===- Sequences.h - Sequences and optionals --------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_HANDLES_SEQUENCES_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_HANDLES_SEQUENCES_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// The list of these tensors (converted), a tensor<i64>.
mlir::Value createList(TensorBuilder &b, mlir::ValueRange tensors,
                       mlir::Type storedElement);
/// The list with a tensor before `position`, a tensor<i64>, or at its end where
/// that is null.
mlir::Value insertIntoList(TensorBuilder &b, mlir::Value list,
                           mlir::Value tensor, mlir::Value position = {});

/// The tensor in a list at `position`, a tensor<i64>, or the first where that
/// is null, of the type `declared`, as the runtime's function `getter` gives
/// it.
mlir::Value getListItem(TensorBuilder &b, mlir::Value list,
                        mlir::Value position, mlir::RankedTensorType declared,
                        llvm::StringRef getter = "sdx_rt_list_get");

/// How the tensors of a list are put together. The numbers are the runtime's.
enum class ListConcat {
  Axis = 0,    ///< Along a dimension that they have.
  NewAxis = 1, ///< Along a new one.
  /// Along a new one; none at all make a tensor whose sizes are 0 where nothing
  /// else is known.
  Scan = 2,
};

/// The tensors of a list put together. `declared` is the type of the result,
/// whose open sizes are those of `sizesOfNone` where the list holds no tensor:
/// one for each dimension, -1 for 0, or none at all.
mlir::Value concatList(TensorBuilder &b, mlir::Value list, int64_t axis,
                       ListConcat kind, mlir::RankedTensorType declared,
                       llvm::ArrayRef<int64_t> sizesOfNone = {});

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_HANDLES_SEQUENCES_H
