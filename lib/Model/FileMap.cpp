//===- FileMap.cpp - Read-only views of files -----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/FileMap.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include <algorithm>
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

std::shared_ptr<FileMap> FileMap::borrow(const void *data, size_t size,
                                         std::shared_ptr<const void> owner) {
  std::shared_ptr<FileMap> map(new FileMap);
  map->owner = std::move(owner);
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

void FileMap::fetchPages(unsigned threads) const {
  if (mapped)
    sardonyx::fetchPages(data, size, threads);
}

void sardonyx::fetchPages(const void *data, size_t size, unsigned threads) {
#ifdef MADV_POPULATE_READ
  constexpr uintptr_t kPage = 4096, kPiece = uintptr_t(4) << 20;
  struct Work {
    uintptr_t begin, end;
  } work;
  work.begin = reinterpret_cast<uintptr_t>(data) & ~(kPage - 1);
  work.end = reinterpret_cast<uintptr_t>(data) + size;
  runtime::ThreadPool::global().parallelFor(
      static_cast<int64_t>((work.end - work.begin + kPiece - 1) / kPiece), 1,
      [](int64_t begin, int64_t end, void *env) {
        auto *work = static_cast<Work *>(env);
        uintptr_t from = work->begin + begin * kPiece,
                  to = std::min(work->begin + end * kPiece, work->end);
        (void)madvise(reinterpret_cast<void *>(from), to - from,
                      MADV_POPULATE_READ);
      },
      &work, threads, nullptr);
#endif
}

FileMap::~FileMap() {
  if (mapped)
    munmap(const_cast<char *>(data), size);
}
