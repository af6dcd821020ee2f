#include "../../lib/Session/Cache/Cache.h"
#include "HandmadeModel.h"
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace sardonyx;

static size_t filesIn(const std::string &folder) {
  size_t count = 0;
  if (DIR *listing = opendir(folder.c_str())) {
    while (dirent *entry = readdir(listing))
      count += entry->d_name[0] != '.';
    closedir(listing);
  }
  return count;
}

static std::string keyOf(const Cache &cache, const std::string &model,
                         const SessionOptions &options) {
  return cache.keyOf(*FileMap::borrow(model.data(), model.size()), options);
}

TEST(Cache, GivesBackWhatWasStored) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path + "/made/on/demand";
  Cache cache(options);
  std::string key = keyOf(cache, "model", options);
  EXPECT_FALSE(cache.load(key));
  cache.store(key, handmadeArtifact());
  std::optional<Artifact> found = cache.load(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(serialize(*found), serialize(handmadeArtifact()));
}

TEST(Cache, KeysTellModelsAndOptionsApart) {
  SessionOptions options, other;
  Cache cache(options);
  EXPECT_EQ(keyOf(cache, "model", options), keyOf(cache, "model", options));
  EXPECT_NE(keyOf(cache, "model", options), keyOf(cache, "Model", options));
  other.optLevel = 3;
  EXPECT_NE(keyOf(cache, "model", options), keyOf(cache, "model", other));
  other = options;
  other.intraOpThreads = 3; // does not matter to the code
  other.memoryLimit = 1000;
  EXPECT_EQ(keyOf(cache, "model", options), keyOf(cache, "model", other));
  // One text does not run into the next.
  options.dims = {{"a", 12}};
  other.dims = {{"a", 1}, {"2", 2}};
  EXPECT_NE(keyOf(cache, "model", options), keyOf(cache, "model", other));
}

TEST(Cache, IgnoresDamagedFiles) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path;
  Cache cache(options);
  cache.store("key", handmadeArtifact());
  std::string whole = readFile(cache.pathOf("key"));
  auto loadsAs = [&](const std::string &bytes) {
    writeFile(cache.pathOf("key"), bytes);
    return cache.load("key").has_value();
  };
  EXPECT_TRUE(loadsAs(whole));
  EXPECT_FALSE(loadsAs(""));
  EXPECT_FALSE(
      loadsAs("something else entirely, and long enough for a header"));
  EXPECT_FALSE(loadsAs(whole.substr(0, whole.size() - 1)));
  EXPECT_FALSE(loadsAs(whole + "x"));
  std::string damaged = whole;
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_FALSE(loadsAs(damaged));
  cache.store("key", handmadeArtifact()); // replaces it
  EXPECT_TRUE(cache.load("key"));
}

TEST(Cache, EntriesAreForTheirOwnKey) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path;
  Cache cache(options);
  cache.store("key", handmadeArtifact());
  // As if both had the same name.
  ASSERT_EQ(rename(cache.pathOf("key").c_str(), cache.pathOf("other").c_str()),
            0);
  EXPECT_FALSE(cache.load("key"));
  EXPECT_FALSE(cache.load("other"));
  cache.store("other", handmadeArtifact()); // takes its place
  EXPECT_TRUE(cache.load("other"));
}

TEST(Cache, LeavesNothingForOthersToReadOrWrite) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path + "/new";
  Cache cache(options);
  mode_t before = umask(0);
  cache.store("key", handmadeArtifact());
  umask(before);
  struct stat status;
  ASSERT_EQ(stat(options.cacheDir.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(cache.pathOf("key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(filesIn(options.cacheDir), 1u); // and no temporary file
}

TEST(Cache, RefusesAFolderThatOthersCanWrite) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path;
  ASSERT_TRUE(Cache(options).problem().empty());
  for (mode_t mode : {0775, 0707, 0777}) {
    ASSERT_EQ(chmod(folder.path.c_str(), mode), 0);
    Cache cache(options);
    EXPECT_FALSE(cache.enabled());
    EXPECT_EQ(cache.problem(),
              "the folder '" + folder.path +
                  "' is not used for compiled models: others can write to it "
                  "(chmod go-w helps)");
    cache.store("key", handmadeArtifact());
    EXPECT_EQ(filesIn(folder.path), 0u);
  }
  if (geteuid() == 0 && chown(folder.path.c_str(), 65534, 65534) == 0) {
    ASSERT_EQ(chmod(folder.path.c_str(), 0755), 0);
    EXPECT_NE(Cache(options).problem().find("belongs to another user"),
              std::string::npos);
  }
}

TEST(Cache, TrustsOnlyOwnRegularFiles) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path;
  Cache cache(options);
  cache.store("key", handmadeArtifact());
  ASSERT_TRUE(cache.load("key"));
  const std::string path = cache.pathOf("key"), moved = folder.path + "/moved";
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_FALSE(cache.load("key"));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(cache.load("key"));
  ASSERT_EQ(rename(path.c_str(), moved.c_str()), 0);
  ASSERT_EQ(symlink(moved.c_str(), path.c_str()), 0);
  EXPECT_FALSE(cache.load("key"));
  cache.store("key", handmadeArtifact()); // replaces the link, not its target
  EXPECT_TRUE(cache.load("key"));
  struct stat status;
  ASSERT_EQ(lstat(path.c_str(), &status), 0);
  EXPECT_TRUE(S_ISREG(status.st_mode));
}

TEST(Cache, WritersAndReadersDoNotDisturbEachOther) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path;
  Artifact artifact = handmadeArtifact();
  Cache(options).store("key", artifact);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Cache cache(options);
      for (int i = 0; i < 50; ++i) {
        cache.store("key", artifact);
        if (!cache.load("key"))
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(filesIn(folder.path), 1u);
}

TEST(Cache, AFullDiskCostsNothingElse) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path;
  pid_t child = fork();
  if (child == 0) {
    // Writing beyond a file's largest size fails as a full disk does.
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{2000, 2000};
    setrlimit(RLIMIT_FSIZE, &limit);
    Cache cache(options);
    cache.store("key", handmadeArtifact());
    _exit(cache.load("key") ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(filesIn(folder.path), 0u);
}

TEST(Cache, IgnoresModelsWhoseExternalDataChanged) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path;
  std::string weights = folder.path + "/weights";
  Cache cache(options);
  cache.store("key", handmadeArtifact(weights, 4));
  EXPECT_TRUE(cache.load("key"));
  writeFile(weights, "other");
  EXPECT_FALSE(cache.load("key"));
  unlink(weights.c_str());
  EXPECT_FALSE(cache.load("key"));
}

TEST(Cache, CanBeSwitchedOff) {
  SessionOptions options;
  options.cache = false;
  Cache cache(options);
  EXPECT_FALSE(cache.enabled());
  cache.store("key", Artifact());
  EXPECT_FALSE(cache.load("key"));
}

TEST(Cache, AFolderThatCannotBeWrittenCostsNothingElse) {
  SessionOptions options;
  options.cacheDir = "/proc/no/such/folder";
  Cache cache(options);
  cache.store("key", Artifact());
  EXPECT_FALSE(cache.load("key"));
}

//===----------------------------------------------------------------------===//
// Packed weights
//===----------------------------------------------------------------------===//

namespace {

/// A folder with a compiled model and its packed weights: a number, a tensor
/// without elements and a matrix.
struct StoredWeights : testing::Test {
  TemporaryFolder folder;
  SessionOptions options;
  Artifact artifact = handmadeArtifact();
  std::vector<float> matrix = std::vector<float>(700 * 500);
  int64_t number = 42;

  StoredWeights() {
    options.cacheDir = folder.path;
    artifact.persistentElementBytes = {8, 4, 4};
    for (size_t i = 0; i < matrix.size(); ++i)
      matrix[i] = static_cast<float>(i);
  }
  std::vector<PackedTensor> tensors() const {
    return {
        {&number, 8, {}}, {nullptr, 4, {0}}, {matrix.data(), 4, {700, 500}}};
  }
  std::shared_ptr<const PackedWeights> store() {
    Cache cache(options);
    cache.store("key", artifact);
    return cache.storeWeights("key", artifact, tensors());
  }
  std::shared_ptr<const PackedWeights> load(const std::string &key = "key") {
    return Cache(options).loadWeights(key, artifact);
  }
  std::string path() const {
    return Cache(options).weightsPathOf("key", artifact);
  }
  bool areRight(const PackedWeights &weights) const {
    std::vector<PackedTensor> wanted = tensors();
    if (weights.tensors.size() != wanted.size())
      return false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const PackedTensor &tensor = weights.tensors[i];
      if (tensor.sizes != wanted[i].sizes ||
          reinterpret_cast<uintptr_t>(tensor.data) % 64 != 0 ||
          (tensor.bytes() &&
           memcmp(tensor.data, wanted[i].data, wanted[i].bytes()) != 0))
        return false;
    }
    return true;
  }
};

} // namespace

TEST_F(StoredWeights, TellsWhatMayBeForgotten) {
  Cache cache(options);
  cache.store("key", artifact);
  std::vector<const void *> written;
  auto forget = [&](std::string_view piece) {
    written.push_back(piece.data());
  };
  auto isWritten = [&](const void *data) {
    return std::find(written.begin(), written.end(), data) != written.end();
  };
  ASSERT_TRUE(cache.storeWeights("key", artifact, tensors(), forget));
  EXPECT_TRUE(isWritten(&number) && isWritten(matrix.data()));

  // What another tensor has, too, is read again.
  written.clear();
  std::vector<PackedTensor> overlapping = tensors();
  overlapping[1] = {&matrix[100], 4, {7}};
  ASSERT_TRUE(cache.storeWeights("key", artifact, overlapping, forget));
  EXPECT_TRUE(written.empty());
}

TEST_F(StoredWeights, AreMappedOnceByAllSessions) {
  EXPECT_FALSE(load());
  auto stored = store();
  ASSERT_TRUE(stored);
  EXPECT_TRUE(areRight(*stored));
  EXPECT_EQ(load(), stored);
  stored = nullptr;
  auto again = load();
  ASSERT_TRUE(again);
  EXPECT_TRUE(areRight(*again));
  EXPECT_EQ(filesIn(folder.path), 2u); // and no temporary file
  struct stat status;
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  // Whoever has mapped a file keeps it.
  unlink(path().c_str());
  EXPECT_TRUE(areRight(*again));
  EXPECT_FALSE(load());
}

TEST_F(StoredWeights, AreNotTakenWhenDamaged) {
  ASSERT_TRUE(store());
  const std::string whole = readFile(path());
  auto loadsAs = [&](const std::string &bytes) {
    writeFile(path(), bytes);
    return load() != nullptr;
  };
  EXPECT_TRUE(loadsAs(whole));
  EXPECT_FALSE(loadsAs(""));
  EXPECT_FALSE(loadsAs(whole.substr(0, 20)));
  EXPECT_FALSE(loadsAs(whole.substr(0, whole.size() - 1)));
  EXPECT_FALSE(loadsAs(whole + "x"));
  // Everything before the tensors, and some places in them.
  std::vector<size_t> places{130, 10000, whole.size() / 2, whole.size() - 1};
  for (size_t i = 0; i < 96; ++i)
    places.push_back(i);
  for (size_t place : places) {
    std::string damaged = whole;
    damaged[place] ^= 16;
    EXPECT_FALSE(loadsAs(damaged)) << place;
  }
  EXPECT_TRUE(loadsAs(whole));
}

TEST_F(StoredWeights, AreForTheirOwnModel) {
  ASSERT_TRUE(store());
  ASSERT_TRUE(load());
  EXPECT_FALSE(load("other"));
  ASSERT_EQ(rename(path().c_str(),
                   Cache(options).weightsPathOf("other", artifact).c_str()),
            0);
  EXPECT_FALSE(load("other"));
  ASSERT_TRUE(store());
  artifact.persistentElementBytes = {4, 8};
  EXPECT_FALSE(load());
  artifact.persistentElementBytes = {8, 4, 4};
  ASSERT_TRUE(load());
  // External data that has changed makes other weights.
  artifact.files.push_back({"/some/where/weights", 10, 1});
  EXPECT_FALSE(load());
  ASSERT_TRUE(store());
  ASSERT_TRUE(load());
  ++artifact.files.back().modified;
  EXPECT_FALSE(load());
}

TEST_F(StoredWeights, AreOwnRegularFilesOnly) {
  ASSERT_TRUE(store());
  ASSERT_EQ(chmod(path().c_str(), 0666), 0);
  EXPECT_FALSE(load());
  ASSERT_EQ(chmod(path().c_str(), 0600), 0);
  const std::string moved = folder.path + "/moved";
  ASSERT_EQ(rename(path().c_str(), moved.c_str()), 0);
  ASSERT_EQ(symlink(moved.c_str(), path().c_str()), 0);
  EXPECT_FALSE(load());
  EXPECT_TRUE(store()); // replaces the link
}

TEST_F(StoredWeights, OfFewBytesAreNoFile) {
  matrix.resize(1);
  Cache cache(options);
  EXPECT_FALSE(cache.storeWeights("key", artifact, {{matrix.data(), 4, {1}}}));
  EXPECT_EQ(filesIn(folder.path), 0u);
}

TEST_F(StoredWeights, AreNotWrittenToAFullDisk) {
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1000000, 1000000};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(store() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(filesIn(folder.path), 1u); // the compiled model
}
