//===- KeepConvsDirect.cpp - Filters that Winograd's algorithm hurts ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All outputs of a tile, and all filters, have the rounding errors of one
// transformed input. Two kinds of filters make that matter:
//
// - Filters that are much like means of what they read. The layers after them
//   average, too, which leaves little of a direct sum's errors, each of which
//   is for itself, and all of a tile's: up to 17 times the error of a network.
// - Filters whose channels cancel. So do a direct sum's errors where inputs are
//   alike, but not those of transformed filters.
//
// Of trained networks' filters the mean has up to 7 % of the squares, and more
// than 5 % in 3 of 122 layers (OCR, detection and audio), of random ones' 1 in
// 9 C.
//
//===----------------------------------------------------------------------===//

#include "Layout/ConstantColumns.h"

#include "dialects/CPU/CPU.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUKEEPCONVSDIRECT
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The most that the means of filters may have of their squares, and the least
/// that sums over channels must have of the channels' squares.
static constexpr double kMaxOfMeans = 0.05, kLeastOfSums = 0.05;

/// The constant that filters are, but for factors that a normalization after
/// them has brought.
static std::optional<ConstantView> viewFilters(Value filters) {
  for (;;) {
    if (std::optional<ConstantView> view = viewConstant(filters))
      return view;
    auto generic = filters.getDefiningOp<linalg::GenericOp>();
    if (!generic || generic->getNumResults() != 1)
      return std::nullopt;
    Value scaled;
    for (Value input : generic.getInputs()) {
      if (input.getType() != filters.getType())
        continue;
      if (scaled)
        return std::nullopt;
      scaled = input;
    }
    if (!scaled)
      return std::nullopt;
    filters = scaled;
  }
}

/// Whether filters [F,C,3,3] are of one of the kinds above; each counts as
/// much, however large. Of filters [F,C,k,3,3] each slice is another channel.
static bool loseDigits(const ConstantView &filters) {
  constexpr int64_t kSide = 3, kTaps = kSide * kSide;
  const bool isDeep = filters.shape.size() > 4;
  const int64_t count = filters.shape[0],
                slices = isDeep ? filters.shape[2] : 1,
                channels = filters.shape[1] * slices;
  ArrayRef<int64_t> strides = filters.strides;
  const int64_t rowStride = strides.drop_back().back(),
                columnStride = strides.back();
  double ofMeans = 0, ofSums = 0;
  int64_t counted = 0;
  for (int64_t f = 0; f < count; ++f) {
    double squares = 0, total = 0, sums[kTaps] = {};
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < kTaps; ++i) {
        double w = loadFloat(
            filters.data, f * strides[0] + c / slices * strides[1] +
                              (isDeep ? c % slices * strides[2] : 0) +
                              i / kSide * rowStride + i % kSide * columnStride);
        squares += w * w;
        sums[i] += w;
      }
    if (!(squares > 0))
      continue;
    double squaresOfSums = 0;
    for (double sum : sums) {
      total += sum;
      squaresOfSums += sum * sum;
    }
    ofMeans += total * total / (channels * kTaps) / squares;
    ofSums += squaresOfSums / squares;
    ++counted;
  }
  return ofMeans > kMaxOfMeans * counted || ofSums < kLeastOfSums * counted;
}

namespace {

struct KeepConvsDirectPass
    : sardonyx::impl::CPUKeepConvsDirectBase<KeepConvsDirectPass> {
  void runOnOperation() override {
    getOperation().walk([](sdx::ConvOp op) {
      const int64_t dims = op.getNumSpatialDims();
      if (op.getGroup() != 1 || dims < 2 ||
          op.getKernelShape().take_back(2) != ArrayRef<int64_t>{3, 3})
        return;
      std::optional<ConstantView> filters = viewFilters(op.getWeights());
      if (filters && static_cast<int64_t>(filters->shape.size()) == 2 + dims &&
          loseDigits(*filters))
        op.setExact(true);
    });
  }
};

} // namespace
