//===- FileMap.h - Read-only views of files ---------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_FILEMAP_H
#define SARDONYX_MODEL_FILEMAP_H

#include "sardonyx/Model/Error.h"
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sardonyx {

/// A file mapped read-only, or bytes in memory that stand for one.
class FileMap {
public:
  static Expected<std::shared_ptr<FileMap>> open(const std::string &path);
  /// The same for an open file, which is closed; `path` is for messages.
  static Expected<std::shared_ptr<FileMap>> adopt(int file,
                                                  const std::string &path);
  /// Bytes that the caller, or `owner`, keeps alive for as long as this object.
  static std::shared_ptr<FileMap>
  borrow(const void *data, size_t size,
         std::shared_ptr<const void> owner = nullptr);
  /// A copy of the bytes.
  static std::shared_ptr<FileMap> copy(const void *data, size_t size);
  ~FileMap();

  std::string_view bytes() const { return {data, size}; }
  /// Gives the system the pages of a file; who reads them again gets them from
  /// its cache.
  void forgetPages() const;
  /// Has all pages here before somebody needs them, by so many threads.
  void fetchPages(unsigned threads) const;
  /// Time of the last change in nanoseconds; 0 for memory.
  int64_t modified() const { return changed; }
  /// Tells this file, as it is now, from all others; empty for memory.
  const std::string &identity() const { return fileIdentity; }
  /// Empty for memory.
  const std::string &path() const { return name; }

private:
  FileMap() = default;

  const char *data = nullptr;
  size_t size = 0;
  int64_t changed = 0;
  bool mapped = false;
  std::string name, fileIdentity, own;
  std::shared_ptr<const void> owner;
};

/// The same for memory that is mapped of a file: a fault for each page takes
/// several times as long. An older kernel fetches each when it is needed.
void fetchPages(const void *data, size_t size, unsigned threads);

} // namespace sardonyx

#endif // SARDONYX_MODEL_FILEMAP_H
