//===- Values.h - Values that are no tensors of numbers ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code takes and gives handles for strings, sequences, optionals and
// maps;
// callers do not see them.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_VALUES_H
#define SARDONYX_LIB_SESSION_VALUES_H

#include "sardonyx/Runtime/RunContext.h"
#include "sardonyx/Session/Error.h"
#include "sardonyx/Session/Session.h"

namespace sardonyx {

/// Whether compiled code has handles in the place of the value.
inline bool isHandled(const ValueInfo &info) {
  return !info.items.empty() || info.elementType == ElementType::String;
}

/// Bytes of an element in compiled code's memory.
inline int64_t storedBytesOf(ElementType type) {
  return type == ElementType::String ? sizeof(int64_t) : byteSizeOf(type);
}
inline int64_t storedBytesOf(const ValueInfo &info) {
  return isHandled(info) ? sizeof(int64_t) : byteSizeOf(info.elementType);
}

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

#endif // SARDONYX_LIB_SESSION_VALUES_H
