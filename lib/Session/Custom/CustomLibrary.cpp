//===- CustomLibrary.cpp - Operators from shared libraries ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The other side of sardonyx-c/CustomOps.h. Built with exceptions: what a
// library throws ends here.
//
//===----------------------------------------------------------------------===//

#include "sardonyx-c/CustomOps.h"
#include "sardonyx/Session/CustomOps.h"
#include <cstdlib>
#include <cxxabi.h>
#include <deque>
#include <dlfcn.h>
#include <exception>

using namespace sardonyx;

static_assert(sizeof(sdx_op_string) == sizeof(StringSpan) &&
              offsetof(sdx_op_string, size) == offsetof(StringSpan, size));

struct sdx_op_call {
  const CustomNode *node;
  /// In `infer`.
  CustomNode *inferred = nullptr;
  /// In `compute`.
  CustomRun *run = nullptr;
  CustomFailure failure;
  /// What attributes were given out as.
  std::deque<std::vector<StringSpan>> texts;
};

struct sdx_op_registry {
  std::vector<std::shared_ptr<CustomOp>> ops;
  std::shared_ptr<void> library;
  CustomFailure failure;
};

//===----------------------------------------------------------------------===//
// What libraries call
//===----------------------------------------------------------------------===//

static void fail(sdx_op_call *call, const char *text) {
  if (!call->failure)
    call->failure = text && *text ? text : "it failed without a word";
}

static const char *nodeName(sdx_op_call *call) {
  return call->node->name.c_str();
}
static int64_t opsetVersion(sdx_op_call *call) { return call->node->version; }

static int32_t inputCount(sdx_op_call *call) {
  return static_cast<int32_t>(call->node->inputs.size());
}
static int32_t outputCount(sdx_op_call *call) {
  return static_cast<int32_t>(call->node->outputs.size());
}

/// Null for one that is not there.
static const CustomType *at(const std::vector<CustomType> &types,
                            int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= types.size() ||
      !types[index].isPresent)
    return nullptr;
  return &types[index];
}

static int32_t hasInput(sdx_op_call *call, int32_t index) {
  return at(call->node->inputs, index) != nullptr;
}
static int32_t hasOutput(sdx_op_call *call, int32_t index) {
  return at(call->node->outputs, index) != nullptr;
}

static const CustomAttribute *find(sdx_op_call *call, const char *name,
                                   CustomAttribute::Kind kind) {
  return name ? call->node->find(name, kind) : nullptr;
}

/// A list as a pointer and a number.
template <typename T>
static void give(const std::vector<T> &list, const T **values, size_t *count) {
  *values = list.data();
  *count = list.size();
}

static int32_t attributeInt(sdx_op_call *call, const char *name,
                            int64_t *value) {
  auto *found = find(call, name, CustomAttribute::Int);
  if (found)
    *value = found->ints[0];
  return found != nullptr;
}
static int32_t attributeFloat(sdx_op_call *call, const char *name,
                              float *value) {
  auto *found = find(call, name, CustomAttribute::Float);
  if (found)
    *value = found->floats[0];
  return found != nullptr;
}
static int32_t attributeString(sdx_op_call *call, const char *name,
                               sdx_op_string *value) {
  auto *found = find(call, name, CustomAttribute::String);
  if (found)
    *value = {found->strings[0].data(), found->strings[0].size()};
  return found != nullptr;
}
static int32_t attributeInts(sdx_op_call *call, const char *name,
                             const int64_t **values, size_t *count) {
  auto *found = find(call, name, CustomAttribute::Ints);
  if (found)
    give(found->ints, values, count);
  return found != nullptr;
}
static int32_t attributeFloats(sdx_op_call *call, const char *name,
                               const float **values, size_t *count) {
  auto *found = find(call, name, CustomAttribute::Floats);
  if (found)
    give(found->floats, values, count);
  return found != nullptr;
}

static const sdx_op_string *textsOf(sdx_op_call *call,
                                    const CustomAttribute &attribute) {
  auto &spans = call->texts.emplace_back();
  for (const std::string &text : attribute.strings)
    spans.push_back({text.data(), text.size()});
  return reinterpret_cast<const sdx_op_string *>(spans.data());
}

static int32_t attributeStrings(sdx_op_call *call, const char *name,
                                const sdx_op_string **values, size_t *count) {
  auto *found = find(call, name, CustomAttribute::Strings);
  if (found) {
    *values = textsOf(call, *found);
    *count = found->strings.size();
  }
  return found != nullptr;
}
static int32_t attributeTensor(sdx_op_call *call, const char *name,
                               int32_t *type, int32_t *rank,
                               const int64_t **sizes, const void **data) {
  auto *found = find(call, name, CustomAttribute::Tensor);
  if (!found)
    return 0;
  *type = static_cast<int32_t>(found->type);
  *rank = static_cast<int32_t>(found->ints.size());
  *sizes = found->ints.data();
  *data = found->type == ElementType::String
              ? static_cast<const void *>(textsOf(call, *found))
              : found->data.data();
  return 1;
}

static int32_t inputType(sdx_op_call *call, int32_t index) {
  auto *type = at(call->node->inputs, index);
  return type ? static_cast<int32_t>(type->type) : SDX_OP_UNDEFINED;
}
static int32_t inputRank(sdx_op_call *call, int32_t index) {
  auto *type = at(call->node->inputs, index);
  if (!type)
    return -1;
  if (call->run)
    return static_cast<int32_t>(call->run->inputShape(index).size());
  return type->hasRank ? static_cast<int32_t>(type->shape.size()) : -1;
}
static const int64_t *inputSizes(sdx_op_call *call, int32_t index) {
  auto *type = at(call->node->inputs, index);
  if (!type)
    return nullptr;
  return call->run ? call->run->inputShape(index).data() : type->shape.data();
}

static std::vector<int64_t> shapeOf(int32_t rank, const int64_t *sizes) {
  return sizes && rank > 0 ? std::vector<int64_t>(sizes, sizes + rank)
                           : std::vector<int64_t>();
}

static int32_t setOutputType(sdx_op_call *call, int32_t index, int32_t type,
                             int32_t rank, const int64_t *sizes) {
  if (!call->inferred || index < 0 || (rank > 0 && !sizes)) {
    fail(call, "set_output_type was called for what is no result");
    return 1;
  }
  if (!at(call->inferred->outputs, index))
    return 0; // the node leaves it out
  CustomType &result = call->inferred->outputs[index];
  result.type = static_cast<ElementType>(type);
  result.hasRank = rank >= 0;
  result.shape = shapeOf(rank, sizes);
  return 0;
}

static const void *inputData(sdx_op_call *call, int32_t index) {
  return call->run && at(call->node->inputs, index)
             ? call->run->inputData(index)
             : nullptr;
}

static void *output(sdx_op_call *call, int32_t index, int32_t type,
                    int32_t rank, const int64_t *sizes) {
  if (!call->run || index < 0 || rank < 0 || (rank > 0 && !sizes)) {
    fail(call, "output was called for what is no result");
    return nullptr;
  }
  return call->run->output(index, static_cast<ElementType>(type),
                           shapeOf(rank, sizes));
}

static int32_t setString(sdx_op_call *call, int32_t index, int64_t element,
                         const char *text, size_t size) {
  if (call->run && index >= 0 && (text || size == 0) &&
      call->run->setString(index, element, {text ? text : "", size}))
    return 0;
  fail(call, "set_string was called for what is no element of a result");
  return 1;
}

static void *scratch(sdx_op_call *call, int64_t bytes) {
  if (call->run)
    return call->run->scratch(bytes);
  fail(call, "scratch was called outside of a run");
  return nullptr;
}

static void failRegistration(sdx_op_registry *registry, const char *text) {
  if (!registry->failure)
    registry->failure = text && *text ? text : "it failed without a word";
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// What `body` returns; an exception is its failure.
template <typename F> static void guarded(CustomFailure &failure, F body) {
  try {
    if (body() != 0 && !failure)
      failure = "it failed without a word";
  } catch (abi::__forced_unwind &) {
    throw; // the thread ends
  } catch (const std::exception &exception) {
    failure = std::string("it threw an exception: ") + exception.what();
  } catch (...) {
    failure = "it threw an exception";
  }
}

namespace {

class LibraryOp : public CustomOp {
public:
  LibraryOp(const sdx_op &given, std::shared_ptr<void> library)
      : library(std::move(library)), given(given) {
    domain = given.domain ? given.domain : "";
    name = given.name ? given.name : "";
    sinceVersion = given.since_version;
    minInputs = given.min_inputs;
    maxInputs = given.max_inputs;
    minOutputs = given.min_outputs;
    maxOutputs = given.max_outputs;
    isStateful = given.flags & SDX_OP_STATEFUL;
    isOneThread = given.flags & SDX_OP_ONE_THREAD;
  }

  CustomFailure infer(CustomNode &node) const override {
    if (!given.infer)
      return std::nullopt;
    sdx_op_call call{&node};
    call.inferred = &node;
    guarded(call.failure, [&] { return given.infer(given.user, &call); });
    return call.failure;
  }

  CustomFailure create(const CustomNode &node,
                       std::shared_ptr<void> &state) const override {
    if (!given.create)
      return std::nullopt;
    sdx_op_call call{&node};
    void *made = nullptr;
    guarded(call.failure,
            [&] { return given.create(given.user, &call, &made); });
    if (call.failure)
      return call.failure;
    state = std::shared_ptr<void>(
        made, [destroy = given.destroy, user = given.user](void *state) {
          CustomFailure ignored;
          if (destroy)
            guarded(ignored, [&] { return destroy(user, state), 0; });
        });
    return std::nullopt;
  }

  CustomFailure compute(const CustomNode &node, void *state,
                        CustomRun &run) const override {
    sdx_op_call call{&node};
    call.run = &run;
    guarded(call.failure,
            [&] { return given.compute(given.user, state, &call); });
    return call.failure;
  }

private:
  const std::shared_ptr<void> library;
  const sdx_op given;
};

} // namespace

static int32_t add(sdx_op_registry *registry, const sdx_op *op) {
  if (!op || op->abi_version != SDX_OP_ABI_VERSION) {
    failRegistration(registry, op ? ("an operator is made for version " +
                                     std::to_string(op->abi_version) +
                                     " of the interface; this is version " +
                                     std::to_string(SDX_OP_ABI_VERSION))
                                        .c_str()
                                  : "no operator was given");
    return 1;
  }
  if (!op->compute) {
    failRegistration(registry, "an operator has no function 'compute'");
    return 1;
  }
  registry->ops.push_back(std::make_shared<LibraryOp>(*op, registry->library));
  return 0;
}

static const sdx_op_api api = {
    SDX_OP_ABI_VERSION,
    add,
    failRegistration,
    fail,
    nodeName,
    opsetVersion,
    inputCount,
    outputCount,
    hasInput,
    hasOutput,
    attributeInt,
    attributeFloat,
    attributeString,
    attributeInts,
    attributeFloats,
    attributeStrings,
    attributeTensor,
    inputType,
    inputRank,
    inputSizes,
    setOutputType,
    inputData,
    output,
    setString,
    scratch,
};

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

MaybeError CustomOps::addLibrary(const std::string &path) {
  // A name alone would be looked for in the system's folders.
  char *real = realpath(path.c_str(), nullptr);
  if (!real)
    return Error(ErrorKind::NoSuchFile, "there is no library '" + path + "'");
  sdx_op_registry registry;
  void *handle = dlopen(real, RTLD_NOW | RTLD_LOCAL);
  free(real);
  auto wrong = [&](const std::string &text) {
    return Error(ErrorKind::InvalidArgument, "'" + path + "' " + text);
  };
  if (!handle) {
    const char *text = dlerror();
    return wrong(std::string("is no library that can be loaded: ") +
                 (text ? text : ""));
  }
  registry.library = std::shared_ptr<void>(handle, dlclose);
  auto entry =
      reinterpret_cast<sdx_op_entry_point>(dlsym(handle, SDX_OP_ENTRY_POINT));
  if (!entry)
    return wrong(dlsym(handle, "RegisterCustomOps")
                     ? "has custom operators for onnxruntime; those of "
                       "Sardonyx are registered by the function "
                       "'" SDX_OP_ENTRY_POINT "', which it does not have"
                     : "has no function '" SDX_OP_ENTRY_POINT "'");
  CustomFailure failure;
  guarded(failure, [&] { return entry(&api, &registry); });
  if (registry.failure)
    failure = registry.failure;
  if (failure)
    return wrong("cannot be registered: " + *failure);
  if (registry.ops.empty())
    return wrong("registers no operator");
  CustomOps all;
  for (auto &op : registry.ops)
    if (MaybeError error = all.add(std::move(op)))
      return wrong("cannot be registered: " + error->message());
  addAll(all);
  return std::nullopt;
}
