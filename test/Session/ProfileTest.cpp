// What runs record.

#include "sardonyx/Session/Session.h"
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace sardonyx;

// The shape's length gives the rank: other lengths are variants of their own.
static const char kModel[] = R"(<ir_version: 8, opset_import: ["" : 17]>
model (float[A, B] x, int64[S] s) => (float[P, Q] y, float[] m) {
  d = Exp(x)
  y = Reshape(d, s)
  m = ReduceMax <keepdims = 0> (x)
}
)";

static std::shared_ptr<Session> load(bool profile) {
  SessionOptions options;
  options.cache = false;
  options.profile = profile;
  auto loaded = Session::loadBytes(kModel, strlen(kModel), options);
  EXPECT_TRUE(loaded) << loaded.error().message();
  return loaded ? *loaded : nullptr;
}

static bool run(Session &session, std::vector<int64_t> shape) {
  std::vector<float> x(24, 1.5f);
  return bool(session.run(
      {{ElementType::Float, x.data(), {4, 6}},
       {ElementType::Int64, shape.data(), {int64_t(shape.size())}}}));
}

TEST(Profile, TellsTheStepsOfRuns) {
  std::shared_ptr<Session> session = load(true);
  ASSERT_TRUE(session);
  ASSERT_TRUE(run(*session, {6, 4}));
  ASSERT_TRUE(run(*session, {4, 6}));
  Profile profile = session->takeProfile();
  ASSERT_EQ(profile.runs.size(), 2u);
  EXPECT_EQ(profile.droppedRuns, 0u);
  double flops = 0;
  for (const ProfileRun &run : profile.runs) {
    EXPECT_FALSE(run.events.empty());
    int64_t last = run.begin;
    for (const ProfileEvent &event : run.events) {
      ASSERT_LT(event.site, profile.sites.size());
      EXPECT_LE(last, event.begin);
      EXPECT_LE(event.begin, event.end);
      EXPECT_GE(event.bytes, 96); // 24 f32 at least
      last = event.end;
      flops += event.flops;
    }
    EXPECT_LE(last, run.end);
  }
  // One for each element by Exp and one by ReduceMax, in each of the runs.
  EXPECT_EQ(flops, 2 * 2 * 24);
  EXPECT_NE(toTrace(profile).find("\"cat\":\"Node\""), std::string::npos);
  EXPECT_TRUE(session->takeProfile().runs.empty());
}

TEST(Profile, HoldsTheRunsOfVariants) {
  std::shared_ptr<Session> session = load(true);
  ASSERT_TRUE(session);
  ASSERT_TRUE(run(*session, {6, 4}));
  ASSERT_TRUE(run(*session, {2, 3, 4}));
  ASSERT_TRUE(run(*session, {24}));
  Profile profile = session->takeProfile();
  EXPECT_EQ(profile.runs.size(), 3u);
  for (const ProfileRun &run : profile.runs)
    for (const ProfileEvent &event : run.events)
      EXPECT_LT(event.site, profile.sites.size());
}

TEST(Profile, IsEmptyUnlessAskedFor) {
  std::shared_ptr<Session> session = load(false);
  ASSERT_TRUE(session);
  ASSERT_TRUE(run(*session, {6, 4}));
  Profile profile = session->takeProfile();
  EXPECT_TRUE(profile.runs.empty() && profile.sites.empty());
  EXPECT_EQ(toTrace(profile), "[]");
}

TEST(Profile, IsTakenWhileThreadsRun) {
  std::shared_ptr<Session> session = load(true);
  ASSERT_TRUE(session);
  constexpr size_t kThreads = 3, kRuns = 100;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (size_t i = 0; i < kRuns; ++i)
        EXPECT_TRUE(run(*session, {6, 4}));
    });
  size_t runs = 0;
  for (int i = 0; i < 50; ++i)
    runs += session->takeProfile().runs.size();
  for (std::thread &thread : threads)
    thread.join();
  Profile rest = session->takeProfile();
  EXPECT_EQ(runs + rest.runs.size(), kThreads * kRuns);
  for (const ProfileRun &run : rest.runs)
    EXPECT_LT(run.thread, kThreads);
}
