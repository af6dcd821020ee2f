//===- Cache.h - Compiled models on disk ------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_CACHE_CACHE_H
#define SARDONYX_LIB_SESSION_CACHE_CACHE_H

#include "lib/Session/Cache/PackedWeights.h"
#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Session/Session.h"
#include "llvm/ADT/STLFunctionalExtras.h"
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
  std::string keyOf(const FileMap &model, const SessionOptions &options) const;

  /// Whether the folder is there, which this makes if it must.
  bool makeFolder();

  /// The artifact under `key`, if there is a sound one whose external files are
  /// as they were.
  std::optional<Artifact> load(const std::string &key) const;
  void store(const std::string &key, const Artifact &artifact);

  /// What `sdx_init` of the artifact under `key` made of its weights, in a file
  /// that all sessions and processes share; null where there is no sound one.
  /// `isTrusted`: this process has just written it.
  std::shared_ptr<const PackedWeights>
  loadWeights(const std::string &key, const Artifact &artifact,
              bool isTrusted = false) const;
  /// Writes that file and gives what loadWeights() does. Few bytes are not
  /// worth a file, and very many not the folder's limit: null then. `forget` is
  /// called for what has been written and is not read again here.
  std::shared_ptr<const PackedWeights>
  storeWeights(const std::string &key, const Artifact &artifact,
               const std::vector<PackedTensor> &tensors,
               llvm::function_ref<void(std::string_view)> forget = {}) const;

  std::string pathOf(const std::string &key) const;
  std::string weightsPathOf(const std::string &key,
                            const Artifact &artifact) const;

private:
  /// Opens the folder, or finds it a problem().
  void open(bool create);
  /// An own file of the folder; null where it is none.
  std::shared_ptr<FileMap> openFile(const std::string &name) const;
  /// Whether all pieces, one after the other, are now the file `name`: readers
  /// see a whole file or none. Where there is much, the oldest go.
  bool writeFile(const std::string &name,
                 const std::vector<std::string_view> &pieces,
                 llvm::function_ref<void(std::string_view)> forget = {}) const;

  std::string folder, trouble;
  int descriptor = -1;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_CACHE_CACHE_H
