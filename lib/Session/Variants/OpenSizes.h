//===- OpenSizes.h - Whether inputs are what is missing ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_VARIANTS_OPENSIZES_H
#define SARDONYX_LIB_SESSION_VARIANTS_OPENSIZES_H

#include "mlir/IR/BuiltinOps.h"
#include "sardonyx/Model/Types.h"
#include <vector>

namespace sardonyx {

/// Whether a module that the compiler has refused might compile if more were
/// known of the model's inputs: each operator that is left is one of those that
/// can be compiled, and has a tensor of open shape, or hangs on the values of a
/// short list of integers (KnownValues.h).
bool mayInputsHelp(mlir::ModuleOp refused,
                   const std::vector<ValueInfo> &inputs);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_VARIANTS_OPENSIZES_H
