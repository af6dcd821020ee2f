//===- CacheFolder.h - The folder of compiled models ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_CACHE_CACHEFOLDER_H
#define SARDONYX_LIB_SESSION_CACHE_CACHEFOLDER_H

#include "sardonyx/Session/Session.h"
#include <cstdint>
#include <ctime>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace sardonyx {

constexpr char kEntrySuffix[] = ".sdx", kWeightsSuffix[] = ".weights";

/// The folder that the options and the environment name; empty: none.
std::string folderFor(const SessionOptions &options);

/// Whether nobody but this user (and root) can have written a file or folder.
bool isOwn(const struct stat &status);

struct CacheFile {
  std::string name;
  uint64_t bytes;
  time_t used;
};

/// The compiled models and packed weights in an open folder, in any order.
/// Removes what writers left that did not get to the end.
std::vector<CacheFile> listFolder(int descriptor);

/// Bytes that an open folder may have: what its file `limit` says, or 4 GiB.
uint64_t folderLimit(int descriptor);

/// Where there are more bytes than `limit`, removes the files that were of use
/// the longest ago until a quarter of it is free.
void trimFolder(int descriptor, uint64_t limit);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_CACHE_CACHEFOLDER_H
