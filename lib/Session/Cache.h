//===- Cache.h - Compiled models on disk ------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_CACHE_H
#define SARDONYX_LIB_SESSION_CACHE_H

#include "Artifact.h"
#include "sardonyx/Session/Session.h"
#include <optional>
#include <string>
#include <string_view>

namespace sardonyx {

/// A folder of compiled models. Whatever is wrong with it or in it costs a
/// compilation and nothing else.
class Cache {
public:
  /// Disabled where the options say so or no folder can be told.
  explicit Cache(const SessionOptions &options);

  bool enabled() const { return !folder.empty(); }

  /// The name for a model compiled so: a hash of its bytes, the options that
  /// matter, the compiler itself and the processor.
  std::string keyOf(std::string_view model,
                    const SessionOptions &options) const;

  /// The artifact under `key`, if there is a sound one whose external files are
  /// as they were.
  std::optional<Artifact> load(const std::string &key) const;
  void store(const std::string &key, const Artifact &artifact) const;

  std::string pathOf(const std::string &key) const;

private:
  /// Removes the oldest files when the folder has grown too large.
  void trim() const;

  std::string folder;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_CACHE_H
