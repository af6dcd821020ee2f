//===- ArtifactModel.cpp - The inside of an artifact ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linked into each file that `sardonyx build` makes. Its only way out is the
// table of functions at the end.
//
//===----------------------------------------------------------------------===//

#include "lib/Model/ArtifactDevice.h"
#include "sardonyx-c/Artifact.h"
#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Model/CTypes.h"
#include "sardonyx/Model/FileMap.h"
#include "sardonyx/Model/Model.h"
#include "sardonyx/Model/Seal.h"
#include "sardonyx/Runtime/ProcessorFeatures.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#if __has_include(<dlfcn.h>)
#include <dlfcn.h>
#endif
#include <optional>

using namespace sardonyx;

namespace {

/// More threads than any machine has use for.
constexpr uint64_t kMaxThreads = 4096;

/// Constants, in memory or in a file that is mapped. They are as large as a
/// model: they get their pages, and are read to see whether they are damaged,
/// when a run first needs them. Runs at the same time may do so both.
class Weights {
public:
  /// Finds those of an artifact, which must have a hash if they are a file or
  /// one is given.
  MaybeError open(const sdx_artifact &artifact, unsigned threads,
                  const uint64_t *hash);
  const char *data() const { return bytes.data(); }
  /// Before the first use of the data; the next times at no cost.
  MaybeError prepare();

private:
  /// So few that they are read at once.
  static constexpr size_t kFewBytes = size_t(4) << 20;

  std::shared_ptr<FileMap> file;
  std::string_view bytes;
  std::optional<uint64_t> expected;
  std::string whatIsDamaged;
  unsigned threads = 1;
  std::atomic<bool> isReady = false;
};

class ArtifactModel : public Runner {
public:
  static Expected<std::shared_ptr<Runner>>
  open(const sdx_artifact &artifact, const sdx_open_options &options);

  const std::vector<ValueInfo> &inputs() const override {
    return description.inputs;
  }
  const std::vector<ValueInfo> &outputs() const override {
    return description.outputs;
  }
  const ModelMetadata &metadata() const override {
    return description.metadata;
  }
  Expected<std::vector<Tensor>> run(const std::vector<TensorRef> &inputs,
                                    const std::vector<OutputRef> &memory,
                                    const RunOptions &options) override;
  int device() const override { return gpu ? gpu->ordinal() : kHost; }
  int64_t bytesHeld() const override { return budget->bytesHeld(); }
  void releaseMemory() override { model->releaseMemory(); }

  const sdx_artifact_code *code = nullptr;

private:
  /// Reads what is said of the code that was chosen.
  MaybeError describe();
  /// Opens the device and loads the code that it runs best.
  MaybeError chooseForDevice(const sdx_artifact &artifact,
                             const sdx_open_options &options);
  MaybeError bind(const sdx_artifact &artifact, unsigned threads,
                  const uint64_t *weightsHash);

  Artifact description;
  /// Null where the processor computes all.
  std::unique_ptr<ArtifactDevice> gpu;
  /// Makes what the code counts on; null where there is nothing to make.
  sdx_entry_point init = nullptr;
  Weights weights;
  std::shared_ptr<runtime::MemoryBudget> budget;
  std::unique_ptr<Model> model;
};

} // namespace

namespace {
/// Tells which code this processor can run, and why not what it cannot.
class ProcessorCheck {
public:
  bool canRun(const sdx_artifact_code &code) {
    std::string missing = runtime::missingFeatures(code.features);
    if (!missing.empty())
      why += (why.empty() ? "" : "; ") + std::string(code.processor) +
             ", of which it lacks " + missing;
    return missing.empty();
  }
  Error refuse(const sdx_artifact &artifact) const {
    return Error(ErrorKind::Unsupported,
                 std::string("the model '") + artifact.name +
                     "' was built for other processors than this one: for " +
                     why);
  }

private:
  std::string why;
};
} // namespace

/// The code for this processor, or why there is none.
static Expected<const sdx_artifact_code *>
choose(const sdx_artifact &artifact) {
  ProcessorCheck check;
  for (uint64_t i = 0; i < artifact.code_count; ++i)
    if (check.canRun(artifact.codes[i]))
      return &artifact.codes[i];
  return check.refuse(artifact);
}

/// The folder of the file that holds `artifact`, with a slash, or nothing.
static std::string folderOf(const sdx_artifact &artifact) {
#if __has_include(<dlfcn.h>)
  Dl_info info;
  if (dladdr(&artifact, &info) && info.dli_fname) {
    std::string path = info.dli_fname;
    return path.substr(0, path.rfind('/') + 1);
  }
#endif
  return "";
}

MaybeError Weights::open(const sdx_artifact &artifact, unsigned threads,
                         const uint64_t *hash) {
  this->threads = threads;
  if (artifact.weights_file) {
    std::string path = artifact.weights_file;
    if (path[0] != '/')
      path = folderOf(artifact) + path;
    auto opened = FileMap::open(path);
    if (!opened)
      return opened.error();
    file = *opened;
    bytes = file->bytes();
    expected = artifact.weights_hash;
    whatIsDamaged = "'" + path + "' does not hold the weights of the model '" +
                    artifact.name + "', or it is damaged";
    if (bytes.size() != artifact.weights_bytes)
      return Error(ErrorKind::InvalidModel, whatIsDamaged);
  } else {
    bytes = {static_cast<const char *>(artifact.weights),
             static_cast<size_t>(artifact.weights_bytes)};
    if (hash)
      expected = *hash;
    whatIsDamaged = std::string("the weights of the model '") + artifact.name +
                    "' are damaged";
  }
  return bytes.size() <= kFewBytes ? prepare() : std::nullopt;
}

MaybeError Weights::prepare() {
  if (isReady.load(std::memory_order_acquire))
    return std::nullopt;
  fetchPages(bytes.data(), bytes.size(), threads);
  if (expected && hashOfMuch(bytes, threads) != *expected)
    return Error(ErrorKind::InvalidModel, whatIsDamaged);
  isReady.store(true, std::memory_order_release);
  return std::nullopt;
}

MaybeError ArtifactModel::describe() {
  auto read = unpack({static_cast<const char *>(code->description),
                      static_cast<size_t>(code->description_bytes)},
                     "ahead of time");
  if (!read)
    return read.error();
  description = std::move(*read);
  return std::nullopt;
}

MaybeError ArtifactModel::chooseForDevice(const sdx_artifact &artifact,
                                          const sdx_open_options &options) {
  ProcessorCheck check;
  std::vector<const sdx_device_code *> codes;
  for (uint64_t i = 0; i < artifact.device_code_count; ++i)
    if (check.canRun(artifact.device_codes[i].code))
      codes.push_back(&artifact.device_codes[i]);
  if (codes.empty())
    return check.refuse(artifact);
  auto opened = artifact.devices->open(options);
  if (!opened)
    return opened.error();
  gpu = std::move(*opened);
  auto ranked = gpu->rank(codes, artifact.name);
  if (!ranked)
    return ranked.error();
  MaybeError first;
  for (const sdx_device_code *candidate : *ranked) {
    code = &candidate->code;
    init = candidate->init;
    if (MaybeError error = describe())
      return error;
    MaybeError error = gpu->load(description);
    if (!error)
      return std::nullopt;
    // A driver may be too old for one image, and read the next.
    if (!first)
      first = error;
  }
  return first;
}

Expected<std::shared_ptr<Runner>>
ArtifactModel::open(const sdx_artifact &artifact,
                    const sdx_open_options &options) {
  uint64_t threads = options.threads;
  const int64_t memoryLimit = options.memory_limit;
  if (threads > kMaxThreads || memoryLimit < 0)
    return Error(ErrorKind::InvalidArgument,
                 "a model takes at most " + std::to_string(kMaxThreads) +
                     " threads and no negative memory limit");
  if (options.device < 0 || options.device_memory_limit < 0)
    return Error(ErrorKind::InvalidArgument,
                 "CUDA devices are counted from 0, and have no negative memory "
                 "limit");
  auto result = std::make_shared<ArtifactModel>();
  if (artifact.device_code_count) {
    if (MaybeError error = result->chooseForDevice(artifact, options))
      return *error;
  } else {
    auto chosen = choose(artifact);
    if (!chosen)
      return chosen.error();
    result->code = *chosen;
    if (MaybeError error = result->describe())
      return *error;
  }
  if (!threads)
    threads = artifact.threads;
  if (!threads)
    threads = runtime::ThreadPool::global().defaultThreads();
  result->budget = std::make_shared<runtime::MemoryBudget>(
      memoryLimit ? memoryLimit : runtime::machineMemory());
  result->model = std::make_unique<Model>(
      result->description.inputs, result->description.outputs,
      static_cast<unsigned>(threads), result->budget);
  if (MaybeError error = result->bind(artifact, static_cast<unsigned>(threads),
                                      options.weights_hash))
    return *error;
  return std::shared_ptr<Runner>(std::move(result));
}

MaybeError ArtifactModel::bind(const sdx_artifact &artifact, unsigned threads,
                               const uint64_t *weightsHash) {
  if (MaybeError error = weights.open(artifact, threads, weightsHash))
    return error;
  if (description.weightsBytes > artifact.weights_bytes)
    return Error(ErrorKind::InvalidModel,
                 std::string("the weights of the model '") + artifact.name +
                     "' are cut off");
  ModelCode made;
  made.main = code->main;
  made.literals =
      std::make_shared<runtime::StringLiterals>(description.strings);
  if (gpu) {
    // They are read now, and not by the first run.
    if (MaybeError error = weights.prepare())
      return error;
    if (MaybeError error =
            gpu->bind(description, init, weights.data(), threads, budget, made))
      return error;
    model->setDevice(gpu->ordinal());
    model->setCode(std::move(made));
    return std::nullopt;
  }
  for (const Argument &arg : description.mainArgs) {
    ModelArgument bound;
    if (arg.kind == Argument::Input) {
      bound.input = arg.index;
      bound.shape.resize(description.inputs[arg.index].dims.size());
    } else {
      bound.data = arg.length ? weights.data() + arg.offset : emptyTensor;
      bound.shape = arg.shape;
    }
    made.arguments.push_back(std::move(bound));
  }
  model->setCode(std::move(made));
  return std::nullopt;
}

Expected<std::vector<Tensor>>
ArtifactModel::run(const std::vector<TensorRef> &inputs,
                   const std::vector<OutputRef> &memory,
                   const RunOptions &options) {
  if (MaybeError error = model->check(inputs, memory, options))
    return *error;
  // There is no other code than that which counts on it.
  if (auto different = model->findDisagreement(inputs))
    return Error(ErrorKind::InvalidArgument, different->text);
  if (MaybeError error = weights.prepare())
    return *error;
  bool otherRank = false;
  auto results = model->run(inputs, memory, options, otherRank);
  if (otherRank)
    return Error(ErrorKind::Unsupported,
                 "these inputs lead to tensors of other ranks than the model "
                 "was built for: " +
                     results.error().message());
  return results;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static sdx_session *openModel(const sdx_artifact *artifact,
                              const sdx_open_options *options,
                              sdx_error **error) {
  sdx_open_options known = {};
  if (options)
    memcpy(&known, options, std::min(options->size, sizeof(known)));
  auto model = ArtifactModel::open(*artifact, known);
  if (model)
    return new sdx_session(*model);
  report(model.error(), error);
  return nullptr;
}

static const void *describe(const sdx_session *session, size_t *bytes) {
  auto *model = static_cast<const ArtifactModel *>(session->session.get());
  *bytes = model->code->description_bytes;
  return model->code->description;
}

static sdx_results *runOnDevice(sdx_session *session, const sdx_value *inputs,
                                const int *inputDevices, size_t inputCount,
                                const sdx_tensor *memory,
                                const int *memoryDevices,
                                const sdx_run_limits *limits,
                                sdx_error **error) {
  RunOptions options;
  if (limits) {
    options.timeout = limits->timeout;
    options.maxTripCount = limits->max_trip_count;
    options.releaseMemory = limits->release_memory != 0;
    if (limits->interrupted)
      options.interrupted = [limits] {
        return limits->interrupted(limits->argument) != 0;
      };
    options.terminateFlag =
        reinterpret_cast<const std::atomic<bool> *>(limits->terminate);
  }
  return runValues(session, inputs, inputCount, memory,
                   {inputDevices, memoryDevices}, options, error);
}

static sdx_results *runModel(sdx_session *session, const sdx_value *inputs,
                             size_t inputCount, const sdx_tensor *memory,
                             const sdx_run_limits *limits, sdx_error **error) {
  return runOnDevice(session, inputs, nullptr, inputCount, memory, nullptr,
                     limits, error);
}

static int64_t bytesHeld(const sdx_session *session) {
  return session->session->bytesHeld();
}

static void releaseMemory(sdx_session *session) {
  session->session->releaseMemory();
}

extern "C" const sdx_functions sdx_artifact_functions;
const sdx_functions sdx_artifact_functions = {
    sizeof(sdx_functions),
    openModel,
    sdx_session_free,
    sdx_session_input_count,
    sdx_session_output_count,
    sdx_session_input_name,
    sdx_session_output_name,
    sdx_session_metadata,
    describe,
    runModel,
    sdx_results_count,
    sdx_results_get_value,
    sdx_results_free,
    bytesHeld,
    releaseMemory,
    sdx_error_get_kind,
    sdx_error_message,
    sdx_error_free,
    runOnDevice,
    sdx_results_get_device,
    sdx_session_device,
};
