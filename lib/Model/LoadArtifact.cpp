//===- LoadArtifact.cpp - Models that were built ahead of time ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The other side of ArtifactModel.cpp: an artifact brings its own runtime, and
// only C structs cross the border.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/LoadArtifact.h"
#include "sardonyx-c/Artifact.h"
#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Model/FileMap.h"
#include "sardonyx/Model/Seal.h"
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <elf.h>

using namespace sardonyx;

#if defined(__x86_64__)
static constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
static constexpr uint16_t kMachine = EM_AARCH64;
#else
static constexpr uint16_t kMachine = EM_NONE;
#endif

/// Bytes of the table of functions that the first files have.
static constexpr size_t kFirstFunctions =
    offsetof(sdx_functions, run_on_device);

namespace {

/// Values of the caller as an artifact takes them.
class Arguments {
public:
  sdx_value convert(const TensorRef &ref) {
    sdx_value value = {};
    value.kind = static_cast<sdx_value_kind>(ref.kind);
    if (ref.kind == ValueKind::Tensor)
      value.tensor = {static_cast<int32_t>(ref.type), ref.shape.size(),
                      ref.shape.data(), const_cast<void *>(ref.data)};
    std::vector<sdx_value> items;
    for (const TensorRef &item : ref.items)
      items.push_back(convert(item));
    value.count = items.size();
    lists.push_back(std::move(items));
    value.items = lists.back().data();
    return value;
  }

private:
  std::deque<std::vector<sdx_value>> lists;
};

class LoadedArtifact : public Runner {
public:
  LoadedArtifact(const sdx_functions &functions, sdx_session *model,
                 Artifact description)
      : functions(functions), model(model),
        description(std::move(description)) {}
  ~LoadedArtifact() override { functions.close(model); }

  int device() const override {
    return has(offsetof(sdx_functions, device)) ? functions.device(model)
                                                : kHost;
  }

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
  int64_t bytesHeld() const override { return functions.bytes_held(model); }
  void releaseMemory() override { functions.release_memory(model); }

private:
  /// Whether the file knows the function at this place of the table.
  bool has(size_t place) const {
    return functions.size >= place + sizeof(void *);
  }

  const sdx_functions &functions;
  sdx_session *model;
  Artifact description;
};

} // namespace

/// The error that an artifact gave, which is freed.
static Error take(const sdx_functions &functions, sdx_error *error) {
  Error taken(static_cast<ErrorKind>(functions.error_kind(error)),
              functions.error_message(error));
  functions.free_error(error);
  return taken;
}

static Tensor convert(const sdx_value &value,
                      const std::shared_ptr<void> &owner, int device = kHost) {
  Tensor tensor;
  tensor.kind = static_cast<ValueKind>(value.kind);
  if (tensor.kind == ValueKind::Tensor) {
    tensor.type = static_cast<ElementType>(value.tensor.type);
    tensor.shape.assign(value.tensor.shape,
                        value.tensor.shape + value.tensor.rank);
    tensor.data = value.tensor.data;
    tensor.owner = owner;
    tensor.device = device;
  }
  for (size_t i = 0; i < value.count; ++i)
    tensor.items.push_back(convert(value.items[i], owner));
  return tensor;
}

Expected<std::vector<Tensor>>
LoadedArtifact::run(const std::vector<TensorRef> &inputs,
                    const std::vector<OutputRef> &memory,
                    const RunOptions &options) {
  Arguments arguments;
  std::vector<sdx_value> values;
  std::vector<int> inputDevices, memoryDevices;
  auto isOnDevice = [](const auto &ref) { return ref.device != kHost; };
  if (std::any_of(inputs.begin(), inputs.end(), isOnDevice) ||
      std::any_of(memory.begin(), memory.end(), isOnDevice)) {
    if (device() == kHost)
      return Error(ErrorKind::InvalidArgument,
                   "the model was built for processors, and takes no tensors "
                   "that lie on a CUDA device");
    for (const TensorRef &input : inputs)
      inputDevices.push_back(input.device);
    for (const OutputRef &ref : memory)
      memoryDevices.push_back(ref.device);
  }
  for (const TensorRef &input : inputs)
    values.push_back(arguments.convert(input));
  if (!memory.empty() && memory.size() != outputs().size())
    return Error(ErrorKind::InvalidArgument,
                 "the model has " + std::to_string(outputs().size()) +
                     " outputs, got memory for " +
                     std::to_string(memory.size()));
  std::vector<sdx_tensor> targets;
  for (const OutputRef &ref : memory)
    targets.push_back({static_cast<int32_t>(ref.type), ref.shape.size(),
                       ref.shape.data(), ref.data});
  static_assert(sizeof(options.terminate) == 1, "a byte on the other side");
  sdx_run_limits limits = {};
  limits.size = sizeof(limits);
  limits.terminate =
      reinterpret_cast<const unsigned char *>(&options.terminate);
  limits.timeout = options.timeout;
  limits.max_trip_count = options.maxTripCount;
  if (options.interrupted) {
    limits.interrupted = [](void *argument) -> int {
      return (*static_cast<const std::function<bool()> *>(argument))();
    };
    limits.argument = const_cast<std::function<bool()> *>(&options.interrupted);
  }
  limits.release_memory = options.releaseMemory;
  sdx_error *error = nullptr;
  const sdx_tensor *given = memory.empty() ? nullptr : targets.data();
  sdx_results *results =
      inputDevices.empty() && memoryDevices.empty()
          ? functions.run(model, values.data(), values.size(), given, &limits,
                          &error)
          : functions.run_on_device(
                model, values.data(),
                inputDevices.empty() ? nullptr : inputDevices.data(),
                values.size(), given,
                memoryDevices.empty() ? nullptr : memoryDevices.data(), &limits,
                &error);
  if (!results)
    return take(functions, error);
  // Results outlive the model, but not the library.
  std::shared_ptr<void> owner(results, [&all = functions](void *results) {
    all.free_results(static_cast<sdx_results *>(results));
  });
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < functions.result_count(results); ++i) {
    const int place =
        device() == kHost ? kHost : functions.result_device(results, i);
    tensors.push_back(convert(functions.result(results, i), owner, place));
    if (!memory.empty() && memory[i].data)
      tensors.back().owner = nullptr; // the caller's
  }
  return tensors;
}

bool sardonyx::isSharedLibrary(const std::string &path) {
  auto file = FileMap::open(path);
  return file && (*file)->bytes().substr(0, SELFMAG) ==
                     std::string_view(ELFMAG, SELFMAG);
}

/// Whether the system can load a file without harm, and the hash of its
/// weights.
static Expected<std::optional<uint64_t>> checkFile(const std::string &path) {
  auto file = FileMap::open(path);
  if (!file)
    return file.error();
  const std::string_view bytes = (*file)->bytes();
  auto refuse = [&](const char *why) {
    return Error(ErrorKind::InvalidModel, "'" + path + "' " + why);
  };
  Elf64_Ehdr header;
  if (bytes.size() < sizeof(header) ||
      memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
    return refuse("is no shared library");
  Expected<std::optional<uint64_t>> weightsHash = checkSeal(bytes, path);
  if (!weightsHash)
    return weightsHash.error();
  memcpy(&header, bytes.data(), sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN)
    return refuse("is no shared library");
  if (header.e_machine != kMachine)
    return refuse("was built for another kind of processor");
  return weightsHash;
}

Expected<std::shared_ptr<Runner>>
sardonyx::loadArtifact(const std::string &path,
                       const ArtifactOptions &options) {
  Expected<std::optional<uint64_t>> weightsHash = checkFile(path);
  if (!weightsHash)
    return weightsHash.error();
  auto refuse = [&](const std::string &why) {
    return Error(ErrorKind::InvalidModel, "'" + path + "' " + why);
  };
  // Without a slash the system would look for it elsewhere.
  std::string name = path.find('/') == std::string::npos ? "./" + path : path;
  // It stays: its threads, and memory of results, may outlive the model.
  void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char *why = dlerror();
    return refuse(std::string("cannot be loaded: ") + (why ? why : ""));
  }
  auto *artifact =
      static_cast<const sdx_artifact *>(dlsym(library, kArtifactSymbol));
  dlclose(library);
  if (!artifact)
    return refuse("is no model that 'sardonyx build' has made");
  if (memcmp(artifact->magic, SDX_ARTIFACT_MAGIC, sizeof(artifact->magic)) !=
          0 ||
      artifact->functions->size < kFirstFunctions)
    return refuse("was made by another version of Sardonyx");
  const sdx_functions &functions = *artifact->functions;
  sdx_open_options open = {sizeof(open),
                           options.threads,
                           options.memoryLimit,
                           *weightsHash ? &**weightsHash : nullptr,
                           options.device.value_or(0),
                           options.deviceMemoryLimit,
                           options.stream,
                           /*without_graphs=*/0};
  sdx_error *error = nullptr;
  sdx_session *model = functions.open(artifact, &open, &error);
  if (!model)
    return take(functions, error);
  size_t size = 0;
  const void *bytes = functions.description(model, &size);
  auto description =
      unpack({static_cast<const char *>(bytes), size}, "ahead of time");
  if (!description) {
    functions.close(model);
    return Error(ErrorKind::InvalidModel,
                 "'" + path + "': " + description.error().message());
  }
  auto loaded = std::make_shared<LoadedArtifact>(functions, model,
                                                 std::move(*description));
  if (options.device && loaded->device() == kHost)
    return Error(ErrorKind::Unsupported,
                 "'" + path +
                     "' was built for processors, and has no code for CUDA "
                     "devices");
  return std::shared_ptr<Runner>(std::move(loaded));
}
