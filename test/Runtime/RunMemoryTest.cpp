#include "sardonyx/Runtime/RunMemory.h"
#include "sardonyx/Runtime/AlignedMemory.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace sardonyx::runtime;

static constexpr int64_t kMiB = int64_t(1) << 20;

/// A chain of values of which two are there at a time.
static std::vector<char *> runChain(RunMemory &memory, int64_t unit) {
  std::vector<char *> all;
  void *last = nullptr;
  for (int64_t bytes : {4, 2, 3, 5, 1}) {
    auto *value = static_cast<char *>(memory.allocate(bytes * unit));
    EXPECT_NE(value, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(value) % 64, 0u);
    memset(value, 1, bytes * unit);
    memory.release(last);
    last = value;
    all.push_back(value);
  }
  memory.endRun();
  return all;
}

TEST(RunMemory, HoldsWhatIsThereAtATime) {
  BufferPool pool;
  RunMemory memory(pool, nullptr);
  runChain(memory, kMiB);
  // 3 where 4 was, and 5 behind the 2 after it.
  EXPECT_GE(memory.bytesHeld(), 11 * kMiB);
  EXPECT_LE(memory.bytesHeld(), 14 * kMiB);
  EXPECT_EQ(pool.bytesHeld(), 0);
  std::vector<char *> second = runChain(memory, kMiB);
  EXPECT_EQ(second[2], second[0]);
  EXPECT_EQ(second[1], second[0] + 4 * kMiB);
  EXPECT_EQ(second[4], second[0]);
  uint64_t before = countAllocations();
  EXPECT_EQ(runChain(memory, kMiB), second);
  EXPECT_EQ(countAllocations(), before);
  EXPECT_EQ(pool.bytesHeld(), 0);
}

TEST(RunMemory, GrowsAndShrinks) {
  BufferPool pool;
  RunMemory memory(pool, nullptr);
  runChain(memory, kMiB);
  runChain(memory, 3 * kMiB);
  EXPECT_GE(memory.bytesHeld(), 33 * kMiB);
  for (int run = 0; run < 40; ++run)
    runChain(memory, kMiB / 4);
  EXPECT_LE(memory.bytesHeld(), 6 * kMiB);
}

TEST(RunMemory, TakesBackInAnyOrderAndWhatWasLeft) {
  BufferPool pool;
  RunMemory memory(pool, nullptr);
  for (int run = 0; run < 4; ++run) {
    void *a = memory.allocate(kMiB), *b = memory.allocate(2 * kMiB);
    void *small = memory.allocate(100), *c = memory.allocate(kMiB);
    memory.release(b);
    memory.release(nullptr);
    void *d = memory.allocate(2 * kMiB);
    EXPECT_TRUE(run == 0 || d == b);
    memory.release(a);
    memory.release(small);
    memory.release(d);
    (void)c; // which a run that fails leaves
    memory.endRun();
  }
  EXPECT_EQ(pool.blocksOut(), 0);
  EXPECT_EQ(memory.allocate(-1), nullptr);
}

TEST(RunMemory, KeepsToItsBudget) {
  auto budget = std::make_shared<MemoryBudget>(12 * kMiB);
  BufferPool pool(budget);
  {
    RunMemory memory(pool, budget);
    EXPECT_EQ(memory.allocate(13 * kMiB), nullptr);
    void *a = memory.allocate(9 * kMiB);
    EXPECT_NE(a, nullptr);
    EXPECT_EQ(memory.allocate(4 * kMiB), nullptr);
    memory.endRun();
    EXPECT_EQ(budget->bytesHeld(), memory.bytesHeld());
    EXPECT_EQ(memory.allocate(9 * kMiB) == nullptr, false);
    EXPECT_EQ(memory.allocate(4 * kMiB), nullptr);
    memory.endRun();
    // What others hold is not to be had.
    ASSERT_TRUE(budget->take(2 * kMiB));
    void *b = memory.allocate(10 * kMiB);
    EXPECT_EQ(b, nullptr);
    budget->give(2 * kMiB);
  }
  EXPECT_EQ(budget->bytesHeld(), 0);
}
