//===- CompiledModels.h - What lies in the cache ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_COMPILEDMODELS_H
#define SARDONYX_SESSION_COMPILEDMODELS_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include <cstdint>
#include <string>
#include <vector>

namespace sardonyx {

/// A file of the cache: a compiled model, or the packed weights of one.
struct CachedFile {
  std::string name;
  bool isWeights;
  uint64_t bytes;
  /// Seconds since 1970 when it was last of use.
  int64_t used;
};

struct CacheReport {
  std::string folder;
  /// Bytes that files may have together; those that were of use the longest ago
  /// go where there are more.
  uint64_t limit;
  /// The last used first.
  std::vector<CachedFile> files;
};

/// What lies in the folder that sessions with this SessionOptions::cacheDir
/// use; nothing where there is no such folder yet.
SARDONYX_API Expected<CacheReport> readCache(const std::string &cacheDir = "");

/// Removes all compiled models and weights, and tells which those were.
/// Sessions that have loaded them go on.
SARDONYX_API Expected<CacheReport> clearCache(const std::string &cacheDir = "");

/// Sets the folder's limit, which is kept in it, and removes what is beyond it.
SARDONYX_API Expected<CacheReport> limitCache(uint64_t bytes,
                                              const std::string &cacheDir = "");

} // namespace sardonyx

#endif // SARDONYX_SESSION_COMPILEDMODELS_H
