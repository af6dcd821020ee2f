//===- Windows.h - Where windows of channels-last images lie ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_CONV_WINDOWS_H
#define SARDONYX_LIB_TARGETS_CPU_CONV_WINDOWS_H

#include "Common/IndexMath.h"

namespace sardonyx::cpu {

/// Windows over an image [N,S...,C]. Places are pixels: C elements each.
class Windows {
public:
  Windows(llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> padsBegin)
      : strides(strides), padsBegin(padsBegin) {}

  /// Builds what all windows share: the sizes of `input`, and those of the
  /// outputs, [N,O...].
  void prepare(mlir::ImplicitLocOpBuilder &b, mlir::Value input,
               llvm::ArrayRef<mlir::Value> outputSizes);

  int64_t rank() const { return strides.size(); }
  mlir::Value getSize(int64_t dim) const { return sizes[dim]; }

  /// The indices [n, o...] of output position `position` of all.
  llvm::SmallVector<mlir::Value> split(mlir::ImplicitLocOpBuilder &b,
                                       mlir::Value position) const;
  /// The input position of a window's first tap along `dim` at output position
  /// `o`; it may be negative.
  mlir::Value getStart(mlir::ImplicitLocOpBuilder &b, int64_t dim,
                       mlir::Value o) const;
  /// Whether 0 <= at < size of `dim`.
  mlir::Value isInside(mlir::ImplicitLocOpBuilder &b, int64_t dim,
                       mlir::Value at) const;
  /// `row` * size of `dim` + `at`.
  mlir::Value append(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                     int64_t dim, mlir::Value at) const;

private:
  const llvm::ArrayRef<int64_t> strides, padsBegin;
  llvm::SmallVector<mlir::Value> sizes, outputs;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_CONV_WINDOWS_H
