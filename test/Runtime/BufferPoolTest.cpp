#include "sardonyx/Runtime/BufferPool.h"
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <thread>

using sardonyx::runtime::BufferPool;

TEST(BufferPool, GivesAlignedMemoryOfTheSizeAskedFor) {
  BufferPool pool;
  for (int64_t bytes : {0, 1, 63, 64, 65, 191, 192, 193, 1000, 5000, 100000,
                        5 << 20, 9 << 20}) {
    void *memory = pool.allocate(bytes);
    ASSERT_NE(memory, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u) << bytes;
    memset(memory, 0xab, bytes);
  }
  EXPECT_EQ(pool.blocksOut(), 13);
  pool.releaseAll();
  EXPECT_EQ(pool.blocksOut(), 0);
}

TEST(BufferPool, GivesJustTheSizeAskedForAndKeepsNothing) {
  BufferPool pool(/*budget=*/nullptr, BufferPool::Sizes::Exact);
  constexpr int64_t kBytes = (int64_t(8) << 20) + 1, kHeader = 64;
  void *first = pool.allocate(kBytes);
  memset(first, 0xab, kBytes);
  EXPECT_EQ(pool.bytesHeld(), kBytes + kHeader);
  void *second = pool.allocate(100);
  pool.release(first);
  EXPECT_EQ(pool.bytesHeld(), 100 + kHeader);
  pool.release(second);
  EXPECT_EQ(pool.bytesHeld(), 0);
}

TEST(BufferPool, RefusesImpossibleSizes) {
  BufferPool pool;
  EXPECT_EQ(pool.allocate(-1), nullptr);
  EXPECT_EQ(pool.allocate(std::numeric_limits<int64_t>::max()), nullptr);
  EXPECT_EQ(pool.blocksOut(), 0);
}

TEST(BufferPool, ReusesWhatWasReleased) {
  BufferPool pool;
  void *first = pool.allocate(5000);
  void *other = pool.allocate(5000);
  pool.release(first);
  int64_t held = pool.bytesHeld();
  EXPECT_EQ(pool.allocate(4900), first); // the same size class
  EXPECT_EQ(pool.bytesHeld(), held);
  pool.release(other);
  pool.release(nullptr);
  EXPECT_EQ(pool.blocksOut(), 1);
}

TEST(BufferPool, UsesALittleLargerBlocks) {
  BufferPool pool;
  void *large = pool.allocate(5000);
  pool.release(large);
  EXPECT_EQ(pool.allocate(3000), large);
  pool.release(large);
  EXPECT_NE(pool.allocate(1000), large);
  // Its own block comes first.
  void *small = pool.allocate(3000);
  void *other = pool.allocate(3000);
  EXPECT_EQ(small, large);
  pool.release(small);
  pool.release(other);
  EXPECT_EQ(pool.allocate(3000), other);
  EXPECT_EQ(pool.allocate(5000), large);
}

TEST(BufferPool, TrimsWhatIsNoLongerUsed) {
  BufferPool pool;
  pool.release(pool.allocate(1 << 20));
  int64_t held = pool.bytesHeld();
  EXPECT_GT(held, 1 << 20);
  for (int run = 0; run < 100; ++run) {
    pool.release(pool.allocate(100));
    pool.trim(4);
  }
  EXPECT_LT(pool.bytesHeld(), 1 << 20);
  EXPECT_GT(pool.bytesHeld(), 0);
}

TEST(BufferPool, IsThreadSafe) {
  BufferPool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 2000; ++i) {
        int64_t bytes = 64 + (i * 37 + t) % 3000;
        auto *memory = static_cast<unsigned char *>(pool.allocate(bytes));
        memset(memory, t, bytes);
        auto *second = static_cast<unsigned char *>(pool.allocate(bytes));
        memset(second, t + 10, bytes);
        for (int64_t b = 0; b < bytes; b += 17)
          ASSERT_EQ(memory[b], t);
        pool.release(memory);
        pool.release(second);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(pool.blocksOut(), 0);
}
