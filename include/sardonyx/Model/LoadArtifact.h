//===- LoadArtifact.h - Models that were built ahead of time ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_LOADARTIFACT_H
#define SARDONYX_MODEL_LOADARTIFACT_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include "sardonyx/Model/Runner.h"
#include <memory>
#include <optional>
#include <string>

namespace sardonyx {

struct ArtifactOptions {
  /// Threads that a run may use; 0: as the artifact was built.
  unsigned threads = 0;
  /// Bytes that runs and results may take together; 0: what the machine has.
  int64_t memoryLimit = 0;
  /// The number of the CUDA device that a model with kernels for one runs on.
  /// Not set: 0, and models without are taken, too.
  std::optional<int> device;
  /// Bytes of its memory that weights, runs and results may take; 0: what there
  /// is.
  int64_t deviceMemoryLimit = 0;
  /// A CUstream that all work is given to and that outlives the model; null:
  /// each run has its own.
  void *stream = nullptr;
};

/// The name of the constant (Artifact.h) that each shared library of `sardonyx
/// build` exports, besides the one with the model's name.
inline constexpr char kArtifactSymbol[] = "sardonyx_artifact";

/// Whether a file is a shared library by its first bytes.
SARDONYX_API bool isSharedLibrary(const std::string &path);

/// Loads a shared library that `sardonyx build` has made, whose code then runs
/// in this process. All but its weights is read once to see that nothing is
/// damaged; so are few weights, and many by the first run, which then fails.
SARDONYX_API Expected<std::shared_ptr<Runner>>
loadArtifact(const std::string &path, const ArtifactOptions &options = {});

} // namespace sardonyx

#endif // SARDONYX_MODEL_LOADARTIFACT_H
