//===- Header.h - Interfaces of models in C and C++ -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_HEADER_H
#define SARDONYX_LIB_BUILD_HEADER_H

#include "sardonyx/Model/Artifact.h"
#include <string>

namespace sardonyx {

/// The header for C of the model called `name`, which needs no other file.
std::string headerOf(const std::string &name, const Artifact &description);
/// The same for C++, over that for C.
std::string cppHeaderOf(const std::string &name, const Artifact &description);

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_HEADER_H
