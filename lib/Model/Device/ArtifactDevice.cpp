//===- ArtifactDevice.cpp - The GPU of a model built ahead ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Model/ArtifactDevice.h"
#include "lib/Model/Device/DeviceModel.h"
#include "lib/Model/Device/ImageChoice.h"
#include "sardonyx/Model/Init.h"
#include <algorithm>

using namespace sardonyx;
using runtime::BufferPool;
using runtime::OutputSlot;
using runtime::RunContext;

namespace {

class CUDAArtifactDevice : public ArtifactDevice {
public:
  explicit CUDAArtifactDevice(std::shared_ptr<ModelDevice> device)
      : device(std::move(device)) {}

  int ordinal() const override { return device->ordinal(); }
  Expected<std::vector<const sdx_device_code *>>
  rank(const std::vector<const sdx_device_code *> &codes,
       const std::string &model) const override;
  MaybeError load(const Artifact &description) override;
  MaybeError bind(const Artifact &description, sdx_entry_point init,
                  const char *weights, unsigned threads,
                  std::shared_ptr<runtime::MemoryBudget> budget,
                  ModelCode &code) override;

private:
  /// A result of `sdx_init` on the host, or what is left of one on the device.
  struct Persistent {
    const void *data = nullptr;
    uint64_t bytes = 0;
    std::vector<int64_t> shape;
  };
  Expected<std::vector<ModelArgument>>
  bindArguments(const Artifact &description, const std::vector<Argument> &args,
                const char *weights,
                std::unique_ptr<runtime::gpu::DeviceMemory> &memory) const;
  MaybeError runInit(const Artifact &description, sdx_entry_point init,
                     const char *weights, unsigned threads,
                     const std::shared_ptr<runtime::MemoryBudget> &budget);

  std::shared_ptr<ModelDevice> device;
  std::unique_ptr<DeviceModel> model;
  /// What `sdx_init` has made on the host.
  std::shared_ptr<BufferPool> memory;
  std::vector<Persistent> persistent;
};

} // namespace

/// How well the best of the images that a list names serves a device; negative:
/// none does.
static int rate(const sdx_device_code &code, int sm) {
  // Without kernels there is nothing that could not run.
  int best = *code.images ? -1 : 0;
  for (const ListedImage &image : readImageList(code.images))
    best = std::max(best, rateImage(image.kind, image.architecture, sm));
  return best;
}

Expected<std::vector<const sdx_device_code *>>
CUDAArtifactDevice::rank(const std::vector<const sdx_device_code *> &codes,
                         const std::string &model) const {
  std::vector<std::pair<int, size_t>> rated;
  std::string all;
  for (size_t i = 0; i < codes.size(); ++i) {
    all += (all.empty() ? "" : ", ") + std::string(codes[i]->images);
    if (int rating = rate(*codes[i], device->sm()); rating >= 0)
      rated.emplace_back(-rating, i);
  }
  if (rated.empty())
    return Error(ErrorKind::Unsupported,
                 "the model '" + model + "' has no code for the device: " +
                     tellUnfitting(all, device->name(), device->sm()));
  std::sort(rated.begin(), rated.end());
  std::vector<const sdx_device_code *> fitting;
  for (const auto &[rating, i] : rated)
    fitting.push_back(codes[i]);
  return fitting;
}

MaybeError CUDAArtifactDevice::load(const Artifact &description) {
  auto loaded = DeviceModel::load(device, description.images);
  if (!loaded)
    return loaded.error();
  model = std::move(*loaded);
  model->persistent.resize(description.persistentElementBytes.size());
  return std::nullopt;
}

Expected<std::vector<ModelArgument>> CUDAArtifactDevice::bindArguments(
    const Artifact &description, const std::vector<Argument> &args,
    const char *weights,
    std::unique_ptr<runtime::gpu::DeviceMemory> &memory) const {
  std::vector<ModelArgument> bound(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const Argument &arg = args[i];
    if (arg.kind == Argument::Input) {
      bound[i].input = arg.index;
      bound[i].shape.resize(description.inputs[arg.index].dims.size());
    } else if (arg.kind == Argument::Persistent) {
      bound[i].data = persistent[arg.index].data;
      bound[i].shape = persistent[arg.index].shape;
    } else {
      bound[i].data = arg.length ? weights + arg.offset : emptyTensor;
      bound[i].shape = arg.shape;
    }
    bound[i].onDevice = arg.onDevice;
  }
  auto bytesOf = [&](size_t i) {
    return args[i].kind == Argument::Persistent
               ? persistent[args[i].index].bytes
               : args[i].length;
  };
  if (MaybeError error = model->place(args, bytesOf, bound, memory))
    return *error;
  return bound;
}

MaybeError CUDAArtifactDevice::runInit(
    const Artifact &description, sdx_entry_point init, const char *weights,
    unsigned threads, const std::shared_ptr<runtime::MemoryBudget> &budget) {
  std::unique_ptr<runtime::gpu::DeviceMemory> constants; // gone after it
  memory = std::make_shared<BufferPool>(budget, BufferPool::Sizes::Exact);
  RunContext context(threads, memory, budget);
  context.setDevice(model->code()->makeRun());
  const std::vector<uint32_t> &sizes = description.persistentElementBytes;
  std::vector<bool> onDevice =
      findPersistentOnDevice(description.mainArgs, sizes.size());
  auto arguments =
      bindArguments(description, description.initArgs, weights, constants);
  if (!arguments)
    return arguments.error();
  ArgumentTable table;
  for (const ModelArgument &arg : *arguments)
    table.add(arg.data, arg.shape);
  if (MaybeError error =
          sardonyx::runInit(context, init, table, sizes, onDevice))
    return error;
  for (OutputSlot &slot : context.outputs()) {
    if (slot.isOnDevice)
      model->persistent[persistent.size()] = std::move(slot.owner);
    uint64_t bytes = slot.elementBytes;
    for (int64_t size : slot.sizes)
      bytes *= static_cast<uint64_t>(size);
    persistent.push_back({slot.data, bytes, std::move(slot.sizes)});
  }
  context.outputs().clear(); // they live as long as their pool
  return std::nullopt;
}

MaybeError
CUDAArtifactDevice::bind(const Artifact &description, sdx_entry_point init,
                         const char *weights, unsigned threads,
                         std::shared_ptr<runtime::MemoryBudget> budget,
                         ModelCode &code) {
  if (init)
    if (MaybeError error = runInit(description, init, weights, threads, budget))
      return error;
  auto arguments = bindArguments(description, description.mainArgs, weights,
                                 model->constants);
  if (!arguments)
    return arguments.error();
  code.arguments = std::move(*arguments);
  code.device = model->code();
  return std::nullopt;
}

static Expected<std::unique_ptr<ArtifactDevice>>
openDevice(const sdx_open_options &options) {
  auto device = ModelDevice::open(
      options.device, options.device_memory_limit, options.stream,
      options.without_graphs ? runtime::gpu::WorkMode::Plain
                             : runtime::gpu::WorkMode::Graphs);
  if (!device)
    return device.error();
  return std::unique_ptr<ArtifactDevice>(
      std::make_unique<CUDAArtifactDevice>(std::move(*device)));
}

extern "C" const sdx_device_runtime sdx_artifact_devices;
const sdx_device_runtime sdx_artifact_devices = {openDevice};
