//===- Session.h - A model ready to run -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C++ interface of Sardonyx for programs. No MLIR or LLVM type crosses it.
//
//   auto session = sardonyx::Session::load("model.onnx", {});
//   if (!session)
//     return fail(session.error().message());
//   auto results = (*session)->run({{"x", sardonyx::refTo(data, {1, 3})}});
//   if (!results)
//     return fail(results.error().message());
//   auto y = sardonyx::viewAs<float>((*results)["y"]);
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_SESSION_H
#define SARDONYX_SESSION_SESSION_H

#include "sardonyx/Importer/GivenInitializer.h"
#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include "sardonyx/Model/Profile.h"
#include "sardonyx/Model/Runner.h"
#include "sardonyx/Model/Types.h"
#include "sardonyx/Model/Values.h"
#include "sardonyx/Numerics.h"
#include "sardonyx/Runtime/DeviceUse.h"
#include "sardonyx/Runtime/Observation.h"
#include "sardonyx/Session/CustomOps.h"
#include "sardonyx/Session/TypedValues.h"
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sardonyx {

/// More threads than any machine has use for, and few enough that whoever asks
/// for more has made a mistake.
constexpr unsigned kMaxThreads = 4096;

/// A device that computes in the processor's place.
struct DeviceOptions {
  /// Whether kernels run on a GPU of NVIDIA's.
  bool cuda = false;
  /// Its number, as the driver counts.
  int deviceId = 0;
  /// Bytes of its memory that weights, runs and results may take together; 0:
  /// what there is.
  int64_t memoryLimit = 0;
  /// A stream of the caller's (CUstream) that all work is given to, which must
  /// outlive the session; null: each run has one of the session's.
  void *userStream = nullptr;
  /// Make one launch of all that a run has the device do, if it repeats.
  bool enableGraph = true;
  /// Where the device, or the model on it, is not possible, warn and use the
  /// processor.
  bool mayUseCpu = false;
  /// What code is made for, "sm_90a"; a session has it say what its device is.
  std::string architecture;
};

/// What is to be seen of a tensor.
struct ObservedTensor {
  /// Of runtime::ObservationKind.
  unsigned kinds = runtime::ObserveRange;
  /// Of the channels; negative ones count from the end.
  int64_t axis = 1;
};
using runtime::Observation;

/// When a model is compiled.
enum class Compile {
  /// Before it is loaded.
  Wait,
  /// In a third to two thirds of the time to code that LLVM has not optimised,
  /// two to four times slower; a thread compiles the rest meanwhile, and runs
  /// go by that as soon as it is there. Results of both are within the
  /// tolerance of `numerics`. Weights are in memory twice until then. A model
  /// that the cache has, and one that is profiled, observed, checked for bounds
  /// or on a device, is loaded by Wait.
  Background,
};

struct SessionOptions {
  /// Threads that a run uses, at most kMaxThreads; 0: one for each physical
  /// core it may use.
  unsigned intraOpThreads = 0;
  /// Keep compiled models and their packed weights on disk, and use them.
  bool cache = true;
  /// Where; empty: $SARDONYX_CACHE_DIR, $XDG_CACHE_HOME/sardonyx or
  /// ~/.cache/sardonyx.
  std::string cacheDir;
  /// Processor and features in LLVM's spelling; empty: this machine's.
  std::string cpu, features;
  /// The machine to compile for, "aarch64-linux-gnu", where the code is only
  /// looked at or built ahead of time; empty: this one.
  std::string triple;
  /// What computes besides the processor.
  DeviceOptions device;
  /// When the code is made; see Session::waitForCompile().
  Compile compile = Compile::Wait;
  /// Has another process put the code into the cache where load() does not find
  /// it; load() fails by what it gives. Null: this process compiles. It is
  /// called once at most, and not where there is no cache; code that runs need
  /// for other ranks is compiled by this process.
  std::function<MaybeError()> compileElsewhere;
  /// LLVM's optimisation level, 0 to 3. Kernels are vectorised before.
  unsigned optLevel = 1;
  /// Folder that external data must lie in; empty: the model file's.
  std::string externalDataDir;
  /// Sizes for named dimensions that the model leaves open. The code is then
  /// made for these sizes and takes no others.
  std::map<std::string, int64_t> dims;
  /// Names in `dims` that no input has are told in a warning, not an error.
  bool mayDimsBeUnknown = false;
  /// Shapes of inputs, by name, in place of what the model declares; -1 leaves
  /// a dimension open.
  std::map<std::string, std::vector<int64_t>> inputShapes;
  /// Values of inputs of integers or booleans, by name, all elements in order.
  /// The code is then made for these values and takes no others.
  std::map<std::string, std::vector<int64_t>> inputValues;
  /// Take dimensions of inputs that share a name for different ones. Otherwise
  /// code counts on their being equal, and a session compiles the model once
  /// more, so, when inputs come where they are not.
  bool distinctDims = false;
  /// Sizes for the open dimensions of inputs that have these denotations.
  std::map<std::string, int64_t> denotedDims;
  /// Tensors in the place of the model's initializers of these names.
  std::shared_ptr<const GivenInitializers> initializers;
  /// Values of the model's main graph, by name, that runs give in the place of
  /// its outputs, in this order; what only others need is not computed. Empty:
  /// the model's outputs.
  std::vector<std::string> outputs;
  /// Operators that the model may use besides ONNX's own.
  std::shared_ptr<const CustomOps> customOps;
  /// By which algorithms products and convolutions of f32 may go.
  Numerics numerics = Numerics::F32;
  /// What their operands may be rounded to where that is faster.
  Precision precision = Precision::F32;
  /// Use the tile registers of AMX for f32, as sums of bf16, where the
  /// processor has them and `numerics` allows it. Not set: where one thread
  /// computes, or cores keep the rate of their tile registers; one that slows
  /// them down would hold up the others (see docs/performance/HowItWorks.md).
  std::optional<bool> splitFloats;
  /// Plans of kernels, as planModel() writes them and a person may have edited
  /// them: those kernels are computed by them and not by what the compiler
  /// would choose. Lines of kernels that the model has not are warnings; plans
  /// that do not fit their kernel are errors.
  std::string plan;
  /// Told, while the model is compiled, a sentence on each kernel that has none
  /// of the forms that its target computes fast, and why. What the cache has is
  /// not compiled.
  std::function<void(const std::string &)> remark;
  /// Look at every index before code reads or writes memory there, and fail the
  /// run where one lies outside: for finding faults, several times slower.
  bool checkBounds = false;
  /// Record when each step of each run begins and ends; see takeProfile().
  bool profile = false;
  /// Tensors of the model's main graph (inputs, results of nodes, initializers)
  /// of whose numbers runs keep something, by their names; see
  /// takeObservations(). They have to be floats. Results are the same bits as
  /// without, and the code is no slower than it takes to look at the numbers:
  /// those of products and convolutions are seen in registers. A device's code
  /// observes nothing.
  std::map<std::string, ObservedTensor> observe;
  /// Tell `perf` the names of the kernels, in /tmp/perf-PID.map.
  bool perfMap = false;
  /// Bytes that packed weights, runs and results may take together, memory that
  /// is kept for the next run included; 0: what the machine or the process's
  /// control group has. A run that needs more fails.
  int64_t memoryLimit = 0;
  /// Seconds that compiling may take; 0: as long as it likes.
  double compileTimeout = 0;
  /// Asked every some milliseconds while the model is compiled, by the thread
  /// that loads it; true gives up.
  std::function<bool()> interrupted;
};

/// How long a step of loading took.
struct Timing {
  std::string step;
  double seconds;
};

/// How a session came to be.
struct LoadReport {
  bool fromCache = false;
  /// Threads that a run may use.
  unsigned threads = 1;
  std::vector<Timing> timings;
  /// Bytes of machine code and of packed weights.
  size_t codeBytes = 0, persistentBytes = 0;
  /// The files that hold parts of the model beside its own.
  std::vector<std::string> files;
  /// Why the cache of compiled models is not used, where something is wrong
  /// with its folder.
  std::string cacheProblem;
};

/// Has all threads stop to load models and waits until they have, for the end
/// of the process, which does so itself, but may do so too late for a model
/// that is the process's first. None is loaded any more.
SARDONYX_API void stopLoading();

class SARDONYX_API Session : public Runner {
public:
  /// Compiles the model in a file, or takes it from the cache.
  static Expected<std::shared_ptr<Session>>
  load(const std::string &path, const SessionOptions &options = {});
  /// The same for a model in memory, which need not outlive the call. A session
  /// that may compile it once more keeps the bytes: by `owner`, which holds
  /// them, or as a copy.
  static Expected<std::shared_ptr<Session>>
  loadBytes(const void *data, size_t size, const SessionOptions &options = {},
            std::shared_ptr<const void> owner = nullptr);

  ~Session() override;
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const std::vector<ValueInfo> &inputs() const override;
  const std::vector<ValueInfo> &outputs() const override;
  const ModelMetadata &metadata() const override;
  const LoadReport &report() const;
  const SessionOptions &options() const;

  /// The session may be given up while it runs.
  Expected<std::vector<Tensor>>
  run(const std::vector<TensorRef> &inputs,
      const std::vector<OutputRef> &memory = {},
      const RunOptions &options = RunOptions()) override;

  /// The same on inputs by name, run({{"x", refTo(data, {1, 3})}}), with
  /// results by name: those of `outputs`, or all.
  template <size_t N>
  Expected<std::map<std::string, Tensor>>
  run(const NamedInput (&inputs)[N],
      const std::vector<std::string> &outputs = {},
      const RunOptions &options = RunOptions()) {
    return runByName(*this, {inputs, inputs + N}, outputs, options);
  }

  int device() const override;
  /// What the run that ended last has had the device do; nothing without a
  /// device, or before any run.
  std::optional<DeviceUse> lastDeviceUse() const;
  int64_t bytesHeld() const override;
  void releaseMemory() override;

  /// Waits for what Compile::Background has a thread compile: true when it is
  /// there, false after so many seconds. An error where the model goes on by
  /// code that is not optimised, and why; that is a warning, too. Runs need not
  /// wait.
  Expected<bool>
  waitForCompile(std::optional<double> seconds = std::nullopt) const;

  bool hasWarnings() const override;
  std::vector<std::string> takeWarnings() override;

  /// What the runs so far have recorded, and begins anew; empty unless the
  /// session was loaded for profiling.
  Profile takeProfile();

  /// What runs so far have seen of the tensors of SessionOptions::observe, runs
  /// that failed included, and begins anew. Waits for runs to end. Fails where
  /// a tensor had different numbers of channels in code for different inputs.
  Expected<std::map<std::string, Observation>> takeObservations();
  /// The tensors of which runs so far have seen NaN or an infinite number,
  /// among those whose range is observed.
  std::vector<std::string> findNonFinite() const;

private:
  struct Impl;
  explicit Session(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl;
};

} // namespace sardonyx

#endif // SARDONYX_SESSION_SESSION_H
