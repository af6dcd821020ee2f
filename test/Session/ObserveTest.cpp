//===- ObserveTest.cpp - What a session's runs see ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/Session.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace sardonyx;

// The shape's length gives the rank: other lengths are variants of their own.
static const char kModel[] = R"(<ir_version: 8, opset_import: ["" : 17]>
model (float[A, B] x, int64[S] s) => (float[P, Q] y, float[] m) {
  d = Neg(x)
  y = Reshape(d, s)
  m = ReduceMax <keepdims = 0> (x)
}
)";

static Expected<std::shared_ptr<Session>>
load(std::map<std::string, ObservedTensor> observe) {
  SessionOptions options;
  options.cache = false;
  options.observe = std::move(observe);
  return Session::loadBytes(kModel, strlen(kModel), options);
}

TEST(Observe, AddsRunsOfAllVariants) {
  auto session =
      load({{"d", {runtime::ObserveRange}}, {"x", {runtime::ObserveMoments}}});
  ASSERT_TRUE(session) << session.error().message();
  std::vector<float> x(24, 1.5f);
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{6, 4}, {2, 3, 4}, {4, 6}}) {
    auto result = (*session)->run(
        {{ElementType::Float, x.data(), {4, 6}},
         {ElementType::Int64, shape.data(), {int64_t(shape.size())}}});
    ASSERT_TRUE(result) << result.error().message();
  }
  auto seen = (*session)->takeObservations();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->at("d").count, 72u);
  EXPECT_EQ(seen->at("d").largest, -1.5);
  EXPECT_EQ(seen->at("x").sum, 72 * 1.5);
  seen = (*session)->takeObservations();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->at("d").count, 0u);
}

TEST(Observe, RefusesWhatItCannotSee) {
  auto message = [](const std::string &name, ObservedTensor tensor) {
    auto session = load({{name, tensor}});
    return session ? std::string() : session.error().message();
  };
  EXPECT_NE(message("dd", {}).find("no tensor 'dd'"), std::string::npos);
  EXPECT_NE(message("s", {}).find("'s' cannot be observed"), std::string::npos);
  EXPECT_NE(message("d", {0}).find("no observations of number 0"),
            std::string::npos);
  EXPECT_NE(message("d", {runtime::ObserveChannels, 2}).find("no axis 2"),
            std::string::npos);
}
