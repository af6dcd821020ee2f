//===- NamesTest.cpp - Names that a model does not have -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Names.h"
#include "gtest/gtest.h"

using namespace sardonyx;

namespace {

TEST(Names, Nearest) {
  const std::vector<std::string> known{"input_ids", "attention_mask", "x", ""};
  EXPECT_EQ(nearestName("inptu_ids", known), "input_ids");
  EXPECT_EQ(nearestName("INPUT_IDS", known), "input_ids");
  EXPECT_EQ(nearestName("ids", known), "input_ids");
  EXPECT_EQ(nearestName("my_attention_mask_0", known), "attention_mask");
  EXPECT_EQ(nearestName("X", known), "x");
  EXPECT_EQ(nearestName("y", known), "");
  EXPECT_EQ(nearestName("token_types", known), "");
  EXPECT_EQ(nearestName("", known), "");
  EXPECT_EQ(nearestName("a", {}), "");
}

TEST(Names, Unknown) {
  EXPECT_EQ(unknownName("input", "X", {"x", "b"}),
            "the model has no input 'X'; it has x, b (did you mean x?)");
  EXPECT_EQ(unknownName("input", "X", {}),
            "the model has no input 'X'; it has none");
  std::vector<std::string> many(20, "long_name");
  EXPECT_NE(unknownName("input", "X", many).find("and 11 more"),
            std::string::npos);
}

TEST(Names, OpenDims) {
  ValueInfo x, y;
  x.name = "x";
  x.dims = {{-1, ""}, {3, ""}, {-1, "N"}, {-1, "?"}};
  y.name = "y";
  y.dims = {{-1, "?"}, {-1, "N"}};
  EXPECT_EQ(openDimsOf({x, y}),
            (std::vector<std::string>{"x[0]", "N", "?", "x[3]", "y[0]"}));
  const std::map<std::string, int64_t> sizes = {
      {"x[0]", 4}, {"x[1]", 5}, {"x[2]", 6}, {"?", 7}, {"y[0]", 8}};
  auto sizeOf = [&](const ValueInfo &value, size_t index) -> int64_t {
    const int64_t *size = sizeGivenFor(value, index, sizes);
    return size ? *size : -1;
  };
  EXPECT_EQ(sizeOf(x, 0), 4);
  EXPECT_EQ(sizeOf(x, 1), -1); // three, whatever is said
  EXPECT_EQ(sizeOf(x, 2), -1); // it has a name
  EXPECT_EQ(sizeOf(x, 3), 7);
  EXPECT_EQ(sizeOf(y, 0), 8); // its place is more exact than "?"
}

} // namespace
