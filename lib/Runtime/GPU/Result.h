//===- Result.h - What can go wrong with a GPU ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_RESULT_H
#define SARDONYX_LIB_RUNTIME_GPU_RESULT_H

#include <optional>
#include <string>
#include <utility>

namespace sardonyx {
namespace runtime {
namespace gpu {

enum class FailureKind {
  /// This machine has no device that can be used.
  Unavailable,
  /// The caller passed something that does not fit.
  InvalidArgument,
  /// The device can be used again, with less.
  OutOfMemory,
  /// Nothing on the device can be used again in this process.
  DeviceLost,
  /// Anything else that the driver refuses.
  Failed,
};

/// A kind and a sentence for a person.
struct Failure {
  FailureKind kind;
  std::string sentence;
};

/// A failure or nothing.
using MaybeFailure = std::optional<Failure>;

/// A value or the failure that kept it from being.
template <typename T> class Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Failure failure) : problem(std::move(failure)) {}

  explicit operator bool() const { return content.has_value(); }
  T &operator*() { return *content; }
  const T &operator*() const { return *content; }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }

  /// Only where there is no value.
  const Failure &failure() const { return *problem; }

private:
  std::optional<T> content;
  std::optional<Failure> problem;
};

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_RESULT_H
