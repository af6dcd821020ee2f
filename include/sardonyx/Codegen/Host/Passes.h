//===- Passes.h - The host program's code -----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CODEGEN_HOST_PASSES_H
#define SARDONYX_CODEGEN_HOST_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Codegen/Host/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Codegen/Host/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_CODEGEN_HOST_PASSES_H
