//===- CustomNodes.cpp - The custom operators of a loaded model -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an operator gives is checked against what the code assumes before the
// code sees it.
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Custom/CustomNodes.h"
#include "lib/Runtime/RuntimeCall.h"
#include "sardonyx/Runtime/ForkSafeMutex.h"
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <unistd.h>

using namespace sardonyx;
using runtime::List;
using runtime::ListItem;
using runtime::RunContext;
using runtime::RuntimeCall;

std::string sardonyx::describe(const CustomNode &node) {
  return node.name.empty() ? node.opType
                           : "node '" + node.name + "' (" + node.opType + ")";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static CustomFailure checkCount(const char *what, size_t found, int64_t least,
                                int64_t most) {
  auto count = static_cast<int64_t>(found);
  if (count >= least && (most < 0 || count <= most))
    return std::nullopt;
  std::string range = std::to_string(least);
  if (most < 0)
    range = "at least " + range;
  else if (most != least)
    range += " to " + std::to_string(most);
  return "it has " + std::to_string(count) + " " + what +
         ", and the operator has " + range;
}

static CustomFailure checkType(const CustomType &type, size_t index) {
  constexpr size_t kMaxDims = 64;
  std::string result =
      "its shape function gives result " + std::to_string(index) + " ";
  if (type.type != ElementType::Undefined && byteSizeOf(type.type) == 0)
    return result + "the element type " +
           std::to_string(static_cast<int32_t>(type.type)) +
           ", which is the number of none";
  if (!type.hasRank)
    return std::nullopt;
  if (type.shape.size() > kMaxDims)
    return result + "a rank of " + std::to_string(type.shape.size()) +
           "; the most is " + std::to_string(kMaxDims);
  for (int64_t size : type.shape)
    if (size < -1)
      return result + "the size " + std::to_string(size);
  return std::nullopt;
}

CustomFailure sardonyx::inferChecked(const CustomOp &op, CustomNode &node) {
  if (auto wrong =
          checkCount("inputs", node.inputs.size(), op.minInputs, op.maxInputs))
    return wrong;
  if (auto wrong = checkCount("outputs", node.outputs.size(), op.minOutputs,
                              op.maxOutputs))
    return wrong;
  std::vector<CustomType> outputs = node.outputs;
  for (CustomType &type : node.outputs) {
    type = CustomType();
    type.isPresent = outputs[&type - node.outputs.data()].isPresent;
  }
  if (auto failure = op.infer(node))
    return failure;
  if (node.outputs.size() != outputs.size())
    return "its shape function changes the number of results";
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i].isPresent != outputs[i].isPresent)
      return "its shape function changes which results there are";
    if (auto wrong = checkType(node.outputs[i], i))
      return wrong;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Finding operators
//===----------------------------------------------------------------------===//

/// All that is missing, in one sentence.
static Error missingError(const std::vector<const CustomNode *> &missing) {
  std::map<std::string, std::pair<const CustomNode *, int>> groups;
  for (const CustomNode *node : missing) {
    auto &[first, count] =
        groups
            .try_emplace(node->opType + " of domain '" + node->domain + "'",
                         node, 0)
            .first->second;
    ++count;
  }
  std::string list;
  for (const auto &[name, group] : groups) {
    list += (list.empty() ? "" : "; ") + name;
    if (!group.first->name.empty())
      list += " (node '" + group.first->name + "')";
    if (group.second > 1)
      list += " and " + std::to_string(group.second - 1) + " more";
  }
  return Error(ErrorKind::Unsupported,
               "the compiled model calls operators that are not registered: " +
                   list);
}

Expected<std::shared_ptr<CustomNodes>>
CustomNodes::resolve(const std::vector<CustomCall> &calls,
                     const CustomOps *ops) {
  auto nodes = std::make_shared<CustomNodes>();
  std::vector<const CustomNode *> missing;
  bool isStale = false;
  for (const CustomCall &call : calls) {
    const CustomNode &node = call.node;
    auto op = ops ? ops->take(node.domain, node.opType, node.version) : nullptr;
    if (!op) {
      missing.push_back(&node);
      continue;
    }
    CustomNode again = node;
    isStale |= op->isStateful != call.isStateful || inferChecked(*op, again) ||
               again.outputs != node.outputs;
    nodes->entries.push_back({call, std::move(op), nullptr});
  }
  if (!missing.empty())
    return missingError(missing);
  if (isStale)
    return std::shared_ptr<CustomNodes>();
  for (Entry &entry : nodes->entries)
    if (auto failure = entry.op->create(entry.call.node, entry.state))
      return Error(ErrorKind::Failed,
                   describe(entry.call.node) + ": " + *failure);
  return nodes;
}

//===----------------------------------------------------------------------===//
// One call
//===----------------------------------------------------------------------===//

namespace {

/// A call's words as the operator sees them.
class Run : public CustomRun {
public:
  Run(const CustomCall &described, RuntimeCall &call)
      : described(described), call(call), isDirect(call.number() != 0) {
    for (const CustomType &type : described.node.inputs)
      readInput(type);
    results.resize(described.results.size());
    if (isDirect) {
      for (size_t i = 0; i < results.size(); ++i)
        if (described.results[i].isPresent)
          results[i].target = call.tensor<char>().data;
    } else {
      handles = call.tensor<int64_t>().data;
    }
  }
  ~Run() {
    for (void *memory : scratches)
      call.context().release(memory);
  }

  const void *inputData(size_t index) const override {
    return inputs[index].data;
  }
  const std::vector<int64_t> &inputShape(size_t index) const override {
    return inputs[index].shape;
  }
  void *output(size_t index, ElementType type,
               const std::vector<int64_t> &shape) override;
  bool setString(size_t index, int64_t element, std::string_view text) override;
  void *scratch(int64_t bytes) override;

  /// Gives the code the results, which must all be there.
  void finish();

private:
  struct Input {
    const void *data = nullptr;
    std::vector<int64_t> shape;
  };
  struct Result {
    char *target = nullptr;
    ListItem item;
    int64_t count = -1; // of its elements, once it is given
  };

  void readInput(const CustomType &type);
  /// Why a result cannot be so.
  CustomFailure check(size_t index, ElementType type,
                      const std::vector<int64_t> &shape) const;

  const CustomCall &described;
  RuntimeCall &call;
  const bool isDirect;
  std::vector<Input> inputs;
  std::deque<std::vector<StringSpan>> strings;
  std::vector<Result> results;
  std::vector<void *> scratches;
  int64_t *handles = nullptr;
  /// In the place of the memory of strings, which are no text.
  alignas(64) char noMemory[64];
};

alignas(64) const char noElements[64] = {};

} // namespace

void Run::readInput(const CustomType &type) {
  Input &input = inputs.emplace_back();
  if (!type.isPresent)
    return;
  auto words = call.tensor<int64_t>();
  input.shape.assign(words.sizes, words.sizes + words.rank);
  input.data = words.count() ? words.data : nullptr;
  if (type.type == ElementType::String) {
    std::vector<StringSpan> &spans = strings.emplace_back();
    for (int64_t i = 0, e = words.count(); i < e; ++i) {
      std::string_view text = call.strings().textOf(words.data[i]);
      spans.push_back({text.data(), text.size()});
    }
    input.data = spans.empty() ? nullptr : spans.data();
  }
  if (!input.data)
    input.data = noElements;
}

CustomFailure Run::check(size_t index, ElementType type,
                         const std::vector<int64_t> &shape) const {
  std::string result = "result " + std::to_string(index);
  if (index >= results.size() || !described.results[index].isPresent)
    return "the operator gives a " + result + ", which the node does not have";
  const CustomType &wanted = described.results[index];
  if (results[index].count >= 0)
    return "the operator gives its " + result + " twice";
  if (type != wanted.type)
    return "the operator gives its " + result + " the element type " +
           nameOf(type) + ", where the model has " + nameOf(wanted.type);
  bool fits = shape.size() == wanted.shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits =
        shape[i] >= 0 && (wanted.shape[i] < 0 || shape[i] == wanted.shape[i]);
  if (fits)
    return std::nullopt;
  std::vector<Dim> dims;
  for (int64_t size : wanted.shape)
    dims.push_back({size, ""});
  return "the operator gives its " + result + " the shape " +
         describeShape(shape) + ", where the model has " + describeShape(dims);
}

void *Run::output(size_t index, ElementType type,
                  const std::vector<int64_t> &shape) {
  auto wrong = check(index, type, shape);
  int64_t count = 1, bytes = storedBytesOf(type);
  for (int64_t size : shape)
    if (!wrong && (__builtin_mul_overflow(count, size, &count) ||
                   __builtin_mul_overflow(bytes, size, &bytes)))
      wrong = "result " + std::to_string(index) +
              " would have the impossible shape " + describeShape(shape);
  if (wrong) {
    call.fail(*wrong);
    return nullptr;
  }
  Result &result = results[index];
  if (!isDirect) {
    result.item = {call.allocate(bytes), shape};
    result.target = static_cast<char *>(result.item.data.get());
    if (!result.target)
      return nullptr;
  }
  result.count = count;
  if (type != ElementType::String)
    return count ? result.target : noMemory;
  if (bytes)
    memset(result.target, 0, bytes);
  return noMemory;
}

bool Run::setString(size_t index, int64_t element, std::string_view text) {
  if (index >= results.size() || element < 0 ||
      element >= results[index].count ||
      described.results[index].type != ElementType::String)
    return false;
  reinterpret_cast<int64_t *>(results[index].target)[element] =
      call.strings().handleOf(text);
  return true;
}

void *Run::scratch(int64_t bytes) {
  if (bytes < 0) {
    call.fail("the operator asks for " + std::to_string(bytes) +
              " bytes of memory");
    return nullptr;
  }
  const char *node = call.nodeText();
  void *memory = call.context().allocate(bytes, *node ? node : nullptr);
  if (memory)
    scratches.push_back(memory);
  return memory;
}

void Run::finish() {
  for (size_t i = 0; i < results.size(); ++i)
    if (described.results[i].isPresent && results[i].count < 0)
      return call.fail("the operator gives no result " + std::to_string(i));
  if (isDirect)
    return;
  for (Result &result : results)
    if (result.count >= 0)
      *handles++ = call.lists().add(List({std::move(result.item)}));
}

void CustomOpLock::lock() {
  static runtime::ForkSafeMutex guard;
  {
    std::lock_guard<runtime::ForkSafeMutex> lock(guard);
    // A child that was forked meanwhile has nobody to wait for.
    if (process != getpid())
      new (&mutex) std::mutex;
    process = getpid();
  }
  mutex.lock();
}

void CustomNodes::compute(int64_t number, RuntimeCall &call) {
  if (number < 0 || number >= static_cast<int64_t>(entries.size()))
    return call.fail("internal error: there is no such custom operator");
  Entry &entry = entries[number];
  Run run(entry.call, call);
  CustomFailure failure;
  {
    std::unique_lock<CustomOpLock> lock(entry.op->oneThread, std::defer_lock);
    if (entry.op->isOneThread)
      lock.lock();
    failure = entry.op->compute(entry.call.node, entry.state.get(), run);
  }
  if (call.failed())
    return;
  if (failure)
    return call.fail(*failure);
  run.finish();
}
