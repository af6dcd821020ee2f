#include "sardonyx/Runtime/ScratchMemory.h"
#include "sardonyx/Runtime/RunContext.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace sardonyx::runtime;

TEST(ScratchMemory, IsTheSameForOneKernelAfterTheOther) {
  BufferPool pool;
  ScratchMemory scratch;
  void *large = scratch.take(1 << 20, pool);
  void *inner = scratch.take(1000, pool);
  EXPECT_NE(large, inner);
  EXPECT_TRUE(scratch.giveBack(large));
  EXPECT_TRUE(scratch.giveBack(inner));
  EXPECT_EQ(scratch.take(100, pool), large);
  EXPECT_TRUE(scratch.giveBack(large));
  EXPECT_EQ(scratch.take(900 << 10, pool), large);
  EXPECT_EQ(scratch.take(10, pool), inner);
}

TEST(ScratchMemory, BeginsWithAsMuchAsTheRunBeforeNeeded) {
  BufferPool pool;
  ScratchMemory scratch;
  EXPECT_TRUE(scratch.giveBack(scratch.take(1000, pool)));
  EXPECT_TRUE(scratch.giveBack(scratch.take(2 << 20, pool)));
  pool.releaseAll();
  scratch.forget();
  void *first = scratch.take(1000, pool);
  EXPECT_TRUE(scratch.giveBack(first));
  EXPECT_EQ(scratch.take(2 << 20, pool), first);
  // Not for ever.
  for (int run = 0; run < 2; ++run) {
    pool.releaseAll();
    scratch.forget();
    first = scratch.take(1000, pool);
    EXPECT_TRUE(scratch.giveBack(first));
  }
  EXPECT_NE(scratch.take(2 << 20, pool), first);
}

TEST(ScratchMemory, LeavesWhatItHasNotGivenToOthers) {
  BufferPool pool;
  ScratchMemory scratch;
  void *memory = pool.allocate(100);
  EXPECT_FALSE(scratch.giveBack(memory));
  EXPECT_FALSE(scratch.giveBack(nullptr));
  // Many at a time are the pool's, too.
  void *taken[6];
  for (void *&block : taken) {
    block = scratch.take(100, pool);
    ASSERT_NE(block, nullptr);
    memset(block, 1, 100);
  }
  EXPECT_FALSE(scratch.giveBack(taken[5]));
  EXPECT_TRUE(scratch.giveBack(taken[0]));
}

TEST(ScratchMemory, GivesNothingForImpossibleSizes) {
  BufferPool pool;
  ScratchMemory scratch;
  EXPECT_EQ(scratch.take(-1, pool), nullptr);
  EXPECT_TRUE(scratch.giveBack(scratch.take(100, pool)));
  EXPECT_EQ(scratch.take(-1, pool), nullptr);
  EXPECT_EQ(scratch.take(INT64_MAX, pool), nullptr);
  EXPECT_NE(scratch.take(100, pool), nullptr);
  // Nor for more threads than there can be.
  RunContext run(UINT32_MAX);
  EXPECT_FALSE(run.run([](void **) { sdx_rt_scratch(INT64_MIN); }, nullptr));
  EXPECT_NE(run.failure().find("out of memory"), std::string::npos);
}

TEST(ScratchMemory, EachThreadOfARunHasItsOwn) {
  RunContext run(2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(run.run(
        [](void **) {
          sdx_rt_parallel_for(
              64, 1,
              [](int64_t begin, int64_t end, void *) {
                void *block = sdx_rt_scratch(10000);
                for (int64_t at = begin; at < end; ++at)
                  memset(block, static_cast<int>(at), 10000);
                for (int64_t k = 0; k < 10000; ++k)
                  if (static_cast<unsigned char *>(block)[k] != end - 1)
                    sdx_rt_check_failed("shared", SDX_RT_FAILED, 0, 0, 0, 0);
                sdx_rt_free(block);
              },
              nullptr);
        },
        nullptr))
        << run.failure();
  }
}

TEST(ScratchMemory, CountsAgainstTheLimit) {
  auto budget = std::make_shared<MemoryBudget>(1 << 20);
  RunContext run(1, nullptr, budget);
  EXPECT_TRUE(run.run([](void **) { sdx_rt_scratch(900000); }, nullptr));
  // What the run before needed does not fit beside this.
  EXPECT_TRUE(run.run(
      [](void **) {
        sdx_rt_alloc(400000);
        sdx_rt_scratch(400000);
      },
      nullptr))
      << run.failure();
  EXPECT_FALSE(run.run([](void **) { sdx_rt_scratch(2 << 20); }, nullptr));
  EXPECT_NE(run.failure().find("out of memory"), std::string::npos);
}
