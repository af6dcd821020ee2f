//===- ConstantColumns.h - The columns of a matrix of weights ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_CONSTANTCOLUMNS_H
#define SARDONYX_LIB_DISPATCH_CONSTANTCOLUMNS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/bit.h"

#include <cstring>
#include <optional>

namespace sardonyx {

/// Columns of f32 that lie `step` elements apart, and their elements `stride`.
/// Numbers have any address: a file's, maybe.
struct ConstantColumns {
  const char *data;
  int64_t count, length, step, stride;

  float at(int64_t column, int64_t i) const {
    float number;
    std::memcpy(&number,
                data + (i * stride + column * step) * int64_t(sizeof(float)),
                sizeof(float));
    return number;
  }

  /// Calls `visit` with the column, the place in it and the value of each
  /// element, in the order of memory.
  template <typename Visit> void forEach(Visit visit) const {
    if (step <= stride) {
      for (int64_t i = 0; i < length; ++i)
        for (int64_t c = 0; c < count; ++c)
          visit(c, i, at(c, i));
      return;
    }
    for (int64_t c = 0; c < count; ++c)
      for (int64_t i = 0; i < length; ++i)
        visit(c, i, at(c, i));
  }
};

/// The bits of a number's magnitude, which have the order of magnitudes.
inline uint32_t getMagnitude(float x) {
  return llvm::bit_cast<uint32_t>(x) & 0x7FFFFFFFu;
}

/// The columns of `matrix` [K,N], or [N,K] if `transposed`, where it is a
/// constant that can be read here, or a view or transpose of one.
std::optional<ConstantColumns> findColumns(mlir::Value matrix, bool transposed);

} // namespace sardonyx

#endif // SARDONYX_LIB_DISPATCH_CONSTANTCOLUMNS_H
