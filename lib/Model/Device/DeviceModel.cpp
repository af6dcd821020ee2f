//===- DeviceModel.cpp - What sessions have on a GPU ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Model/Device/DeviceModel.h"
#include "lib/Model/Device/ImageChoice.h"
#include "lib/Runtime/GPU/Staging.h"
#include "lib/Runtime/GPU/StreamRun.h"
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

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<ModelDevice>> ModelDevice::open(int ordinal,
                                                         int64_t memoryLimit,
                                                         void *stream,
                                                         WorkMode mode) {
  auto device = Device::open(ordinal);
  if (!device)
    return toError(device.failure());
  std::shared_ptr<ModelDevice> opened(new ModelDevice);
  opened->device = *device;
  opened->budget = std::make_shared<runtime::MemoryBudget>(
      memoryLimit ? memoryLimit : INT64_MAX);
  opened->stream = stream;
  opened->mode = mode;
  return opened;
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

/// The kernels of an image as the runtime takes them.
static KernelImage describe(const Image &image) {
  KernelImage kernels;
  kernels.bytes = image.bytes;
  for (const DeviceKernel &kernel : image.kernels)
    kernels.kernels.push_back({kernel.name, kernel.node,
                               static_cast<size_t>(kernel.arguments),
                               kernel.sharedBytes});
  for (const Message &message : image.messages)
    kernels.messages.push_back({message.text, message.kind});
  return kernels;
}

Expected<std::unique_ptr<DeviceModel>>
DeviceModel::load(std::shared_ptr<ModelDevice> device,
                  const std::vector<Image> &images) {
  std::vector<const Image *> forDevices;
  for (const Image &image : images)
    if (isForDevice(image))
      forDevices.push_back(&image);
  std::vector<const Image *> fitting = rankImages(forDevices, device->sm());
  if (fitting.empty() && !forDevices.empty())
    return Error(ErrorKind::Unsupported,
                 "the model has no code for the device: " +
                     tellUnfitting(listImages(forDevices), device->name(),
                                   device->sm()));
  // Without kernels runs have the device for memory alone.
  std::vector<KernelImage> attempts;
  for (const Image *image : fitting)
    attempts.push_back(describe(*image));
  if (attempts.empty())
    attempts.emplace_back();
  std::optional<Failure> first;
  for (const KernelImage &kernels : attempts) {
    auto loaded = LoadedKernels::load(
        device->device, kernels, device->budget,
        {static_cast<CUstream>(device->stream), device->mode});
    if (loaded) {
      std::unique_ptr<DeviceModel> model(new DeviceModel);
      model->owner = std::move(device);
      model->kernels = std::make_shared<StreamCode>(*loaded);
      return model;
    }
    if (!first)
      first = loaded.failure();
    // Another image helps where the driver cannot read this one.
    if (loaded.failure().kind != FailureKind::Failed)
      break;
  }
  return toError(*first);
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
  const std::shared_ptr<Device> &device = owner->device;
  // One without elements has an address, too.
  auto allocated = DeviceMemory::allocate(device, total + kAlignment,
                                          owner->budget, "constants");
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

MaybeError DeviceModel::place(const std::vector<Argument> &args,
                              const std::function<uint64_t(size_t)> &bytesOf,
                              std::vector<ModelArgument> &bound,
                              std::unique_ptr<DeviceMemory> &memory) const {
  std::vector<Constant> constants;
  std::vector<size_t> places;
  for (size_t i = 0; i < args.size(); ++i) {
    const Argument &arg = args[i];
    if (!arg.onDevice || arg.kind == Argument::Input ||
        (arg.kind == Argument::Persistent && persistent[arg.index]))
      continue;
    constants.push_back({bound[i].data, bytesOf(i)});
    places.push_back(i);
  }
  if (constants.empty())
    return std::nullopt;
  if (MaybeError error = upload(constants, memory))
    return error;
  for (size_t i = 0; i < places.size(); ++i)
    bound[places[i]].data = constants[i].place;
  return std::nullopt;
}

std::vector<bool>
sardonyx::findPersistentOnDevice(const std::vector<Argument> &mainArgs,
                                 size_t count) {
  std::vector<bool> found(count);
  for (const Argument &arg : mainArgs)
    if (arg.kind == Argument::Persistent && arg.onDevice)
      found[arg.index] = true;
  for (const Argument &arg : mainArgs)
    if (arg.kind == Argument::Persistent && !arg.onDevice)
      found[arg.index] = false;
  return found;
}
