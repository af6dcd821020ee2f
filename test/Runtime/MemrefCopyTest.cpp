#include "sardonyx-c/RuntimeABI.h"
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace {

/// A strided view of memory, as MLIR describes it.
struct View {
  View(void *data, int64_t offset, std::vector<int64_t> sizes,
       std::vector<int64_t> strides) {
    words = {reinterpret_cast<int64_t>(data), reinterpret_cast<int64_t>(data),
             offset};
    words.insert(words.end(), sizes.begin(), sizes.end());
    words.insert(words.end(), strides.begin(), strides.end());
    unranked = {static_cast<int64_t>(sizes.size()), words.data()};
  }
  std::vector<int64_t> words;
  sdx_rt_unranked_memref unranked;
};

template <typename T> std::vector<T> counting(size_t size) {
  std::vector<T> values(size);
  std::iota(values.begin(), values.end(), T(1));
  return values;
}

template <typename T> void transposes() {
  std::vector<T> from = counting<T>(3 * 5), to(15);
  View source(from.data(), 0, {3, 5}, {5, 1});
  View target(to.data(), 0, {3, 5}, {1, 3});
  memrefCopy(sizeof(T), &source.unranked, &target.unranked);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j)
      EXPECT_EQ(to[j * 3 + i], from[i * 5 + j]);
}

} // namespace

TEST(MemrefCopy, CopiesAnyElementSize) {
  transposes<uint8_t>();
  transposes<uint16_t>();
  transposes<float>();
  transposes<double>();
}

TEST(MemrefCopy, CopiesContiguousInnerDimensions) {
  // [2, 3, 4] into the middle of [2, 5, 4].
  std::vector<float> from = counting<float>(24), to(40);
  View source(from.data(), 0, {2, 3, 4}, {12, 4, 1});
  View target(to.data(), 4, {2, 3, 4}, {20, 4, 1});
  memrefCopy(4, &source.unranked, &target.unranked);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 12; ++j)
      EXPECT_EQ(to[i * 20 + 4 + j], from[i * 12 + j]);
  EXPECT_EQ(to[0], 0);
  EXPECT_EQ(to[16], 0);
  EXPECT_EQ(to[39], 0);
}

TEST(MemrefCopy, CopiesScalarsAndNothing) {
  float from = 3, to = 0;
  View source(&from, 0, {}, {}), target(&to, 0, {}, {});
  memrefCopy(4, &source.unranked, &target.unranked);
  EXPECT_EQ(to, 3);
  to = 0;
  View none(&from, 0, {4, 0, 2}, {0, 2, 1}),
      noneTo(&to, 0, {4, 0, 2}, {0, 2, 1});
  memrefCopy(4, &none.unranked, &noneTo.unranked);
  EXPECT_EQ(to, 0);
}

TEST(MemrefCopy, TakesStridesOfZeroAndNegativeOnes) {
  std::vector<int64_t> from = {7, 8, 9}, to(6);
  View source(from.data(), 2, {2, 3}, {0, -1}); // reversed and broadcast
  View target(to.data(), 0, {2, 3}, {3, 1});
  memrefCopy(8, &source.unranked, &target.unranked);
  EXPECT_EQ(to, (std::vector<int64_t>{9, 8, 7, 9, 8, 7}));
}
