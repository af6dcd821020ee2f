//===- SessionImpl.h - What a session is made of ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_SESSIONIMPL_H
#define SARDONYX_LIB_SESSION_SESSIONIMPL_H

#include "lib/Model/Device/DeviceModel.h"
#include "lib/Session/Background.h"
#include "lib/Session/Cache/Cache.h"
#include "lib/Session/Compile/Linker.h"
#include "lib/Session/Custom/CustomNodes.h"
#include "lib/Session/ProfileLog.h"
#include "lib/Session/Variants/Variants.h"
#include "lib/Session/Warnings.h"
#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Model/FileMap.h"
#include "sardonyx/Model/Model.h"
#include "sardonyx/Session/Compile.h"
#include "sardonyx/Session/Session.h"

namespace sardonyx {

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
  std::shared_ptr<runtime::BufferPool> persistentPool;
  std::vector<PackedTensor> persistent;
  /// Where these lie if not in their pool.
  std::shared_ptr<const PackedWeights> packed;

  /// Null where the processor computes all. Variants have their session's.
  std::shared_ptr<ModelDevice> device;
  /// What of the model lies there; null before there is code.
  std::unique_ptr<DeviceModel> deviceModel;

  /// The nodes that runs call; null where there are none.
  std::shared_ptr<CustomNodes> customNodes;

  /// Runs the code, and before there is any, checks what it is given.
  std::unique_ptr<Model> model;

  ProfileLog profile;
  Warnings warnings;

  /// Null where no rank hangs on what a run gives and no two dimensions of
  /// inputs share a name: it keeps a model that came as bytes.
  std::unique_ptr<Variants> variants;

  /// Where it is set, runs are those of its sessions, and this one has no code.
  std::shared_ptr<Background> background;

  Impl(const SessionOptions &options,
       std::shared_ptr<runtime::MemoryBudget> budget);
  ~Impl();

  /// `whole`: the session of which this one is a variant, or null. `budget`:
  /// what its memory counts against; null: one of its own, or `whole`'s.
  static Expected<std::shared_ptr<Session>>
  load(std::shared_ptr<FileMap> model, const ModelSource &source,
       const SessionOptions &options, const Impl *whole = nullptr,
       std::shared_ptr<runtime::MemoryBudget> budget = nullptr);
  /// A session of code that is not optimised, until a thread has made the rest.
  static Expected<std::shared_ptr<Session>>
  loadInBackground(std::shared_ptr<FileMap> model, ModelSource source,
                   SessionOptions options);
  /// The folder of a model's file, in one spelling however the file was named.
  static std::string folderOfModel(const std::string &path);
  /// The same without the device that the options ask for, `why` being the
  /// warning's reason.
  static Expected<std::shared_ptr<Session>>
  loadForCpu(std::shared_ptr<FileMap> model, const ModelSource &source,
             SessionOptions options, const Impl *whole, const Error &why);
  /// The artifact under `key`, if the cache has one that fits.
  MaybeError findArtifact(const Cache &cache, const std::string &key,
                          const Impl *whole, std::optional<Artifact> &found);
  /// The same after SessionOptions::compileElsewhere has compiled it.
  MaybeError compileElsewhere(Cache &cache, const std::string &key,
                              const Impl *whole,
                              std::optional<Artifact> &found);
  /// Finds the operators that the artifact calls. False: they are no more what
  /// they were when it was made.
  Expected<bool> findCustomOps(const Artifact &found);
  /// `key`: the artifact's in the cache.
  MaybeError prepare(std::shared_ptr<FileMap> modelFile, Cache &cache,
                     const std::string &key);
  MaybeError mapFiles(std::shared_ptr<FileMap> model);
  /// Copies what runs read of a model that came as bytes, which may go.
  void keepConstants();
  /// Packs the weights, or takes from the cache what another load has made of
  /// them.
  MaybeError packWeights(const Cache &cache, const std::string &key);
  MaybeError runInit();
  /// The device that the options ask for, unless it is that of `whole`.
  MaybeError openDevice(const Impl *whole);
  /// Has `weights` instead of memory of its own; null and weights that the
  /// budget does not allow change nothing.
  bool share(std::shared_ptr<const PackedWeights> weights);
  void releasePacked();
  /// Gives the system the pages of files that constants are read from.
  void forgetPages() const;
  const void *constantData(const Argument &arg) const;
  /// The arguments with the data that they stand for.
  std::vector<ModelArgument> bind(const std::vector<Argument> &args) const;
  /// The same with what the device takes there, in memory that `memory` gets.
  Expected<std::vector<ModelArgument>>
  bindOnDevice(const std::vector<Argument> &args,
               std::unique_ptr<runtime::gpu::DeviceMemory> &memory) const;

  /// Runs what Model::check() has passed.
  Expected<std::vector<Tensor>> runChecked(const std::vector<TensorRef> &inputs,
                                           const std::vector<OutputRef> &memory,
                                           const RunOptions &options);
  /// Runs this session's own code; the inputs fit. `otherRank` turns true where
  /// the code was made for other ranks than these inputs lead to.
  Expected<std::vector<Tensor>> runCode(const std::vector<TensorRef> &inputs,
                                        const std::vector<OutputRef> &memory,
                                        const RunOptions &options,
                                        bool &otherRank);
  /// Runs code that is made for these inputs; `namesDiffer`: dimensions of one
  /// name have different sizes.
  Expected<std::vector<Tensor>> runVariant(const std::vector<TensorRef> &inputs,
                                           bool namesDiffer,
                                           const std::vector<OutputRef> &memory,
                                           const RunOptions &options);
  /// Runs this session's own code if it is made for such inputs, else that of a
  /// variant.
  Expected<std::vector<Tensor>> runAny(const std::vector<TensorRef> &inputs,
                                       const std::vector<OutputRef> &memory,
                                       const RunOptions &options);

  /// Runs what `background` has by now.
  Expected<std::vector<Tensor>> runCurrent(const std::vector<TensorRef> &inputs,
                                           const std::vector<OutputRef> &memory,
                                           const RunOptions &options);

  /// Calls `see` for all that runs of the session and of its variants observe.
  void forEachObserved(const std::function<void(runtime::Observations &)> &see);

  /// Gives the system the memory that no run is using.
  void releaseMemory();
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_SESSIONIMPL_H
