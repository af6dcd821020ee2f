//===- OpenSizes.h - Whether sizes are what is missing ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_OPENSIZES_H
#define SARDONYX_LIB_SESSION_OPENSIZES_H

#include "mlir/IR/BuiltinOps.h"

namespace sardonyx {

/// Whether a module that the compiler has refused might compile if the sizes of
/// the model's inputs were known: each operator that is left is one of those
/// that can be compiled, and has a tensor of open shape.
bool maySizesHelp(mlir::ModuleOp refused);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_OPENSIZES_H
