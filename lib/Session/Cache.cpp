//===- Cache.cpp - Compiled models on disk --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cache.h"
#include "FileMap.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include "sardonyx/Target/Target.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sardonyx;
using namespace llvm;

/// First bytes of a cache file; the number goes up with the format.
static constexpr char kMagic[16] = "sardonyx cache1";
static constexpr uint64_t kMaxFolderBytes = uint64_t(4) << 30;

namespace {
struct Header {
  char magic[16];
  uint64_t payloadBytes;
  uint64_t checksumLow, checksumHigh;
};
} // namespace

static std::string environment(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

Cache::Cache(const SessionOptions &options) {
  if (!options.cache || environment("SARDONYX_CACHE") == "0")
    return;
  folder = options.cacheDir;
  if (folder.empty())
    folder = environment("SARDONYX_CACHE_DIR");
  if (!folder.empty())
    return;
  std::string base = environment("XDG_CACHE_HOME");
  if (base.empty()) {
    base = environment("HOME");
    if (base.empty())
      return;
    base += "/.cache";
  }
  folder = base + "/sardonyx";
}

static XXH128_hash_t hashOf(std::string_view bytes) {
  return xxh3_128bits(ArrayRef<uint8_t>(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}

/// The same for models, by the piece and on all cores: 400 MB take as long to
/// hash on one as to read them from a fast disk.
static XXH128_hash_t hashOfModel(std::string_view bytes) {
  constexpr size_t kPiece = size_t(4) << 20;
  struct Pieces {
    std::string_view bytes;
    std::vector<XXH128_hash_t> hashes;
  } pieces{bytes, std::vector<XXH128_hash_t>(bytes.size() / kPiece + 1)};
  runtime::ThreadPool &pool = runtime::ThreadPool::global();
  pool.parallelFor(
      pieces.hashes.size(), 1,
      [](int64_t begin, int64_t end, void *env) {
        auto *pieces = static_cast<Pieces *>(env);
        for (; begin < end; ++begin)
          pieces->hashes[begin] =
              hashOf(pieces->bytes.substr(begin * kPiece, kPiece));
      },
      &pieces, pool.defaultThreads(), nullptr);
  return hashOf({reinterpret_cast<const char *>(pieces.hashes.data()),
                 pieces.hashes.size() * sizeof(XXH128_hash_t)});
}

static std::string hexOf(XXH128_hash_t hash) {
  return utohexstr(hash.high64, /*LowerCase=*/true, 16) +
         utohexstr(hash.low64, /*LowerCase=*/true, 16);
}

/// Tells this build of the compiler from any other: the file that the code is
/// in, with its size and date.
static const std::string &compilerIdentity() {
  static const std::string identity = [] {
    std::string text = "LLVM " LLVM_VERSION_STRING;
    Dl_info info;
    struct stat status;
    if (dladdr(reinterpret_cast<void *>(&environment), &info) &&
        info.dli_fname &&
        (stat(info.dli_fname, &status) == 0 ||
         stat("/proc/self/exe", &status) == 0))
      text += " " + std::to_string(status.st_size) + " " +
              std::to_string(status.st_mtim.tv_sec) + "." +
              std::to_string(status.st_mtim.tv_nsec);
    return text;
  }();
  return identity;
}

std::string Cache::keyOf(std::string_view model,
                         const SessionOptions &options) const {
  TargetOptions target;
  target.cpu = options.cpu;
  target.features = options.features;
  target.optLevel = options.optLevel;
  std::string text = compilerIdentity();
  text += '\n' + describeTarget(resolveTarget(target));
  for (const auto &[name, size] : options.dims)
    text += '\n' + name + '=' + std::to_string(size);
  text += '\n' + std::to_string(options.optLevel) + '\n' +
          std::to_string(options.winograd) + '\n' +
          options.externalDataDir + '\n' + std::to_string(model.size()) + '\n' +
          hexOf(hashOfModel(model));
  return hexOf(hashOf(text));
}

std::string Cache::pathOf(const std::string &key) const {
  return folder + "/" + key + ".sdx";
}

std::optional<Artifact> Cache::load(const std::string &key) const {
  if (!enabled())
    return std::nullopt;
  auto file = FileMap::open(pathOf(key));
  if (!file)
    return std::nullopt;
  std::string_view bytes = (*file)->bytes();
  Header header;
  if (bytes.size() < sizeof(header))
    return std::nullopt;
  memcpy(&header, bytes.data(), sizeof(header));
  bytes.remove_prefix(sizeof(header));
  if (memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.payloadBytes != bytes.size())
    return std::nullopt;
  XXH128_hash_t hash = hashOf(bytes);
  if (hash.low64 != header.checksumLow || hash.high64 != header.checksumHigh)
    return std::nullopt;
  std::optional<Artifact> artifact = deserialize(bytes);
  if (!artifact)
    return std::nullopt;
  for (const SourceFile &source : artifact->files) {
    if (source.path.empty())
      continue; // the model itself, whose bytes are in the key
    struct stat status;
    if (stat(source.path.c_str(), &status) != 0 ||
        static_cast<uint64_t>(status.st_size) != source.size ||
        int64_t(status.st_mtim.tv_sec) * 1000000000 + status.st_mtim.tv_nsec !=
            source.modified)
      return std::nullopt;
  }
  // Its date tells trim() when it was last of use.
  (void)utimensat(AT_FDCWD, pathOf(key).c_str(), nullptr, 0);
  return artifact;
}

void Cache::store(const std::string &key, const Artifact &artifact) const {
  if (!enabled() || sys::fs::create_directories(folder))
    return;
  std::string payload = serialize(artifact);
  XXH128_hash_t hash = hashOf(payload);
  Header header;
  memcpy(header.magic, kMagic, sizeof(kMagic));
  header.payloadBytes = payload.size();
  header.checksumLow = hash.low64;
  header.checksumHigh = hash.high64;

  // Readers see a whole file or none.
  std::string temporary = pathOf(key) + "." + std::to_string(getpid()) + "." +
                          std::to_string(reinterpret_cast<uintptr_t>(&payload));
  FILE *file = fopen(temporary.c_str(), "wbxe");
  if (!file)
    return;
  bool ok = fwrite(&header, sizeof(header), 1, file) == 1;
  ok &= fwrite(payload.data(), 1, payload.size(), file) == payload.size();
  ok &= fclose(file) == 0;
  if (!ok || rename(temporary.c_str(), pathOf(key).c_str()) != 0)
    (void)unlink(temporary.c_str());
  else if (payload.size() > (64 << 20) || hash.low64 % 64 == 0)
    trim(); // not each time: it reads the whole folder
}

void Cache::trim() const {
  struct Entry {
    std::string path;
    uint64_t size;
    sys::TimePoint<> used;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; it != end && !error;
       it.increment(error)) {
    if (sys::path::extension(it->path()) != ".sdx")
      continue;
    ErrorOr<sys::fs::basic_file_status> status = it->status();
    if (!status)
      continue;
    entries.push_back(
        {it->path(), status->getSize(), status->getLastModificationTime()});
    total += status->getSize();
  }
  if (total <= kMaxFolderBytes)
    return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry &a, const Entry &b) { return a.used < b.used; });
  for (const Entry &entry : entries) {
    if (total <= kMaxFolderBytes / 4 * 3)
      return;
    (void)sys::fs::remove(entry.path);
    total -= entry.size;
  }
}
