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

/// Selects by a heap of the best so far, whose root is the worst of them: of n
/// elements most are compared with the root only. An entry is a list of
/// scalars, and the heap one tensor of rank 1 for each of them. It is in place,
/// and takes O(n log k) steps.
class Selection {
public:
  using Order = llvm::function_ref<mlir::Value(
      TensorBuilder &, mlir::ValueRange, mlir::ValueRange)>;
  using Source = llvm::function_ref<Values(TensorBuilder &, mlir::Value)>;
  /// Whether any of the kBlock entries of `source` from an index on may be
  /// before the entry.
  using Test = llvm::function_ref<mlir::Value(TensorBuilder &, mlir::Value,
                                              mlir::ValueRange)>;
  static constexpr int64_t kBlock = 64;

  /// `isBefore` must tell any two different entries apart.
  explicit Selection(Order isBefore) : isBefore(isBefore) {}

  /// The best `k` of the `count` (at least k) entries that `source` gives, the
  /// best first. `heap` are tensors of at least k elements whose values are
  /// lost. Blocks for which `test`, if there is one, does
  /// not hold are not looked at.
  Values select(TensorBuilder &b, mlir::Value k, mlir::Value count,
                mlir::ValueRange heap, Source source, Test test = {});

  /// The first `count` entries of a heap, already there, the best first.
  Values sort(TensorBuilder &b, mlir::Value count, mlir::ValueRange heap);

private:
  Values offer(TensorBuilder &b, mlir::Value from, mlir::Value to,
               mlir::Value k, mlir::ValueRange heap, Source source);
  void countLevels(TensorBuilder &b, mlir::Value k);
  Values heapify(TensorBuilder &b, mlir::Value count, mlir::ValueRange heap);
  Values takeInOrder(TensorBuilder &b, mlir::Value count,
                     mlir::ValueRange heap);
  Values siftDown(TensorBuilder &b, mlir::Value from, mlir::Value count,
                  mlir::ValueRange heap);

  Order isBefore;
  mlir::Value levels; // of a heap of k
};

/// Elements of a list and their indices as integers of 64 bits, one for both,
/// that are ordered as the entries are: a comparison is one of integers.
class PackedKeys {
public:
  /// The lowest bits, those of the index.
  static constexpr int64_t kIndexBits = 32;

  /// Whether elements of the type have at most 32 bits.
  static bool has(mlir::Type onnxType);

  PackedKeys(mlir::Type onnxType, bool largest)
      : onnxType(onnxType), largest(largest) {}

  /// The key of a stored element at `index`, which is below 2^32. That of what
  /// goes first is larger.
  mlir::Value pack(TensorBuilder &b, mlir::Value stored,
                   mlir::Value index) const;
  /// The index (i64) in a key.
  static mlir::Value getIndex(TensorBuilder &b, mlir::Value key);
  /// The order of entries that are a key each.
  static mlir::Value isBefore(TensorBuilder &b, mlir::ValueRange x,
                              mlir::ValueRange y);

private:
  mlir::Type onnxType;
  bool largest;
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
