//===- CApi.cpp - The C interface: models that are ready to run -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/CTypes.h"
#include <algorithm>

using namespace sardonyx;

static_assert(SDX_HOST == kHost);
static_assert(SDX_SEQUENCE == static_cast<int>(ValueKind::Sequence) &&
              SDX_NOTHING == static_cast<int>(ValueKind::Nothing) &&
              SDX_MAP == static_cast<int>(ValueKind::Map));

void sardonyx::report(const Error &error, sdx_error **out) {
  if (out)
    *out = new sdx_error{error};
}

void sardonyx::tellWarnings(Runner &model, sdx_log_function log, void *user) {
  if (log && model.hasWarnings())
    for (const std::string &text : model.takeWarnings())
      log(user, text.c_str());
}

sdx_error_kind sdx_error_get_kind(const sdx_error *error) {
  return static_cast<sdx_error_kind>(error->error.kind());
}
const char *sdx_error_message(const sdx_error *error) {
  return error->error.message().c_str();
}
void sdx_error_free(sdx_error *error) { delete error; }

sdx_run_options *sdx_run_options_create(void) { return new sdx_run_options; }
void sdx_run_options_free(sdx_run_options *options) { delete options; }
void sdx_run_options_set_terminate(sdx_run_options *options, int terminate) {
  options->options.terminate.store(terminate != 0);
}
void sdx_run_options_set_timeout(sdx_run_options *options, double seconds) {
  options->options.timeout = seconds;
}
void sdx_run_options_set_max_trip_count(sdx_run_options *options,
                                        int64_t trips) {
  options->options.maxTripCount = trips;
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

void sdx_session_free(sdx_session *session) { delete session; }

static const ValueInfo *infoAt(const std::vector<ValueInfo> &infos,
                               size_t index) {
  return index < infos.size() ? &infos[index] : nullptr;
}

static const char *nameAt(const std::vector<ValueInfo> &infos, size_t index) {
  const ValueInfo *info = infoAt(infos, index);
  return info ? info->name.c_str() : nullptr;
}

static int32_t typeAt(const std::vector<ValueInfo> &infos, size_t index) {
  const ValueInfo *info = infoAt(infos, index);
  return info ? static_cast<int32_t>(info->elementType) : 0;
}

static int64_t shapeAt(const std::vector<ValueInfo> &infos, size_t index,
                       int64_t *sizes, size_t capacity) {
  const ValueInfo *info = infoAt(infos, index);
  if (!info || !info->hasRank)
    return -1;
  for (size_t i = 0; i < std::min(capacity, info->dims.size()); ++i)
    sizes[i] = info->dims[i].size;
  return static_cast<int64_t>(info->dims.size());
}

int sdx_session_device(const sdx_session *session) {
  return session->session->device();
}
size_t sdx_session_input_count(const sdx_session *session) {
  return session->session->inputs().size();
}
size_t sdx_session_output_count(const sdx_session *session) {
  return session->session->outputs().size();
}
const char *sdx_session_input_name(const sdx_session *session, size_t index) {
  return nameAt(session->session->inputs(), index);
}
const char *sdx_session_output_name(const sdx_session *session, size_t index) {
  return nameAt(session->session->outputs(), index);
}
static const char *typeNameAt(const std::vector<ValueInfo> &infos,
                              size_t index) {
  const ValueInfo *info = infoAt(infos, index);
  return info ? info->type.c_str() : nullptr;
}

const char *sdx_session_input_type_name(const sdx_session *session,
                                        size_t index) {
  return typeNameAt(session->session->inputs(), index);
}
const char *sdx_session_output_type_name(const sdx_session *session,
                                         size_t index) {
  return typeNameAt(session->session->outputs(), index);
}
int32_t sdx_session_input_type(const sdx_session *session, size_t index) {
  return typeAt(session->session->inputs(), index);
}
int32_t sdx_session_output_type(const sdx_session *session, size_t index) {
  return typeAt(session->session->outputs(), index);
}
int64_t sdx_session_input_shape(const sdx_session *session, size_t index,
                                int64_t *sizes, size_t capacity) {
  return shapeAt(session->session->inputs(), index, sizes, capacity);
}
int64_t sdx_session_output_shape(const sdx_session *session, size_t index,
                                 int64_t *sizes, size_t capacity) {
  return shapeAt(session->session->outputs(), index, sizes, capacity);
}

const char *sdx_session_metadata(const sdx_session *session, const char *name) {
  const ModelMetadata &metadata = session->session->metadata();
  const std::string_view wanted = name ? name : "";
  if (wanted == "producer_name")
    return metadata.producerName.c_str();
  if (wanted == "graph_name")
    return metadata.graphName.c_str();
  if (wanted == "domain")
    return metadata.domain.c_str();
  if (wanted == "description")
    return metadata.description.c_str();
  if (wanted == "model_version")
    return session->modelVersion.c_str();
  for (const auto &[key, value] : metadata.custom)
    if (wanted == key)
      return value.c_str();
  return nullptr;
}

static std::vector<int64_t> shapeOf(const sdx_tensor &tensor) {
  return std::vector<int64_t>(tensor.shape, tensor.shape + tensor.rank);
}

std::vector<OutputRef>
sardonyx::memoryOf(const sdx_tensor *memory, const int *devices,
                   const std::vector<ValueInfo> &outputs) {
  std::vector<OutputRef> refs;
  if (!memory && !devices)
    return refs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    OutputRef &ref = refs.emplace_back();
    if (memory)
      ref = {static_cast<ElementType>(memory[i].type), memory[i].data,
             memory[i].data ? shapeOf(memory[i]) : std::vector<int64_t>()};
    if (devices)
      ref.device = devices[i];
  }
  return refs;
}

sdx_results *sdx_session_run(sdx_session *session, const sdx_tensor *inputs,
                             size_t inputCount, const sdx_tensor *memory,
                             sdx_error **error) {
  return sdx_session_run_with_options(session, inputs, inputCount, memory,
                                      nullptr, error);
}

sdx_results *sdx_session_run_with_options(sdx_session *session,
                                          const sdx_tensor *inputs,
                                          size_t inputCount,
                                          const sdx_tensor *memory,
                                          const sdx_run_options *options,
                                          sdx_error **error) {
  return sdx_session_run_on_device(session, inputs, nullptr, inputCount, memory,
                                   nullptr, options, error);
}

sdx_results *
sdx_session_run_on_device(sdx_session *session, const sdx_tensor *inputs,
                          const int *inputDevices, size_t inputCount,
                          const sdx_tensor *memory, const int *memoryDevices,
                          const sdx_run_options *options, sdx_error **error) {
  // Another thread may free the handle meanwhile.
  std::shared_ptr<Runner> running = session->session;
  const sdx_log_function log = session->log;
  void *const logUser = session->logUser;
  std::vector<TensorRef> refs(inputCount);
  for (size_t i = 0; i < inputCount; ++i) {
    refs[i] = {static_cast<ElementType>(inputs[i].type), inputs[i].data,
               shapeOf(inputs[i])};
    if (inputDevices)
      refs[i].device = inputDevices[i];
  }
  std::vector<OutputRef> outputs =
      memoryOf(memory, memoryDevices, running->outputs());
  auto results = options ? running->run(refs, outputs, options->options)
                         : running->run(refs, outputs);
  tellWarnings(*running, log, logUser);
  if (results)
    return new sdx_results(std::move(*results));
  report(results.error(), error);
  return nullptr;
}

/// A caller's value, which may be anything.
static Expected<TensorRef> refOf(const sdx_value &value, int depth = 0) {
  TensorRef ref;
  ref.kind = static_cast<ValueKind>(value.kind);
  switch (value.kind) {
  case SDX_NOTHING:
    return ref;
  case SDX_TENSOR:
    if (value.tensor.rank && !value.tensor.shape)
      return Error(ErrorKind::InvalidArgument, "a tensor has no shape");
    ref.type = static_cast<ElementType>(value.tensor.type);
    ref.data = value.tensor.data;
    ref.shape = shapeOf(value.tensor);
    return ref;
  case SDX_SEQUENCE:
  case SDX_MAP:
    break;
  default:
    return Error(ErrorKind::InvalidArgument,
                 "there is no kind of value " +
                     std::to_string(static_cast<int>(value.kind)));
  }
  if (value.count && !value.items)
    return Error(ErrorKind::InvalidArgument, "a value has no items");
  // Maps in a sequence are as deep as values are.
  if (depth == 2)
    return Error(ErrorKind::InvalidArgument, "a value is nested too deeply");
  for (size_t i = 0; i < value.count; ++i) {
    auto item = refOf(value.items[i], depth + 1);
    if (!item)
      return item.error();
    ref.items.push_back(std::move(*item));
  }
  return ref;
}

sdx_results *sardonyx::runValues(const sdx_session *session,
                                 const sdx_value *inputs, size_t inputCount,
                                 const sdx_tensor *memory, const Places &places,
                                 const RunOptions &options, sdx_error **error) {
  std::shared_ptr<Runner> running = session->session;
  const sdx_log_function log = session->log;
  void *const logUser = session->logUser;
  std::vector<TensorRef> refs;
  for (size_t i = 0; i < inputCount; ++i) {
    auto ref = refOf(inputs[i]);
    if (!ref) {
      report(Error(ref.error().kind(),
                   "input " + std::to_string(i) + ": " + ref.error().message()),
             error);
      return nullptr;
    }
    if (places.inputs && ref->kind == ValueKind::Tensor)
      ref->device = places.inputs[i];
    refs.push_back(std::move(*ref));
  }
  auto results = running->run(
      refs, memoryOf(memory, places.memory, running->outputs()), options);
  tellWarnings(*running, log, logUser);
  if (results)
    return new sdx_results(std::move(*results));
  report(results.error(), error);
  return nullptr;
}

sdx_results *sdx_session_run_values(sdx_session *session,
                                    const sdx_value *inputs, size_t inputCount,
                                    const sdx_run_options *options,
                                    sdx_error **error) {
  return options ? runValues(session, inputs, inputCount, nullptr, {},
                             options->options, error)
                 : runValues(session, inputs, inputCount, nullptr, {},
                             RunOptions(), error);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

sdx_results::sdx_results(std::vector<Tensor> given)
    : tensors(std::move(given)) {
  for (const Tensor &tensor : tensors)
    values.push_back(describe(tensor));
}

sdx_value sdx_results::describe(const Tensor &tensor) {
  sdx_value value = {};
  value.kind = static_cast<sdx_value_kind>(tensor.kind);
  if (tensor.kind == ValueKind::Tensor)
    value.tensor = {static_cast<int32_t>(tensor.type), tensor.shape.size(),
                    tensor.shape.data(), tensor.data};
  std::vector<sdx_value> items;
  for (const Tensor &item : tensor.items)
    items.push_back(describe(item));
  value.count = items.size();
  lists.push_back(std::move(items));
  value.items = lists.back().data();
  return value;
}

size_t sdx_results_count(const sdx_results *results) {
  return results->tensors.size();
}

sdx_tensor sdx_results_get(const sdx_results *results, size_t index) {
  if (index >= results->tensors.size())
    return {};
  const Tensor &tensor = results->tensors[index];
  return {static_cast<int32_t>(tensor.type), tensor.shape.size(),
          tensor.shape.data(), tensor.data};
}

sdx_value sdx_results_get_value(const sdx_results *results, size_t index) {
  if (index >= results->values.size())
    return {SDX_NOTHING, {}, 0, nullptr};
  return results->values[index];
}

int sdx_results_get_device(const sdx_results *results, size_t index) {
  return index < results->tensors.size() ? results->tensors[index].device
                                         : SDX_HOST;
}

void sdx_results_free(sdx_results *results) { delete results; }
