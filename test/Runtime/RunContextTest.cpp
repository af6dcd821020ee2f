#include "sardonyx/Runtime/RunContext.h"
#include <atomic>
#include <cstring>
#include <gtest/gtest.h>

using namespace sardonyx::runtime;

// The functions below stand for compiled code: nothing in them has a
// destructor.

TEST(RunContext, GivesResults) {
  RunContext run(1);
  run.outputs().resize(1);
  run.outputs()[0].name = "y";
  run.outputs()[0].elementBytes = 4;
  float input = 21;
  void *args[] = {&input};
  ASSERT_TRUE(run.run(
      [](void **args) {
        int64_t sizes[] = {2, 3};
        auto *y = static_cast<float *>(sdx_rt_output(0, 2, sizes));
        for (int i = 0; i < 6; ++i)
          y[i] = *static_cast<float *>(args[0]) * 2;
      },
      args));
  OutputSlot &slot = run.outputs()[0];
  EXPECT_TRUE(slot.given);
  EXPECT_EQ(slot.sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(static_cast<float *>(slot.data)[5], 42);
  EXPECT_EQ(RunContext::current(), nullptr);
}

TEST(RunContext, WritesToTheCallersMemoryOrSaysWhyNot) {
  RunContext run(1);
  float memory[6] = {};
  auto prepare = [&](std::vector<int64_t> expected) {
    run.dropOutputs();
    run.outputs().resize(1);
    run.outputs()[0].name = "y";
    run.outputs()[0].elementBytes = 4;
    run.outputs()[0].callerMemory = memory;
    run.outputs()[0].expected = expected;
  };
  auto entry = [](void **) {
    int64_t sizes[] = {2, 3};
    static_cast<float *>(sdx_rt_output(0, 2, sizes))[5] = 1;
  };
  prepare({2, 3});
  EXPECT_TRUE(run.run(entry, nullptr));
  EXPECT_EQ(memory[5], 1);
  prepare({3, 3});
  EXPECT_FALSE(run.run(entry, nullptr));
  EXPECT_EQ(run.failure(), "output 'y': the caller's memory has shape [3, 3], "
                           "the model gives [2, 3]");
}

TEST(RunContext, RefusesImpossibleResults) {
  RunContext run(1);
  EXPECT_FALSE(run.run([](void **) { sdx_rt_output(3, 0, nullptr); }, nullptr));
  EXPECT_NE(run.failure().find("result 3"), std::string::npos);
  run.outputs().resize(1);
  EXPECT_FALSE(run.run(
      [](void **) {
        int64_t sizes[] = {INT64_MAX, 16};
        sdx_rt_output(0, 2, sizes);
      },
      nullptr));
  EXPECT_NE(run.failure().find("impossible shape"), std::string::npos);
}

TEST(RunContext, AFailedCheckLeavesTheRun) {
  RunContext run(4);
  static bool after;
  after = false;
  EXPECT_FALSE(run.run(
      [](void **) {
        sdx_rt_alloc(1000);
        sdx_rt_check_failed("sizes differ: {1} and {0}, {4} {}",
                            SDX_RT_UNSUPPORTED, 4, -3, 0, 0);
        after = true;
      },
      nullptr));
  EXPECT_FALSE(after);
  EXPECT_EQ(run.failure(), "sizes differ: -3 and 4, {4} {}");
  EXPECT_EQ(run.failureKind(), SDX_RT_UNSUPPORTED);
  // The context serves the next run.
  EXPECT_TRUE(run.run([](void **) { after = true; }, nullptr));
  EXPECT_TRUE(after);
  EXPECT_EQ(run.failure(), "");
}

TEST(RunContext, AFailureInALoopEndsTheRunAfterTheLoop) {
  for (unsigned threads : {1u, 2u, 8u}) {
    RunContext run(threads);
    static bool after;
    after = false;
    EXPECT_FALSE(run.run(
        [](void **) {
          sdx_rt_parallel_for(
              1000, 1,
              [](int64_t begin, int64_t end, void *) {
                if (begin <= 500 && 500 < end) {
                  sdx_rt_check_failed("index 500 is out of bounds",
                                      SDX_RT_FAILED, 0, 0, 0, 0);
                  after = true; // it must not go on with such an index
                }
              },
              nullptr);
          after = true;
        },
        nullptr));
    EXPECT_FALSE(after);
    EXPECT_EQ(run.failure(), "index 500 is out of bounds");
  }
}

TEST(RunContext, KernelsSeeHowManyThreadsThereAre) {
  EXPECT_EQ(sdx_rt_threads(), 1); // outside of any run
  for (unsigned threads : {1u, 3u}) {
    RunContext run(threads);
    static int64_t seen;
    seen = 0;
    EXPECT_TRUE(run.run([](void **) { seen = sdx_rt_threads(); }, nullptr));
    EXPECT_EQ(seen, threads);
  }
}

TEST(RunContext, WorkersSeeTheRun) {
  RunContext run(8);
  static std::atomic<RunContext *> expected;
  static std::atomic<int> wrong;
  expected = &run;
  wrong = 0;
  EXPECT_TRUE(run.run(
      [](void **) {
        sdx_rt_parallel_for(
            1000, 1,
            [](int64_t begin, int64_t end, void *) {
              for (; begin < end; ++begin) {
                if (RunContext::current() != expected)
                  ++wrong;
                auto *memory = static_cast<char *>(sdx_rt_alloc(4096));
                memset(memory, 1, 4096);
                sdx_rt_free(memory);
              }
            },
            nullptr);
      },
      nullptr));
  EXPECT_EQ(wrong, 0);
}

TEST(RunContext, KeepsTheArenaAndReclaimsMemory) {
  RunContext run(1);
  static void *arenas[3], *blocks[3];
  static int round;
  for (round = 0; round < 3; ++round)
    ASSERT_TRUE(run.run(
        [](void **) {
          arenas[round] = sdx_rt_arena(100000);
          memset(arenas[round], 0, 100000);
          EXPECT_NE(sdx_rt_arena(5000), arenas[round]); // a second request
          blocks[round] = sdx_rt_alloc(3000);           // never freed
        },
        nullptr));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arenas[0]) % 64, 0u);
  EXPECT_EQ(arenas[0], arenas[1]);
  EXPECT_EQ(arenas[1], arenas[2]);
  EXPECT_EQ(blocks[0], blocks[2]);
  EXPECT_TRUE(run.run([](void **) { memset(sdx_rt_arena(400000), 0, 400000); },
                      nullptr));
}

TEST(RunContext, RunningOutOfMemoryIsAFailure) {
  RunContext run(1);
  EXPECT_FALSE(run.run([](void **) { sdx_rt_alloc(INT64_MAX); }, nullptr));
  EXPECT_EQ(run.failure().find("out of memory"), 0u);
  EXPECT_FALSE(run.run([](void **) { sdx_rt_alloc(-5); }, nullptr));
  EXPECT_FALSE(run.run([](void **) { sdx_rt_arena(-5); }, nullptr));
  EXPECT_TRUE(run.run([](void **) { sdx_rt_arena(0); }, nullptr));
}
