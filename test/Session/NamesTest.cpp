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

} // namespace
