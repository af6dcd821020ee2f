//===- Sorting.h - The best of a list, in order -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ORDERING_SORTING_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ORDERING_SORTING_H

#include "Support/RowLoop.h"

namespace sardonyx {

/// Sorts by a heap in place, whose root is the worst of it. An entry is a list
/// of scalars, and the heap one tensor of rank 1 for each of them.
class HeapSort {
public:
  using Order = llvm::function_ref<mlir::Value(
      TensorBuilder &, mlir::ValueRange, mlir::ValueRange)>;

  /// `isBefore` must tell any two different entries apart.
  explicit HeapSort(Order isBefore) : isBefore(isBefore) {}

  /// The first `count` entries of a heap, already there, the best first.
  Values sort(TensorBuilder &b, mlir::Value count, mlir::ValueRange heap);

private:
  void countLevels(TensorBuilder &b, mlir::Value count);
  Values heapify(TensorBuilder &b, mlir::Value count, mlir::ValueRange heap);
  Values takeInOrder(TensorBuilder &b, mlir::Value count,
                     mlir::ValueRange heap);
  Values siftDown(TensorBuilder &b, mlir::Value from, mlir::Value count,
                  mlir::ValueRange heap);

  Order isBefore;
  mlir::Value levels;
};

/// The largest or smallest `count` elements of each row of a matrix, in order,
/// and their indices, [rows,count]: of equals the lower index is first, NaN is
/// more than all else.
Values sortRows(TensorBuilder &b, mlir::Value matrix, mlir::OpFoldResult count,
                mlir::Type onnxType, bool largest);

/// Whether the stored scalar `x` is less than `y`. NaN is more than all else
/// and equal to itself.
mlir::Value isLess(TensorBuilder &b, mlir::Value x, mlir::Value y,
                   mlir::Type onnxType);
/// Whether entries that end in an index are in order, where `isBefore` compares
/// what else they hold: of equals the lower index is first.
mlir::Value
orderByIndex(TensorBuilder &b, mlir::ValueRange x, mlir::ValueRange y,
             llvm::function_ref<mlir::Value(mlir::ValueRange, mlir::ValueRange)>
                 isBefore);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ORDERING_SORTING_H
