//===- StrassenEligibility.cpp - Weights for it --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strassen's algorithm adds weights of one half of the columns to those of the
// other, and of one half of the values of k. What rounding takes of a sum is a
// share of the larger; where both are of about the same size that is no more
// than the products lose in other places. Where many weights are zero, results
// do not depend on all inputs and would get errors from others than theirs.
//
//===----------------------------------------------------------------------===//

#include "Layout/ConstantColumns.h"
#include "Layout/Layout.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Powers of two that may lie between the largest numbers of two columns, or
/// two values of k, which are added to each other.
static constexpr uint32_t kMaxDistance = 4;
/// The largest exponent (of its bits) that a number may have, so that no sum
/// overflows.
static constexpr uint32_t kMaxExponent = 200;
static constexpr uint32_t kMantissaBits = 23;

/// A number is as good as zero that is so many powers of two below the largest
/// of its column or its row; of so many one may be.
static constexpr uint32_t kNegligible = 10, kShareOfNegligible = 4;
/// Each so many values of k tell that of all.
static constexpr int64_t kSampled = 8;

static bool areEven(ArrayRef<uint32_t> largest, int64_t i, int64_t j) {
  uint32_t one = largest[i] >> kMantissaBits,
           other = largest[j] >> kMantissaBits;
  auto [low, high] = std::minmax(one, other);
  return high <= kMaxExponent && high - low <= kMaxDistance;
}

/// Values of k in a range: all, or an even part so small that the sums of a
/// range stay in the L2 cache. 0: there is none.
static int64_t chooseDepth(int64_t k) {
  constexpr int64_t kUnit = 32, kLeast = 128, kMax = 1024;
  for (int64_t ranges = llvm::divideCeil(k, kMax); k / ranges >= kLeast;
       ++ranges)
    if (k % (ranges * kUnit) == 0)
      return k / ranges;
  return 0;
}

/// Whether most numbers of each column, and of each value of k, matter.
static bool areDense(const ConstantColumns &columns,
                     ArrayRef<uint32_t> ofColumn, ArrayRef<uint32_t> ofRow) {
  SmallVector<int64_t> inColumn(columns.count, 0);
  int64_t sampled = 0;
  for (int64_t i = 0; i < columns.length; i += kSampled, ++sampled) {
    int64_t inRow = 0;
    for (int64_t c = 0; c < columns.count; ++c) {
      uint32_t exponent = getMagnitude(columns.at(c, i)) >> kMantissaBits;
      inColumn[c] += exponent + kNegligible < ofColumn[c] >> kMantissaBits;
      inRow += exponent + kNegligible < ofRow[i] >> kMantissaBits;
    }
    if (inRow * kShareOfNegligible > columns.count)
      return false;
  }
  return llvm::all_of(inColumn, [&](int64_t count) {
    return count * kShareOfNegligible <= sampled;
  });
}

int64_t cpu::chooseStrassenDepth(const ConstantColumns &columns,
                                 int64_t panelWidth) {
  constexpr int64_t kMinColumns = 128;
  int64_t depth = columns.length ? chooseDepth(columns.length) : 0;
  if (!depth || columns.count < kMinColumns)
    return 0;
  SmallVector<uint32_t> ofColumn(columns.count, 0), ofRow(columns.length, 0);
  columns.forEachRun([&](const ConstantColumns::Run &run) {
    // Those of the run's own dimension, and of the other one.
    uint32_t *own = run.isAcross ? &ofColumn[run.column] : &ofRow[run.row];
    uint32_t &other = run.isAcross ? ofRow[run.row] : ofColumn[run.column];
    uint32_t most = other;
    for (int64_t i = 0; i < run.length; ++i) {
      own[i] = std::max(own[i], getMagnitude(run.at(i)));
      most = std::max(most, getMagnitude(run.at(i)));
    }
    other = most;
    return true;
  });
  for (int64_t i = 0; i < columns.length; ++i)
    if (i % depth < depth / 2 && !areEven(ofRow, i, i + depth / 2))
      return 0;
  int64_t distance =
      llvm::divideCeil(columns.count, panelWidth) / 2 * panelWidth;
  for (int64_t c = 0; c < distance && c + distance < columns.count; ++c)
    if (!areEven(ofColumn, c, c + distance))
      return 0;
  return areDense(columns, ofColumn, ofRow) ? depth : 0;
}
