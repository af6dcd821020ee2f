//===- Passes.h - The passes of a module's target ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_PASSES_H
#define SARDONYX_TARGETS_PASSES_H

#include "sardonyx/Targets/Target.h"

#include "mlir/Pass/Pass.h"

namespace sardonyx {

/// When a target's passes run (TargetInterface).
enum class TargetStage { Layout, Fusion, Plan, Codegen };

/// The values of an option that says how exact f32 is.
llvm::cl::ValuesClass getNumericsValues();
llvm::cl::ValuesClass getPrecisionValues();

#define GEN_PASS_DECL
#include "sardonyx/Targets/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Targets/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_TARGETS_PASSES_H
