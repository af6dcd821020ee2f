//===- TokenFunctions.cpp - What compiled code does with words ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include <algorithm>
#include <limits>

using namespace sardonyx::runtime;

//===----------------------------------------------------------------------===//
// MurmurHash3
//===----------------------------------------------------------------------===//

static uint32_t rotate(uint32_t x, int bits) {
  return x << bits | x >> (32 - bits);
}

static uint32_t scramble(uint32_t word) {
  return rotate(word * 0xcc9e2d51u, 15) * 0x1b873593u;
}

/// Austin Appleby's MurmurHash3, the form of 32 bits.
static uint32_t hash(const uint8_t *bytes, size_t length, uint32_t seed) {
  uint32_t state = seed;
  size_t whole = length / 4 * 4;
  for (size_t i = 0; i < whole; i += 4) {
    uint32_t word = bytes[i] | bytes[i + 1] << 8 | bytes[i + 2] << 16 |
                    uint32_t(bytes[i + 3]) << 24;
    state = rotate(state ^ scramble(word), 13) * 5 + 0xe6546b64u;
  }
  uint32_t rest = 0;
  for (size_t i = whole; i < length; ++i)
    rest |= uint32_t(bytes[i]) << 8 * (i - whole);
  state ^= scramble(rest) ^ uint32_t(length);
  state = (state ^ state >> 16) * 0x85ebca6bu;
  state = (state ^ state >> 13) * 0xc2b2ae35u;
  return state ^ state >> 16;
}

/// x, words of 32 bits in each of its elements, seed -> hashes.
static void hashNumbers(RuntimeCall &call) {
  auto x = call.tensor<uint8_t>();
  size_t length = size_t(call.number()) * 4;
  uint32_t seed = uint32_t(call.number());
  auto out = call.tensor<uint32_t>();
  for (int64_t i = 0, e = out.count(); i < e; ++i)
    out.data[i] = hash(x.data + size_t(i) * length, length, seed);
}

/// x, seed -> hashes.
static void hashStrings(RuntimeCall &call) {
  auto x = call.tensor<int64_t>();
  uint32_t seed = uint32_t(call.number());
  auto out = call.tensor<uint32_t>();
  for (int64_t i = 0, e = out.count(); i < e; ++i) {
    std::string_view text = call.strings().textOf(x.data[i]);
    out.data[i] =
        hash(reinterpret_cast<const uint8_t *>(text.data()), text.size(), seed);
  }
}

//===----------------------------------------------------------------------===//
// DynamicTimeWarping
//===----------------------------------------------------------------------===//

/// costs [rows, columns] -> places [2, rows + columns], of which the last ones
/// are the path; how many these are; scratch memory for sums [2, rows + 1] and
/// for where the path to each place comes from [columns, rows].
static void warpTime(RuntimeCall &call) {
  enum Way : int8_t { Diagonal, Down, Right };
  auto costs = call.tensor<float>();
  auto places = call.tensor<int32_t>();
  auto length = call.tensor<int64_t>();
  auto sums = call.tensor<float>();
  auto ways = call.tensor<int8_t>();
  const int64_t rows = costs.sizes[0], columns = costs.sizes[1];
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float *last = sums.data, *here = last + rows + 1;
  std::fill(last, here, infinity);
  last[0] = 0;
  for (int64_t j = 0; j < columns; ++j) {
    here[0] = infinity;
    for (int64_t i = 0; i < rows; ++i) {
      float diagonal = last[i], down = here[i], right = last[i + 1];
      Way way = Right;
      float least = right;
      if (diagonal < down && diagonal < right) {
        way = Diagonal;
        least = diagonal;
      } else if (down < diagonal && down < right) {
        way = Down;
        least = down;
      }
      here[i + 1] = least + costs.data[i * columns + j];
      ways.data[j * rows + i] = way;
    }
    std::swap(last, here);
    if (!call.goesOn())
      return;
  }
  const int64_t most = places.sizes[1];
  int64_t at = most;
  for (int64_t i = rows - 1, j = columns - 1; i >= 0 && j >= 0;) {
    --at;
    places.data[at] = int32_t(i);
    places.data[most + at] = int32_t(j);
    int8_t way = ways.data[j * rows + i];
    i -= way != Right;
    j -= way != Down;
  }
  *length.data = most - at;
}

//===----------------------------------------------------------------------===//
// BifurcationDetector
//===----------------------------------------------------------------------===//

/// source, where it goes on, predicted -> how many of the predicted tokens are
/// taken: those that agree with the source, and one.
static void countAgreed(RuntimeCall &call) {
  auto source = call.tensor<int64_t>(), start = call.tensor<int64_t>();
  auto predicted = call.tensor<int64_t>(), count = call.tensor<int64_t>();
  int64_t left = source.count() - *start.data;
  *count.data = 0;
  if (*start.data < 0 || left < 0 || predicted.count() != left + 1)
    return call.fail("there must be one predicted token more than the source "
                     "has from " +
                     std::to_string(*start.data) + " on, but there are " +
                     std::to_string(predicted.count()) + " and " +
                     std::to_string(source.count()));
  int64_t agreed = 0;
  while (agreed < left &&
         source.data[*start.data + agreed] == predicted.data[agreed])
    ++agreed;
  *count.data = agreed + 1;
}

/// source, tokens, shortest and longest n-gram -> where the source goes on
/// after the last n-gram of the tokens; -1 where it is not there once.
static void findSuffix(RuntimeCall &call) {
  auto source = call.tensor<int64_t>(), tokens = call.tensor<int64_t>();
  int64_t least = call.number();
  int64_t most = std::min(call.number(), tokens.count());
  auto out = call.tensor<int64_t>();
  *out.data = -1;
  const int64_t *const from = source.begin(), *const to = source.end();
  const int64_t *const end = tokens.end();
  for (int64_t n = least; n <= most; ++n) {
    const int64_t *found = std::search(from, to, end - n, end);
    if (found == to)
      return;
    *out.data = found - from + n;
    if (*out.data >= source.count())
      return;
    if (std::search(found + 1, to, end - n, end) != to)
      *out.data = -1;
  }
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_hash_numbers, hashNumbers)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_hash_strings, hashStrings)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_time_warping, warpTime)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_agreed_tokens, countAgreed)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_find_suffix, findSuffix)
