//===- Passes.h - From linalg to kernels and a host program -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DISPATCH_PASSES_H
#define SARDONYX_DISPATCH_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Dispatch/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Dispatch/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_DISPATCH_PASSES_H
