//===- ModelData.h - A model's description and weights ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_MODELDATA_H
#define SARDONYX_LIB_BUILD_MODELDATA_H

#include "sardonyx/Session/CompileAhead.h"
#include <string>
#include <vector>

namespace sardonyx {

/// What the constant of an artifact (Artifact.h) tells.
struct ModelData {
  const std::string &name;
  uint16_t elfMachine;
  uint64_t threads;
  /// The codes, all for processors or all for devices, the first that fits
  /// being the one to take, and what the names of each begin with.
  const std::vector<AheadCode> &codes;
  const std::vector<std::string> &prefixes;
  const WeightPool &weights;
  /// Where the weights are a file of their own: what the artifact calls it, and
  /// its hash.
  std::string weightsFile = {};
  uint64_t weightsHash = 0;
};

/// The linker takes this off the name of the section of weights, which begins
/// with it.
inline constexpr char kWeightsSection[] = ".lrodata";

/// Writes an object with the constant and the weights, unless these are a file.
MaybeError writeModelData(const ModelData &data, const std::string &file);

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_MODELDATA_H
