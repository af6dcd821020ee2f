//===- Passes.h - Kernels for GPUs of NVIDIA --------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_NVPTX_PASSES_H
#define SARDONYX_TARGETS_NVPTX_PASSES_H

#include "sardonyx/Targets/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Targets/NVPTX/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Targets/NVPTX/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_TARGETS_NVPTX_PASSES_H
