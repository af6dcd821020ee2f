//===- KeySort.h - Sorts of keys by their digits ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ORDERING_KEYSORT_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ORDERING_KEYSORT_H

#include "Support/RowLoop.h"

namespace sardonyx {

/// A list of keys (i64), the larger the earlier in order, in a task of a loop.
/// With each an index (i64) may go, which tells equal keys apart: the lower
/// index is first. Keys must be listed by their indices.
class KeyList {
public:
  /// Up to so many keys all pairs are compared.
  static constexpr int64_t kFew = 64;

  /// Room for `capacity` keys. Only bits from `lowestBit` on are sorted
  /// by: those below must be in order among keys that are equal in
  /// the others, or the list is short.
  static KeyList make(TensorBuilder &b, mlir::OpFoldResult capacity,
                      int64_t lowestBit, bool hasIndices);

  /// A key at `place` of the list as it is before it is sorted.
  void put(TensorBuilder &b, mlir::Value place, mlir::ValueRange entry);
  /// Sorts the first `count` keys.
  void sort(TensorBuilder &b, mlir::Value count);
  /// The key at `place`, and its index.
  Values get(TensorBuilder &b, mlir::Value place) const;

  /// What loops over the list carry.
  mlir::ValueRange tensors() const { return rooms; }
  KeyList with(mlir::ValueRange tensors) const;

private:
  struct Digits {
    mlir::Value largest, count;
  };
  Digits findDigits(TensorBuilder &b, mlir::Value count) const;
  Values rankAll(TensorBuilder &b, mlir::Value count) const;
  Values sortByDigits(TensorBuilder &b, mlir::Value count) const;
  Values
  sortByDigit(TensorBuilder &b, mlir::Value count, mlir::ValueRange state,
              llvm::function_ref<mlir::Value(TensorBuilder &, mlir::Value)>
                  getDigit) const;

  Values rooms;    // [2, capacity] each: keys, and indices
  mlir::Value row; // of the rooms, where the list is
  int64_t lowestBit = 0;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ORDERING_KEYSORT_H
