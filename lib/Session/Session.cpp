//===- Session.cpp - A model ready to run ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/Session.h"
#include "CompileStoppably.h"
#include "Options.h"
#include "SessionImpl.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include "sardonyx/Target/Target.h"

#include <chrono>
#include <cstdlib>

using namespace sardonyx;
using runtime::BufferPool;
using runtime::OutputSlot;
using runtime::RunContext;

alignas(64) char sardonyx::emptyTensor[64];

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

namespace {

class Stopwatch {
public:
  double seconds() {
    auto now = std::chrono::steady_clock::now();
    double result = std::chrono::duration<double>(now - start).count();
    start = now;
    return result;
  }

private:
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

} // namespace

Session::Impl::Impl(const SessionOptions &given,
                    std::shared_ptr<runtime::MemoryBudget> shared)
    : options(given), budget(std::move(shared)) {
  threads = options.intraOpThreads
                ? options.intraOpThreads
                : runtime::ThreadPool::global().defaultThreads();
  if (!budget)
    budget = std::make_shared<runtime::MemoryBudget>(
        options.memoryLimit ? options.memoryLimit : runtime::machineMemory());
  persistentPool = std::make_shared<BufferPool>(budget);
  outputPool = std::make_shared<BufferPool>(budget);
}

Session::Impl::~Impl() {
  if (packed)
    budget->give(report.persistentBytes);
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<Session>>
Session::load(const std::string &path, const SessionOptions &options) {
  auto model = FileMap::open(path);
  if (!model)
    return model.error();
  ModelSource source;
  source.path = path;
  return Impl::load(*model, source, options);
}

Expected<std::shared_ptr<Session>>
Session::loadBytes(const void *data, size_t size,
                   const SessionOptions &options) {
  ModelSource source;
  source.bytes = data ? data : "";
  source.size = data ? size : 0;
  return Impl::load(FileMap::borrow(source.bytes, source.size), source,
                    options);
}

/// The folder of a file, in one spelling however the file was named.
static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "."
                       : slash == 0               ? "/"
                                                  : path.substr(0, slash);
  char *real = realpath(folder.c_str(), nullptr);
  if (!real)
    return folder;
  folder = real;
  free(real);
  return folder;
}

Expected<std::shared_ptr<Session>>
Session::Impl::load(std::shared_ptr<FileMap> model, const ModelSource &source,
                    const SessionOptions &options, const Impl *whole) {
  if (MaybeError error = checkOptions(options))
    return *error;
  LoadScope loading;
  if (loading.error())
    return *loading.error();
  auto impl = std::make_shared<Impl>(options, whole ? whole->budget : nullptr);
  if (!source.bytes && options.externalDataDir.empty())
    impl->options.externalDataDir = folderOf(source.path);
  impl->report.threads = impl->threads;

  Stopwatch watch;
  Cache cache(options);
  if (!cache.problem().empty() && !options.cacheDir.empty())
    return Error(ErrorKind::InvalidArgument, cache.problem());
  impl->report.cacheProblem = cache.problem();
  std::string key;
  std::optional<Artifact> found;
  if (cache.enabled()) {
    key = cache.keyOf(*model, impl->options);
    found = cache.load(key);
    // The model itself may have been stored without code under the same key.
    if (whole && found && found->deferred)
      found.reset();
    if (found) {
      auto fits = impl->findCustomOps(*found);
      if (!fits)
        return fits.error();
      if (!*fits)
        found.reset();
    }
    impl->report.timings.push_back({"cache", watch.seconds()});
  }
  if (found) {
    impl->report.fromCache = true;
    impl->artifact = std::move(*found);
  } else {
    auto compiled =
        compileStoppably(source, impl->options, impl->report.timings,
                         /*mayDefer=*/!whole);
    if (!compiled)
      return compiled.error();
    impl->artifact = std::move(*compiled);
    runtime::returnFreeMemory(); // the compiler's is no session's
    watch.seconds();
    auto fits = impl->findCustomOps(impl->artifact);
    if (!fits)
      return fits.error();
    if (!*fits)
      return Error(ErrorKind::Failed,
                   "a custom operator's shape function says another thing "
                   "each time it is asked");
    if (cache.enabled()) {
      cache.store(key, impl->artifact);
      impl->report.timings.push_back({"store", watch.seconds()});
    }
  }
  const Artifact &artifact = impl->artifact;
  if (!whole && (artifact.deferred ||
                 (artifact.assumesRank && leavesRanksOpen(artifact.inputs))))
    impl->variants =
        std::make_unique<Variants>(*model, source, artifact.inputs);
  if (MaybeError error = impl->prepare(std::move(model), cache, key))
    return *error;
  return std::shared_ptr<Session>(new Session(std::move(impl)));
}

Expected<bool> Session::Impl::findCustomOps(const Artifact &found) {
  if (found.customCalls.empty())
    return true;
  auto nodes = CustomNodes::resolve(found.customCalls, options.customOps.get());
  if (!nodes)
    return nodes.error();
  customNodes = std::move(*nodes);
  return customNodes != nullptr;
}

MaybeError Session::Impl::prepare(std::shared_ptr<FileMap> model,
                                  const Cache &cache, const std::string &key) {
  for (const auto *infos : {&artifact.inputs, &artifact.outputs})
    for (const ValueInfo &info : *infos)
      if (byteSizeOf(info.innerType()) == 0)
        return Error(ErrorKind::Unsupported, "'" + info.name +
                                                 "' has the type " + info.type +
                                                 ", which is not supported");
  indexSymbols();
  if (artifact.deferred)
    return std::nullopt;
  literals = std::make_shared<runtime::StringLiterals>(artifact.strings);
  (void)requestTileRegisters(); // code from the cache may use them
  Stopwatch watch;
  bool needsInit =
      !artifact.initArgs.empty() || !artifact.persistentElementBytes.empty();
  auto linked = LinkedCode::link(artifact.objects, needsInit, options.perfMap);
  if (!linked)
    return linked.error();
  code = std::move(*linked);
  for (std::string &object : artifact.objects)
    report.codeBytes += object.size();
  artifact.objects = {};
  report.timings.push_back({"link", watch.seconds()});

  if (MaybeError error = mapFiles(std::move(model)))
    return error;
  if (needsInit) {
    if (MaybeError error = packWeights(cache, key))
      return error;
    report.timings.push_back({"init", watch.seconds()});
  }
  // Pages of weights that were packed are of no more use.
  std::vector<bool> used(files.size());
  bool dataUsed = false;
  for (const Argument &arg : artifact.mainArgs)
    if (arg.kind == Argument::Constant) {
      if (arg.index == Argument::inlineData)
        dataUsed = true;
      else
        used[arg.index] = true;
    }
  forgetPages();
  for (size_t i = 0; i < files.size(); ++i)
    if (!used[i])
      files[i] = nullptr;
  if (!dataUsed)
    artifact.data = {};
  return std::nullopt;
}

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

void Session::Impl::indexSymbols() {
  for (const ValueInfo &info : artifact.inputs) {
    std::vector<int> numbers;
    for (const Dim &dim : info.dims) {
      int number = -1;
      if (!dim.isStatic() && !dim.symbol.empty()) {
        auto it = std::find(symbols.begin(), symbols.end(), dim.symbol);
        number = static_cast<int>(it - symbols.begin());
        if (it == symbols.end())
          symbols.push_back(dim.symbol);
      }
      numbers.push_back(number);
    }
    symbolOf.push_back(std::move(numbers));
  }
}

const void *Session::Impl::constantData(const Argument &arg) const {
  if (arg.length == 0)
    return emptyTensor;
  if (arg.index == Argument::inlineData)
    return artifact.data.data() + arg.offset;
  return files[arg.index]->bytes().data() + arg.offset;
}

ArgumentTable
Session::Impl::makeTable(const std::vector<Argument> &args) const {
  ArgumentTable table;
  for (const Argument &arg : args)
    switch (arg.kind) {
    case Argument::Input:
      // Filled in by each run; an input of unknown rank has none here.
      table.add(emptyTensor,
                std::vector<int64_t>(artifact.inputs[arg.index].dims.size()));
      break;
    case Argument::Constant:
      table.add(constantData(arg), arg.shape);
      break;
    case Argument::Persistent:
      table.add(persistent[arg.index].data, persistent[arg.index].sizes);
      break;
    }
  return table;
}

void Session::Impl::forgetPages() const {
  for (const std::shared_ptr<FileMap> &file : files)
    file->forgetPages();
}

bool Session::Impl::share(std::shared_ptr<const PackedWeights> weights) {
  if (!weights)
    return false;
  const auto bytes = static_cast<int64_t>(weights->file->bytes().size());
  if (!budget->take(bytes))
    return false;
  persistentPool->releaseAll();
  persistentPool->trimAll();
  packed = std::move(weights);
  persistent = packed->tensors;
  packed->file->fetchPages();
  report.persistentBytes = bytes;
  return true;
}

MaybeError Session::Impl::packWeights(const Cache &cache,
                                      const std::string &key) {
  // Weights of an artifact that had to be made again are old.
  if (report.fromCache && share(cache.loadWeights(key, artifact)))
    return std::nullopt;
  if (MaybeError error = runInit())
    return error;
  (void)share(cache.storeWeights(key, artifact, persistent));
  return std::nullopt;
}

MaybeError Session::Impl::runInit() {
  RunContext context(threads, persistentPool, budget);
  for (size_t i = 0; i < artifact.persistentElementBytes.size(); ++i) {
    OutputSlot slot;
    slot.name = "persistent " + std::to_string(i);
    slot.elementBytes = artifact.persistentElementBytes[i];
    context.outputs().push_back(std::move(slot));
  }
  ArgumentTable table = makeTable(artifact.initArgs);
  runtime::RunLimits limits;
  limits.terminate = &LoadScope::processEnds();
  // Asked every some milliseconds: weights that are packed are not held twice.
  limits.interrupted = [this] {
    forgetPages();
    return options.interrupted && options.interrupted();
  };
  if (!context.run(code->initEntry(), table.pointers(), limits))
    return Error(ErrorKind::Failed,
                 "preparing the weights failed: " + context.failure());
  for (OutputSlot &slot : context.outputs()) {
    if (!slot.given)
      return Error(ErrorKind::Failed,
                   "internal error: sdx_init gave no " + slot.name);
    persistent.push_back({slot.data, static_cast<uint32_t>(slot.elementBytes),
                          std::move(slot.sizes)});
  }
  context.outputs().clear(); // they live as long as their pool
  report.persistentBytes = persistentPool->bytesHeld();
  return std::nullopt;
}

Session::Session(std::shared_ptr<Impl> impl) : impl(std::move(impl)) {}
Session::~Session() = default;

const std::vector<ValueInfo> &Session::inputs() const {
  return impl->artifact.inputs;
}
const std::vector<ValueInfo> &Session::outputs() const {
  return impl->artifact.outputs;
}
const ModelMetadata &Session::metadata() const {
  return impl->artifact.metadata;
}
const LoadReport &Session::report() const { return impl->report; }
const SessionOptions &Session::options() const { return impl->options; }
int64_t Session::bytesHeld() const { return impl->budget->bytesHeld(); }
void Session::releaseMemory() { impl->releaseMemory(); }

Profile Session::takeProfile() {
  Profile profile;
  impl->profile.moveTo(profile, impl->artifact.profileSites);
  if (impl->variants)
    impl->variants->forEach([&](Session &variant) {
      variant.impl->profile.moveTo(profile,
                                   variant.impl->artifact.profileSites);
    });
  return profile;
}
