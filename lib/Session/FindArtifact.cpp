//===- FindArtifact.cpp - Code of the cache, or of another process --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/SessionImpl.h"

#include <utility>

using namespace sardonyx;

Expected<bool> Session::Impl::findCustomOps(const Artifact &found) {
  if (found.customCalls.empty())
    return true;
  auto nodes = CustomNodes::resolve(found.customCalls, options.customOps.get());
  if (!nodes)
    return nodes.error();
  customNodes = std::move(*nodes);
  return customNodes != nullptr;
}

MaybeError Session::Impl::findArtifact(const Cache &cache,
                                       const std::string &key,
                                       const Impl *whole,
                                       std::optional<Artifact> &found) {
  found = cache.load(key);
  // The model itself may have been stored without code under the same key.
  if (whole && found && found->deferred)
    found.reset();
  if (!found)
    return std::nullopt;
  auto fits = findCustomOps(*found);
  if (!fits)
    return fits.error();
  if (!*fits)
    found.reset();
  return std::nullopt;
}

MaybeError Session::Impl::compileElsewhere(Cache &cache, const std::string &key,
                                           const Impl *whole,
                                           std::optional<Artifact> &found) {
  // Variants, which have these options, too, are this process's.
  auto compile = std::exchange(options.compileElsewhere, nullptr);
  if (cache.makeFolder()) {
    if (MaybeError error = compile())
      return error;
    if (MaybeError error = findArtifact(cache, key, whole, found))
      return error;
  }
  if (!found)
    warnings.add("process", "this process compiles the model: the cache does "
                            "not have what another compiled");
  return std::nullopt;
}
