//===- Handles.h - Values that are no tensors of numbers --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code takes and gives handles for strings, sequences, optionals and
// maps; callers do not see them.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_MODEL_HANDLES_H
#define SARDONYX_LIB_MODEL_HANDLES_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Values.h"
#include "sardonyx/Runtime/RunContext.h"

namespace sardonyx {

/// Checks that a value is of the type of an input that is a sequence, an
/// optional or a map.
MaybeError checkList(const ValueInfo &info, const TensorRef &value);

/// The handles of an input that is no tensor of numbers, in the order of its
/// elements; that of a list alone.
Expected<std::vector<int64_t>>
encode(const TensorRef &value, const ValueInfo &info, runtime::RunContext &run);

/// The value that `handles` stand for, a result of `shape`.
Expected<Tensor> decode(const int64_t *handles, std::vector<int64_t> shape,
                        const ValueInfo &info, runtime::RunContext &run);

} // namespace sardonyx

#endif // SARDONYX_LIB_MODEL_HANDLES_H
