//===- ElementKeys.h - Keys that order elements -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ORDERING_ELEMENTKEYS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ORDERING_ELEMENTKEYS_H

#include "Ordering/KeySort.h"

namespace sardonyx {

/// Elements of a list and their indices as keys of 64 bits, the larger the
/// earlier in order. Elements of at most 32 bits have their index in the key,
/// whose order is the one of both, unless it may have more than 32 bits.
class ElementKeys {
public:
  /// `size` is the list's, where it is known.
  ElementKeys(mlir::Type onnxType, bool largest, std::optional<int64_t> size);

  /// Whether indices are in the keys, and must be below kMostPacked.
  bool packsIndices() const { return isPacked; }
  static constexpr int64_t kMostPacked = int64_t(1) << 32;

  /// An integer of 32 or 64 bits for a stored element: larger where that goes
  /// first. Zeros are equal, and NaN is more than all else.
  mlir::Value rank(TensorBuilder &b, mlir::Value stored) const;
  mlir::Type rankType(TensorBuilder &b) const;

  KeyList makeList(TensorBuilder &b, mlir::OpFoldResult capacity) const;
  /// The entry of an element, and the index (i64) in one.
  Values entry(TensorBuilder &b, mlir::Value rank, mlir::Value index) const;
  mlir::Value index(TensorBuilder &b, mlir::ValueRange entry) const;

private:
  mlir::Type onnxType;
  bool largest, isPacked;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ORDERING_ELEMENTKEYS_H
