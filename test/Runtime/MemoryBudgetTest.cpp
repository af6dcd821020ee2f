#include "sardonyx/Runtime/MemoryBudget.h"
#include "sardonyx/Runtime/RunContext.h"
#include <gtest/gtest.h>
#include <unistd.h>

using namespace sardonyx::runtime;

TEST(MemoryBudget, IsWhatTheMachineHasAtMost) {
  int64_t physical = int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  EXPECT_GT(machineMemory(), 1 << 20);
  EXPECT_LE(machineMemory(), physical);
}

TEST(MemoryBudget, CountsUpToItsLimit) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.take(60));
  EXPECT_FALSE(budget.take(41));
  EXPECT_TRUE(budget.take(40));
  EXPECT_EQ(budget.left(), 0);
  budget.give(60);
  EXPECT_EQ(budget.bytesHeld(), 40);
  EXPECT_FALSE(budget.take(INT64_MAX));
}

TEST(MemoryBudget, BoundsAPool) {
  auto budget = std::make_shared<MemoryBudget>(10000);
  BufferPool pool(budget);
  void *a = pool.allocate(4000);
  ASSERT_NE(a, nullptr);
  // Not with what a block of its class would take, but by itself.
  void *b = pool.allocate(5300);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(pool.allocate(2000), nullptr);
  EXPECT_LE(budget->bytesHeld(), 10000);
  EXPECT_EQ(budget->bytesHeld(), pool.bytesHeld());
  pool.release(b);
  EXPECT_LT(pool.bytesHeld(), 4500); // it had no class to be kept in
  pool.release(a);
  EXPECT_GT(pool.bytesHeld(), 4000);
  pool.trimAll();
  EXPECT_EQ(pool.bytesHeld(), 0);
  EXPECT_EQ(budget->bytesHeld(), 0);
}

TEST(MemoryBudget, AnAllocationAboveItFailsTheRun) {
  auto budget = std::make_shared<MemoryBudget>(1 << 20);
  RunContext run(1, nullptr, budget);
  EXPECT_FALSE(run.run([](void **) { sdx_rt_alloc(2 << 20); }, nullptr));
  EXPECT_EQ(run.failure(),
            "out of memory: the run needs 2097152 bytes for an intermediate "
            "value, and of the memory limit of 1048576 bytes 1048576 are left");
  EXPECT_FALSE(run.run(
      [](void **) { sdx_rt_alloc_for(2 << 20, "node 'expand'"); }, nullptr));
  EXPECT_EQ(run.failure().find("node 'expand': out of memory: the run needs "),
            0u);
  EXPECT_FALSE(run.run([](void **) { sdx_rt_arena(2 << 20); }, nullptr));
  EXPECT_NE(run.failure().find("memory limit"), std::string::npos);
  run.outputs().resize(1);
  run.outputs()[0].name = "y";
  EXPECT_FALSE(run.run(
      [](void **) {
        int64_t sizes[] = {1024, 2048};
        sdx_rt_output(0, 2, sizes);
      },
      nullptr));
  EXPECT_NE(run.failure().find("output 'y' of shape [1024, 2048]"),
            std::string::npos);
  // A loop that makes a value in each trip and keeps them all.
  EXPECT_FALSE(run.run(
      [](void **) {
        for (;;)
          sdx_rt_alloc(1000);
      },
      nullptr));
  EXPECT_LE(budget->bytesHeld(), 1 << 20);
}

TEST(MemoryBudget, KeptMemoryMakesRoom) {
  auto budget = std::make_shared<MemoryBudget>(1 << 20);
  static int reclaimed;
  reclaimed = 0;
  RunContext run(1, nullptr, budget, [] { ++reclaimed; });
  for (int round = 0; round < 20; ++round) {
    // Blocks of another class in each run: the last ones are in the way.
    static int64_t bytes;
    bytes = round % 2 ? 900000 : 500000;
    EXPECT_TRUE(run.run([](void **) { sdx_rt_alloc(bytes); }, nullptr))
        << run.failure();
  }
  EXPECT_GT(reclaimed, 0);
  // An arena that grows may have all there is.
  EXPECT_TRUE(run.run([](void **) { sdx_rt_arena(600000); }, nullptr));
  EXPECT_TRUE(run.run([](void **) { sdx_rt_arena(1000000); }, nullptr))
      << run.failure();
}

TEST(MemoryBudget, ContextsGiveEverythingBack) {
  auto budget = std::make_shared<MemoryBudget>(int64_t(1) << 30);
  {
    RunContext run(2, nullptr, budget);
    run.outputs().resize(1);
    EXPECT_TRUE(run.run(
        [](void **) {
          int64_t size = 5000;
          sdx_rt_output(0, 1, &size);
          sdx_rt_arena(100000);
          sdx_rt_alloc(3000);
        },
        nullptr));
    EXPECT_GT(budget->bytesHeld(), 108000);
  }
  EXPECT_EQ(budget->bytesHeld(), 0);
}
