//===- Observation.h - What runs have seen of a tensor ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_OBSERVATION_H
#define SARDONYX_RUNTIME_OBSERVATION_H

#include <cstdint>
#include <limits>
#include <vector>

namespace sardonyx {
namespace runtime {

/// Kinds of observations, which can be combined: those of #sdx.kinds.
enum ObservationKind : unsigned {
  /// The least and the largest number, and how many are NaN or infinite.
  ObserveRange = 1,
  /// The sum and the sum of squares.
  ObserveMoments = 2,
  /// How many have which upper kObservedBits bits of their f32 form: sign,
  /// exponent and 5 bits of mantissa.
  ObserveBits = 4,
  /// Of each index along an axis: ends, sums of absolute values and of squares.
  ObserveChannels = 8,
  /// The sum of matrices.
  ObserveGram = 16,
  ObserveAll = 31
};

constexpr int kObservedBits = 14;

/// What all runs have seen of a tensor. Kinds that were not asked for are empty
/// or 0.
struct Observation {
  /// Numbers that were seen, and those of them that are NaN or infinite.
  uint64_t count = 0, nans = 0, infinities = 0;
  /// NaN is passed over; of no numbers these are +inf and -inf.
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0, squareSum = 0;
  /// Of 2^kObservedBits bins.
  std::vector<uint64_t> bins;
  /// One for each channel.
  std::vector<double> channelLeast, channelLargest;
  std::vector<double> channelAbsoluteSum, channelSquareSum;
  /// Numbers of each channel.
  uint64_t channelCount = 0;
  /// Rows one after the other.
  std::vector<double> gram;

  /// Adds what others have seen of the same tensor. False, and nothing is
  /// added, where they have another number of channels or another matrix.
  bool merge(const Observation &other);
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_OBSERVATION_H
