//===- DeviceModel.h - What sessions have on a GPU --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_DEVICE_DEVICEMODEL_H
#define SARDONYX_LIB_SESSION_DEVICE_DEVICEMODEL_H

#include "lib/Runtime/GPU/LoadedKernels.h"
#include "sardonyx/Model/Image.h"
#include "sardonyx/Model/Model.h"
#include "sardonyx/Session/Session.h"
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace sardonyx {

/// The error that a failure of the driver's is to the caller.
Error toError(const runtime::gpu::Failure &failure,
              const std::string &what = "");

/// What code is made for on a device of this compute capability (90): "sm_90a",
/// or of one that is not known the newest that came before it, "sm_100".
std::string architectureOf(int sm);

/// The device of a session and its budget. Thread-safe.
class SessionDevice {
public:
  static Expected<std::shared_ptr<SessionDevice>>
  open(const DeviceOptions &options, bool isProfiled);

  int ordinal() const { return device->ordinal(); }
  std::string architecture() const {
    return architectureOf(device->facts().sm);
  }

  /// Copies short tensors that lie on the device and whose values decide on
  /// code to `memory`, and has `inputs` point there.
  MaybeError fetchKnown(std::vector<TensorRef> &inputs,
                        std::deque<std::string> &memory) const;

private:
  friend class DeviceModel;
  SessionDevice() = default;

  std::shared_ptr<runtime::gpu::Device> device;
  std::shared_ptr<runtime::MemoryBudget> budget;
  void *stream = nullptr;
  runtime::gpu::WorkMode mode = runtime::gpu::WorkMode::Graphs;
};

/// The kernels of a model and its constants on a device.
class DeviceModel {
public:
  /// Loads those of `images` that are for a device.
  static Expected<std::unique_ptr<DeviceModel>>
  load(std::shared_ptr<SessionDevice> device, const std::vector<Image> &images);

  /// Bytes of the host that are to be on the device, and where they are then.
  struct Constant {
    const void *data;
    uint64_t bytes;
    void *place = nullptr;
  };
  /// Copies constants, equal ones once, to memory that `memory` gets.
  MaybeError upload(std::vector<Constant> &constants,
                    std::unique_ptr<runtime::gpu::DeviceMemory> &memory) const;

  const std::shared_ptr<runtime::DeviceCode> &code() const { return kernels; }

  /// The constants that runs read.
  std::unique_ptr<runtime::gpu::DeviceMemory> constants;
  /// Results of `sdx_init` by number; null for those on the host.
  std::vector<std::shared_ptr<void>> persistent;

private:
  DeviceModel() = default;

  std::shared_ptr<SessionDevice> session;
  std::shared_ptr<runtime::DeviceCode> kernels;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_DEVICE_DEVICEMODEL_H
