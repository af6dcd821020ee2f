//===- DeviceModel.cpp - What sessions have on a GPU ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Device/DeviceModel.h"
#include "lib/Runtime/GPU/Staging.h"
#include "lib/Runtime/GPU/StreamRun.h"
#include "lib/Session/Compile/Images.h"
#include "lib/Session/Variants/KnownValues.h"
#include <map>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

Error sardonyx::toError(const Failure &failure, const std::string &what) {
  ErrorKind kind = failure.kind == FailureKind::InvalidArgument
                       ? ErrorKind::InvalidArgument
                       : ErrorKind::Failed;
  return Error(kind, what + failure.sentence);
}

std::string sardonyx::architectureOf(int sm) {
  // Code for older devices runs on newer ones, but for what only the very
  // device has, from 9.0 on.
  constexpr int kKnown[] = {80, 86, 87, 89, 90, 100, 120}, kOwn = 90;
  int known = kKnown[0];
  for (int number : kKnown)
    if (number <= sm)
      known = number;
  const bool isOwn = known == sm && sm >= kOwn;
  return "sm_" + std::to_string(known) + (isOwn ? "a" : "");
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<SessionDevice>>
SessionDevice::open(const DeviceOptions &options, bool isProfiled) {
  auto device = Device::open(options.deviceId);
  if (!device)
    return toError(device.failure());
  std::shared_ptr<SessionDevice> opened(new SessionDevice);
  opened->device = *device;
  opened->budget = std::make_shared<runtime::MemoryBudget>(
      options.memoryLimit ? options.memoryLimit : INT64_MAX);
  opened->stream = options.userStream;
  opened->mode = isProfiled            ? WorkMode::Timed
                 : options.enableGraph ? WorkMode::Graphs
                                       : WorkMode::Plain;
  return opened;
}

MaybeError SessionDevice::fetchKnown(std::vector<TensorRef> &inputs,
                                     std::deque<std::string> &memory) const {
  std::unique_ptr<Stream> stream = Stream::borrow(device, nullptr);
  for (TensorRef &tensor : inputs) {
    const int64_t count = countOfKnown(tensor);
    if (tensor.device == kHost || count < 0)
      continue;
    std::string &copy = memory.emplace_back();
    copy.resize(static_cast<size_t>(count * byteSizeOf(tensor.type)));
    MaybeFailure failure = stream->copyToHost(
        copy.data(), reinterpret_cast<CUdeviceptr>(tensor.data),
        static_cast<int64_t>(copy.size()));
    if (!failure)
      failure = stream->synchronize();
    if (failure)
      return toError(*failure);
    // An empty one has no data either way.
    tensor.data = copy.data();
    tensor.device = kHost;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<DeviceModel>>
DeviceModel::load(std::shared_ptr<SessionDevice> device,
                  const std::vector<Image> &images) {
  KernelImage kernels;
  for (const Image &image : images) {
    if (!isForDevice(image))
      continue;
    if (!kernels.kernels.empty())
      return internalError("the model has two images for a device");
    kernels.bytes = image.bytes;
    for (const DeviceKernel &kernel : image.kernels)
      kernels.kernels.push_back({kernel.name, kernel.node,
                                 static_cast<size_t>(kernel.arguments),
                                 kernel.sharedBytes});
    for (const Message &message : image.messages)
      kernels.messages.push_back({message.text, message.kind});
  }
  auto loaded = LoadedKernels::load(
      device->device, kernels, device->budget,
      {static_cast<CUstream>(device->stream), device->mode});
  if (!loaded)
    return toError(loaded.failure());
  std::unique_ptr<DeviceModel> model(new DeviceModel);
  model->session = std::move(device);
  model->kernels = std::make_shared<StreamCode>(*loaded);
  return model;
}

MaybeError DeviceModel::upload(std::vector<Constant> &constants,
                               std::unique_ptr<DeviceMemory> &memory) const {
  constexpr int64_t kAlignment = 256, kPiece = int64_t(8) << 20;
  std::map<std::pair<const void *, uint64_t>, int64_t> offsets;
  int64_t total = 0;
  for (const Constant &constant : constants)
    if (offsets.try_emplace({constant.data, constant.bytes}, total).second)
      total += (static_cast<int64_t>(constant.bytes) + kAlignment - 1) /
               kAlignment * kAlignment;
  const std::shared_ptr<Device> &device = session->device;
  // One without elements has an address, too.
  auto allocated = DeviceMemory::allocate(device, total + kAlignment,
                                          session->budget, "constants");
  if (!allocated)
    return toError(allocated.failure());
  memory = std::move(*allocated);
  auto stream = Stream::create(device);
  if (!stream)
    return toError(stream.failure());
  Staging staging(device, kPiece);
  for (const auto &[constant, offset] : offsets)
    if (MaybeFailure failure = staging.copy(
            **stream, memory->address() + static_cast<CUdeviceptr>(offset),
            constant.first, static_cast<int64_t>(constant.second), waitAlways))
      return toError(*failure);
  if (MaybeFailure failure = (*stream)->synchronize())
    return toError(*failure);
  for (Constant &constant : constants)
    constant.place = reinterpret_cast<void *>(
        memory->address() +
        static_cast<CUdeviceptr>(offsets[{constant.data, constant.bytes}]));
  return std::nullopt;
}
