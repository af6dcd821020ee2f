//===- CompileAhead.cpp - Models as code and weights ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/CompileAhead.h"
#include "lib/Session/Compile/CompileStoppably.h"
#include "lib/Session/Compile/Compiler.h"
#include "lib/Session/Compile/Linker.h"
#include "lib/Session/Compile/Options.h"
#include "lib/Session/Compile/Signature.h"
#include "sardonyx/Model/FileMap.h"
#include "sardonyx/Model/Init.h"
#include "sardonyx/Model/Model.h"
#include "sardonyx/Objects/Objects.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include "llvm/Support/xxhash.h"

using namespace sardonyx;
using runtime::BufferPool;
using runtime::OutputSlot;

static constexpr uint64_t kAlignment = 64;

uint64_t WeightPool::add(std::string_view bytes,
                         std::shared_ptr<const void> owner) {
  const uint64_t hash = llvm::xxh3_64bits(llvm::ArrayRef<uint8_t>(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  for (auto [it, last] = byHash.equal_range(hash); it != last; ++it)
    if (all[it->second].bytes == bytes)
      return places[it->second];
  const uint64_t begin = (end + kAlignment - 1) / kAlignment * kAlignment;
  byHash.emplace(hash, all.size());
  all.push_back({begin - end, bytes});
  places.push_back(begin);
  owners.push_back(std::move(owner));
  end = begin + bytes.size();
  return begin;
}

namespace {

/// The constants of a model that was compiled, and what `sdx_init` makes of
/// them.
class Weights {
public:
  explicit Weights(const Artifact &artifact) : artifact(artifact) {}

  MaybeError open(const ModelSource &model);
  /// Runs `sdx_init` of these objects.
  MaybeError pack(const std::vector<std::string> &objects, unsigned threads);

  /// Puts what an argument stands for into the pool, but for what `sdx_init`
  /// has yet to make.
  Argument place(const Argument &arg, WeightPool &pool) const;

private:
  struct Packed {
    std::string_view bytes;
    std::vector<int64_t> shape;
  };
  std::string_view bytesOf(const Argument &arg) const;

  const Artifact &artifact;
  std::vector<std::shared_ptr<FileMap>> files;
  std::shared_ptr<std::string> data;
  std::shared_ptr<BufferPool> memory;
  std::vector<Packed> packed;
};

} // namespace

MaybeError Weights::open(const ModelSource &model) {
  data = std::make_shared<std::string>(artifact.data);
  for (const SourceFile &source : artifact.files) {
    if (source.path.empty() && model.bytes) {
      files.push_back(FileMap::borrow(model.bytes, model.size));
      continue;
    }
    auto file = FileMap::open(source.path.empty() ? model.path : source.path);
    if (!file)
      return file.error();
    if ((*file)->bytes().size() != source.size ||
        (*file)->modified() != source.modified)
      return Error(ErrorKind::Failed, "'" + (*file)->path() +
                                          "' has changed while the model was "
                                          "compiled");
    files.push_back(*file);
  }
  return std::nullopt;
}

std::string_view Weights::bytesOf(const Argument &arg) const {
  std::string_view all = arg.index == Argument::inlineData
                             ? std::string_view(*data)
                             : files[arg.index]->bytes();
  return all.substr(arg.offset, arg.length);
}

MaybeError Weights::pack(const std::vector<std::string> &objects,
                         unsigned threads) {
  if (objects.empty())
    return std::nullopt;
  auto code = LinkedCode::link(objects, /*needsMain=*/false,
                               /*needsInit=*/true, /*perfMap=*/false);
  if (!code)
    return code.error();
  memory = std::make_shared<BufferPool>(/*budget=*/nullptr,
                                        BufferPool::Sizes::Exact);
  runtime::RunContext context(threads, memory);
  ArgumentTable table;
  for (const Argument &arg : artifact.initArgs) {
    std::string_view bytes = bytesOf(arg);
    table.add(bytes.empty() ? emptyTensor : bytes.data(), arg.shape);
  }
  runtime::RunLimits limits;
  limits.terminate = &LoadScope::processEnds();
  if (MaybeError error =
          runInit(context, (*code)->initEntry(), table,
                  artifact.persistentElementBytes, /*onDevice=*/{}, limits))
    return error;
  for (OutputSlot &slot : context.outputs()) {
    uint64_t bytes = slot.elementBytes;
    for (int64_t size : slot.sizes)
      bytes *= static_cast<uint64_t>(size);
    packed.push_back(
        {{static_cast<const char *>(slot.data), bytes}, slot.sizes});
  }
  context.outputs().clear(); // they live as long as their pool
  return std::nullopt;
}

Argument Weights::place(const Argument &arg, WeightPool &pool) const {
  if (arg.kind == Argument::Input ||
      (arg.kind == Argument::Persistent && packed.empty()))
    return arg;
  Argument placed;
  placed.kind = Argument::Constant;
  placed.index = Argument::weights;
  placed.onDevice = arg.onDevice;
  std::string_view bytes;
  std::shared_ptr<const void> owner;
  if (arg.kind == Argument::Persistent) {
    bytes = packed[arg.index].bytes;
    owner = memory;
    placed.shape = packed[arg.index].shape;
  } else {
    bytes = bytesOf(arg);
    owner = data;
    if (arg.index != Argument::inlineData)
      owner = files[arg.index];
    placed.shape = arg.shape;
  }
  placed.length = bytes.size();
  placed.offset = bytes.empty() ? 0 : pool.add(bytes, std::move(owner));
  return placed;
}

/// What keeps a compiled model from being built ahead of time.
static MaybeError checkClosed(const Artifact &artifact) {
  if (artifact.customCalls.empty())
    return std::nullopt;
  const CustomNode &node = artifact.customCalls[0].node;
  return Error(ErrorKind::Unsupported,
               "the model cannot be built ahead of time: its operator '" +
                   node.opType + "' of the domain '" + node.domain +
                   "' is called in runs, and only a session has it");
}

Expected<AheadCode> sardonyx::compileAhead(const ModelSource &model,
                                           const SessionOptions &options,
                                           const std::string &prefix,
                                           WeightPool &weights,
                                           std::vector<Timing> &timings) {
  if (MaybeError error = checkOptions(options))
    return *error;
  if (!options.observe.empty())
    return Error(ErrorKind::InvalidArgument,
                 "tensors are observed by sessions, not by what is built ahead "
                 "of time");
  LoadScope loading;
  if (loading.error())
    return *loading.error();
  auto features = featuresOf(options);
  if (!features)
    return features.error();
  AheadCode code;
  code.processor = resolveTarget(targetOf(options)).cpu;
  code.features = *features;
  AheadOfTime ahead;
  ahead.prefix = prefix;
  auto compiled = compileStoppably(model, options, timings,
                                   /*mayDefer=*/false, &ahead);
  if (!compiled)
    return compiled.error();
  if (MaybeError error = checkClosed(*compiled))
    return *error;
  Weights constants(*compiled);
  if (MaybeError error = constants.open(model))
    return *error;
  unsigned threads = options.intraOpThreads
                         ? options.intraOpThreads
                         : runtime::ThreadPool::global().defaultThreads();
  if (MaybeError error = constants.pack(ahead.initObjects, threads))
    return *error;
  code.files = pathsOf(compiled->files);
  code.objects = std::move(compiled->objects);
  Artifact &description = code.description;
  description.inputs = std::move(compiled->inputs);
  description.outputs = std::move(compiled->outputs);
  description.metadata = std::move(compiled->metadata);
  description.assumesRank = compiled->assumesRank;
  description.strings = std::move(compiled->strings);
  for (const Argument &arg : compiled->mainArgs)
    description.mainArgs.push_back(constants.place(arg, weights));
  code.isForDevice = options.device.cuda;
  if (code.isForDevice) {
    for (const Argument &arg : compiled->initArgs)
      description.initArgs.push_back(constants.place(arg, weights));
    description.persistentElementBytes =
        std::move(compiled->persistentElementBytes);
    description.images = std::move(compiled->images);
    code.hasInit = !description.initArgs.empty() ||
                   !description.persistentElementBytes.empty();
  }
  description.weightsBytes = weights.size();
  return code;
}
