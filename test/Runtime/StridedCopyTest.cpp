#include "sardonyx-c/RuntimeABI.h"
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace {

/// A strided view of memory.
template <typename T> struct View {
  T *data;
  std::vector<int64_t> strides;
};

template <typename T>
void copy(std::vector<int64_t> sizes, View<const T> source, View<T> target) {
  std::vector<int64_t> layout = sizes;
  layout.insert(layout.end(), source.strides.begin(), source.strides.end());
  layout.insert(layout.end(), target.strides.begin(), target.strides.end());
  sdx_rt_copy(sizeof(T), sizes.size(), source.data, target.data, layout.data());
}

template <typename T> std::vector<T> counting(size_t size) {
  std::vector<T> values(size);
  std::iota(values.begin(), values.end(), T(1));
  return values;
}

template <typename T> void transposes() {
  std::vector<T> from = counting<T>(3 * 5), to(15);
  copy<T>({3, 5}, {from.data(), {5, 1}}, {to.data(), {1, 3}});
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j)
      EXPECT_EQ(to[j * 3 + i], from[i * 5 + j]);
}

} // namespace

TEST(StridedCopy, CopiesAnyElementSize) {
  transposes<uint8_t>();
  transposes<uint16_t>();
  transposes<float>();
  transposes<double>();
}

TEST(StridedCopy, CopiesContiguousInnerDimensions) {
  // [2, 3, 4] into the middle of [2, 5, 4].
  std::vector<float> from = counting<float>(24), to(40);
  copy<float>({2, 3, 4}, {from.data(), {12, 4, 1}},
              {to.data() + 4, {20, 4, 1}});
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 12; ++j)
      EXPECT_EQ(to[i * 20 + 4 + j], from[i * 12 + j]);
  EXPECT_EQ(to[0], 0);
  EXPECT_EQ(to[16], 0);
  EXPECT_EQ(to[39], 0);
}

TEST(StridedCopy, CopiesScalarsAndNothing) {
  float from = 3, to = 0;
  copy<float>({}, {&from, {}}, {&to, {}});
  EXPECT_EQ(to, 3);
  to = 0;
  copy<float>({4, 0, 2}, {&from, {0, 2, 1}}, {&to, {0, 2, 1}});
  EXPECT_EQ(to, 0);
}

TEST(StridedCopy, TakesStridesOfZeroAndNegativeOnes) {
  std::vector<int64_t> from = {7, 8, 9}, to(6);
  // Reversed and broadcast.
  copy<int64_t>({2, 3}, {from.data() + 2, {0, -1}}, {to.data(), {3, 1}});
  EXPECT_EQ(to, (std::vector<int64_t>{9, 8, 7, 9, 8, 7}));
}
