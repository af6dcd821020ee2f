//===- Bridge.h - What the onnx library knows about ops ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Type inference and function bodies come from ONNX's own C++ library. Nothing
// of it, and no exception, crosses this header.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_BRIDGE_BRIDGE_H
#define SARDONYX_BRIDGE_BRIDGE_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/PatternMatch.h"

namespace sardonyx {

/// Gives the onnx dialect its OnnxInferenceDialectInterface.
void registerOnnxBridge(mlir::DialectRegistry &registry);

/// Whether ONNX defines `op` by a function of other operators.
bool hasOnnxFunctionBody(mlir::Operation *op);

/// Replaces `op` by its function body, in the form of the latest operators. The
/// new results have the types of the old ones. Fails with a reason for the
/// rewriter's listener, and no change, if ONNX has no body for the op as it is
/// (types that are not known, for one).
llvm::LogicalResult expandOnnxFunction(mlir::Operation *op,
                                       mlir::RewriterBase &rewriter);

} // namespace sardonyx

#endif // SARDONYX_BRIDGE_BRIDGE_H
