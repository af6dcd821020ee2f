//===- SplitProducts.h - Products that are read in parts --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_SPLITPRODUCTS_H
#define SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_SPLITPRODUCTS_H

#include "mlir/IR/BuiltinOps.h"

namespace sardonyx::nv {

/// Makes several products of each one by weights whose result is read as
/// slices of whole columns only.
void splitProducts(mlir::ModuleOp module);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_SPLITPRODUCTS_H
