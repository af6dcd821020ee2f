//===- WebModule.h - Interfaces of models in JavaScript ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_WEBMODULE_H
#define SARDONYX_LIB_BUILD_WEBMODULE_H

#include "sardonyx/Model/Artifact.h"
#include <string>

namespace sardonyx {

/// A module of JavaScript that loads and runs the model called `name`, of which
/// `file`, beside it, is the WebAssembly.
std::string webModuleOf(const std::string &name, const std::string &file,
                        const Artifact &description);
/// The same interface for TypeScript.
std::string webTypesOf(const std::string &name, const Artifact &description);

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_WEBMODULE_H
