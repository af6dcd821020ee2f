//===- WebData.h - A model's data as an object of WebAssembly ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_WEBDATA_H
#define SARDONYX_LIB_BUILD_WEBDATA_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Session/CompileAhead.h"
#include <string>

namespace sardonyx {

/// A model as a constant of the type sdx_artifact (Artifact.h) whose pointers
/// have 32 bits.
struct WebData {
  std::string name;
  /// The code's: its function, packed description, processor and features.
  std::string main, description, processor, features;
  const WeightPool &weights;
};

/// Writes an object that defines kArtifactSymbol.
MaybeError writeWebData(const WebData &data, const std::string &file);

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_WEBDATA_H
