//===- KnownValues.h - Inputs whose values are known ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_VARIANTS_KNOWNVALUES_H
#define SARDONYX_LIB_SESSION_VARIANTS_KNOWNVALUES_H

#include "mlir/IR/BuiltinOps.h"
#include "sardonyx/Model/Error.h"
#include "sardonyx/Session/Session.h"
#include <map>
#include <optional>

namespace sardonyx {

/// Puts constants in the place of the inputs named in `values`, which keep
/// their place among the arguments. An error where an input has no such values.
MaybeError fixValues(mlir::ModuleOp module,
                     const std::map<std::string, std::vector<int64_t>> &values,
                     const std::vector<ValueInfo> &inputs);

/// Whether an input is a scalar or a short list of integers or booleans, from
/// whose values a shape may be made or a branch chosen; of any length where
/// `mayBeOpen`.
bool isShortList(const ValueInfo &info, bool mayBeOpen = false);

/// How many elements valuesOf() gives of a tensor, or -1 where it gives none.
int64_t countOfKnown(const TensorRef &tensor);

/// All elements of a tensor of int32, int64 or booleans, if it has at most as
/// many as a short list.
std::optional<std::vector<int64_t>> valuesOf(const TensorRef &tensor);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_VARIANTS_KNOWNVALUES_H
