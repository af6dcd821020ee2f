//===- Model.h - Runs of compiled code --------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What sessions and ahead-of-time artifacts share: a model whose code and
// weights are in memory. No MLIR or LLVM here or below.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_MODEL_H
#define SARDONYX_MODEL_MODEL_H

#include "sardonyx-c/RuntimeABI.h"
#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Types.h"
#include "sardonyx/Model/Values.h"
#include "sardonyx/Runtime/BufferPool.h"
#include "sardonyx/Runtime/DeviceRun.h"
#include "sardonyx/Runtime/ForkSafeMutex.h"
#include "sardonyx/Runtime/MemoryBudget.h"
#include "sardonyx/Runtime/RunContext.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sardonyx {

/// Stands for the memory of a tensor without elements.
extern char emptyTensor[64];

/// Descriptors {data, sizes...} and pointers to them, as entry points take.
class ArgumentTable {
public:
  /// Adds a descriptor and gives its place.
  size_t add(const void *data, const std::vector<int64_t> &shape);
  void set(size_t place, const void *data, const std::vector<int64_t> &shape);
  /// Valid until the next add().
  void **pointers();

private:
  std::vector<size_t> places;
  std::vector<int64_t> words;
  std::vector<void *> args;
};

/// An argument of `sdx_main`: the input of this number, or a constant.
struct ModelArgument {
  std::optional<size_t> input;
  const void *data = nullptr;
  std::vector<int64_t> shape;
  /// Its elements lie, or are to lie, on the device.
  bool onDevice = false;
};

/// The code of a model and what it works on. What is pointed to must outlive
/// the model.
struct ModelCode {
  sdx_entry_point main = nullptr;
  std::vector<ModelArgument> arguments;
  /// The strings that handles stand for in all runs.
  std::shared_ptr<const runtime::StringLiterals> literals;
  /// Null where the code calls none.
  std::shared_ptr<runtime::CustomNodes> customNodes;
  /// Null where all of it is the host's.
  std::shared_ptr<runtime::DeviceCode> device;
};

/// Runs a model's code, on any number of threads at a time.
class Model {
public:
  /// `threads`: how many a run may use. What runs and results hold counts
  /// against `budget`. `inputs` and `outputs` must outlive the model.
  Model(const std::vector<ValueInfo> &inputs,
        const std::vector<ValueInfo> &outputs, unsigned threads,
        std::shared_ptr<runtime::MemoryBudget> budget);
  ~Model();

  /// Before the first run.
  void setCode(ModelCode given) { code = std::move(given); }
  /// Called, in the place of releaseMemory(), before an allocation fails.
  void setReclaim(runtime::ReclaimMemory given) { reclaim = std::move(given); }
  /// The number of the device that inputs and results may lie on; kHost, the
  /// default: they may lie on none.
  void setDevice(int number) { device = number; }

  /// Has runs, each at a time, see tensors by what `given` makes.
  using MakeObservations =
      std::function<std::shared_ptr<runtime::Observations>()>;
  void setObservations(MakeObservations given) {
    makeObservations = std::move(given);
  }
  /// What runs at any time have been given of these.
  std::vector<std::shared_ptr<runtime::Observations>> observations() const;

  /// Whether a run takes these inputs and this memory for results; see
  /// Session::run().
  MaybeError check(const std::vector<TensorRef> &inputs,
                   const std::vector<OutputRef> &memory,
                   const RunOptions &options) const;

  /// A name of dimensions for which inputs have different sizes.
  struct Disagreement {
    std::string name;
    /// Which sizes of which inputs: a sentence without its full stop.
    std::string text;
  };
  /// The first of such names, if these inputs, which check() has passed, have
  /// any. Code may count on there being none.
  std::optional<Disagreement>
  findDisagreement(const std::vector<TensorRef> &inputs) const;

  /// Of the run that ended last; nothing without a device, or before any run.
  std::optional<DeviceUse> lastDeviceUse() const;

  /// What a run that succeeds has recorded, between two times of
  /// sdx_rt_clock().
  using Observer = std::function<void(
      int64_t begin, int64_t end, const std::vector<runtime::StepRecord> &steps,
      const std::vector<runtime::LaunchRecord> &launches)>;

  /// Runs the code on what check() has passed. `otherRank` turns true where the
  /// code was made for other ranks than these inputs lead to.
  Expected<std::vector<Tensor>> run(const std::vector<TensorRef> &inputs,
                                    const std::vector<OutputRef> &memory,
                                    const RunOptions &options, bool &otherRank,
                                    const Observer &observer = nullptr);

  /// Gives the system the memory that no run is using.
  void releaseMemory();

private:
  struct State;
  std::unique_ptr<State> takeState();
  void putBack(std::unique_ptr<State> state);
  std::shared_ptr<runtime::Observations> takeObservations();
  MaybeError checkInputs(const std::vector<TensorRef> &inputs) const;
  MaybeError checkMemory(const std::vector<OutputRef> &memory) const;
  MaybeError checkPlace(const std::string &what, const ValueInfo &info,
                        int place) const;
  /// Puts the inputs, or the handles that stand for them, into the table.
  MaybeError setInputs(State &state,
                       const std::vector<TensorRef> &inputs) const;
  /// Has inputs be where the code takes them, in a run that has a device.
  void placeInputs(State &state, const std::vector<TensorRef> &inputs) const;
  void setOutputs(runtime::RunContext &context,
                  const std::vector<TensorRef> &inputs,
                  const std::vector<OutputRef> &memory) const;
  /// `keepMemory`: keep the memory of results for others when it is released.
  Expected<std::vector<Tensor>> takeOutputs(runtime::RunContext &context,
                                            bool keepMemory) const;
  void indexSymbols();

  const std::vector<ValueInfo> &inputInfos, &outputInfos;
  unsigned threads;
  std::shared_ptr<runtime::MemoryBudget> budget;
  std::shared_ptr<runtime::BufferPool> outputPool;
  ModelCode code;
  runtime::ReclaimMemory reclaim;
  int device = kHost;
  MakeObservations makeObservations;

  /// For each dimension of each input, the number of its symbol, or -1 where it
  /// has none that is the name of a size.
  std::vector<std::vector<int>> symbolOf;
  std::vector<std::string> symbols;

  /// States that no run uses, the one that was used last at the end.
  mutable runtime::ForkSafeMutex idleMutex;
  std::vector<std::unique_ptr<State>> idle;
  /// One for each run that there was at a time; states come and go.
  std::vector<std::shared_ptr<runtime::Observations>> observed;
  uint64_t runs = 0;
  std::optional<DeviceUse> deviceUse;
};

} // namespace sardonyx

#endif // SARDONYX_MODEL_MODEL_H
