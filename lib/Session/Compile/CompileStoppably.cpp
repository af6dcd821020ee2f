//===- CompileStoppably.cpp - Compiling that can be ended -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/CompileStoppably.h"
#include "lib/Session/Compile/Compiler.h"

using namespace sardonyx;

Expected<Artifact> sardonyx::compileStoppably(const ModelSource &model,
                                              const SessionOptions &options,
                                              std::vector<Timing> &timings,
                                              bool mayDefer,
                                              AheadOfTime *ahead) {
  std::optional<Expected<Artifact>> result;
  auto compile = [&](const std::atomic<bool> *stop) {
    result.emplace(
        compileModel(model, options, timings, mayDefer, stop, ahead));
  };
  if (MaybeError error = runStoppably(options, compile))
    return *error;
  return std::move(*result);
}
