//===- LoadedKernels.cpp - The kernels of a model on a GPU ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/LoadedKernels.h"

using namespace sardonyx;
using namespace sardonyx::runtime;
using namespace sardonyx::runtime::gpu;

Result<std::shared_ptr<const LoadedKernels>>
LoadedKernels::load(std::shared_ptr<Device> device, const KernelImage &image,
                    std::shared_ptr<MemoryBudget> budget,
                    const WorkOptions &options) {
  std::shared_ptr<LoadedKernels> loaded(new LoadedKernels);
  loaded->owner = device;
  loaded->budget = budget;
  loaded->kept = std::make_shared<DevicePool>(device, std::move(budget));
  loaded->messages = image.messages;
  loaded->options = options;
  std::shared_ptr<const LoadedKernels> result = loaded;
  if (image.kernels.empty())
    return result;
  // Each kernel keeps its module.
  Result<std::shared_ptr<Module>> module =
      Module::load(device, image.bytes, "the model");
  if (!module)
    return module.failure();
  const bool wait = (*module)->has("sdx_kernels_wait");
  for (KernelDescription description : image.kernels) {
    description.waits = wait;
    Result<std::shared_ptr<const Kernel>> kernel = (*module)->find(description);
    if (!kernel)
      return kernel.failure();
    loaded->kernels.push_back(std::move(*kernel));
  }
  return result;
}

std::shared_ptr<const Kernel> LoadedKernels::kernel(int64_t number) const {
  return number >= 0 && number < static_cast<int64_t>(kernels.size())
             ? kernels[number]
             : nullptr;
}

const CheckMessage *LoadedKernels::message(int64_t number) const {
  return number >= 0 && number < static_cast<int64_t>(messages.size())
             ? &messages[number]
             : nullptr;
}

Result<std::unique_ptr<Stream>> LoadedKernels::makeStream() const {
  if (options.stream)
    return Stream::borrow(owner, options.stream);
  return Stream::create(owner);
}
