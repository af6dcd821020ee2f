//===- ArtifactDevice.h - The GPU of a model built ahead --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of `sardonyx build` has what uses CUDA's driver only where it has code
// for a GPU: the constant of the artifact then points to it.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_MODEL_ARTIFACTDEVICE_H
#define SARDONYX_LIB_MODEL_ARTIFACTDEVICE_H

#include "sardonyx-c/Artifact.h"
#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Model/Model.h"
#include <memory>
#include <vector>

namespace sardonyx {

/// The device that an opened model runs on, and what of the model lies there.
class ArtifactDevice {
public:
  virtual ~ArtifactDevice() = default;

  virtual int ordinal() const = 0;
  /// Those of the codes whose images the device can run, the best first. None
  /// is an error, which `model` is named in.
  virtual Expected<std::vector<const sdx_device_code *>>
  rank(const std::vector<const sdx_device_code *> &codes,
       const std::string &model) const = 0;
  /// Loads the kernels of what a code describes.
  virtual MaybeError load(const Artifact &description) = 0;
  /// Makes, with `init`, what the code counts on, and fills in the arguments of
  /// `code` and its device. `weights` are on the host. What stays there counts
  /// against `budget`.
  virtual MaybeError bind(const Artifact &description, sdx_entry_point init,
                          const char *weights, unsigned threads,
                          std::shared_ptr<runtime::MemoryBudget> budget,
                          ModelCode &code) = 0;
};

} // namespace sardonyx

struct sdx_device_runtime {
  sardonyx::Expected<std::unique_ptr<sardonyx::ArtifactDevice>> (*open)(
      const sdx_open_options &options);
};

#endif // SARDONYX_LIB_MODEL_ARTIFACTDEVICE_H
