//===- Run.cpp - Runs of a session ----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownValues.h"
#include "Options.h"
#include "SessionImpl.h"
#include <chrono>
#include <cstring>

using namespace sardonyx;
using runtime::OutputSlot;
using runtime::RunContext;

/// A state that none of so many runs needed is given up, with its memory.
static constexpr uint64_t kIdleRuns = 32;

std::unique_ptr<RunState> Session::Impl::takeState() {
  {
    std::lock_guard<runtime::ForkSafeMutex> lock(idleMutex);
    if (!idle.empty()) {
      std::unique_ptr<RunState> state = std::move(idle.back());
      idle.pop_back();
      return state;
    }
  }
  auto state = std::make_unique<RunState>(threads, outputPool, budget,
                                          [this] { releaseMemory(); });
  state->table = makeTable(artifact.mainArgs);
  state->context.strings().setLiterals(literals);
  state->context.setCustomNodes(customNodes.get());
  state->handles.resize(artifact.inputs.size());
  for (const ValueInfo &info : artifact.outputs) {
    OutputSlot slot;
    slot.name = info.name;
    slot.elementBytes = storedBytesOf(info);
    state->context.outputs().push_back(std::move(slot));
  }
  return state;
}

void Session::Impl::putBack(std::unique_ptr<RunState> state) {
  outputPool->trim();
  std::vector<std::unique_ptr<RunState>> old; // destroyed without the lock
  std::lock_guard<runtime::ForkSafeMutex> lock(idleMutex);
  state->lastRun = ++runs;
  idle.push_back(std::move(state));
  auto end = std::find_if(idle.begin(), idle.end(), [&](const auto &state) {
    return state->lastRun + kIdleRuns > runs;
  });
  old.assign(std::make_move_iterator(idle.begin()),
             std::make_move_iterator(end));
  idle.erase(idle.begin(), end);
}

void Session::Impl::releaseMemory() {
  std::vector<std::unique_ptr<RunState>> old;
  {
    std::lock_guard<runtime::ForkSafeMutex> lock(idleMutex);
    old.swap(idle);
  }
  old.clear();
  outputPool->trimAll();
  if (variants)
    variants->forEach([](Session &variant) { variant.releaseMemory(); });
}

static Error wrongInput(const ValueInfo &info, const std::string &what) {
  return Error(ErrorKind::InvalidArgument, "input '" + info.name + "' " + what);
}

/// Whether inputs have the values that the code is made for.
static MaybeError
checkValues(const std::vector<ValueInfo> &infos,
            const std::vector<TensorRef> &inputs,
            const std::map<std::string, std::vector<int64_t>> &values) {
  if (values.empty())
    return std::nullopt;
  for (size_t i = 0; i < infos.size(); ++i) {
    auto known = values.find(infos[i].name);
    if (known != values.end() && valuesOf(inputs[i]) != known->second)
      return wrongInput(infos[i], "must have the values " +
                                      describeShape(known->second) +
                                      ", for which the code was made");
  }
  return std::nullopt;
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
    if (!info.items.empty()) {
      if (MaybeError error = checkList(info, tensor))
        return error;
      continue;
    }
    if (tensor.kind != ValueKind::Tensor)
      return wrongInput(info,
                        "has the type " + info.type + ", got " +
                            (tensor.kind == ValueKind::Sequence ? "a sequence"
                             : tensor.kind == ValueKind::Map    ? "a map"
                                                                : "nothing"));
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
  return checkValues(artifact.inputs, inputs, options.inputValues);
}

/// The addresses that a tensor of the caller takes; none where its shape is
/// none that a tensor can have.
struct Span {
  Span(const void *data, const std::vector<int64_t> &shape, ElementType type) {
    int64_t bytes = byteSizeOf(type);
    for (int64_t size : shape)
      if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
        bytes = 0;
    begin = reinterpret_cast<uintptr_t>(data);
    end = begin + static_cast<uintptr_t>(bytes);
  }
  bool overlaps(const Span &other) const {
    return begin < other.end && other.begin < end;
  }
  uintptr_t begin, end;
};

MaybeError
Session::Impl::checkMemory(const std::vector<OutputRef> &memory) const {
  if (!memory.empty() && memory.size() != artifact.outputs.size())
    return Error(ErrorKind::InvalidArgument,
                 "the model has " + std::to_string(artifact.outputs.size()) +
                     " outputs, got memory for " +
                     std::to_string(memory.size()));
  for (size_t i = 0; i < memory.size(); ++i) {
    if (!memory[i].data)
      continue;
    const ValueInfo &info = artifact.outputs[i];
    if (isHandled(info))
      return Error(ErrorKind::InvalidArgument,
                   "output '" + info.name + "' has the type " + info.type +
                       ", for which no memory can be given");
    if (memory[i].type != info.elementType)
      return Error(ErrorKind::InvalidArgument,
                   "output '" + info.name + "' has the element type " +
                       nameOf(info.elementType) + ", got memory for " +
                       nameOf(memory[i].type));
    Span span(memory[i].data, memory[i].shape, memory[i].type);
    for (size_t k = 0; k < i; ++k)
      if (memory[k].data &&
          span.overlaps({memory[k].data, memory[k].shape, memory[k].type}))
        return Error(ErrorKind::InvalidArgument,
                     "outputs '" + artifact.outputs[k].name + "' and '" +
                         info.name + "' were given memory that overlaps");
  }
  return std::nullopt;
}

void Session::Impl::setOutputs(RunContext &context,
                               const std::vector<TensorRef> &inputs,
                               const std::vector<OutputRef> &memory) const {
  for (size_t i = 0; i < artifact.outputs.size(); ++i) {
    OutputSlot &slot = context.outputs()[i];
    slot.given = false;
    slot.data = nullptr;
    slot.callerMemory = memory.empty() ? nullptr : memory[i].data;
    slot.copied = false;
    if (!slot.callerMemory)
      continue;
    slot.expected = memory[i].shape;
    // Kernels write to results while inputs are still to be read.
    Span span(memory[i].data, memory[i].shape, memory[i].type);
    for (const TensorRef &input : inputs)
      slot.copied |= span.overlaps({input.data, input.shape, input.type});
  }
}

Expected<std::vector<Tensor>>
Session::Impl::takeOutputs(RunContext &context, bool keepMemory) const {
  for (OutputSlot &slot : context.outputs())
    if (!slot.given)
      return Error(ErrorKind::Failed, "internal error: the compiled model "
                                      "gave no output '" +
                                          slot.name + "'");
  std::vector<Tensor> results(artifact.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    OutputSlot &slot = context.outputs()[i];
    Tensor &result = results[i];
    if (isHandled(artifact.outputs[i])) {
      auto value = decode(static_cast<const int64_t *>(slot.data), slot.sizes,
                          artifact.outputs[i], context);
      if (!value)
        return value.error();
      result = std::move(*value);
      continue;
    }
    result.type = artifact.outputs[i].elementType;
    result.shape = slot.sizes;
    if (slot.copied) {
      memcpy(slot.callerMemory, slot.data, result.bytes());
      context.releaseOutput(slot);
    }
    result.data = slot.callerMemory ? slot.callerMemory : slot.data;
    if (!slot.callerMemory)
      result.owner = std::shared_ptr<void>(
          slot.data, [pool = outputPool, keepMemory](void *data) {
            pool->release(data);
            if (!keepMemory)
              pool->trimAll();
          });
    slot.data = nullptr;
  }
  return results;
}

MaybeError
Session::Impl::setInputs(RunState &state,
                         const std::vector<TensorRef> &inputs) const {
  for (size_t i = 0; i < artifact.mainArgs.size(); ++i) {
    const Argument &arg = artifact.mainArgs[i];
    if (arg.kind != Argument::Input)
      continue;
    const TensorRef &tensor = inputs[arg.index];
    const ValueInfo &info = artifact.inputs[arg.index];
    const void *data = tensor.data;
    if (isHandled(info)) {
      auto handles = encode(tensor, info, state.context);
      if (!handles)
        return handles.error();
      state.handles[arg.index] = std::move(*handles);
      data = state.handles[arg.index].data();
    }
    state.table.set(i, data ? data : emptyTensor,
                    info.items.empty() ? tensor.shape : std::vector<int64_t>());
  }
  if (state.context.strings().isFull())
    return Error(ErrorKind::Failed, "out of memory: the strings of the inputs "
                                    "take more than the memory limit");
  return std::nullopt;
}

/// Some things can only be refused once their operands are known.
static Error failureOf(const RunContext &context) {
  switch (context.failureKind()) {
  case SDX_RT_INVALID_ARGUMENT:
    return Error(ErrorKind::InvalidArgument, context.failure());
  case SDX_RT_UNSUPPORTED:
    return Error(ErrorKind::Unsupported, context.failure());
  default:
    return Error(ErrorKind::Failed, context.failure());
  }
}

Expected<std::vector<Tensor>>
Session::Impl::runCode(const std::vector<TensorRef> &inputs,
                       const std::vector<OutputRef> &memory,
                       const RunOptions &options, bool &otherRank) {
  std::unique_ptr<RunState> state = takeState();
  RunContext &context = state->context;
  setOutputs(context, inputs, memory);
  if (MaybeError error = setInputs(*state, inputs)) {
    context.clearHandles();
    putBack(std::move(state));
    return *error;
  }
  runtime::RunLimits limits;
  limits.terminate = &options.terminate;
  limits.seconds = options.timeout;
  limits.trips = options.maxTripCount;
  limits.interrupted = options.interrupted;
  int64_t begin = this->options.profile ? sdx_rt_clock() : 0;
  bool ok = context.run(code->mainEntry(), state->table.pointers(), limits);
  if (ok && this->options.profile)
    profile.add(begin, sdx_rt_clock(), context.steps(),
                artifact.profileSites.size());
  Expected<std::vector<Tensor>> result =
      ok ? takeOutputs(context, !options.releaseMemory)
         : Expected<std::vector<Tensor>>(failureOf(context));
  otherRank = !ok && context.failureKind() == SDX_RT_OTHER_RANK;
  for (OutputSlot &slot : context.outputs())
    context.releaseOutput(slot); // handles, and those of a run that failed
  context.clearHandles();
  putBack(std::move(state));
  if (options.releaseMemory)
    releaseMemory();
  return result;
}

Expected<std::vector<Tensor>>
Session::Impl::runVariant(const std::vector<TensorRef> &inputs,
                          const std::vector<OutputRef> &memory,
                          const RunOptions &runOptions) {
  // What ends the run ends the compilation, too.
  auto deadline = std::chrono::steady_clock::now() +
                  std::chrono::duration<double>(runOptions.timeout);
  auto ended = [&] {
    return runOptions.terminate.load() ||
           (runOptions.interrupted && runOptions.interrupted()) ||
           (runOptions.timeout > 0 &&
            std::chrono::steady_clock::now() > deadline);
  };
  auto load = [&](std::shared_ptr<FileMap> model, const ModelSource &source,
                  const Variants::Known &known) {
    SessionOptions variant = options;
    for (const auto &[name, shape] : known.shapes)
      variant.inputShapes[name] = shape;
    for (const auto &[name, values] : known.values)
      variant.inputValues[name] = values;
    variant.interrupted = ended;
    auto loaded = Impl::load(std::move(model), source, variant, this);
    if (loaded)
      (*loaded)->impl->options.interrupted = nullptr;
    return loaded;
  };
  auto variant = variants->findOrLoad(inputs, load);
  // A model that was sound before is not broken: these inputs do not fit it.
  if (!variant && variant.error().kind() == ErrorKind::InvalidModel)
    return Error(ErrorKind::InvalidArgument, variant.error().message());
  if (!variant)
    return variant.error();
  return (*variant)->run(inputs, memory, runOptions);
}

Expected<std::vector<Tensor>> Session::run(const std::vector<TensorRef> &inputs,
                                           const std::vector<OutputRef> &memory,
                                           const RunOptions &options) {
  // The session may be given up while it runs.
  std::shared_ptr<Impl> session = impl;
  if (MaybeError error = checkOptions(options))
    return *error;
  if (MaybeError error = session->checkInputs(inputs))
    return *error;
  if (MaybeError error = session->checkMemory(memory))
    return *error;
  bool otherRank = false;
  if (!session->variants)
    return session->runCode(inputs, memory, options, otherRank);
  if (auto variant = session->variants->find(inputs))
    return variant->run(inputs, memory, options);
  if (!session->artifact.deferred) {
    auto result = session->runCode(inputs, memory, options, otherRank);
    if (!otherRank)
      return result;
  }
  return session->runVariant(inputs, memory, options);
}
