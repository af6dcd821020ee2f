#include "lib/Model/Device/ImageChoice.h"
#include <gtest/gtest.h>

using namespace sardonyx;

namespace {

Image image(ImageKind kind, const std::string &architecture) {
  Image made;
  made.kind = kind;
  made.architecture = architecture;
  made.kernels = {{"k", "", 1, 0}};
  return made;
}

/// The images of a list that a device can run, the best first.
std::string rank(const std::string &list, int sm) {
  std::vector<Image> images;
  for (const ListedImage &listed : readImageList(list))
    images.push_back(image(listed.kind, listed.architecture));
  std::vector<const Image *> all;
  for (const Image &each : images)
    all.push_back(&each);
  return listImages(rankImages(all, sm));
}

TEST(ImageChoice, TakesWhatWasMadeForTheDevice) {
  const std::string all = "sm_80 ptx, sm_90a ptx, sm_80 cubin, sm_90a cubin, "
                          "sm_90 cubin, sm_100a ptx, sm_89 ptx";
  EXPECT_EQ(rank(all, 90), "sm_90a cubin, sm_90a ptx, sm_90 cubin, sm_89 ptx, "
                           "sm_80 ptx");
  EXPECT_EQ(rank(all, 80), "sm_80 cubin, sm_80 ptx");
  EXPECT_EQ(rank(all, 86), "sm_80 ptx");
  EXPECT_EQ(rank(all, 103), "sm_89 ptx, sm_80 ptx");
  EXPECT_EQ(rank(all, 75), "");
}

TEST(ImageChoice, ReadsWhatItWrites) {
  const std::string all = "sm_80 ptx, sm_120a cubin";
  EXPECT_EQ(rank(all, 120), "sm_120a cubin, sm_80 ptx");
  EXPECT_TRUE(readImageList("").empty());
  EXPECT_TRUE(readImageList("sm_80").empty());
  EXPECT_TRUE(readImageList("sm_80 elf, ,").empty());
}

TEST(ImageChoice, LeavesWhatSaysNothingToTheDriver) {
  Image unnamed = image(ImageKind::Own, ""),
        text = image(ImageKind::PTX, "sm_80");
  EXPECT_EQ(rankImages({&unnamed, &text}, 80).front(), &text);
  EXPECT_EQ(rankImages({&unnamed}, 80).size(), 1u);
}

TEST(ImageChoice, NamesDevices) {
  EXPECT_EQ(architectureOf(80), "sm_80");
  EXPECT_EQ(architectureOf(90), "sm_90a");
  EXPECT_EQ(architectureOf(103), "sm_100");
  EXPECT_EQ(tellUnfitting("sm_80 ptx", "NVIDIA T4", 75),
            "it is 'NVIDIA T4' of compute capability 7.5, and there is sm_80 "
            "ptx");
}

} // namespace
