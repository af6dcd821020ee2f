//===- Passes.h - Passes that run code --------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_PASSES_H
#define SARDONYX_SESSION_PASSES_H

#include "dialects/ONNX/ONNX.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Session/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Session/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_SESSION_PASSES_H
