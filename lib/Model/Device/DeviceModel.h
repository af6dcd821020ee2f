//===- DeviceModel.h - What models have on a GPU ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_MODEL_DEVICE_DEVICEMODEL_H
#define SARDONYX_LIB_MODEL_DEVICE_DEVICEMODEL_H

#include "lib/Runtime/GPU/LoadedKernels.h"
#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Model/Image.h"
#include "sardonyx/Model/Model.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sardonyx {

/// The error that a failure of the driver's is to the caller.
Error toError(const runtime::gpu::Failure &failure,
              const std::string &what = "");

/// The device of a model and its budget. Thread-safe.
class ModelDevice {
public:
  /// The device of this number. Weights, runs and results may take
  /// `memoryLimit` bytes of its memory; 0: what there is. `stream`, if it is
  /// not null, is a CUstream of the caller's that all work is given to.
  static Expected<std::shared_ptr<ModelDevice>>
  open(int ordinal, int64_t memoryLimit, void *stream,
       runtime::gpu::WorkMode mode = runtime::gpu::WorkMode::Graphs);

  int ordinal() const { return device->ordinal(); }
  /// The compute capability: 90 of 9.0.
  int sm() const { return device->facts().sm; }
  const std::string &name() const { return device->facts().name; }
  const std::shared_ptr<runtime::gpu::Device> &get() const { return device; }

private:
  friend class DeviceModel;
  ModelDevice() = default;

  std::shared_ptr<runtime::gpu::Device> device;
  std::shared_ptr<runtime::MemoryBudget> budget;
  void *stream = nullptr;
  runtime::gpu::WorkMode mode = runtime::gpu::WorkMode::Graphs;
};

/// The kernels of a model and its constants on a device.
class DeviceModel {
public:
  /// Loads the one of `images` that serves the device best, or where the driver
  /// refuses that, the next one. Images that are for no device do not count.
  static Expected<std::unique_ptr<DeviceModel>>
  load(std::shared_ptr<ModelDevice> device, const std::vector<Image> &images);

  /// Copies to the device what `args` take there and what does not lie there,
  /// equal bytes once: constants, and results of `sdx_init` that are the
  /// host's. `bound` are the arguments with their data on the host, and with
  /// that on the device afterwards; `bytesOf` tells the size of argument number
  /// i. `memory` gets what was allocated.
  MaybeError place(const std::vector<Argument> &args,
                   const std::function<uint64_t(size_t)> &bytesOf,
                   std::vector<ModelArgument> &bound,
                   std::unique_ptr<runtime::gpu::DeviceMemory> &memory) const;

  const std::shared_ptr<runtime::DeviceCode> &code() const { return kernels; }

  /// The constants that runs read.
  std::unique_ptr<runtime::gpu::DeviceMemory> constants;
  /// Results of `sdx_init` by number; null for those on the host.
  std::vector<std::shared_ptr<void>> persistent;

private:
  DeviceModel() = default;
  /// Bytes of the host that are to be on the device, and where they are then.
  struct Constant {
    const void *data;
    uint64_t bytes;
    void *place = nullptr;
  };
  MaybeError upload(std::vector<Constant> &constants,
                    std::unique_ptr<runtime::gpu::DeviceMemory> &memory) const;

  std::shared_ptr<ModelDevice> owner;
  std::shared_ptr<runtime::DeviceCode> kernels;
};

/// Whether each of `count` results of `sdx_init` stays on the device, where all
/// of `mainArgs` that take it look for it.
std::vector<bool> findPersistentOnDevice(const std::vector<Argument> &mainArgs,
                                         size_t count);

} // namespace sardonyx

#endif // SARDONYX_LIB_MODEL_DEVICE_DEVICEMODEL_H
