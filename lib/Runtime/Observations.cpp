//===- Observations.cpp - What runs see of tensors ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops over lanes are written on vectors of 64 bytes, which compilers cut into
// the registers that there are, and compiled for several of them.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/Observations.h"
#include "HalfConversions.h"
#include "sardonyx-c/RuntimeABI.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace sardonyx::runtime;

namespace {

constexpr int kLanes = 16;
constexpr int64_t kBins = int64_t(1) << kObservedBits;
/// Neighbours are counted in tables of their own: where one number follows the
/// same, its count would have to wait for the other's.
constexpr int kTables = 2;
/// Numbers whose sums in f32 are added to those in f64, and that stay in the
/// first cache from one kind of observation to the next.
constexpr int64_t kBlock = 1024;

typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

float infinity() { return std::numeric_limits<float>::infinity(); }

} // namespace

/// What one thread sees of a tensor.
struct Observations::Slot {
  Slot() {
    std::fill(least, least + kLanes, infinity());
    std::fill(largest, largest + kLanes, -infinity());
  }

  alignas(64) float least[kLanes];
  alignas(64) float largest[kLanes];
  uint64_t count = 0, nans = 0, infinities = 0;
  double sum = 0, squareSum = 0;
  /// Counts of tables that may be full otherwise, in `sums.bins`.
  std::vector<uint32_t> bins;
  uint64_t inBins = 0;
  /// What is kept in f64 only.
  Observation sums;
};

//===----------------------------------------------------------------------===//
// Rows of f32
//===----------------------------------------------------------------------===//

namespace {

struct FloatRows {
  const float *data;
  int64_t rows, stride, count;
};

__attribute__((always_inline)) inline Lanes loadLanes(const float *data) {
  Lanes lanes;
  memcpy(&lanes, data, sizeof(lanes));
  return lanes;
}

/// Updates ends, by lanes; true where NaN or an infinite number is among the
/// numbers.
__attribute__((always_inline)) inline bool
findRangeOn(const FloatRows &in, float *least, float *largest) {
  Lanes low = loadLanes(least), high = loadLanes(largest);
  Lanes bad = {}; // NaN where one is
  for (int64_t r = 0; r < in.rows; ++r) {
    const float *row = in.data + r * in.stride;
    int64_t i = 0;
    for (; i + kLanes <= in.count; i += kLanes) {
      Lanes lanes = loadLanes(row + i);
      low = lanes < low ? lanes : low;
      high = lanes > high ? lanes : high;
      bad += lanes * 0.0f;
    }
    for (; i < in.count; ++i) {
      float number = row[i];
      low[0] = number < low[0] ? number : low[0];
      high[0] = number > high[0] ? number : high[0];
      bad[0] += number * 0.0f;
    }
  }
  memcpy(least, &low, sizeof(low));
  memcpy(largest, &high, sizeof(high));
  float any = 0;
  for (int l = 0; l < kLanes; ++l)
    any += bad[l];
  return any != any;
}

/// Adds the sum and the sum of squares of at most some kBlock numbers.
__attribute__((always_inline)) inline void addMomentsOn(const FloatRows &in,
                                                        double *sums) {
  Lanes sum = {}, squareSum = {};
  double rest = 0, squareRest = 0;
  for (int64_t r = 0; r < in.rows; ++r) {
    const float *row = in.data + r * in.stride;
    int64_t i = 0;
    for (; i + kLanes <= in.count; i += kLanes) {
      Lanes lanes = loadLanes(row + i);
      sum += lanes;
      squareSum += lanes * lanes;
    }
    for (; i < in.count; ++i) {
      rest += row[i];
      squareRest += double(row[i]) * row[i];
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    rest += sum[l];
    squareRest += squareSum[l];
  }
  sums[0] += rest;
  sums[1] += squareRest;
}

/// Ends and sums of channels that are next to each other: lanes are channels.
__attribute__((always_inline)) inline void
addChannelRowOn(const float *row, int64_t channels, double *least,
                double *largest, double *absoluteSum, double *squareSum) {
  for (int64_t c = 0; c < channels; ++c) {
    double number = row[c];
    least[c] = number < least[c] ? number : least[c];
    largest[c] = number > largest[c] ? number : largest[c];
    absoluteSum[c] += std::fabs(number);
    squareSum[c] += number * number;
  }
}

struct Loops {
  bool (*findRange)(const FloatRows &in, float *least, float *largest);
  void (*addMoments)(const FloatRows &in, double *sums);
  void (*addChannelRow)(const float *row, int64_t channels, double *least,
                        double *largest, double *absoluteSum,
                        double *squareSum);
};

#define SARDONYX_LOOPS(suffix, attributes)                                     \
  attributes bool findRange##suffix(const FloatRows &in, float *least,         \
                                    float *largest) {                          \
    return findRangeOn(in, least, largest);                                    \
  }                                                                            \
  attributes void addMoments##suffix(const FloatRows &in, double *sums) {      \
    addMomentsOn(in, sums);                                                    \
  }                                                                            \
  attributes void addChannelRow##suffix(                                       \
      const float *row, int64_t channels, double *least, double *largest,      \
      double *absoluteSum, double *squareSum) {                                \
    addChannelRowOn(row, channels, least, largest, absoluteSum, squareSum);    \
  }                                                                            \
  constexpr Loops loops##suffix = {findRange##suffix, addMoments##suffix,      \
                                   addChannelRow##suffix};

SARDONYX_LOOPS(Plain, )
#ifdef __x86_64__
SARDONYX_LOOPS(Avx2, __attribute__((target("avx2"))))
SARDONYX_LOOPS(Avx512, __attribute__((target("avx512f"))))
#endif
#undef SARDONYX_LOOPS

const Loops &findLoops() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f"))
    return loopsAvx512;
  if (__builtin_cpu_supports("avx2"))
    return loopsAvx2;
#endif
  return loopsPlain;
}

const Loops &loops() {
  static const Loops &found = findLoops();
  return found;
}

void countBits(const FloatRows &in, uint32_t *bins) {
  constexpr int kShift = 32 - kObservedBits;
  auto placeOf = [](float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof(bits));
    return bits >> kShift;
  };
  uint32_t *other = bins + kBins;
  for (int64_t r = 0; r < in.rows; ++r) {
    const float *row = in.data + r * in.stride;
    int64_t i = 0;
    for (; i + kTables <= in.count; i += kTables) {
      ++bins[placeOf(row[i])];
      ++other[placeOf(row[i + 1])];
    }
    if (i < in.count)
      ++bins[placeOf(row[i])];
  }
}

/// `count` numbers from place `first` on as f32: where they are, or in
/// `buffer`.
const float *asFloats(const void *data, int64_t type, int64_t first,
                      int64_t count, float *buffer) {
  if (type == SDX_RT_F32)
    return static_cast<const float *>(data) + first;
  if (type == SDX_RT_F64) {
    auto *numbers = static_cast<const double *>(data) + first;
    for (int64_t i = 0; i < count; ++i)
      buffer[i] = static_cast<float>(numbers[i]);
    return buffer;
  }
  auto *halves = static_cast<const uint16_t *>(data) + first;
  if (type == SDX_RT_F16) {
    for (int64_t i = 0; i < count; ++i)
      buffer[i] = floatFromHalf(halves[i]);
    return buffer;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = uint32_t(halves[i]) << 16;
    memcpy(&buffer[i], &bits, sizeof(bits));
  }
  return buffer;
}

/// Calls `body` on parts of rows, of at most kBlock numbers each, as f32.
template <typename Body>
void forEachBlock(const ObservedRows &in, int64_t type, Body body) {
  if (type == SDX_RT_F32 && in.rows * in.count <= kBlock)
    return body(FloatRows{static_cast<const float *>(in.data), in.rows,
                          in.stride, in.count});
  float buffer[kBlock];
  for (int64_t r = 0; r < in.rows; ++r)
    for (int64_t i = 0; i < in.count; i += kBlock) {
      int64_t count = std::min(kBlock, in.count - i);
      body(FloatRows{asFloats(in.data, type, r * in.stride + i, count, buffer),
                     1, 0, count});
    }
}

} // namespace

//===----------------------------------------------------------------------===//
// Observation
//===----------------------------------------------------------------------===//

template <typename Combine>
static void combine(std::vector<double> &to, const std::vector<double> &from,
                    Combine combine) {
  if (to.empty())
    to = from;
  else
    for (size_t i = 0; i < from.size(); ++i)
      to[i] = combine(to[i], from[i]);
}

static bool fits(size_t mine, size_t theirs) {
  return mine == theirs || !mine || !theirs;
}

bool Observation::merge(const Observation &other) {
  if (!fits(channelLeast.size(), other.channelLeast.size()) ||
      !fits(gram.size(), other.gram.size()))
    return false;
  auto add = [](double a, double b) { return a + b; };
  auto lower = [](double a, double b) { return std::min(a, b); };
  auto higher = [](double a, double b) { return std::max(a, b); };
  count += other.count;
  nans += other.nans;
  infinities += other.infinities;
  least = lower(least, other.least);
  largest = higher(largest, other.largest);
  sum += other.sum;
  squareSum += other.squareSum;
  if (bins.size() < other.bins.size())
    bins.resize(other.bins.size());
  for (size_t i = 0; i < other.bins.size(); ++i)
    bins[i] += other.bins[i];
  combine(channelLeast, other.channelLeast, lower);
  combine(channelLargest, other.channelLargest, higher);
  combine(channelAbsoluteSum, other.channelAbsoluteSum, add);
  combine(channelSquareSum, other.channelSquareSum, add);
  channelCount += other.channelCount;
  combine(gram, other.gram, add);
  return true;
}

//===----------------------------------------------------------------------===//
// Observations
//===----------------------------------------------------------------------===//

Observations::Observations(size_t sites, unsigned threads)
    : sites(sites), threads(threads), widths(sites), slots(sites * threads) {}

Observations::~Observations() = default;

Observations::Slot &Observations::slotOf(int64_t site, unsigned share) {
  std::unique_ptr<Slot> &slot = slots[site * threads + share];
  if (!slot)
    slot = std::make_unique<Slot>();
  return *slot;
}

void Observations::add(int64_t site, int64_t what, unsigned share,
                       ObservedRows in) {
  constexpr int kTypeBits = 8;
  const int64_t type = what >> kTypeBits;
  Slot &slot = slotOf(site, share);
  const uint64_t count = static_cast<uint64_t>(in.rows * in.count);
  slot.count += count;
  if (what & ObserveBits) {
    slot.bins.resize(kTables * kBins);
    if (slot.inBins + count > UINT32_MAX) {
      slot.sums.bins.resize(kBins);
      for (size_t i = 0; i < slot.bins.size(); ++i)
        slot.sums.bins[i % kBins] += slot.bins[i];
      std::fill(slot.bins.begin(), slot.bins.end(), 0);
      slot.inBins = 0;
    }
    slot.inBins += count;
  }
  if (type == SDX_RT_F64 && (what & ObserveRange))
    for (int64_t r = 0; r < in.rows; ++r)
      for (int64_t i = 0; i < in.count; ++i) {
        double number = static_cast<const double *>(in.data)[r * in.stride + i];
        slot.sums.least = std::min(slot.sums.least, number);
        slot.sums.largest = std::max(slot.sums.largest, number);
        slot.nans += std::isnan(number);
        slot.infinities += std::isinf(number);
      }
  forEachBlock(in, type, [&](const FloatRows &rows) {
    if ((what & ObserveRange) && type != SDX_RT_F64 &&
        loops().findRange(rows, slot.least, slot.largest))
      for (int64_t r = 0; r < rows.rows; ++r)
        for (int64_t i = 0; i < rows.count; ++i) {
          slot.nans += std::isnan(rows.data[r * rows.stride + i]);
          slot.infinities += std::isinf(rows.data[r * rows.stride + i]);
        }
    if (what & ObserveMoments) {
      double sums[2] = {0, 0};
      loops().addMoments(rows, sums);
      slot.sum += sums[0];
      slot.squareSum += sums[1];
    }
    if (what & ObserveBits)
      countBits(rows, slot.bins.data());
  });
}

bool Observations::setWidth(int64_t site, int64_t width) {
  if (!widths[site])
    widths[site] = width;
  return widths[site] == width;
}

void Observations::addChannels(int64_t site, int64_t type, unsigned share,
                               const void *data, int64_t outer,
                               int64_t channels, int64_t inner) {
  Observation &sums = slotOf(site, share).sums;
  if (sums.channelLeast.empty()) {
    const Observation none;
    sums.channelLeast.assign(channels, none.least);
    sums.channelLargest.assign(channels, none.largest);
    sums.channelAbsoluteSum.assign(channels, 0);
    sums.channelSquareSum.assign(channels, 0);
  }
  sums.channelCount += static_cast<uint64_t>(outer * inner);
  float buffer[kBlock];
  for (int64_t o = 0; o < outer; ++o) {
    if (inner == 1) {
      for (int64_t c = 0; c < channels; c += kBlock) {
        int64_t count = std::min(kBlock, channels - c);
        loops().addChannelRow(
            asFloats(data, type, o * channels + c, count, buffer), count,
            &sums.channelLeast[c], &sums.channelLargest[c],
            &sums.channelAbsoluteSum[c], &sums.channelSquareSum[c]);
      }
      continue;
    }
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < inner; i += kBlock) {
        int64_t count = std::min(kBlock, inner - i);
        const float *numbers =
            asFloats(data, type, (o * channels + c) * inner + i, count, buffer);
        double low = sums.channelLeast[c], high = sums.channelLargest[c];
        double absolute = 0, square = 0;
        for (int64_t k = 0; k < count; ++k) {
          double number = numbers[k];
          low = number < low ? number : low;
          high = number > high ? number : high;
          absolute += std::fabs(number);
          square += number * number;
        }
        sums.channelLeast[c] = low;
        sums.channelLargest[c] = high;
        sums.channelAbsoluteSum[c] += absolute;
        sums.channelSquareSum[c] += square;
      }
  }
}

void Observations::addGram(int64_t site, int64_t type, unsigned share,
                           const void *data, int64_t count) {
  std::vector<double> &sums = slotOf(site, share).sums.gram;
  if (sums.empty())
    sums.assign(count, 0);
  if (type == SDX_RT_F64) {
    for (int64_t i = 0; i < count; ++i)
      sums[i] += static_cast<const double *>(data)[i];
    return;
  }
  float buffer[kBlock];
  for (int64_t i = 0; i < count; i += kBlock) {
    int64_t some = std::min(kBlock, count - i);
    const float *numbers = asFloats(data, type, i, some, buffer);
    for (int64_t k = 0; k < some; ++k)
      sums[i + k] += numbers[k];
  }
}

void Observations::moveTo(std::vector<Observation> &all) {
  std::lock_guard<Mutex> lock(runMutex);
  all.resize(std::max(all.size(), sites));
  widths.assign(sites, 0);
  for (size_t i = 0; i < slots.size(); ++i) {
    std::unique_ptr<Slot> slot = std::move(slots[i]);
    if (!slot)
      continue;
    Observation &seen = slot->sums;
    seen.count = slot->count;
    seen.nans = slot->nans;
    seen.infinities = slot->infinities;
    seen.sum = slot->sum;
    seen.squareSum = slot->squareSum;
    for (int l = 0; l < kLanes; ++l) {
      seen.least = std::min<double>(seen.least, slot->least[l]);
      seen.largest = std::max<double>(seen.largest, slot->largest[l]);
    }
    if (!slot->bins.empty())
      seen.bins.resize(kBins);
    for (size_t k = 0; k < slot->bins.size(); ++k)
      seen.bins[k % kBins] += slot->bins[k];
    all[i / threads].merge(seen);
  }
}

std::vector<size_t> Observations::findNonFinite() {
  std::lock_guard<Mutex> lock(runMutex);
  std::vector<size_t> found;
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i] && (slots[i]->nans || slots[i]->infinities) &&
        (found.empty() || found.back() != i / threads))
      found.push_back(i / threads);
  return found;
}
