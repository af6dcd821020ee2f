//===- Keys.h - Finding the place of a key ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strings are handles, and those of a model are small numbers: a table by
// handle. Numbers are searched for in a sorted table.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_KEYS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_KEYS_H

#include "Support/Lowering.h"

#include <optional>
#include <vector>

namespace sardonyx {

/// A table of keys: strings' handles, integers or floats, whichever is given.
struct Keys {
  std::vector<int64_t> handles, integers;
  std::vector<double> floats;

  size_t size() const {
    return handles.size() + integers.size() + floats.size();
  }
};

/// Finds the place of a scalar among the keys, of equal ones the last.
class Lookup {
public:
  Lookup(TensorBuilder &b, const Keys &keys);

  /// The place of `x`, a loaded scalar, as an index; the number of keys where
  /// there is no such key.
  mlir::Value find(TensorBuilder &b, mlir::Value x, mlir::Type onnxType) const;

private:
  void byHandle(TensorBuilder &b, llvm::ArrayRef<int64_t> handles);
  template <typename T> void bySize(TensorBuilder &b, llvm::ArrayRef<T> keys);
  mlir::Value load(TensorBuilder &b, mlir::Value i) const;

  /// By handle without `sorted`; else the place of each of its elements.
  mlir::Value sorted, placeTable;
  int64_t size = 0, count;
  std::optional<int64_t> placeOfNaN;
};

template <typename OpT>
std::vector<int64_t> handlesOf(Lowering<OpT> &b, mlir::ArrayAttr strings) {
  std::vector<int64_t> handles;
  for (auto text : strings.getAsRange<mlir::StringAttr>())
    handles.push_back(b.handleOf(text.getValue()));
  return handles;
}

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_KEYS_H
