//===- Bf16x2Weights.cpp - Filters as sums of two bf16 --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tile registers multiply bf16 so fast that five products of parts of numbers,
// two of a weight and three of an input, take less time than one in f32. What
// two bf16 lack to the weight that they are nearest to is at most 2^-17 of it.
//
//===----------------------------------------------------------------------===//

#include "Layout/ConstantColumns.h"
#include "Layout/Layout.h"

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Whether parts take clearly less time than multiply-adds. Times are in
/// cycles, two multiply-adds on 16 numbers each, as measured on a Granite
/// Rapids.
static bool paysBf16x3(int64_t filters, int64_t channels, int64_t taps,
                       int64_t positions) {
  constexpr int64_t kTile = 16, kCyclesOfTile = 16, kProducts = 5;
  // Tile registers wait for their operands half of the time, multiply-adds a
  // fifth.
  constexpr double kTilesWait = 2, kMultiplyAddsWait = 1.25;
  // To split an input, and to bring a result from a tile register to memory.
  constexpr double kSplit = 1.3, kResult = 0.3;
  constexpr double kMargin = 1.25;
  auto tiles = [](int64_t size, int64_t tile) {
    return llvm::divideCeil(size, tile);
  };
  double steps = taps * tiles(channels, cpu::kBf16x2Block);
  double columns = tiles(positions, kTile);
  double products = tiles(filters, kTile) * columns * steps * kProducts *
                    kCyclesOfTile * kTilesWait;
  double splits = steps * cpu::kBf16x2Block * columns * kTile * kSplit;
  double multiplyAdds = double(filters) * channels * taps * columns * kTile /
                        (2 * 16) * kMultiplyAddsWait;
  double results = filters * columns * kTile * kResult;
  return kMargin * (products + splits + results) < multiplyAdds;
}

/// Whether tile registers multiply by all weights: what they take as zero, or
/// what has no parts, counts in none.
static bool areSplittable(const ConstantView &filters) {
  constexpr uint32_t kLargest = uint32_t(127 + 126) << 23;
  ArrayRef<int64_t> shape = filters.shape, strides = filters.strides;
  int64_t values = ShapedType::getNumElements(shape.drop_front());
  SmallVector<int64_t> index(shape.size());
  for (int64_t f = 0; f < shape[0]; ++f) {
    uint32_t largest = 0;
    int64_t at = f * strides[0];
    for (int64_t i = 0; i < values; ++i) {
      largest = std::max(largest, getMagnitude(loadFloat(filters.data, at)));
      for (size_t d = shape.size() - 1; d > 0; --d) {
        at += strides[d];
        if (++index[d] < shape[d])
          break;
        at -= shape[d] * strides[d];
        index[d] = 0;
      }
    }
    if (largest != 0 && (largest < cpu::kSmallestSplit || largest > kLargest))
      return false;
  }
  return true;
}

namespace {

struct Bf16x2Weights : OpRewritePattern<cpu::ConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(cpu::ConvOp op,
                                PatternRewriter &rewriter) const override {
    auto pack = op.getWeights().getDefiningOp<cpu::PackConvWeightsOp>();
    if (!pack || op.getAlgorithm() || op.hasSplitWeights())
      return rewriter.notifyMatchFailure(op, "is decided already");
    if (op.getExact())
      return rewriter.notifyMatchFailure(op, "must not round");
    ArrayRef<int64_t> filters = pack.getSource().getType().getShape();
    ArrayRef<int64_t> out = op.getInit().getType().getShape().drop_front(2);
    ArrayRef<int64_t> in = op.getInput().getType().getShape().drop_front();
    if (ShapedType::isDynamicShape(filters) ||
        ShapedType::isDynamicShape(out) || ShapedType::isDynamicShape(in))
      return rewriter.notifyMatchFailure(op, "has sizes that are not known");
    // Pairs of channels are split together.
    int64_t group = op.getGroup(), channels = filters[1];
    int64_t taps = ShapedType::getNumElements(filters.drop_front(2));
    constexpr int64_t kMaxTaps = 64; // a step of all stays in the L2 cache
    if (channels % 2 || taps > kMaxTaps ||
        !paysBf16x3(filters[0] / group, channels, taps,
                    ShapedType::getNumElements(out)))
      return rewriter.notifyMatchFailure(op, "is faster by multiply-adds");
    std::optional<ConstantView> constant = viewConstant(pack.getSource());
    if (!constant || !areSplittable(*constant))
      return rewriter.notifyMatchFailure(op, "weights cannot be split");

    constexpr int64_t kBlock = cpu::kBf16x2Block;
    SmallVector<int64_t> sizes = {
        group, int64_t(llvm::divideCeil(filters[0] / group, kBlock)),
        taps * int64_t(llvm::divideCeil(channels, kBlock)),
        cpu::kBf16x2Terms * kBlock * kBlock};
    Location loc = pack.getLoc();
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, sizes, rewriter.getBF16Type());
    auto split = PackConvWeightsOp::create(
        rewriter, loc, pack.getSource(), empty,
        FiltersAttr::get(op.getContext(), FilterElement::BF16x2, kBlock,
                         /*in_lanes=*/false, /*winograd=*/0, /*stride=*/1));
    rewriter.modifyOpInPlace(op, [&] {
      op.getWeightsMutable().assign(split.getResult());
      op.setFiltersAttr(split.getFilters());
    });
    return success();
  }
};

} // namespace

void cpu::populateBf16x2WeightsPatterns(RewritePatternSet &patterns) {
  patterns.add<Bf16x2Weights>(patterns.getContext());
}
