#include "sardonyx/Runtime/AlignedMemory.h"
#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

using namespace sardonyx::runtime;

TEST(AlignedMemory, GivesAllSizes) {
  constexpr size_t kMiB = size_t(1) << 20;
  uint64_t before = countAllocations();
  uint64_t count = 0;
  for (size_t bytes : {size_t(0), size_t(1), size_t(65), kMiB / 4 - 1, kMiB / 4,
                       kMiB / 4 + 1, 4 * kMiB - 1, 4 * kMiB, 9 * kMiB + 1}) {
    void *memory = allocateAligned(bytes);
    ++count;
    ASSERT_NE(memory, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u) << bytes;
    memset(memory, 0xab, bytes);
    freeAligned(memory, bytes);
  }
  EXPECT_EQ(countAllocations() - before, count);
  freeAligned(nullptr, 0);
  freeAligned(nullptr, kMiB);
  EXPECT_EQ(allocateAligned(SIZE_MAX), nullptr);
}

// Pages that this process has in memory.
static long countPages() {
  long all = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  EXPECT_EQ(fscanf(file, "%ld %ld", &all, &resident), 2);
  fclose(file);
  return resident;
}

TEST(AlignedMemory, TakesNoHugePageForALittleMore) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have memory of their own";
#endif
  constexpr size_t kBytes = (size_t(8) << 20) + 64, kBlocks = 16;
  long before = countPages();
  std::vector<void *> blocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(allocateAligned(kBytes));
    memset(blocks.back(), 1, kBytes);
  }
  long held = (countPages() - before) * sysconf(_SC_PAGE_SIZE);
  EXPECT_LT(held, static_cast<long>(kBlocks * (kBytes + (64 << 10))));
  for (void *block : blocks)
    freeAligned(block, kBytes);
}

TEST(AlignedMemory, HoldsNothingOfWhatIsFreedBelowOthers) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep what is freed";
#endif
  constexpr size_t kBytes = size_t(1) << 20, kBlocks = 64;
  long before = countPages();
  std::vector<void *> blocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(allocateAligned(kBytes));
    memset(blocks.back(), 1, kBytes);
  }
  for (size_t i = 0; i + 1 < kBlocks; ++i)
    freeAligned(blocks[i], kBytes);
  long held = (countPages() - before) * sysconf(_SC_PAGE_SIZE);
  EXPECT_LT(held, static_cast<long>(8 * kBytes));
  freeAligned(blocks.back(), kBytes);
}
