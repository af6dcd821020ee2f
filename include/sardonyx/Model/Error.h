//===- Error.h - What can go wrong, as a value ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_ERROR_H
#define SARDONYX_MODEL_ERROR_H

#include "sardonyx/Model/Export.h"
#include <optional>
#include <string>
#include <utility>

namespace sardonyx {

enum class ErrorKind {
  /// The caller passed something that does not fit: an input's name, type,
  /// shape; an option.
  InvalidArgument,
  /// A file is missing or cannot be read.
  NoSuchFile,
  /// The model breaks the rules of ONNX.
  InvalidModel,
  /// The model is right and asks for what the compiler cannot do.
  Unsupported,
  /// Anything else: the run failed, memory ran out, an internal error.
  Failed,
};

/// A kind and a sentence for a person.
class SARDONYX_API Error {
public:
  /// `message` may quote whatever a model holds: long names in quotes are
  /// shortened, and what is no text is replaced.
  Error(ErrorKind kind, const std::string &message, std::string detail = "");

  ErrorKind kind() const { return errorKind; }
  const std::string &message() const { return text; }
  /// Of a fault of the library itself, in its own terms; empty for what the
  /// model or the caller got wrong, and for what is refused.
  const std::string &detail() const { return inner; }

private:
  ErrorKind errorKind;
  std::string text, inner;
};

/// A fault of the library itself. The environment variable SARDONYX_DEBUG adds
/// the detail to the message.
SARDONYX_API Error internalError(const std::string &detail);

/// An error or nothing.
using MaybeError = std::optional<Error>;

/// A value or the error that kept it from being.
template <typename T> class Expected {
public:
  Expected(T value) : content(std::move(value)) {}
  Expected(Error error) : problem(std::move(error)) {}

  explicit operator bool() const { return content.has_value(); }
  T &operator*() { return *content; }
  const T &operator*() const { return *content; }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }

  /// Only where there is no value.
  const Error &error() const { return *problem; }

private:
  std::optional<T> content;
  std::optional<Error> problem;
};

} // namespace sardonyx

#endif // SARDONYX_MODEL_ERROR_H
