//===- CacheFolder.cpp - The folder of compiled models --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Cache/CacheFolder.h"
#include "sardonyx/Session/CompiledModels.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

using namespace sardonyx;
using llvm::StringRef;

static constexpr uint64_t kDefaultLimit = uint64_t(4) << 30;
static constexpr char kLimitFile[] = "limit";
/// A temporary file this old has no writer any more.
static constexpr time_t kAbandonedSeconds = 3600;

static std::string environment(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

std::string sardonyx::folderFor(const SessionOptions &options) {
  if (!options.cache || environment("SARDONYX_CACHE") == "0")
    return "";
  std::string folder = options.cacheDir;
  if (folder.empty())
    folder = environment("SARDONYX_CACHE_DIR");
  if (!folder.empty())
    return folder;
  std::string base = environment("XDG_CACHE_HOME");
  if (base.empty()) {
    base = environment("HOME");
    if (base.empty())
      return "";
    base += "/.cache";
  }
  return base + "/sardonyx";
}

bool sardonyx::isOwn(const struct stat &status) {
  return status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::vector<CacheFile> sardonyx::listFolder(int descriptor) {
  std::vector<CacheFile> files;
  int copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *listing = copy < 0 ? nullptr : fdopendir(copy);
  if (!listing) {
    if (copy >= 0)
      close(copy);
    return files;
  }
  const time_t now = time(nullptr);
  while (dirent *item = readdir(listing)) {
    StringRef name = item->d_name;
    struct stat status;
    if ((!name.contains(kEntrySuffix) && !name.contains(kWeightsSuffix)) ||
        fstatat(descriptor, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    if (name.ends_with(kEntrySuffix) || name.ends_with(kWeightsSuffix))
      files.push_back({name.str(), static_cast<uint64_t>(status.st_size),
                       std::max(status.st_atim.tv_sec, status.st_mtim.tv_sec)});
    else if (status.st_mtim.tv_sec + kAbandonedSeconds < now)
      (void)unlinkat(descriptor, item->d_name, 0);
  }
  closedir(listing);
  return files;
}

uint64_t sardonyx::folderLimit(int descriptor) {
  int file = openat(descriptor, kLimitFile,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return kDefaultLimit;
  char text[32];
  ssize_t size = read(file, text, sizeof(text));
  close(file);
  uint64_t limit;
  if (size <= 0 ||
      StringRef(text, static_cast<size_t>(size)).trim().getAsInteger(10, limit))
    return kDefaultLimit;
  return limit;
}

static uint64_t sumOf(const std::vector<CacheFile> &files) {
  uint64_t total = 0;
  for (const CacheFile &file : files)
    total += file.bytes;
  return total;
}

void sardonyx::trimFolder(int descriptor, uint64_t limit) {
  std::vector<CacheFile> files = listFolder(descriptor);
  uint64_t total = sumOf(files);
  if (total <= limit)
    return;
  llvm::sort(files, [](const CacheFile &a, const CacheFile &b) {
    return a.used < b.used;
  });
  for (const CacheFile &file : files) {
    if (total <= limit / 4 * 3)
      return;
    (void)unlinkat(descriptor, file.name.c_str(), 0);
    total -= file.bytes;
  }
}

//===----------------------------------------------------------------------===//
// What people ask of it
//===----------------------------------------------------------------------===//

namespace {
/// The folder, open if it is there.
struct OpenFolder {
  std::string path;
  int descriptor = -1;

  OpenFolder() = default;
  OpenFolder(OpenFolder &&other)
      : path(std::move(other.path)),
        descriptor(std::exchange(other.descriptor, -1)) {}
  ~OpenFolder() {
    if (descriptor >= 0)
      close(descriptor);
  }
};
} // namespace

static Error fail(const std::string &text) {
  return Error(ErrorKind::Failed, text);
}

static Expected<OpenFolder> openFolder(const std::string &cacheDir) {
  SessionOptions options;
  options.cacheDir = cacheDir;
  OpenFolder folder;
  folder.path = folderFor(options);
  if (folder.path.empty())
    return fail("there is no cache: SARDONYX_CACHE=0 turns it off, or no "
                "folder can be told from HOME");
  folder.descriptor =
      open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat status;
  if (folder.descriptor < 0) {
    if (errno != ENOENT)
      return fail("cannot read the folder '" + folder.path +
                  "': " + strerror(errno));
  } else if (fstat(folder.descriptor, &status) != 0 || !isOwn(status)) {
    return fail("the folder '" + folder.path +
                "' is not used for compiled models: others can write to it");
  }
  return folder;
}

static CacheReport report(const OpenFolder &folder) {
  CacheReport report;
  report.folder = folder.path;
  report.limit = kDefaultLimit;
  if (folder.descriptor < 0)
    return report;
  report.limit = folderLimit(folder.descriptor);
  for (const CacheFile &file : listFolder(folder.descriptor)) {
    const bool isWeights = StringRef(file.name).ends_with(kWeightsSuffix);
    report.files.push_back(
        {file.name, isWeights, file.bytes, static_cast<int64_t>(file.used)});
  }
  llvm::sort(report.files, [](const CachedFile &a, const CachedFile &b) {
    return std::pair(-a.used, a.name) < std::pair(-b.used, b.name);
  });
  return report;
}

Expected<CacheReport> sardonyx::readCache(const std::string &cacheDir) {
  auto folder = openFolder(cacheDir);
  if (!folder)
    return folder.error();
  return report(*folder);
}

Expected<CacheReport> sardonyx::clearCache(const std::string &cacheDir) {
  auto folder = openFolder(cacheDir);
  if (!folder)
    return folder.error();
  CacheReport cleared = report(*folder);
  for (const CachedFile &file : cleared.files)
    if (unlinkat(folder->descriptor, file.name.c_str(), 0) != 0 &&
        errno != ENOENT)
      return fail("cannot remove '" + folder->path + "/" + file.name +
                  "': " + strerror(errno));
  return cleared;
}

Expected<CacheReport> sardonyx::limitCache(uint64_t bytes,
                                           const std::string &cacheDir) {
  auto folder = openFolder(cacheDir);
  if (!folder)
    return folder.error();
  const std::string &path = folder->path;
  if (folder->descriptor < 0) {
    StringRef parent = llvm::sys::path::parent_path(path);
    if (!parent.empty())
      (void)llvm::sys::fs::create_directories(parent);
    (void)mkdir(path.c_str(), 0700);
    folder->descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->descriptor < 0)
      return fail("cannot make the folder '" + path + "': " + strerror(errno));
  }
  // Readers see the old number or the new one.
  const std::string temporary = "limit." + std::to_string(getpid());
  int file = openat(folder->descriptor, temporary.c_str(),
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const std::string text = std::to_string(bytes) + "\n";
  bool ok = file >= 0 && write(file, text.data(), text.size()) ==
                             static_cast<ssize_t>(text.size());
  if (file >= 0)
    ok &= close(file) == 0;
  ok = ok && renameat(folder->descriptor, temporary.c_str(), folder->descriptor,
                      kLimitFile) == 0;
  if (!ok) {
    Error error = fail("cannot write '" + path + "/" + kLimitFile +
                       "': " + strerror(errno));
    (void)unlinkat(folder->descriptor, temporary.c_str(), 0);
    return error;
  }
  trimFolder(folder->descriptor, bytes);
  return report(*folder);
}
