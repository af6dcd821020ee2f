//===- Passes.h - Passes that ask the onnx library --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_BRIDGE_PASSES_H
#define SARDONYX_BRIDGE_PASSES_H

#include "dialects/ONNX/ONNX.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace sardonyx {

#define GEN_PASS_DECL
#include "sardonyx/Bridge/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "sardonyx/Bridge/Passes.h.inc"

} // namespace sardonyx

#endif // SARDONYX_BRIDGE_PASSES_H
