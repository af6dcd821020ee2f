//===- Passes.h - Passes that leave a dialect for others --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CONVERSION_PASSES_H
#define SARDONYX_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace sardonyx {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "sardonyx/Conversion/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_CONVERSION_PASSES_H
