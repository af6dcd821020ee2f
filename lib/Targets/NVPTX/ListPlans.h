//===- ListPlans.h - All plans of a kernel ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_LISTPLANS_H
#define SARDONYX_LIB_TARGETS_NVPTX_LISTPLANS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sardonyx::nv {

/// The product that `kernel` is around, or null.
mlir::Operation *findAnyProduct(mlir::func::FuncOp kernel);

/// Whether the kernel has a second product, or computes the rows of the first.
bool isOnlyForFewRows(mlir::Operation *product);

/// The plans by which `kernel`, around a product, a convolution or attention,
/// may be fast: all forms and sizes of tiles, and numbers of blocks that share
/// them up to what keeps the device busy several times over.
void listPlans(mlir::func::FuncOp kernel,
               llvm::SmallVectorImpl<mlir::Attribute> &plans);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_LISTPLANS_H
