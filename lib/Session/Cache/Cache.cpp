//===- Cache.cpp - Compiled models on disk --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Cache/Cache.h"
#include "lib/Session/Cache/CacheFolder.h"
#include "lib/Session/Cache/PiecewiseHash.h"
#include "lib/Session/Compile/Options.h"
#include "sardonyx/Model/FileMap.h"
#include "sardonyx/Runtime/ForkSafeMutex.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

using namespace sardonyx;
using namespace llvm;

/// Less is packed as quickly as read.
static constexpr uint64_t kMinWeightBytes = uint64_t(1) << 20;
Cache::Cache(const SessionOptions &options) : folder(folderFor(options)) {
  if (enabled())
    open(/*create=*/false);
}

Cache::~Cache() {
  if (descriptor >= 0)
    close(descriptor);
}

void Cache::open(bool create) {
  const StringRef parent = sys::path::parent_path(folder);
  if (create && (parent.empty() || !sys::fs::create_directories(parent)))
    (void)mkdir(folder.c_str(), 0700);
  descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  struct stat status;
  if (fstat(descriptor, &status) == 0 && isOwn(status))
    return;
  trouble = "the folder '" + folder + "' is not used for compiled models: " +
            (status.st_uid != geteuid()
                 ? "it belongs to another user"
                 : "others can write to it (chmod go-w helps)");
  close(descriptor);
  descriptor = -1;
  folder.clear();
}

static XXH128_hash_t hashOf(std::string_view bytes) {
  return xxh3_128bits(ArrayRef<uint8_t>(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}

using ModelHash = std::array<uint8_t, 32>;

/// A hash of a model's bytes that nobody can find a second model for.
static std::string hashOfModel(const FileMap &model) {
  // So much of a file is held at a time.
  constexpr size_t kWindow = size_t(64) << 20;
  std::vector<ModelHash> all;
  for (std::string_view rest = model.bytes(); !rest.empty();
       rest.remove_prefix(std::min(rest.size(), kWindow))) {
    std::vector<ModelHash> hashes = hashPieces<ModelHash>(
        {rest.substr(0, kWindow)}, [](std::string_view piece) {
          return BLAKE3::hash<32>(
              {reinterpret_cast<const uint8_t *>(piece.data()), piece.size()});
        });
    all.insert(all.end(), hashes.begin(), hashes.end());
    model.forgetPages();
  }
  return toHex(BLAKE3::hash<32>({reinterpret_cast<const uint8_t *>(all.data()),
                                 all.size() * sizeof(ModelHash)}),
               /*LowerCase=*/true);
}

static std::string hexOf(XXH128_hash_t hash) {
  return utohexstr(hash.high64, /*LowerCase=*/true, 16) +
         utohexstr(hash.low64, /*LowerCase=*/true, 16);
}

/// Tells this build of the compiler from any other: the file that the code is
/// in, with its size and date.
static const std::string &compilerIdentity() {
  // Never destroyed: threads may load models while the process ends.
  static const std::string &identity = *new std::string([] {
    std::string text = "LLVM " LLVM_VERSION_STRING;
    Dl_info info;
    struct stat status;
    if (dladdr(reinterpret_cast<void *>(&hashOf), &info) && info.dli_fname &&
        (stat(info.dli_fname, &status) == 0 ||
         stat("/proc/self/exe", &status) == 0))
      text += " " + std::to_string(status.st_size) + " " +
              std::to_string(status.st_mtim.tv_sec) + "." +
              std::to_string(status.st_mtim.tv_nsec);
    return text;
  }());
  return identity;
}

std::string Cache::keyOf(const FileMap &model,
                         const SessionOptions &options) const {
  return compilerIdentity() + '\n' + fingerprint(options) +
         std::to_string(model.bytes().size()) + '\n' + hashOfModel(model);
}

static std::string fileNameOf(const std::string &key) {
  return hexOf(hashOf(key)) + kEntrySuffix;
}

std::string Cache::pathOf(const std::string &key) const {
  return folder + "/" + fileNameOf(key);
}

std::shared_ptr<FileMap> Cache::openFile(const std::string &name) const {
  if (descriptor < 0)
    return nullptr;
  int file = openat(descriptor, name.c_str(),
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return nullptr;
  struct stat status;
  if (fstat(file, &status) != 0 || !isOwn(status)) {
    close(file);
    return nullptr;
  }
  auto map = FileMap::adopt(file, folder + "/" + name);
  return map ? *map : nullptr;
}

std::optional<Artifact> Cache::load(const std::string &key) const {
  const std::string name = fileNameOf(key);
  std::shared_ptr<FileMap> file = openFile(name);
  if (!file)
    return std::nullopt;
  Expected<Artifact> artifact = unpack(file->bytes(), key);
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
  // Its date tells trimFolder() when it was last of use.
  (void)utimensat(descriptor, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return std::move(*artifact);
}

/// Writes all of it, or gives false: the disk may be full.
static bool writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool Cache::writeFile(const std::string &name,
                      const std::vector<std::string_view> &pieces,
                      llvm::function_ref<void(std::string_view)> forget) const {
  static std::atomic<unsigned> count{0};
  const std::string temporary = name + "." + std::to_string(getpid()) + "." +
                                std::to_string(time(nullptr)) + "." +
                                std::to_string(count++);
  int file = openat(descriptor, temporary.c_str(),
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0)
    return false;
  uint64_t bytes = 0;
  bool ok = true;
  for (std::string_view piece : pieces) {
    ok = ok && writeAll(file, piece);
    bytes += piece.size();
    if (ok && forget)
      forget(piece);
  }
  ok &= close(file) == 0;
  if (!ok ||
      renameat(descriptor, temporary.c_str(), descriptor, name.c_str()) != 0) {
    (void)unlinkat(descriptor, temporary.c_str(), 0);
    return false;
  }
  // Not each time: it reads the whole folder. Names are hashes.
  if (bytes > (64 << 20) || StringRef(name).take_front(2) < "04")
    trimFolder(descriptor, folderLimit(descriptor));
  return true;
}

bool Cache::makeFolder() {
  if (descriptor < 0 && enabled())
    open(/*create=*/true);
  return descriptor >= 0;
}

void Cache::store(const std::string &key, const Artifact &artifact) {
  if (!makeFolder())
    return;
  (void)writeFile(fileNameOf(key), {pack(artifact, key)});
}

/// Says whose weights a file holds: `sdx_init` reads external data, too, which
/// may change under the same key.
static std::string weightsOwner(const std::string &key,
                                const Artifact &artifact) {
  std::string owner = key;
  for (const SourceFile &file : artifact.files)
    if (!file.path.empty())
      owner += '\n' + file.path + ' ' + std::to_string(file.size) + ' ' +
               std::to_string(file.modified);
  return owner;
}

static std::string weightsNameOf(const std::string &owner) {
  return hexOf(hashOf(owner)) + kWeightsSuffix;
}

std::string Cache::weightsPathOf(const std::string &key,
                                 const Artifact &artifact) const {
  return folder + "/" + weightsNameOf(weightsOwner(key, artifact));
}

namespace {
/// The weights that sessions of this process have mapped, by what they are and
/// the file that they are in.
struct MappedWeights {
  runtime::ForkSafeMutex mutex;
  std::map<std::string, std::weak_ptr<const PackedWeights>> files;
};
} // namespace

/// Never destroyed: threads may load models while the process ends.
static MappedWeights &mappedWeights() {
  static MappedWeights &all = *new MappedWeights;
  return all;
}

std::shared_ptr<const PackedWeights>
Cache::loadWeights(const std::string &key, const Artifact &artifact,
                   bool isTrusted) const {
  const std::string owner = weightsOwner(key, artifact);
  const std::string name = weightsNameOf(owner);
  std::shared_ptr<FileMap> file = openFile(name);
  if (!file)
    return nullptr;
  // The date of the last access tells trimFolder() when it was of use; that of
  // the last change is the file's identity.
  const timespec now[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  (void)utimensat(descriptor, name.c_str(), now, AT_SYMLINK_NOFOLLOW);

  MappedWeights &mapped = mappedWeights();
  const std::string id = name + ' ' + file->identity();
  std::lock_guard<runtime::ForkSafeMutex> lock(mapped.mutex);
  if (auto known = mapped.files.find(id); known != mapped.files.end())
    if (std::shared_ptr<const PackedWeights> weights = known->second.lock())
      return weights;
  auto weights = readWeights(std::move(file), owner,
                             artifact.persistentElementBytes, isTrusted);
  for (auto it = mapped.files.begin(); it != mapped.files.end();)
    it = it->second.expired() ? mapped.files.erase(it) : std::next(it);
  if (weights)
    mapped.files[id] = weights;
  return weights;
}

/// Whether no two of the tensors share memory.
static bool areApart(const std::vector<PackedTensor> &tensors) {
  std::vector<std::pair<const char *, uint64_t>> ranges;
  for (const PackedTensor &tensor : tensors)
    ranges.emplace_back(static_cast<const char *>(tensor.data), tensor.bytes());
  llvm::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i - 1].first + ranges[i - 1].second > ranges[i].first)
      return false;
  return true;
}

std::shared_ptr<const PackedWeights>
Cache::storeWeights(const std::string &key, const Artifact &artifact,
                    const std::vector<PackedTensor> &tensors,
                    llvm::function_ref<void(std::string_view)> forget) const {
  uint64_t bytes = 0;
  for (const PackedTensor &tensor : tensors)
    bytes += tensor.bytes();
  if (descriptor < 0 || bytes < kMinWeightBytes ||
      bytes > folderLimit(descriptor) / 2)
    return nullptr;
  const std::string owner = weightsOwner(key, artifact);
  std::string memory;
  if (!areApart(tensors))
    forget = {};
  if (!writeFile(weightsNameOf(owner), layOutWeights(owner, tensors, memory),
                 forget))
    return nullptr;
  return loadWeights(key, artifact, /*isTrusted=*/true);
}
