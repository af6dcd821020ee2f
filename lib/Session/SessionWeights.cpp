//===- SessionWeights.cpp - What a session's code works on ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constants in files and in artifacts, and what sdx_init makes of them.
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/StoppableWork.h"
#include "lib/Session/SessionImpl.h"
#include "sardonyx/Model/Init.h"
#include "sardonyx/Runtime/AlignedMemory.h"

#include <algorithm>
#include <map>

using namespace sardonyx;
using runtime::OutputSlot;
using runtime::RunContext;

MaybeError Session::Impl::mapFiles(std::shared_ptr<FileMap> model) {
  for (const SourceFile &source : artifact.files) {
    std::shared_ptr<FileMap> file = model;
    if (!source.path.empty()) {
      auto opened = FileMap::open(source.path);
      if (!opened)
        return opened.error();
      file = *opened;
    }
    if (file->bytes().size() != source.size ||
        (!source.path.empty() && file->modified() != source.modified))
      return Error(ErrorKind::Failed,
                   "'" + source.path + "' changed while it was being read");
    files.push_back(std::move(file));
  }
  return std::nullopt;
}

void Session::Impl::keepConstants() {
  constexpr uint64_t kAlignment = 64;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> places;
  std::string &data = artifact.data;
  uint64_t size = data.size();
  auto forEach = [&](auto &&visit) {
    for (Argument &arg : artifact.mainArgs)
      if (arg.kind == Argument::Constant && !arg.onDevice &&
          arg.index != Argument::inlineData && files[arg.index]->path().empty())
        visit(arg);
  };
  forEach([&](Argument &arg) {
    const uint64_t place = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (places.try_emplace({arg.offset, arg.length}, place).second)
      size = place + arg.length;
  });
  data.reserve(size);
  forEach([&](Argument &arg) {
    const uint64_t place = places[{arg.offset, arg.length}];
    if (data.size() <= place) {
      data.resize(place);
      data.append(files[arg.index]->bytes().substr(arg.offset, arg.length));
    }
    arg.index = Argument::inlineData;
    arg.offset = place;
  });
}

const void *Session::Impl::constantData(const Argument &arg) const {
  if (arg.length == 0)
    return emptyTensor;
  if (arg.index == Argument::inlineData)
    return artifact.data.data() + arg.offset;
  return files[arg.index]->bytes().data() + arg.offset;
}

std::vector<ModelArgument>
Session::Impl::bind(const std::vector<Argument> &args) const {
  std::vector<ModelArgument> bound(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const Argument &arg = args[i];
    switch (arg.kind) {
    case Argument::Input:
      bound[i].input = arg.index;
      bound[i].shape.resize(artifact.inputs[arg.index].dims.size());
      break;
    case Argument::Constant:
      bound[i] = {std::nullopt, constantData(arg), arg.shape};
      break;
    case Argument::Persistent:
      bound[i] = {std::nullopt, persistent[arg.index].data,
                  persistent[arg.index].sizes};
      break;
    }
    bound[i].onDevice = arg.onDevice;
  }
  return bound;
}

Expected<std::vector<ModelArgument>> Session::Impl::bindOnDevice(
    const std::vector<Argument> &args,
    std::unique_ptr<runtime::gpu::DeviceMemory> &memory) const {
  std::vector<ModelArgument> bound = bind(args);
  auto bytesOf = [&](size_t i) {
    return args[i].kind == Argument::Persistent
               ? persistent[args[i].index].bytes()
               : args[i].length;
  };
  if (MaybeError error = deviceModel->place(args, bytesOf, bound, memory))
    return *error;
  return bound;
}

void Session::Impl::forgetPages() const {
  for (const std::shared_ptr<FileMap> &file : files)
    file->forgetPages();
}

void Session::Impl::releasePacked() {
  persistentPool->releaseAll();
  persistentPool->trimAll();
}

bool Session::Impl::share(std::shared_ptr<const PackedWeights> weights) {
  if (!weights)
    return false;
  const auto bytes = static_cast<int64_t>(weights->file->bytes().size());
  if (!budget->take(bytes))
    return false;
  releasePacked();
  packed = std::move(weights);
  persistent = packed->tensors;
  packed->file->fetchPages(threads);
  report.persistentBytes = bytes;
  return true;
}

MaybeError Session::Impl::packWeights(const Cache &cache,
                                      const std::string &key) {
  if (deviceModel) {
    deviceModel->persistent.resize(artifact.persistentElementBytes.size());
    std::vector<bool> onDevice = findPersistentOnDevice(
        artifact.mainArgs, artifact.persistentElementBytes.size());
    // What lies there is no file's.
    if (std::find(onDevice.begin(), onDevice.end(), true) != onDevice.end())
      return runInit();
  }
  // Weights of an artifact that had to be made again are old.
  if (report.fromCache && share(cache.loadWeights(key, artifact)))
    return std::nullopt;
  if (MaybeError error = runInit())
    return error;
  // The file takes as much memory as it is written, and a machine that has to
  // ask its host for each page is slow to give that twice.
  bool isLost = false;
  auto stored = cache.storeWeights(
      key, artifact, persistent, [&](std::string_view written) {
        isLost = true;
        runtime::forgetContents(written.data(), written.size());
      });
  if (isLost) {
    persistent.clear();
    releasePacked();
  }
  if (share(std::move(stored)) || !isLost)
    return std::nullopt;
  return runInit();
}

MaybeError Session::Impl::runInit() {
  std::unique_ptr<runtime::gpu::DeviceMemory> constants; // gone after it
  RunContext context(threads, persistentPool, budget);
  std::vector<bool> onDevice(artifact.persistentElementBytes.size());
  Expected<std::vector<ModelArgument>> arguments = bind(artifact.initArgs);
  if (deviceModel) {
    context.setDevice(deviceModel->code()->makeRun());
    onDevice = findPersistentOnDevice(artifact.mainArgs, onDevice.size());
    arguments = bindOnDevice(artifact.initArgs, constants);
    if (!arguments)
      return arguments.error();
  }
  ArgumentTable table;
  for (const ModelArgument &arg : *arguments)
    table.add(arg.data, arg.shape);
  runtime::RunLimits limits;
  limits.terminate = &LoadScope::processEnds();
  // Asked every some milliseconds: weights that are packed are not held twice.
  limits.interrupted = [this] {
    forgetPages();
    return options.interrupted && options.interrupted();
  };
  if (MaybeError error =
          sardonyx::runInit(context, code->initEntry(), table,
                            artifact.persistentElementBytes, onDevice, limits))
    return error;
  for (OutputSlot &slot : context.outputs()) {
    if (slot.isOnDevice)
      deviceModel->persistent[persistent.size()] = std::move(slot.owner);
    persistent.push_back({slot.data, static_cast<uint32_t>(slot.elementBytes),
                          std::move(slot.sizes)});
  }
  context.outputs().clear(); // they live as long as their pool
  report.persistentBytes = persistentPool->bytesHeld();
  return std::nullopt;
}
