//===- LoadInBackground.cpp - Plain code first, tuned code behind it ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/StoppableWork.h"
#include "lib/Session/SessionImpl.h"

#include <limits>

using namespace sardonyx;

/// Whether code that is not optimised may stand in for what the options ask
/// for: records and observations of runs belong to one code, and a device's is
/// its own compiler's work.
static bool mayBePlain(const SessionOptions &options) {
  return !options.device.cuda && !options.profile && !options.checkBounds &&
         options.observe.empty() && options.optLevel > 0;
}

/// The model once more, as it was when `first` was opened.
static Expected<std::shared_ptr<FileMap>>
reopen(const std::shared_ptr<FileMap> &first, const std::string &path) {
  auto again = FileMap::open(path);
  if (again && (*again)->identity() != first->identity())
    return Error(ErrorKind::Failed,
                 "'" + path + "' changed after it was loaded");
  return again;
}

Expected<std::shared_ptr<Session>>
Session::Impl::loadInBackground(std::shared_ptr<FileMap> model,
                                ModelSource source, SessionOptions options) {
  SessionOptions tuned = options;
  tuned.compile = Compile::Wait;
  if (!mayBePlain(options))
    return load(std::move(model), source, tuned);
  if (!source.bytes && tuned.externalDataDir.empty())
    tuned.externalDataDir = folderOfModel(source.path);
  Cache cache(tuned);
  if (!cache.enabled() ? !cache.problem().empty()
                       : cache.load(cache.keyOf(*model, tuned)).has_value())
    return load(std::move(model), source, tuned);

  auto shell = std::make_shared<Impl>(options, nullptr);
  SessionOptions plain = tuned;
  plain.optLevel = 0;
  plain.cache = false;
  auto first = load(model, source, plain, nullptr, shell->budget);
  if (!first && first.error().kind() == ErrorKind::Unsupported)
    return load(std::move(model), source, tuned);
  if (!first)
    return first.error();
  const Artifact &made = (*first)->impl->artifact;
  shell->artifact.deferred = true;
  shell->artifact.inputs = made.inputs;
  shell->artifact.outputs = made.outputs;
  shell->artifact.metadata = made.metadata;
  shell->report = (*first)->report();
  if (MaybeError error = shell->prepare(model, cache, ""))
    return *error;
  shell->background = std::make_shared<Background>(*first);
  for (const std::string &text : (*first)->takeWarnings())
    shell->background->warnings.add(text, text);

  // The caller's bytes may go when this returns.
  if (source.bytes && !source.owner)
    model = FileMap::copy(source.bytes, source.size);
  if (source.bytes)
    source.bytes = model->bytes().data();
  // Both are for the thread that loads.
  tuned.remark = nullptr;
  shell->background->start(
      [model = std::move(model), source, tuned,
       budget = shell->budget](const std::atomic<bool> &stop) mutable
          -> Expected<std::shared_ptr<Session>> {
        tuned.interrupted = [&stop] {
          return stop.load() || LoadScope::processEnds().load();
        };
        std::shared_ptr<FileMap> bytes = model;
        if (!source.bytes) {
          auto again = reopen(model, source.path);
          if (!again)
            return again.error();
          bytes = *again;
        }
        auto session = load(std::move(bytes), source, tuned, nullptr, budget);
        if (session)
          (*session)->impl->options.interrupted = nullptr;
        return session;
      });
  return std::shared_ptr<Session>(new Session(std::move(shell)));
}

Expected<std::vector<Tensor>>
Session::Impl::runCurrent(const std::vector<TensorRef> &inputs,
                          const std::vector<OutputRef> &memory,
                          const RunOptions &runOptions) {
  std::shared_ptr<Session> current = background->current();
  auto results = current->run(inputs, memory, runOptions);
  if (current->hasWarnings())
    for (const std::string &text : current->takeWarnings())
      background->warnings.add(text, text);
  return results;
}

Expected<bool> Session::waitForCompile(std::optional<double> seconds) const {
  std::shared_ptr<Impl> session = impl;
  if (!session->background)
    return true;
  return session->background->wait(
      seconds.value_or(std::numeric_limits<double>::infinity()));
}
