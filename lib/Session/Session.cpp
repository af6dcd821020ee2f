//===- Session.cpp - A model ready to run ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/Session.h"
#include "Artifact.h"
#include "Cache.h"
#include "Compiler.h"
#include "FileMap.h"
#include "Linker.h"
#include "sardonyx/Runtime/RunContext.h"
#include "sardonyx/Runtime/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace sardonyx;
using runtime::BufferPool;
using runtime::OutputSlot;
using runtime::RunContext;

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

namespace {

/// Stands for the memory of a tensor without elements.
alignas(64) char emptyTensor[64];

/// Descriptors {data, sizes...} and pointers to them, as entry points take.
class ArgumentTable {
public:
  /// Adds a descriptor and gives its place.
  size_t add(const void *data, const std::vector<int64_t> &shape) {
    places.push_back(words.size());
    words.push_back(0);
    words.insert(words.end(), shape.begin(), shape.end());
    set(places.size() - 1, data, shape);
    return places.size() - 1;
  }
  void set(size_t place, const void *data, const std::vector<int64_t> &shape) {
    int64_t *word = &words[places[place]];
    *word++ = reinterpret_cast<int64_t>(data);
    std::copy(shape.begin(), shape.end(), word);
  }
  /// Valid until the next add().
  void **pointers() {
    args.clear();
    for (size_t place : places)
      args.push_back(&words[place]);
    return args.data();
  }

private:
  std::vector<size_t> places;
  std::vector<int64_t> words;
  std::vector<void *> args;
};

/// What one run needs; kept for the next.
struct RunState {
  RunState(unsigned threads, std::shared_ptr<BufferPool> pool)
      : context(threads, std::move(pool)) {}
  RunContext context;
  ArgumentTable table;
};

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

struct Session::Impl {
  SessionOptions options;
  unsigned threads = 1;
  Artifact artifact;
  LoadReport report;
  std::unique_ptr<LinkedCode> code;
  /// By index of Artifact::files; null once nothing needs the file.
  std::vector<std::shared_ptr<FileMap>> files;
  std::shared_ptr<BufferPool> persistentPool = std::make_shared<BufferPool>();
  std::vector<OutputSlot> persistent;
  std::shared_ptr<BufferPool> outputPool = std::make_shared<BufferPool>();

  /// For each dimension of each input, the number of its symbol or -1.
  std::vector<std::vector<int>> symbolOf;
  std::vector<std::string> symbols;

  std::mutex idleMutex;
  std::vector<std::unique_ptr<RunState>> idle;

  static Expected<std::shared_ptr<Session>> load(std::shared_ptr<FileMap> model,
                                                 ModelSource source,
                                                 const SessionOptions &options);
  MaybeError prepare(std::shared_ptr<FileMap> model);
  MaybeError mapFiles(std::shared_ptr<FileMap> model);
  MaybeError runInit();
  void indexSymbols();
  const void *constantData(const Argument &arg) const;
  ArgumentTable makeTable(const std::vector<Argument> &args) const;

  std::unique_ptr<RunState> takeState();
  MaybeError checkInputs(const std::vector<TensorRef> &inputs) const;
  MaybeError setOutputs(RunContext &context,
                        const std::vector<OutputRef> &memory) const;
  Expected<std::vector<Tensor>> takeOutputs(RunContext &context) const;
};

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
Session::Impl::load(std::shared_ptr<FileMap> model, ModelSource source,
                    const SessionOptions &options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  if (!source.bytes && options.externalDataDir.empty())
    impl->options.externalDataDir = folderOf(source.path);
  impl->threads = options.intraOpThreads
                      ? options.intraOpThreads
                      : runtime::ThreadPool::global().defaultThreads();

  impl->report.threads = impl->threads;

  Stopwatch watch;
  Cache cache(options);
  std::string key;
  std::optional<Artifact> found;
  if (cache.enabled()) {
    key = cache.keyOf(model->bytes(), impl->options);
    found = cache.load(key);
    impl->report.timings.push_back({"cache", watch.seconds()});
  }
  if (found) {
    impl->report.fromCache = true;
    impl->artifact = std::move(*found);
  } else {
    auto compiled = compileModel(source, impl->options, impl->report.timings);
    if (!compiled)
      return compiled.error();
    impl->artifact = std::move(*compiled);
    watch.seconds();
    if (cache.enabled()) {
      cache.store(key, impl->artifact);
      impl->report.timings.push_back({"store", watch.seconds()});
    }
  }
  if (MaybeError error = impl->prepare(std::move(model)))
    return *error;
  return std::shared_ptr<Session>(new Session(std::move(impl)));
}

MaybeError Session::Impl::prepare(std::shared_ptr<FileMap> model) {
  for (const auto *infos : {&artifact.inputs, &artifact.outputs})
    for (const ValueInfo &info : *infos)
      if (byteSizeOf(info.elementType) == 0)
        return Error(ErrorKind::Unsupported, "'" + info.name +
                                                 "' has the type " + info.type +
                                                 ", which is not supported");
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
    if (MaybeError error = runInit())
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
  for (size_t i = 0; i < files.size(); ++i)
    if (!used[i])
      files[i] = nullptr;
  if (!dataUsed)
    artifact.data = {};
  indexSymbols();
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
    case Argument::Persistent: {
      const OutputSlot &slot = persistent[arg.index];
      table.add(slot.data, slot.sizes);
      break;
    }
    }
  return table;
}

MaybeError Session::Impl::runInit() {
  RunContext context(threads, persistentPool);
  for (size_t i = 0; i < artifact.persistentElementBytes.size(); ++i) {
    OutputSlot slot;
    slot.name = "persistent " + std::to_string(i);
    slot.elementBytes = artifact.persistentElementBytes[i];
    context.outputs().push_back(std::move(slot));
  }
  ArgumentTable table = makeTable(artifact.initArgs);
  if (!context.run(code->initEntry(), table.pointers()))
    return Error(ErrorKind::Failed,
                 "preparing the weights failed: " + context.failure());
  for (OutputSlot &slot : context.outputs())
    if (!slot.given)
      return Error(ErrorKind::Failed,
                   "internal error: sdx_init gave no " + slot.name);
  persistent = std::move(context.outputs());
  context.outputs().clear(); // they live as long as their pool
  report.persistentBytes = persistentPool->bytesHeld();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

std::unique_ptr<RunState> Session::Impl::takeState() {
  {
    std::lock_guard<std::mutex> lock(idleMutex);
    if (!idle.empty()) {
      std::unique_ptr<RunState> state = std::move(idle.back());
      idle.pop_back();
      return state;
    }
  }
  auto state = std::make_unique<RunState>(threads, outputPool);
  state->table = makeTable(artifact.mainArgs);
  for (const ValueInfo &info : artifact.outputs) {
    OutputSlot slot;
    slot.name = info.name;
    slot.elementBytes = byteSizeOf(info.elementType);
    state->context.outputs().push_back(std::move(slot));
  }
  return state;
}

static Error wrongInput(const ValueInfo &info, const std::string &what) {
  return Error(ErrorKind::InvalidArgument, "input '" + info.name + "' " + what);
}

MaybeError
Session::Impl::checkInputs(const std::vector<TensorRef> &inputs) const {
  if (inputs.size() != artifact.inputs.size())
    return Error(ErrorKind::InvalidArgument,
                 "the model has " + std::to_string(artifact.inputs.size()) +
                     " inputs, got " + std::to_string(inputs.size()));
  // Who fixed the size of each symbol: (input, dimension).
  struct Fixed {
    int64_t size = -1;
    size_t input = 0, dim = 0;
  };
  std::vector<Fixed> sizes(symbols.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo &info = artifact.inputs[i];
    const TensorRef &tensor = inputs[i];
    if (tensor.type != info.elementType)
      return wrongInput(info, std::string("has the element type ") +
                                  nameOf(info.elementType) + ", got " +
                                  nameOf(tensor.type));
    bool empty = false;
    for (int64_t size : tensor.shape) {
      if (size < 0)
        return wrongInput(info, "was given a negative size, " +
                                    describeShape(tensor.shape));
      empty |= size == 0;
    }
    if (!tensor.data && !empty)
      return wrongInput(info, "was given no data");
    if (!info.hasRank)
      continue;
    if (tensor.shape.size() != info.dims.size())
      return wrongInput(info, "has the shape " + describeShape(info.dims) +
                                  " of " + std::to_string(info.dims.size()) +
                                  " dimensions, got " +
                                  describeShape(tensor.shape));
    for (size_t d = 0; d < info.dims.size(); ++d) {
      int64_t size = tensor.shape[d];
      if (info.dims[d].isStatic()) {
        if (size != info.dims[d].size)
          return wrongInput(info, "has the shape " + describeShape(info.dims) +
                                      ": dimension " + std::to_string(d) +
                                      " must be " +
                                      std::to_string(info.dims[d].size) +
                                      ", got " + std::to_string(size));
        continue;
      }
      int symbol = symbolOf[i][d];
      if (symbol < 0)
        continue;
      Fixed &fixed = sizes[symbol];
      if (fixed.size < 0)
        fixed = {size, i, d};
      else if (fixed.size != size)
        return wrongInput(info, "has the shape " + describeShape(info.dims) +
                                    ": dimension " + std::to_string(d) + " ('" +
                                    symbols[symbol] + "') is " +
                                    std::to_string(size) + ", but dimension " +
                                    std::to_string(fixed.dim) + " of input '" +
                                    artifact.inputs[fixed.input].name +
                                    "' made it " + std::to_string(fixed.size));
    }
  }
  return std::nullopt;
}

MaybeError
Session::Impl::setOutputs(RunContext &context,
                          const std::vector<OutputRef> &memory) const {
  if (!memory.empty() && memory.size() != artifact.outputs.size())
    return Error(ErrorKind::InvalidArgument,
                 "the model has " + std::to_string(artifact.outputs.size()) +
                     " outputs, got memory for " +
                     std::to_string(memory.size()));
  for (size_t i = 0; i < artifact.outputs.size(); ++i) {
    OutputSlot &slot = context.outputs()[i];
    slot.given = false;
    slot.data = nullptr;
    slot.callerMemory = !memory.empty() && memory[i].data;
    if (!slot.callerMemory)
      continue;
    if (memory[i].type != artifact.outputs[i].elementType)
      return Error(ErrorKind::InvalidArgument,
                   "output '" + slot.name + "' has the element type " +
                       nameOf(artifact.outputs[i].elementType) +
                       ", got memory for " + nameOf(memory[i].type));
    slot.data = memory[i].data;
    slot.expected = memory[i].shape;
  }
  return std::nullopt;
}

Expected<std::vector<Tensor>>
Session::Impl::takeOutputs(RunContext &context) const {
  std::vector<Tensor> results(artifact.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    OutputSlot &slot = context.outputs()[i];
    if (!slot.given)
      return Error(ErrorKind::Failed, "internal error: the compiled model "
                                      "gave no output '" +
                                          slot.name + "'");
    results[i].type = artifact.outputs[i].elementType;
    results[i].shape = slot.sizes;
    results[i].data = slot.data;
    if (!slot.callerMemory)
      results[i].owner = std::shared_ptr<void>(
          slot.data, [pool = outputPool](void *data) { pool->release(data); });
    slot.data = nullptr;
  }
  return results;
}

/// Some things can only be refused once their operands are known.
static Error runFailure(const std::string &message) {
  bool refused = message.find("not supported") != std::string::npos;
  return Error(refused ? ErrorKind::Unsupported : ErrorKind::Failed, message);
}

Expected<std::vector<Tensor>>
Session::run(const std::vector<TensorRef> &inputs,
             const std::vector<OutputRef> &memory) {
  if (MaybeError error = impl->checkInputs(inputs))
    return *error;
  std::unique_ptr<RunState> state = impl->takeState();
  RunContext &context = state->context;
  if (MaybeError error = impl->setOutputs(context, memory))
    return *error;
  for (size_t i = 0; i < impl->artifact.mainArgs.size(); ++i) {
    const Argument &arg = impl->artifact.mainArgs[i];
    if (arg.kind != Argument::Input)
      continue;
    const TensorRef &tensor = inputs[arg.index];
    state->table.set(i, tensor.data ? tensor.data : emptyTensor, tensor.shape);
  }
  bool ok = context.run(impl->code->mainEntry(), state->table.pointers());
  Expected<std::vector<Tensor>> result =
      ok ? impl->takeOutputs(context)
         : Expected<std::vector<Tensor>>(runFailure(context.failure()));
  if (!result)
    for (OutputSlot &slot : context.outputs())
      if (slot.data && !slot.callerMemory)
        impl->outputPool->release(slot.data);
  for (OutputSlot &slot : context.outputs())
    slot.data = nullptr;
  impl->outputPool->trim();
  std::lock_guard<std::mutex> lock(impl->idleMutex);
  impl->idle.push_back(std::move(state));
  return result;
}

Session::Session(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
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
