//===- CompressedWeights.cpp - Which weights need no four bytes -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of few rows takes as long as memory takes to give its weights.
// Integers of 21 or 24 bits, times a scale for each column, are as exact as the
// sum of a product of f32 wherever the weights of a column are of about the
// same size; whether they are is looked at here, weight by weight.
//
//===----------------------------------------------------------------------===//

#include "Layout/ConstantColumns.h"
#include "Layout/Layout.h"

#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// How numbers may be kept, and what that takes of them.
struct Form {
  /// The scales of columns; none where a column has an infinity, a NaN, or only
  /// very small numbers.
  SmallVector<float> scales;
  /// What rounding may take of most numbers of a column.
  float largestError;
  /// Of how many numbers of each column it takes more.
  SmallVector<int64_t> lost;
};

using Run = ConstantColumns::Run;

/// Numbers that are looked at together, on vectors.
constexpr int64_t kTogether = 8;

/// Calls `visit` with each element of a run and a number below kTogether.
template <typename Visit> void visitTogether(const Run &run, Visit visit) {
  int64_t i = 0;
  for (; i + kTogether <= run.length; i += kTogether)
    for (int64_t j = 0; j < kTogether; ++j)
      visit(i + j, j);
  for (; i < run.length; ++i)
    visit(i, 0);
}

/// What is to be known of columns.
struct Survey {
  SmallVector<uint32_t> largest;
  SmallVector<int64_t> nonzero;
  /// The sum of all squares.
  double squares = 0;

  explicit Survey(const ConstantColumns &columns)
      : largest(columns.count, 0), nonzero(columns.count, 0) {
    columns.forEachRun([&](const Run &run) {
      run.isAcross ? addAcross(run) : addColumn(run);
      return true;
    });
  }

  void addColumn(const Run &run) {
    int32_t most[kTogether] = {}, counts[kTogether] = {};
    double sums[kTogether] = {};
    visitTogether(run, [&](int64_t i, int64_t j) {
      const float x = run.at(i);
      most[j] = std::max(most[j], int32_t(getMagnitude(x)));
      counts[j] += x != 0;
      sums[j] += double(x) * x;
    });
    for (int64_t j = 0; j < kTogether; ++j) {
      largest[run.column] = std::max(largest[run.column], uint32_t(most[j]));
      nonzero[run.column] += counts[j];
      squares += sums[j];
    }
  }

  void addAcross(const Run &run) {
    uint32_t *most = &largest[run.column];
    int64_t *counts = &nonzero[run.column];
    for (int64_t i = 0; i < run.length; ++i) {
      most[i] = std::max(most[i], getMagnitude(run.at(i)));
      counts[i] += run.at(i) != 0;
    }
    double sums[kTogether] = {};
    visitTogether(run, [&](int64_t i, int64_t j) {
      sums[j] += double(run.at(i)) * run.at(i);
    });
    for (double sum : sums)
      squares += sum;
  }

  /// Whether there are more zeros in some column than chance puts there. They
  /// may say that a result does not depend on an input.
  bool hasZeros(const ConstantColumns &columns) const {
    constexpr int64_t kChance = 256;
    return llvm::any_of(nonzero, [&](int64_t count) {
      return (columns.length - count) * kChance > columns.length;
    });
  }
};

} // namespace

static constexpr uint32_t kMantissaBits = 23;

/// Whether scales can be found for the largest magnitudes of columns.
static bool haveScales(ArrayRef<uint32_t> largest) {
  constexpr uint32_t kInfinity = 255, kLeastExponent = 50;
  return llvm::all_of(largest, [](uint32_t bits) {
    uint32_t exponent = bits >> kMantissaBits;
    return exponent != kInfinity && (!bits || exponent >= kLeastExponent);
  });
}

/// Three bytes: the least powers of two for which the largest number of a
/// column is an integer of 24 bits. A sum of some hundred products in f32 has
/// an error as large as what most numbers may lose.
static Form getW24(const Survey &survey) {
  Form form;
  form.largestError = 1.0f / (1 << 20);
  for (uint32_t bits : survey.largest) {
    uint32_t exponent = bits >> kMantissaBits;
    // 2^22 <= largest / scale < 2^23
    form.scales.push_back(
        bits ? llvm::bit_cast<float>((exponent - 22) << kMantissaBits) : 1.0f);
  }
  return form;
}

/// Three numbers in eight bytes: the largest number of a column is the largest
/// integer of 21 bits. A sum of some thousand products in f32 has an error as
/// large, about 1e-6; columns of numbers that are normally distributed keep to
/// it up to six standard deviations.
static Form getW21(const Survey &survey) {
  constexpr float kLargest = (1 << 20) - 1;
  Form form;
  form.largestError = 2.5e-6f;
  for (uint32_t bits : survey.largest)
    form.scales.push_back(bits ? llvm::bit_cast<float>(bits) / kLargest : 1.0f);
  return form;
}

/// Whether x, that many times larger than a scale, is no integer.
static bool isBetween(float scaled) {
  constexpr float kHalfway = 0.5f;
  return scaled != float(int32_t(scaled + kHalfway));
}

/// Counts what `form` takes of the columns.
static void countLost(const ConstantColumns &columns, Form &form) {
  // The root mean square of what lies between -1/2 and 1/2.
  const float kRoundingError = 1 / std::sqrt(12.0f);
  SmallVector<float> inverse;
  for (float scale : form.scales)
    inverse.push_back(1.0f / scale);
  form.lost.assign(columns.count, 0);
  float least = kRoundingError / form.largestError;
  columns.forEachRun([&](const Run &run) {
    auto isLost = [&](int64_t i, float scale) {
      const float scaled = std::abs(run.at(i)) * scale;
      return isBetween(scaled) & (scaled < least);
    };
    const float *scales = &inverse[run.column];
    int64_t *lost = &form.lost[run.column];
    if (run.isAcross) {
      for (int64_t i = 0; i < run.length; ++i)
        lost[i] += isLost(i, scales[i]);
      return true;
    }
    const float scale = *scales;
    int32_t counts[kTogether] = {};
    visitTogether(run,
                  [&](int64_t i, int64_t j) { counts[j] += isLost(i, scale); });
    for (int32_t count : counts)
      *lost += count;
    return true;
  });
}

/// Whether all numbers have so few bits that sums of products are exact in f32
/// where inputs are such numbers, too. `threeBytes` has scales for 24.
static bool haveFewBits(const ConstantColumns &columns,
                        const Form &threeBytes) {
  constexpr float kRest = 1 << (24 - 16);
  SmallVector<float> inverse;
  for (float scale : threeBytes.scales)
    inverse.push_back(1.0f / (scale * kRest));
  bool areWhole = true;
  columns.forEachRun([&](const Run &run) {
    for (int64_t i = 0; i < run.length && areWhole; ++i)
      areWhole = !isBetween(std::abs(run.at(i)) * inverse[run.columnOf(i)]);
    return areWhole;
  });
  return areWhole;
}

/// Whether rounding to integers takes no more of products, norms of results of
/// random inputs, than 1.7 times what a sum in f32 does, so that both together
/// take less than twice that.
static bool isWithinSums(const Form &form, const Survey &survey,
                         int64_t length) {
  // A sum of n products has an error of 0.3 sqrt(n) units in the last place,
  // 2^-24 (random numbers, measured).
  const double limit = 1.7 * 0.3 / (1 << 24) * std::sqrt(double(length));
  double lost = 0;
  for (auto [scale, count] : llvm::zip_equal(form.scales, survey.nonzero))
    lost += double(scale) * scale / 12 * count;
  return lost <= limit * limit * survey.squares;
}

/// Whether most numbers of each column are that much larger than the error of
/// rounding, whatever the few largest are, which inputs may leave out.
static bool isExactEnough(const Form &form, const Survey &survey) {
  return llvm::all_of(llvm::zip_equal(form.lost, survey.nonzero),
                      [](std::tuple<int64_t, int64_t> counts) {
                        auto [lost, all] = counts;
                        return 2 * lost <= all;
                      });
}

std::optional<CompressedWeights>
cpu::chooseCompression(const ConstantColumns &columns, int64_t panelWidth,
                       MLIRContext *context, const CompressionLimits &limits) {
  if (columns.count * columns.length * int64_t(sizeof(float)) <
      limits.fewestBytes)
    return std::nullopt;
  Survey survey(columns);
  if (!haveScales(survey.largest))
    return std::nullopt;
  Form threeBytes = getW24(survey), triples = getW21(survey);
  auto isEnough = [&](Form &form) {
    countLost(columns, form);
    return isExactEnough(form, survey);
  };
  bool areW21 =
      limits.useW21 && !survey.hasZeros(columns) && isEnough(triples) &&
      (limits.losesMore || isWithinSums(triples, survey, columns.length)) &&
      !haveFewBits(columns, threeBytes);
  if (!areW21 && !isEnough(threeBytes))
    return std::nullopt;
  SmallVector<float> scales =
      std::move(areW21 ? triples.scales : threeBytes.scales);
  int64_t panels = llvm::divideCeil(columns.count, panelWidth);
  scales.resize(panels * panelWidth, 1.0f);
  auto type = RankedTensorType::get({panels, 1, 1, panelWidth},
                                    Float32Type::get(context));
  return CompressedWeights{
      DenseElementsAttr::get(type, ArrayRef<float>(scales)), areW21};
}
