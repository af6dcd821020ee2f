//===- Session.cpp - A model ready to run ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/Session.h"
#include "lib/Model/Device/ImageChoice.h"
#include "lib/Session/Compile/CompileStoppably.h"
#include "lib/Session/Compile/CompilerPages.h"
#include "lib/Session/Compile/Images.h"
#include "lib/Session/Compile/Options.h"
#include "lib/Session/Compile/Signature.h"
#include "lib/Session/Device/FetchKnown.h"
#include "lib/Session/Device/MachineCode.h"
#include "lib/Session/SessionImpl.h"
#include "lib/Session/Variants/KnownValues.h"
#include "sardonyx/Objects/Objects.h"
#include "sardonyx/Runtime/AlignedMemory.h"
#include "sardonyx/Runtime/ProcessorFeatures.h"
#include "sardonyx/Runtime/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>

using namespace sardonyx;
using runtime::BufferPool;

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
  persistentPool =
      std::make_shared<BufferPool>(budget, BufferPool::Sizes::Exact);
}

Session::Impl::~Impl() {
  if (packed)
    budget->give(report.persistentBytes);
  if (background)
    background->stop();
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
  return options.compile == Compile::Background
             ? Impl::loadInBackground(*model, source, options)
             : Impl::load(*model, source, options);
}

Expected<std::shared_ptr<Session>>
Session::loadBytes(const void *data, size_t size, const SessionOptions &options,
                   std::shared_ptr<const void> owner) {
  ModelSource source;
  source.bytes = data ? data : "";
  source.size = data ? size : 0;
  source.owner = std::move(owner);
  if (options.compile == Compile::Background)
    return Impl::loadInBackground(
        FileMap::borrow(source.bytes, source.size, source.owner), source,
        options);
  return Impl::load(FileMap::borrow(source.bytes, source.size), source,
                    options);
}

std::string Session::Impl::folderOfModel(const std::string &path) {
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

/// What keeps this machine from running the code of a session, if anything.
static MaybeError checkProcessor(const SessionOptions &options) {
  if (options.cpu.empty())
    return std::nullopt;
  auto required = featuresOf(options);
  if (!required)
    return required.error();
  std::string missing = runtime::missingFeatures(*required);
  if (missing.empty())
    return std::nullopt;
  return Error(ErrorKind::InvalidArgument,
               "code for the processor '" + options.cpu +
                   "' cannot run on this one, which lacks " + missing);
}

/// What a session that computes on the CPU warns of, which was asked for
/// another device.
static std::string tellFallback(const std::string &why) {
  return "the model runs on the CPU: " + why;
}

static runtime::gpu::WorkMode workModeOf(const SessionOptions &options) {
  if (options.profile)
    return runtime::gpu::WorkMode::Timed;
  return options.device.enableGraph ? runtime::gpu::WorkMode::Graphs
                                    : runtime::gpu::WorkMode::Plain;
}

MaybeError Session::Impl::openDevice(const Impl *whole) {
  DeviceOptions &asked = options.device;
  if (!asked.cuda)
    return std::nullopt;
  auto refuse = [&](const Error &error) -> MaybeError {
    if (!asked.mayUseCpu)
      return error;
    warnings.add("device", tellFallback(error.message()));
    asked = DeviceOptions();
    return std::nullopt;
  };
  if (!targetInfoOf(options))
    return refuse(noCodeForCuda());
  if (whole && whole->device) {
    device = whole->device;
  } else {
    auto opened = ModelDevice::open(asked.deviceId, asked.memoryLimit,
                                    asked.userStream, workModeOf(options));
    if (!opened)
      return refuse(opened.error());
    device = std::move(*opened);
  }
  asked.architecture = architectureOf(device->sm());
  return std::nullopt;
}

Expected<std::shared_ptr<Session>>
Session::Impl::loadForCpu(std::shared_ptr<FileMap> model,
                          const ModelSource &source, SessionOptions options,
                          const Impl *whole, const Error &why) {
  options.device = DeviceOptions();
  auto session = load(std::move(model), source, options, whole);
  if (session)
    (*session)->impl->warnings.add("device", tellFallback(why.message()));
  return session;
}

Expected<std::shared_ptr<Session>>
Session::Impl::load(std::shared_ptr<FileMap> model, const ModelSource &source,
                    const SessionOptions &options, const Impl *whole,
                    std::shared_ptr<runtime::MemoryBudget> budget) {
  if (MaybeError error = checkOptions(options))
    return *error;
  if (!options.triple.empty())
    return Error(ErrorKind::InvalidArgument,
                 "a session runs on this machine; for '" + options.triple +
                     "' a model can be built ahead of time");
  if (MaybeError error = checkProcessor(options))
    return *error;
  LoadScope loading;
  if (loading.error())
    return *loading.error();
  // What loading the libraries has read: relocations and initializers.
  static std::atomic<bool> forgotten{false};
  if (!forgotten.exchange(true))
    forgetCompilerPages();
  auto impl = std::make_shared<Impl>(options,
                                     whole ? whole->budget : std::move(budget));
  if (MaybeError error = impl->openDevice(whole))
    return *error;
  if (!source.bytes && options.externalDataDir.empty())
    impl->options.externalDataDir = folderOfModel(source.path);
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
    if (MaybeError error = impl->findArtifact(cache, key, whole, found))
      return *error;
    impl->report.timings.push_back({"cache", watch.seconds()});
  }
  impl->report.fromCache = found.has_value();
  if (!found && options.compileElsewhere) {
    if (MaybeError error = impl->compileElsewhere(cache, key, whole, found))
      return *error;
    impl->report.timings.push_back({"process", watch.seconds()});
  }
  if (found) {
    impl->artifact = std::move(*found);
  } else {
    auto compiled =
        compileStoppably(source, impl->options, impl->report.timings,
                         /*mayDefer=*/!whole);
    if (!compiled && impl->device && options.device.mayUseCpu &&
        compiled.error().kind() == ErrorKind::Unsupported)
      return loadForCpu(std::move(model), source, options, whole,
                        compiled.error());
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
  impl->report.files = pathsOf(artifact.files);
  for (const std::string &text : artifact.warnings)
    impl->warnings.add(text, text);
  if (!whole && (artifact.deferred ||
                 (artifact.assumesRank && leavesRanksOpen(artifact.inputs)) ||
                 (!options.distinctDims && shareDimNames(artifact.inputs))))
    impl->variants = std::make_unique<Variants>(*model, source, artifact);
  if (MaybeError error = impl->prepare(std::move(model), cache, key))
    return *error;
  return std::shared_ptr<Session>(new Session(std::move(impl)));
}

MaybeError Session::Impl::prepare(std::shared_ptr<FileMap> modelFile,
                                  Cache &cache, const std::string &key) {
  for (const auto *infos : {&artifact.inputs, &artifact.outputs})
    for (const ValueInfo &info : *infos)
      if (byteSizeOf(info.innerType()) == 0)
        return Error(ErrorKind::Unsupported, "'" + info.name +
                                                 "' has the type " + info.type +
                                                 ", which is not supported");
  model = std::make_unique<Model>(artifact.inputs, artifact.outputs, threads,
                                  budget);
  model->setReclaim([this] { releaseMemory(); });
  if (device)
    model->setDevice(device->ordinal());
  if (!options.observe.empty())
    model->setObservations([count = options.observe.size(), this] {
      return std::make_shared<runtime::Observations>(
          count, std::min(threads, runtime::ThreadPool::kMaxThreads));
    });
  if (artifact.deferred)
    return std::nullopt;
  (void)requestTileRegisters(); // code from the cache may use them
  Stopwatch watch;
  bool needsInit =
      !artifact.initArgs.empty() || !artifact.persistentElementBytes.empty();
  if (MaybeError error = loadImages(artifact.images, artifact.objects))
    return error;
  if (device) {
    addMachineCode(artifact, *device, cache, key);
    auto loaded = DeviceModel::load(device, artifact.images);
    if (!loaded)
      return loaded.error();
    deviceModel = std::move(*loaded);
    report.timings.push_back({"machine code", watch.seconds()});
  }
  const bool callsProcess =
      std::any_of(artifact.images.begin(), artifact.images.end(),
                  [](const Image &image) { return !isForDevice(image); });
  artifact.images = {};
  auto linked = LinkedCode::link(artifact.objects, /*needsMain=*/true,
                                 needsInit, options.perfMap, callsProcess);
  if (!linked)
    return linked.error();
  code = std::move(*linked);
  for (std::string &object : artifact.objects)
    report.codeBytes += object.size();
  artifact.objects = {};
  forgetCompilerPages(); // before weights need as much
  report.timings.push_back({"link", watch.seconds()});

  if (MaybeError error = mapFiles(std::move(modelFile)))
    return error;
  if (needsInit) {
    if (MaybeError error = packWeights(cache, key))
      return error;
    report.timings.push_back({"init", watch.seconds()});
  }
  keepConstants();
  Expected<std::vector<ModelArgument>> arguments = bind(artifact.mainArgs);
  if (deviceModel) {
    arguments = bindOnDevice(artifact.mainArgs, deviceModel->constants);
    if (!arguments)
      return arguments.error();
    report.timings.push_back({"upload", watch.seconds()});
  }
  // Pages of weights that were packed are of no more use.
  std::vector<bool> used(files.size());
  bool dataUsed = false;
  for (const Argument &arg : artifact.mainArgs)
    if (arg.kind == Argument::Constant && !arg.onDevice) {
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
  model->setCode({code->mainEntry(), std::move(*arguments),
                  std::make_shared<runtime::StringLiterals>(artifact.strings),
                  customNodes, deviceModel ? deviceModel->code() : nullptr});
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
std::optional<DeviceUse> Session::lastDeviceUse() const {
  return impl->model->lastDeviceUse();
}
int Session::device() const {
  return impl->device ? impl->device->ordinal() : kHost;
}
int64_t Session::bytesHeld() const { return impl->budget->bytesHeld(); }
bool Session::hasWarnings() const {
  return impl->warnings.any() ||
         (impl->background && impl->background->warnings.any());
}
std::vector<std::string> Session::takeWarnings() {
  std::vector<std::string> all = impl->warnings.take();
  if (impl->background)
    for (std::string &text : impl->background->warnings.take())
      all.push_back(std::move(text));
  return all;
}
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

Expected<std::map<std::string, Observation>> Session::takeObservations() {
  std::vector<Observation> all(impl->options.observe.size());
  bool fits = true;
  impl->forEachObserved([&](runtime::Observations &seen) {
    std::vector<Observation> some;
    seen.moveTo(some);
    for (size_t i = 0; i < some.size(); ++i)
      fits &= all[i].merge(some[i]);
  });
  if (!fits)
    return Error(ErrorKind::Failed, "an observed tensor had different numbers "
                                    "of channels in different runs");
  std::map<std::string, Observation> named;
  size_t i = 0;
  for (const auto &[name, tensor] : impl->options.observe)
    named.emplace(name, std::move(all[i++]));
  return named;
}

std::vector<std::string> Session::findNonFinite() const {
  std::vector<bool> found(impl->options.observe.size());
  impl->forEachObserved([&](runtime::Observations &seen) {
    for (size_t site : seen.findNonFinite())
      found[site] = true;
  });
  std::vector<std::string> names;
  size_t i = 0;
  for (const auto &[name, tensor] : impl->options.observe)
    if (found[i++])
      names.push_back(name);
  return names;
}

void Session::Impl::forEachObserved(
    const std::function<void(runtime::Observations &)> &see) {
  for (const auto &seen : model->observations())
    see(*seen);
  if (variants)
    variants->forEach(
        [&](Session &variant) { variant.impl->forEachObserved(see); });
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

void Session::Impl::releaseMemory() {
  if (background)
    background->current()->releaseMemory();
  model->releaseMemory();
  if (variants)
    variants->forEach([](Session &variant) { variant.releaseMemory(); });
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
      return Error(ErrorKind::InvalidArgument,
                   "input '" + infos[i].name + "' must have the values " +
                       describeShape(known->second) +
                       ", for which the code was made");
  }
  return std::nullopt;
}

Expected<std::vector<Tensor>>
Session::Impl::runCode(const std::vector<TensorRef> &inputs,
                       const std::vector<OutputRef> &memory,
                       const RunOptions &runOptions, bool &otherRank) {
  Model::Observer observer;
  if (options.profile)
    observer = [this](int64_t begin, int64_t end,
                      const std::vector<runtime::StepRecord> &steps,
                      const std::vector<runtime::LaunchRecord> &launches) {
      profile.add(begin, end, steps, launches, artifact.profileSites.size());
    };
  return model->run(inputs, memory, runOptions, otherRank, observer);
}

Expected<std::vector<Tensor>> Session::Impl::runVariant(
    const std::vector<TensorRef> &inputs, bool namesDiffer,
    const std::vector<OutputRef> &memory, const RunOptions &runOptions) {
  // What ends the run ends the compilation, too.
  auto deadline = std::chrono::steady_clock::now() +
                  std::chrono::duration<double>(runOptions.timeout);
  auto ended = [&] {
    const auto *flag = runOptions.terminateFlag;
    return (flag ? *flag : runOptions.terminate).load() ||
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
    variant.distinctDims |= known.distinctDims;
    variant.interrupted = ended;
    auto loaded = Impl::load(std::move(model), source, variant, this);
    if (loaded)
      (*loaded)->impl->options.interrupted = nullptr;
    return loaded;
  };
  auto variant = variants->findOrLoad(inputs, namesDiffer, load);
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
  if (MaybeError error = session->model->check(inputs, memory, options))
    return *error;
  // Values decide on code where they lie on the host.
  const bool areThere =
      session->device &&
      std::any_of(inputs.begin(), inputs.end(),
                  [](const TensorRef &ref) { return ref.device != kHost; });
  if (areThere &&
      (session->variants || !session->options.inputValues.empty())) {
    std::vector<TensorRef> known = inputs;
    std::deque<std::string> copies;
    if (MaybeError error = fetchKnown(*session->device, known, copies))
      return *error;
    if (!copies.empty())
      return session->runChecked(known, memory, options);
  }
  return session->runChecked(inputs, memory, options);
}

Expected<std::vector<Tensor>>
Session::Impl::runChecked(const std::vector<TensorRef> &inputs,
                          const std::vector<OutputRef> &memory,
                          const RunOptions &runOptions) {
  if (background)
    return runCurrent(inputs, memory, runOptions);
  if (MaybeError error =
          checkValues(artifact.inputs, inputs, options.inputValues))
    return *error;
  auto results = runAny(inputs, memory, runOptions);
  if (results)
    warnings.addOutputs(artifact.outputs, *results);
  return results;
}

Expected<std::vector<Tensor>>
Session::Impl::runAny(const std::vector<TensorRef> &inputs,
                      const std::vector<OutputRef> &memory,
                      const RunOptions &runOptions) {
  std::optional<Model::Disagreement> different;
  if (!options.distinctDims)
    different = model->findDisagreement(inputs);
  if (different)
    warnings.add("dimension " + different->name,
                 different->text + "; they count as different dimensions");
  const bool namesDiffer = different.has_value();
  bool otherRank = false;
  if (!variants)
    return runCode(inputs, memory, runOptions, otherRank);
  auto variant = variants->find(inputs, namesDiffer);
  if (!variant && !namesDiffer && !artifact.deferred) {
    auto result = runCode(inputs, memory, runOptions, otherRank);
    if (!otherRank || !leavesRanksOpen(artifact.inputs))
      return result;
  }
  auto result = variant ? variant->run(inputs, memory, runOptions)
                        : runVariant(inputs, namesDiffer, memory, runOptions);
  // That may be why.
  if (!result && namesDiffer)
    return Error(result.error().kind(),
                 result.error().message() + " (" + different->text + ")",
                 result.error().detail());
  return result;
}
