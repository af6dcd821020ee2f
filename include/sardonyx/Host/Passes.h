//===- Passes.h - The host program's code -----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_HOST_PASSES_H
#define SARDONYX_HOST_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Host/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Host/Passes.h.inc"

/// Registers what bufferizing a host program needs: the external models of the
/// dialects that may occur in one.
void registerHostBufferization(mlir::DialectRegistry &registry);

} // namespace sardonyx

#endif // SARDONYX_HOST_PASSES_H
