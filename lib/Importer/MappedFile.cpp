//===- MappedFile.cpp - Read-only file mappings ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/MappedFile.h"
#include "lib/Importer/Error.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace sardonyx::importer {

std::shared_ptr<MappedFile> MappedFile::open(StringRef path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  int fd =
      ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    fail("cannot open '" + path + "': " + std::strerror(errno));
  auto closer = make_scope_exit([&] { ::close(fd); });
  struct stat info;
  if (::fstat(fd, &info) != 0)
    fail("cannot read '" + path + "': " + std::strerror(errno));
  if (S_ISDIR(info.st_mode))
    fail("'" + path + "' is a directory, not a file");
  if (!S_ISREG(info.st_mode))
    fail("'" + path + "' is not a regular file");
  size_t size = static_cast<size_t>(info.st_size);
  if (size == 0)
    return std::shared_ptr<MappedFile>(new MappedFile(path, "", 0));
  void *data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED)
    fail("cannot map '" + path + "': " + std::strerror(errno));
  return std::shared_ptr<MappedFile>(
      new MappedFile(path, static_cast<const char *>(data), size));
}

MappedFile::~MappedFile() {
  if (size)
    ::munmap(const_cast<char *>(data), size);
}

std::string realFolderOf(StringRef path) {
  SmallString<256> real;
  if (sys::fs::real_path(path, real))
    return "";
  return sys::path::parent_path(real).str();
}

/// Whether a path without links lies in a folder, itself without links.
static bool isUnder(StringRef path, StringRef folder) {
  return folder == "/" || (path.consume_front(folder) && path.starts_with("/"));
}

/// The files behind the links of a snapshot in the cache of the Hugging Face
/// hub, for a folder in one: `models--owner--name/blobs` for
/// `models--owner--name/snapshots/revision`. Empty for any other folder.
static std::string findBlobs(StringRef folder) {
  for (StringRef at = folder; !at.empty(); at = sys::path::parent_path(at)) {
    StringRef snapshots = sys::path::parent_path(at);
    StringRef repository = sys::path::parent_path(snapshots);
    if (sys::path::filename(snapshots) == "snapshots" &&
        sys::path::filename(repository).starts_with("models--"))
      return (repository + "/blobs").str();
  }
  return "";
}

std::string resolveExternalData(StringRef dir, StringRef linkedDir,
                                StringRef location, StringRef tensor) {
  auto refuse = [&](const Twine &why) {
    fail("external data of tensor '" + tensor + "': location '" + location +
         "' " + why);
  };
  if (dir.empty())
    refuse("cannot be read because the model has no folder");
  if (location.empty())
    refuse("is empty");
  if (location.contains('\0'))
    refuse("contains a zero byte");
  if (sys::path::is_absolute(location) || location.contains('\\'))
    refuse("must be a relative path");
  for (StringRef part :
       make_range(sys::path::begin(location), sys::path::end(location)))
    if (part == "..")
      refuse("must not leave the model's folder");

  SmallString<256> path(dir), realDir, realPath;
  sys::path::append(path, location);
  if (std::error_code ec = sys::fs::real_path(dir, realDir))
    refuse("cannot be read: " + ec.message());
  if (std::error_code ec = sys::fs::real_path(path, realPath))
    refuse("cannot be read: " + ec.message());
  std::string blobs = findBlobs(realDir);
  bool isAllowed = isUnder(realPath, realDir) ||
                   (!linkedDir.empty() && isUnder(realPath, linkedDir)) ||
                   (!blobs.empty() && isUnder(realPath, blobs));
  if (!isAllowed)
    refuse("is a link that leaves the model's folder");
  return std::string(realPath);
}

} // namespace sardonyx::importer
