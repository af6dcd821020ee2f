#include "../../lib/Session/Cache.h"
#include "HandmadeModel.h"
#include <atomic>
#include <csignal>
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

TEST(Cache, GivesBackWhatWasStored) {
  TemporaryFolder folder;
  SessionOptions options;
  options.cacheDir = folder.path + "/made/on/demand";
  Cache cache(options);
  std::string key = cache.keyOf("model", options);
  EXPECT_FALSE(cache.load(key));
  cache.store(key, handmadeArtifact());
  std::optional<Artifact> found = cache.load(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(serialize(*found), serialize(handmadeArtifact()));
}

TEST(Cache, KeysTellModelsAndOptionsApart) {
  SessionOptions options, other;
  Cache cache(options);
  EXPECT_EQ(cache.keyOf("model", options), cache.keyOf("model", options));
  EXPECT_NE(cache.keyOf("model", options), cache.keyOf("Model", options));
  other.optLevel = 3;
  EXPECT_NE(cache.keyOf("model", options), cache.keyOf("model", other));
  other = options;
  other.intraOpThreads = 3; // does not matter to the code
  other.memoryLimit = 1000;
  EXPECT_EQ(cache.keyOf("model", options), cache.keyOf("model", other));
  // One text does not run into the next.
  options.dims = {{"a", 12}};
  other.dims = {{"a", 1}, {"2", 2}};
  EXPECT_NE(cache.keyOf("model", options), cache.keyOf("model", other));
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
