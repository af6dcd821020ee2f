//===- ConstantColumns.h - The columns of a matrix of weights ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_CONSTANTCOLUMNS_H
#define SARDONYX_LIB_DISPATCH_CONSTANTCOLUMNS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"

#include <cstring>
#include <optional>
#include <tuple>

namespace sardonyx::cpu {

/// Element number `i` of f32 at any address.
inline float loadFloat(const char *data, int64_t i) {
  float number;
  std::memcpy(&number, data + i * int64_t(sizeof(float)), sizeof(float));
  return number;
}

/// A constant tensor of f32 where it lies, a file maybe, in which numbers have
/// any address; strides count elements.
struct ConstantView {
  const char *data = nullptr;
  llvm::SmallVector<int64_t> shape, strides;
};

/// Where a tensor lies that is a constant that can be read here, or a view or
/// transpose of one.
std::optional<ConstantView> viewConstant(mlir::Value tensor);

/// Columns of f32 that lie `step` elements apart, and their elements `stride`.
struct ConstantColumns {
  /// Any address: a file's, maybe.
  const char *data;
  int64_t count, length, step, stride;

  /// Where they lie: equal for the same columns of the same constant.
  auto place() const { return std::tuple(data, count, length, step, stride); }

  float at(int64_t column, int64_t i) const {
    return loadFloat(data, i * stride + column * step);
  }

  /// Elements that follow each other in memory, of a column or of all columns.
  struct Run {
    const char *data;
    /// The place of the first one.
    int64_t column, row;
    int64_t length;
    bool isAcross;

    float at(int64_t i) const { return loadFloat(data, i); }
    int64_t columnOf(int64_t i) const { return isAcross ? column + i : column; }
  };

  /// Calls `visit` with all runs, as long as possible, in the order of memory,
  /// until it returns false.
  template <typename Visit> void forEachRun(Visit visit) const {
    const bool isAcross = step <= stride;
    const int64_t lines = isAcross ? length : count;
    const int64_t size = isAcross ? count : length;
    const int64_t next = isAcross ? step : stride;
    const int64_t run = next == 1 ? size : 1;
    for (int64_t line = 0; line < lines; ++line)
      for (int64_t i = 0; i < size; i += run) {
        const int64_t column = isAcross ? i : line, row = isAcross ? line : i;
        const char *first =
            data + (row * stride + column * step) * int64_t(sizeof(float));
        if (!visit(Run{first, column, row, run, isAcross}))
          return;
      }
  }
};

/// The bits of a number's magnitude, which have the order of magnitudes.
inline uint32_t getMagnitude(float x) {
  return llvm::bit_cast<uint32_t>(x) & 0x7FFFFFFFu;
}

/// The columns of `matrix` [K,N], or [N,K] if `transposed`, where it is a
/// constant that can be read here, or a view or transpose of one.
std::optional<ConstantColumns> findColumns(mlir::Value matrix, bool transposed);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_DISPATCH_CONSTANTCOLUMNS_H
