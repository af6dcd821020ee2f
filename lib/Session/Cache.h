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
///
/// What is in it becomes code of this process: the folder must belong to the
/// user, and nobody else may be able to write to it.
class Cache {
public:
  /// Disabled where the options say so, no folder can be told, or there is a
  /// problem().
  explicit Cache(const SessionOptions &options);
  ~Cache();
  Cache(const Cache &) = delete;
  Cache &operator=(const Cache &) = delete;

  bool enabled() const { return !folder.empty(); }
  /// A sentence on why the folder is not used; empty where it can be.
  const std::string &problem() const { return trouble; }

  /// Tells a model compiled so from all others: its size and a hash of its
  /// bytes, the options that matter, the compiler itself and the processor.
  std::string keyOf(std::string_view model,
                    const SessionOptions &options) const;

  /// The artifact under `key`, if there is a sound one whose external files are
  /// as they were.
  std::optional<Artifact> load(const std::string &key) const;
  void store(const std::string &key, const Artifact &artifact);

  std::string pathOf(const std::string &key) const;

private:
  /// Opens the folder, or finds it a problem().
  void open(bool create);
  /// Removes the oldest files when the folder has grown too large, and what
  /// writers left that did not get to the end.
  void trim() const;

  std::string folder, trouble;
  int descriptor = -1;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_CACHE_H
