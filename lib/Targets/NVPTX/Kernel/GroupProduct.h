//===- GroupProduct.h - Products of warpgroups in flight --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma returns before its sums are there. Registers of products in flight are
// touched neither by code before them nor by code after them: what orders both
// has them as operands and results.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_KERNEL_GROUPPRODUCT_H
#define SARDONYX_LIB_TARGETS_NVPTX_KERNEL_GROUPPRODUCT_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::nv {

/// What a warpgroup multiplies at a time: 64 rows, so many columns, 32 bytes
/// deep.
struct GroupProduct {
  /// Of elements, as PTX names them: "f16", "bf16", "tf32", "e4m3", "e5m2",
  /// "s8" or "u8".
  llvm::StringRef lhsType, rhsType;
  mlir::Type sum; // f32, or i32 of bytes
  int64_t columns;
  /// The right-hand side follows itself along K in shared memory; all but those
  /// of 16 bits do.
  bool isRhsAlongK;

  int64_t countSums() const { return columns / 2; }
  /// Starts to add a product to `sums`, which are as mma.sync has them; without
  /// `sums` it is the product alone. The left-hand side is a descriptor, or
  /// four registers.
  llvm::SmallVector<mlir::Value> start(mlir::ImplicitLocOpBuilder &b,
                                       mlir::ValueRange sums,
                                       mlir::ValueRange lhs,
                                       mlir::Value rhs) const;
};

/// The name of an element's type, of bytes with or without a sign.
llvm::StringRef nameOfElement(mlir::Type type, bool isUnsigned = false);

/// Has products that begin afterwards find `registers` as they are.
llvm::SmallVector<mlir::Value> fenceRegisters(mlir::ImplicitLocOpBuilder &b,
                                              mlir::ValueRange registers);
/// What was started since the last call is a group.
void commitProducts(mlir::ImplicitLocOpBuilder &b);
/// Waits until no more than `pending` groups are in flight; `registers` are of
/// those that are not.
llvm::SmallVector<mlir::Value> waitForProducts(mlir::ImplicitLocOpBuilder &b,
                                               int64_t pending,
                                               mlir::ValueRange registers);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_KERNEL_GROUPPRODUCT_H
