//===- ObservationsTest.cpp - What runs see of tensors --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/Observations.h"
#include "sardonyx-c/RuntimeABI.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace sardonyx::runtime;

static constexpr unsigned kPlain = ObserveRange | ObserveMoments | ObserveBits;

static Observation take(Observations &seen, size_t site = 0) {
  std::vector<Observation> all;
  seen.moveTo(all);
  return all[site];
}

// Rows of every length, of which those beyond the count belong to nobody.
TEST(Observations, SeesRowsAndNothingBesides) {
  for (int64_t count = 0; count <= 70; ++count) {
    std::vector<float> numbers(3 * 80, 1e9f);
    double sum = 0, least = INFINITY, largest = -INFINITY;
    for (int64_t r = 0; r < 3; ++r)
      for (int64_t i = 0; i < count; ++i) {
        float number = static_cast<float>((r * 31 + i * 7) % 23 - 11);
        numbers[r * 80 + i] = number;
        sum += number;
        least = std::min<double>(least, number);
        largest = std::max<double>(largest, number);
      }
    Observations seen(2, 1);
    seen.add(1, kPlain, 0, {numbers.data(), 3, 80, count});
    Observation found = take(seen, 1);
    EXPECT_EQ(found.count, static_cast<uint64_t>(3 * count));
    EXPECT_EQ(found.sum, sum);
    EXPECT_EQ(found.least, least);
    EXPECT_EQ(found.largest, largest);
    EXPECT_EQ(found.nans + found.infinities, 0u);
    uint64_t counted = 0;
    for (uint64_t bin : found.bins)
      counted += bin;
    EXPECT_EQ(counted, static_cast<uint64_t>(3 * count));
    EXPECT_EQ(take(seen, 1).count, 0u);
  }
}

TEST(Observations, AddsThreads) {
  std::vector<float> some(1000, 2), others(500, -3);
  Observations seen(1, 2);
  seen.add(0, kPlain, 0, {some.data(), 1, 0, 1000});
  seen.add(0, kPlain, 1, {others.data(), 1, 0, 500});
  Observation found = take(seen);
  EXPECT_EQ(found.count, 1500u);
  EXPECT_EQ(found.sum, 500);
  EXPECT_EQ(found.squareSum, 8500);
  auto bin = [&](float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof(bits));
    return found.bins[bits >> 18];
  };
  EXPECT_EQ(bin(2), 1000u);
  EXPECT_EQ(bin(-3), 500u);
}

TEST(Observations, PassesOverNaN) {
  std::vector<float> numbers(40, 1);
  numbers[3] = NAN;
  numbers[20] = -INFINITY;
  numbers[39] = NAN;
  Observations seen(2, 1);
  seen.add(1, ObserveRange, 0, {numbers.data(), 1, 0, 40});
  EXPECT_EQ(seen.findNonFinite(), std::vector<size_t>{1});
  Observation found = take(seen, 1);
  EXPECT_EQ(found.nans, 2u);
  EXPECT_EQ(found.infinities, 1u);
  EXPECT_EQ(found.largest, 1);
  EXPECT_EQ(found.least, -INFINITY);
  EXPECT_TRUE(seen.findNonFinite().empty());
}

TEST(Observations, KnowsOtherFloats) {
  std::vector<uint16_t> halves(2000, 0x3e00), shorts(2000, 0x3fc0); // 1.5
  std::vector<double> doubles(2000, 1.5 + 1e-12);
  Observations seen(3, 1);
  seen.add(0, kPlain | SDX_RT_F16 << 8, 0, {halves.data(), 1, 0, 2000});
  seen.add(1, kPlain | SDX_RT_BF16 << 8, 0, {shorts.data(), 1, 0, 2000});
  seen.add(2, kPlain | SDX_RT_F64 << 8, 0, {doubles.data(), 1, 0, 2000});
  std::vector<Observation> all;
  seen.moveTo(all);
  EXPECT_EQ(all[0].sum, 3000);
  EXPECT_EQ(all[1].sum, 3000);
  EXPECT_EQ(all[2].least, 1.5 + 1e-12);
  EXPECT_EQ(all[0].bins, all[1].bins);
  EXPECT_EQ(all[0].bins, all[2].bins);
}

TEST(Observations, TellsChannelsApart) {
  for (int64_t inner : {int64_t(1), int64_t(5)}) {
    std::vector<float> numbers;
    for (int64_t o = 0; o < 4; ++o)
      for (int64_t c = 0; c < 3; ++c)
        for (int64_t i = 0; i < inner; ++i)
          numbers.push_back(static_cast<float>(c ? -c : o + 1));
    Observations seen(1, 1);
    ASSERT_TRUE(seen.setWidth(0, 3));
    seen.addChannels(0, SDX_RT_F32, 0, numbers.data(), 4, 3, inner);
    EXPECT_FALSE(seen.setWidth(0, 4));
    Observation found = take(seen);
    EXPECT_EQ(found.channelLeast, (std::vector<double>{1, -1, -2}));
    EXPECT_EQ(found.channelLargest, (std::vector<double>{4, -1, -2}));
    double n = static_cast<double>(inner);
    EXPECT_EQ(found.channelAbsoluteSum,
              (std::vector<double>{10 * n, 4 * n, 8 * n}));
    EXPECT_EQ(found.channelSquareSum,
              (std::vector<double>{30 * n, 4 * n, 16 * n}));
    EXPECT_EQ(found.channelCount, static_cast<uint64_t>(4 * inner));
    EXPECT_TRUE(seen.setWidth(0, 4)); // it begins anew
  }
}

TEST(Observations, AddsMatrices) {
  std::vector<float> matrix{1, 2, 3, 4};
  Observations seen(1, 1);
  seen.addGram(0, SDX_RT_F32, 0, matrix.data(), 4);
  seen.addGram(0, SDX_RT_F32, 0, matrix.data(), 4);
  EXPECT_EQ(take(seen).gram, (std::vector<double>{2, 4, 6, 8}));
}
