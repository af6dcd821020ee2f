//===- DecomposeLast.h - Windows with channels last as loops ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_CONV_DECOMPOSELAST_H
#define SARDONYX_LIB_TARGETS_NVPTX_CONV_DECOMPOSELAST_H

#include "mlir/IR/Builders.h"

namespace sardonyx::nv {

/// What an nv.conv or an nv.max_pool computes, by linalg operations; null for
/// other operations.
mlir::Value decomposeLast(mlir::OpBuilder &b, mlir::Operation *op);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_CONV_DECOMPOSELAST_H
