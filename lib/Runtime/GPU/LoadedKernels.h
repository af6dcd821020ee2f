//===- LoadedKernels.h - The kernels of a model on a GPU --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_LOADEDKERNELS_H
#define SARDONYX_LIB_RUNTIME_GPU_LOADEDKERNELS_H

#include "lib/Runtime/GPU/DevicePool.h"
#include "lib/Runtime/GPU/WorkQueue.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {
namespace runtime {
namespace gpu {

/// What a check of a kernel fails a run with, and the kind of the failure
/// (RuntimeABI.h).
struct CheckMessage {
  std::string text;
  int64_t kind = 0;
};

/// Code for kernels, by the numbers that host programs have for them and for
/// their messages.
struct KernelImage {
  std::string_view bytes;
  std::vector<KernelDescription> kernels;
  std::vector<CheckMessage> messages;
};

/// How runs give their work to a device.
struct WorkOptions {
  /// A stream of the caller's that all work is given to, if it is not null.
  cuda::CUstream stream = nullptr;
  WorkMode mode = WorkMode::Graphs;
};

/// What all runs of a model on a device share. Thread-safe.
class LoadedKernels {
public:
  /// Without kernels nothing is loaded, and runs have the device for memory
  /// alone. What runs and results hold counts against `budget`.
  static Result<std::shared_ptr<const LoadedKernels>>
  load(std::shared_ptr<Device> device, const KernelImage &image,
       std::shared_ptr<MemoryBudget> budget, const WorkOptions &options = {});

  const std::shared_ptr<Device> &device() const { return owner; }
  const std::shared_ptr<MemoryBudget> &memoryBudget() const { return budget; }
  /// Memory of results that callers have had, on which the process's default
  /// stream may have work left.
  const std::shared_ptr<DevicePool> &results() const { return kept; }
  /// Null where there is no such kernel.
  std::shared_ptr<const Kernel> kernel(int64_t number) const;
  bool hasMessages() const { return !messages.empty(); }
  /// Null where there is no such message.
  const CheckMessage *message(int64_t number) const;
  Result<std::unique_ptr<Stream>> makeStream() const;
  WorkMode workMode() const { return options.mode; }

private:
  LoadedKernels() = default;

  std::shared_ptr<Device> owner;
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<DevicePool> kept;
  std::vector<std::shared_ptr<const Kernel>> kernels;
  std::vector<CheckMessage> messages;
  WorkOptions options;
};

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_LOADEDKERNELS_H
