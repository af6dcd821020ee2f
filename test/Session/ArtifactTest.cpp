#include "HandmadeModel.h"
#include <gtest/gtest.h>

using namespace sardonyx;

TEST(Artifact, RoundTrips) {
  Artifact artifact = handmadeArtifact();
  std::string bytes = serialize(artifact);
  std::optional<Artifact> copy = deserialize(bytes);
  ASSERT_TRUE(copy);
  EXPECT_EQ(serialize(*copy), bytes);
  EXPECT_EQ(copy->inputs[0].dims[0].symbol, "n");
  EXPECT_EQ(copy->metadata.custom[0].second, "value");
  EXPECT_EQ(copy->objects, artifact.objects);
}

TEST(Artifact, RefusesEveryTruncation) {
  Artifact artifact = handmadeArtifact();
  artifact.objects = {"object"};
  std::string bytes = serialize(artifact);
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_FALSE(deserialize({bytes.data(), size})) << size;
  EXPECT_FALSE(deserialize(bytes + "x"));
}

TEST(Artifact, SurvivesDamage) {
  Artifact artifact = handmadeArtifact();
  artifact.objects = {"object"};
  std::string bytes = serialize(artifact);
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int bit : {0, 4, 7}) {
      std::string damaged = bytes;
      damaged[i] ^= 1 << bit;
      (void)deserialize(damaged); // any answer will do
    }
}

TEST(Artifact, RefusesReferencesToNothing) {
  auto sound = [](auto change) {
    Artifact artifact = handmadeArtifact();
    change(artifact);
    return deserialize(serialize(artifact)).has_value();
  };
  EXPECT_TRUE(sound([](Artifact &) {}));
  EXPECT_FALSE(sound([](Artifact &a) { a.mainArgs[0].index = 2; }));
  EXPECT_FALSE(sound([](Artifact &a) { a.mainArgs[1].index = 1; }));
  EXPECT_FALSE(sound([](Artifact &a) { a.mainArgs[2].length = 1000; }));
  EXPECT_FALSE(sound([](Artifact &a) { a.mainArgs[2].offset = UINT64_MAX; }));
  EXPECT_FALSE(sound([](Artifact &a) { a.mainArgs[2].shape = {-1}; }));
  EXPECT_FALSE(sound([](Artifact &a) { a.initArgs[0].index = 7; }));
}

TEST(Artifact, TellsWhyItDoesNotUnpack) {
  const std::string packed = pack(handmadeArtifact(), "key");
  auto copy = unpack(packed, "key");
  ASSERT_TRUE(copy);
  EXPECT_EQ(serialize(*copy), serialize(handmadeArtifact()));
  auto whyNot = [](std::string_view bytes, std::string_view key) {
    auto artifact = unpack(bytes, key);
    return artifact ? std::string() : artifact.error().message();
  };
  EXPECT_EQ(whyNot(packed, "other"),
            "the compiled model is another one than was asked for");
  EXPECT_EQ(whyNot("", "key"), "the compiled model is cut off");
  EXPECT_EQ(whyNot(std::string(100, 'x'), "key"),
            "the compiled model was not made by Sardonyx, or is damaged");
  for (size_t size = 0; size < packed.size(); size += 7)
    ASSERT_FALSE(unpack({packed.data(), size}, "key")) << size;
  for (size_t i = 0; i < packed.size(); ++i) {
    std::string damaged = packed;
    damaged[i] ^= 4;
    ASSERT_FALSE(unpack(damaged, "key")) << i;
  }
  std::string other = packed;
  ++other[16];
  EXPECT_EQ(whyNot(other, "key"),
            "the compiled model was made by another version of Sardonyx");
}
