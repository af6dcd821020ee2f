//===- Passes.h - CPU code generation ---------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_CPU_PASSES_H
#define SARDONYX_TARGETS_CPU_PASSES_H

#include "sardonyx/Targets/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Targets/CPU/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Targets/CPU/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_TARGETS_CPU_PASSES_H
