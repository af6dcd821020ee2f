//===- SessionImpl.h - What a session is made of ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_SESSIONIMPL_H
#define SARDONYX_LIB_SESSION_SESSIONIMPL_H

#include "Artifact.h"
#include "Cache.h"
#include "CustomNodes.h"
#include "FileMap.h"
#include "Linker.h"
#include "ProfileLog.h"
#include "Values.h"
#include "Variants.h"
#include "sardonyx/Runtime/ForkSafeMutex.h"
#include "sardonyx/Runtime/MemoryBudget.h"
#include "sardonyx/Runtime/RunContext.h"
#include "sardonyx/Session/Compile.h"
#include "sardonyx/Session/Session.h"
#include <algorithm>

namespace sardonyx {

/// Descriptors {data, sizes...} and pointers to them, as entry points take.
class ArgumentTable {
public:
  /// Adds a descriptor and gives its place.
  size_t add(const void *data, const std::vector<int64_t> &shape) {
    places.push_back(words.size());
    words.push_back(0);
    words.insert(words.end(), shape.begin(), shape.end());
    set(places.size() - 1, data, shape);
    return places.size() - 1;
  }
  void set(size_t place, const void *data, const std::vector<int64_t> &shape) {
    int64_t *word = &words[places[place]];
    *word++ = reinterpret_cast<int64_t>(data);
    std::copy(shape.begin(), shape.end(), word);
  }
  /// Valid until the next add().
  void **pointers() {
    args.clear();
    for (size_t place : places)
      args.push_back(&words[place]);
    return args.data();
  }

private:
  std::vector<size_t> places;
  std::vector<int64_t> words;
  std::vector<void *> args;
};

/// What one run needs; kept for the next.
struct RunState {
  RunState(unsigned threads, std::shared_ptr<runtime::BufferPool> pool,
           std::shared_ptr<runtime::MemoryBudget> budget,
           runtime::ReclaimMemory reclaim)
      : context(threads, std::move(pool), std::move(budget),
                std::move(reclaim)) {}
  runtime::RunContext context;
  ArgumentTable table;
  /// The handles that stand for inputs which are no numbers.
  std::vector<std::vector<int64_t>> handles;
  /// The number of the session's run that used it last.
  uint64_t lastRun = 0;
};

struct Session::Impl {
  SessionOptions options;
  unsigned threads = 1;
  Artifact artifact;
  LoadReport report;
  std::unique_ptr<LinkedCode> code;
  /// By index of Artifact::files; null once nothing needs the file.
  std::vector<std::shared_ptr<FileMap>> files;

  /// What weights, runs and results take counts against it.
  std::shared_ptr<runtime::MemoryBudget> budget;
  std::shared_ptr<runtime::BufferPool> persistentPool, outputPool;
  std::vector<PackedTensor> persistent;
  /// Where these lie if not in their pool.
  std::shared_ptr<const PackedWeights> packed;

  /// The model's strings, which all runs share.
  std::shared_ptr<const runtime::StringLiterals> literals;

  /// The nodes that runs call; null where there are none.
  std::shared_ptr<CustomNodes> customNodes;

  /// For each dimension of each input, the number of its symbol or -1.
  std::vector<std::vector<int>> symbolOf;
  std::vector<std::string> symbols;

  /// States that no run uses, the one that was used last at the end.
  runtime::ForkSafeMutex idleMutex;
  std::vector<std::unique_ptr<RunState>> idle;
  uint64_t runs = 0;

  ProfileLog profile;

  /// Null where no rank hangs on what a run gives, as in most models: it keeps
  /// a copy of a model that came as bytes.
  std::unique_ptr<Variants> variants;

  Impl(const SessionOptions &options,
       std::shared_ptr<runtime::MemoryBudget> budget);
  ~Impl();

  /// `whole`: the session of which this one is a variant, or null.
  static Expected<std::shared_ptr<Session>> load(std::shared_ptr<FileMap> model,
                                                 const ModelSource &source,
                                                 const SessionOptions &options,
                                                 const Impl *whole = nullptr);
  /// Finds the operators that the artifact calls. False: they are no more what
  /// they were when it was made.
  Expected<bool> findCustomOps(const Artifact &found);
  /// `key`: the artifact's in the cache.
  MaybeError prepare(std::shared_ptr<FileMap> model, const Cache &cache,
                     const std::string &key);
  MaybeError mapFiles(std::shared_ptr<FileMap> model);
  /// Packs the weights, or takes from the cache what another load has made of
  /// them.
  MaybeError packWeights(const Cache &cache, const std::string &key);
  MaybeError runInit();
  /// Has `weights` instead of memory of its own; null and weights that the
  /// budget does not allow change nothing.
  bool share(std::shared_ptr<const PackedWeights> weights);
  /// Gives the system the pages of files that constants are read from.
  void forgetPages() const;
  void indexSymbols();
  const void *constantData(const Argument &arg) const;
  ArgumentTable makeTable(const std::vector<Argument> &args) const;

  /// Runs this session's own code; the inputs fit. `otherRank` turns true where
  /// the code was made for other ranks than these inputs lead to.
  Expected<std::vector<Tensor>> runCode(const std::vector<TensorRef> &inputs,
                                        const std::vector<OutputRef> &memory,
                                        const RunOptions &options,
                                        bool &otherRank);
  Expected<std::vector<Tensor>> runVariant(const std::vector<TensorRef> &inputs,
                                           const std::vector<OutputRef> &memory,
                                           const RunOptions &options);

  std::unique_ptr<RunState> takeState();
  void putBack(std::unique_ptr<RunState> state);
  /// Gives the system the memory that no run is using.
  void releaseMemory();
  MaybeError checkInputs(const std::vector<TensorRef> &inputs) const;
  MaybeError checkMemory(const std::vector<OutputRef> &memory) const;
  /// Puts the inputs, or the handles that stand for them, into the table.
  MaybeError setInputs(RunState &state,
                       const std::vector<TensorRef> &inputs) const;
  void setOutputs(runtime::RunContext &context,
                  const std::vector<TensorRef> &inputs,
                  const std::vector<OutputRef> &memory) const;
  /// `keepMemory`: keep the memory of results for others when it is released.
  Expected<std::vector<Tensor>> takeOutputs(runtime::RunContext &context,
                                            bool keepMemory) const;
};

/// Stands for the memory of a tensor without elements.
extern char emptyTensor[64];

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_SESSIONIMPL_H
