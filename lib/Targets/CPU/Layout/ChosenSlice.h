//===- ChosenSlice.h - One of a batch of weights, chosen in a run -*- C++ -*-=//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Data choose the weights of an expert out of those of all. The weights of all
// are packed once, and a product reads one part of what is packed.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_LAYOUT_CHOSENSLICE_H
#define SARDONYX_LIB_TARGETS_CPU_LAYOUT_CHOSENSLICE_H

#include "mlir/IR/Builders.h"

namespace sardonyx::cpu {

/// Tensor number `place`, an index, of the `count` that lie behind one another
/// in `source`, which is made of constants.
struct ChosenSlice {
  mlir::Value source, place;
  int64_t count;

  /// All of them, [count, shape...], where `shape` is that of one.
  mlir::Value getBatch(mlir::OpBuilder &b, mlir::Location loc,
                       llvm::ArrayRef<int64_t> shape) const;
  /// The one of `batch`, [count, ...], that has the place of this.
  mlir::Value takeFrom(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value batch) const;
};

/// What `tensor` is a slice of in this way; none for any other tensor.
std::optional<ChosenSlice> findChosenSlice(mlir::Value tensor);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_LAYOUT_CHOSENSLICE_H
