//===- FileMap.cpp - Read-only views of files -----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/FileMap.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sardonyx;

static Error cannotRead(const std::string &path, const char *why) {
  return Error(ErrorKind::NoSuchFile, "cannot read '" + path + "': " + why);
}

Expected<std::shared_ptr<FileMap>> FileMap::open(const std::string &path) {
  // Without waiting for the other end of what turns out to be a pipe.
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return cannotRead(path, strerror(errno));
  return adopt(file, path);
}

Expected<std::shared_ptr<FileMap>> FileMap::adopt(int file,
                                                  const std::string &path) {
  auto refuse = [&](const char *why) { return cannotRead(path, why); };
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    return refuse(S_ISDIR(status.st_mode) ? "it is a folder"
                                          : "it is no regular file");
  }
  std::shared_ptr<FileMap> map(new FileMap);
  map->name = path;
  map->size = static_cast<size_t>(status.st_size);
  map->changed =
      int64_t(status.st_mtim.tv_sec) * 1000000000 + status.st_mtim.tv_nsec;
  map->fileIdentity =
      std::to_string(status.st_dev) + ' ' + std::to_string(status.st_ino) +
      ' ' + std::to_string(map->size) + ' ' + std::to_string(map->changed);
  if (map->size) {
    void *data = mmap(nullptr, map->size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      int error = errno;
      close(file);
      return refuse(strerror(error));
    }
    map->data = static_cast<const char *>(data);
    map->mapped = true;
  }
  close(file);
  return map;
}

std::shared_ptr<FileMap> FileMap::borrow(const void *data, size_t size) {
  std::shared_ptr<FileMap> map(new FileMap);
  map->data = static_cast<const char *>(data);
  map->size = size;
  return map;
}

std::shared_ptr<FileMap> FileMap::copy(const void *data, size_t size) {
  std::shared_ptr<FileMap> map(new FileMap);
  map->own.assign(static_cast<const char *>(data), size);
  map->data = map->own.data();
  map->size = size;
  return map;
}

void FileMap::forgetPages() const {
  if (mapped)
    (void)madvise(const_cast<char *>(data), size, MADV_DONTNEED);
}

void FileMap::fetchPages() const {
#ifdef MADV_POPULATE_READ
  // An older kernel fetches each when it is needed.
  if (mapped)
    (void)madvise(const_cast<char *>(data), size, MADV_POPULATE_READ);
#endif
}

FileMap::~FileMap() {
  if (mapped)
    munmap(const_cast<char *>(data), size);
}
