//===- CustomOps.h - Operators that are Python functions --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_PYTHON_CUSTOMOPS_H
#define SARDONYX_PYTHON_CUSTOMOPS_H

#include "sardonyx/Model/Error.h"
#include <exception>
#include <nanobind/nanobind.h>

/// An error on its way to sardonyx.errors, which has a class for each kind.
struct Raised : std::exception {
  explicit Raised(sardonyx::Error error) : error(std::move(error)) {}
  const char *what() const noexcept override { return error.message().c_str(); }
  sardonyx::Error error;
};

/// Takes the GIL back. When Python has ended meanwhile, it unwinds the thread
/// from in here; that would meet frames that must not be left by an exception,
/// and there is nothing more for the thread to do.
void takeGil(PyThreadState *state);

/// What the last operator raised that failed on this thread, or null. Only with
/// the GIL.
nanobind::object takeCause();

void defineCustomOps(nanobind::module_ &m);

#endif // SARDONYX_PYTHON_CUSTOMOPS_H
