//===- Model.cpp - Runs of compiled code ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Model.h"
#include "Handles.h"
#include "ModelState.h"
#include "sardonyx/DimNames.h"
#include <algorithm>
#include <cstring>

using namespace sardonyx;
using runtime::OutputSlot;
using runtime::RunContext;

alignas(64) char sardonyx::emptyTensor[64];

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

size_t ArgumentTable::add(const void *data, const std::vector<int64_t> &shape) {
  places.push_back(words.size());
  words.push_back(0);
  words.insert(words.end(), shape.begin(), shape.end());
  set(places.size() - 1, data, shape);
  return places.size() - 1;
}

void ArgumentTable::set(size_t place, const void *data,
                        const std::vector<int64_t> &shape) {
  int64_t *word = &words[places[place]];
  *word++ = reinterpret_cast<int64_t>(data);
  std::copy(shape.begin(), shape.end(), word);
}

void **ArgumentTable::pointers() {
  args.clear();
  for (size_t place : places)
    args.push_back(&words[place]);
  return args.data();
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

Model::Model(const std::vector<ValueInfo> &inputs,
             const std::vector<ValueInfo> &outputs, unsigned threads,
             std::shared_ptr<runtime::MemoryBudget> budget)
    : inputInfos(inputs), outputInfos(outputs), threads(threads),
      budget(std::move(budget)),
      outputPool(std::make_shared<runtime::BufferPool>(this->budget)),
      reclaim([this] { releaseMemory(); }) {
  indexSymbols();
}

Model::~Model() = default;

/// A state that none of so many runs needed is given up, with its memory.
static constexpr uint64_t kIdleRuns = 32;

void Model::indexSymbols() {
  for (const ValueInfo &info : inputInfos) {
    std::vector<int> numbers;
    for (const Dim &dim : info.dims) {
      int number = -1;
      if (!dim.isStatic() && isNameOfSize(dim.symbol)) {
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

std::unique_ptr<Model::State> Model::takeState() {
  {
    std::lock_guard<runtime::ForkSafeMutex> lock(idleMutex);
    if (!idle.empty()) {
      std::unique_ptr<State> state = std::move(idle.back());
      idle.pop_back();
      return state;
    }
  }
  auto state = std::make_unique<State>(threads, outputPool, budget, reclaim);
  // Inputs are filled in by each run; one of unknown rank has none here.
  for (const ModelArgument &arg : code.arguments)
    state->table.add(arg.input ? emptyTensor : arg.data, arg.shape);
  state->context.strings().setLiterals(code.literals);
  state->context.setCustomNodes(code.customNodes.get());
  if (code.device)
    state->context.setDevice(code.device->makeRun());
  if (makeObservations)
    state->context.setObservations(takeObservations());
  state->handles.resize(inputInfos.size());
  for (const ValueInfo &info : outputInfos) {
    OutputSlot slot;
    slot.name = info.name;
    slot.elementBytes = storedBytesOf(info);
    state->context.outputs().push_back(std::move(slot));
  }
  return state;
}

std::shared_ptr<runtime::Observations> Model::takeObservations() {
  std::lock_guard<runtime::ForkSafeMutex> lock(idleMutex);
  for (const auto &one : observed)
    if (one.use_count() == 1)
      return one;
  observed.push_back(makeObservations());
  return observed.back();
}

std::vector<std::shared_ptr<runtime::Observations>>
Model::observations() const {
  std::lock_guard<runtime::ForkSafeMutex> lock(idleMutex);
  return observed;
}

void Model::putBack(std::unique_ptr<State> state) {
  outputPool->trim();
  std::vector<std::unique_ptr<State>> old; // destroyed without the lock
  std::lock_guard<runtime::ForkSafeMutex> lock(idleMutex);
  state->lastRun = ++runs;
  if (const runtime::DeviceRun *run = state->context.device())
    deviceUse = run->lastUse();
  idle.push_back(std::move(state));
  auto end = std::find_if(idle.begin(), idle.end(), [&](const auto &state) {
    return state->lastRun + kIdleRuns > runs;
  });
  old.assign(std::make_move_iterator(idle.begin()),
             std::make_move_iterator(end));
  idle.erase(idle.begin(), end);
}

std::optional<DeviceUse> Model::lastDeviceUse() const {
  std::lock_guard<runtime::ForkSafeMutex> lock(idleMutex);
  return deviceUse;
}

void Model::releaseMemory() {
  std::vector<std::unique_ptr<State>> old;
  {
    std::lock_guard<runtime::ForkSafeMutex> lock(idleMutex);
    old.swap(idle);
  }
  old.clear();
  outputPool->trimAll();
  if (code.device)
    code.device->releaseMemory();
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static Error refuse(const std::string &text) {
  return Error(ErrorKind::InvalidArgument, text);
}

MaybeError sardonyx::checkOptions(const RunOptions &options) {
  // Also wrong for NaN.
  if (!(options.timeout >= 0))
    return refuse("the time limit of a run must not be negative, got " +
                  std::to_string(options.timeout) + " s");
  if (options.maxTripCount < 0)
    return refuse("the limit of a loop's trips must not be negative, got " +
                  std::to_string(options.maxTripCount));
  return std::nullopt;
}

static Error wrongInput(const ValueInfo &info, const std::string &what) {
  return refuse("input '" + info.name + "' " + what);
}

/// `what` is to lie, or lies, on the device of the number `place`.
MaybeError Model::checkPlace(const std::string &what, const ValueInfo &info,
                             int place) const {
  if (place == kHost)
    return std::nullopt;
  const std::string text =
      what + " lies on CUDA device " + std::to_string(place);
  if (device == kHost)
    return refuse(text + ", and the model runs on the CPU");
  if (place != device)
    return refuse(text + ", and the model runs on CUDA device " +
                  std::to_string(device));
  if (isHandled(info))
    return refuse(text + ", and has the type " + info.type +
                  ", which is the CPU's only");
  return std::nullopt;
}

MaybeError Model::checkInputs(const std::vector<TensorRef> &inputs) const {
  if (inputs.size() != inputInfos.size())
    return Error(ErrorKind::InvalidArgument,
                 "the model has " + std::to_string(inputInfos.size()) +
                     " inputs, got " + std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo &info = inputInfos[i];
    const TensorRef &tensor = inputs[i];
    if (tensor.device != kHost)
      if (MaybeError error =
              checkPlace("input '" + info.name + "'", info, tensor.device))
        return error;
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
      if (info.dims[d].isStatic() && size != info.dims[d].size)
        return wrongInput(info, "has the shape " + describeShape(info.dims) +
                                    ": dimension " + std::to_string(d) +
                                    " must be " +
                                    std::to_string(info.dims[d].size) +
                                    ", got " + std::to_string(size));
    }
  }
  return std::nullopt;
}

std::optional<Model::Disagreement>
Model::findDisagreement(const std::vector<TensorRef> &inputs) const {
  // Who gave each symbol its size: (input, dimension).
  struct Given {
    int64_t size = -1;
    size_t input = 0, dim = 0;
  };
  std::vector<Given> sizes(symbols.size());
  for (size_t i = 0; i < inputs.size() && !symbols.empty(); ++i)
    for (size_t d = 0; d < symbolOf[i].size(); ++d) {
      int symbol = symbolOf[i][d];
      if (symbol < 0)
        continue;
      int64_t size = inputs[i].shape[d];
      Given &given = sizes[symbol];
      if (given.size < 0)
        given = {size, i, d};
      else if (given.size != size)
        return Disagreement{
            symbols[symbol],
            "dimension '" + symbols[symbol] +
                "' has different sizes: " + std::to_string(given.size) +
                " in dimension " + std::to_string(given.dim) + " of input '" +
                inputInfos[given.input].name + "' and " + std::to_string(size) +
                " in dimension " + std::to_string(d) + " of input '" +
                inputInfos[i].name + "'"};
    }
  return std::nullopt;
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

MaybeError Model::checkMemory(const std::vector<OutputRef> &memory) const {
  if (!memory.empty() && memory.size() != outputInfos.size())
    return Error(ErrorKind::InvalidArgument,
                 "the model has " + std::to_string(outputInfos.size()) +
                     " outputs, got memory for " +
                     std::to_string(memory.size()));
  for (size_t i = 0; i < memory.size(); ++i) {
    const ValueInfo &info = outputInfos[i];
    if (memory[i].device != kHost)
      if (MaybeError error =
              checkPlace("the memory for output '" + info.name + "'", info,
                         memory[i].device))
        return error;
    if (!memory[i].data)
      continue;
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
                     "outputs '" + outputInfos[k].name + "' and '" + info.name +
                         "' were given memory that overlaps");
  }
  return std::nullopt;
}

void Model::setOutputs(RunContext &context,
                       const std::vector<TensorRef> &inputs,
                       const std::vector<OutputRef> &memory) const {
  for (size_t i = 0; i < outputInfos.size(); ++i) {
    OutputSlot &slot = context.outputs()[i];
    slot.given = false;
    slot.data = nullptr;
    slot.callerMemory = memory.empty() ? nullptr : memory[i].data;
    slot.copied = false;
    slot.wantedOnDevice = !memory.empty() && memory[i].device != kHost;
    if (!slot.callerMemory)
      continue;
    slot.expected = memory[i].shape;
    // Kernels write to results while inputs are still to be read.
    Span span(memory[i].data, memory[i].shape, memory[i].type);
    for (const TensorRef &input : inputs)
      slot.copied |= span.overlaps({input.data, input.shape, input.type});
  }
}

Expected<std::vector<Tensor>> Model::takeOutputs(RunContext &context,
                                                 bool keepMemory) const {
  for (OutputSlot &slot : context.outputs())
    if (!slot.given)
      return Error(ErrorKind::Failed, "internal error: the compiled model "
                                      "gave no output '" +
                                          slot.name + "'");
  std::vector<Tensor> results(outputInfos.size());
  for (size_t i = 0; i < results.size(); ++i) {
    OutputSlot &slot = context.outputs()[i];
    Tensor &result = results[i];
    if (isHandled(outputInfos[i])) {
      auto value = decode(static_cast<const int64_t *>(slot.data), slot.sizes,
                          outputInfos[i], context);
      if (!value)
        return value.error();
      result = std::move(*value);
      continue;
    }
    result.type = outputInfos[i].elementType;
    result.shape = slot.sizes;
    if (slot.isOnDevice) {
      result.data = slot.data;
      result.owner = std::move(slot.owner);
      result.device = device;
      slot.data = nullptr;
      continue;
    }
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

MaybeError Model::setInputs(State &state,
                            const std::vector<TensorRef> &inputs) const {
  for (size_t i = 0; i < code.arguments.size(); ++i) {
    if (!code.arguments[i].input)
      continue;
    const size_t number = *code.arguments[i].input;
    const TensorRef &tensor = inputs[number];
    const ValueInfo &info = inputInfos[number];
    const void *data = tensor.data;
    if (isHandled(info)) {
      auto handles = encode(tensor, info, state.context);
      if (!handles)
        return handles.error();
      state.handles[number] = std::move(*handles);
      data = state.handles[number].data();
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

MaybeError Model::check(const std::vector<TensorRef> &inputs,
                        const std::vector<OutputRef> &memory,
                        const RunOptions &options) const {
  if (MaybeError error = checkOptions(options))
    return error;
  if (MaybeError error = checkInputs(inputs))
    return error;
  return checkMemory(memory);
}

Expected<std::vector<Tensor>> Model::run(const std::vector<TensorRef> &inputs,
                                         const std::vector<OutputRef> &memory,
                                         const RunOptions &options,
                                         bool &otherRank,
                                         const Observer &observer) {
  std::unique_ptr<State> state = takeState();
  RunContext &context = state->context;
  setOutputs(context, inputs, memory);
  if (MaybeError error = setInputs(*state, inputs)) {
    context.clearHandles();
    putBack(std::move(state));
    return *error;
  }
  runtime::RunLimits limits;
  limits.terminate =
      options.terminateFlag ? options.terminateFlag : &options.terminate;
  limits.seconds = options.timeout;
  limits.trips = options.maxTripCount;
  limits.interrupted = options.interrupted;
  int64_t begin = observer ? sdx_rt_clock() : 0;
  runtime::DeviceSteps steps;
  if (code.device)
    steps.placeInputs = [&] { placeInputs(*state, inputs); };
  bool ok = context.run(code.main, state->table.pointers(), limits, steps);
  if (ok && observer)
    observer(begin, sdx_rt_clock(), context.steps(), context.launches());
  Expected<std::vector<Tensor>> result =
      ok ? takeOutputs(context, !options.releaseMemory)
         : Expected<std::vector<Tensor>>(failureOf(context));
  otherRank = !ok && context.failureKind() == SDX_RT_OTHER_RANK;
  for (OutputSlot &slot : context.outputs())
    context.releaseOutput(slot); // handles, and those of a run that failed
  context.clearHandles();
  putBack(std::move(state));
  if (options.releaseMemory)
    reclaim();
  return result;
}
