//===- Passes.h - Passes about the machine ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_OBJECTS_PASSES_H
#define SARDONYX_OBJECTS_PASSES_H

#include "dialects/SDX/SDX.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Objects/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Objects/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_OBJECTS_PASSES_H
