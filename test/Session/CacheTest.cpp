#include "../../lib/Session/Cache.h"
#include "HandmadeModel.h"
#include <gtest/gtest.h>

using namespace sardonyx;

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
  EXPECT_EQ(cache.keyOf("model", options), cache.keyOf("model", other));
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
