//===- ShortOperands.h - Numbers of 16 bits in f32 --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_SHORTOPERANDS_H
#define SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_SHORTOPERANDS_H

#include "mlir/IR/Value.h"

namespace sardonyx {
namespace nv {

/// The tensor of f16 or bf16 that `tensor` is in f32, or null.
mlir::Value findWidenedSource(mlir::Value tensor);

/// Whether an operation, which may be null, gives its operand in another shape
/// or order.
bool isMovement(mlir::Operation *op);

} // namespace nv
} // namespace sardonyx

#endif // SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_SHORTOPERANDS_H
