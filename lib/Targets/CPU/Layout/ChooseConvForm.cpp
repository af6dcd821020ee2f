//===- ChooseConvForm.cpp - How convolutions are computed -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/ConvPlan.h"
#include "Plan/WinogradTiles.h"

#include "dialects/CPU/CPU.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUCHOOSECONVFORM
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;
using cpu::Winograd;

namespace {

/// The algorithm that takes clearly fewer multiplications than a direct sum for
/// an output of `height` x `width`; null if there is none. `hasLongSums` tells
/// whether enough products are added up for F(4x4, 3x3).
const Winograd *chooseAlgorithm(int64_t channels, bool hasLongSums,
                                int64_t height, int64_t width, int64_t stride,
                                unsigned vectorBits) {
  if (height * width == 0)
    return nullptr;
  if (stride == 2) {
    // Transforms make more values of each input and output, and save less: with
    // wide vectors, which multiply faster than they move, only while all of
    // them stay in the cache.
    constexpr int64_t kMinChannels = 64, kMostPositions = 256;
    int64_t lanes = vectorBits / 32;
    if (lanes >= 16 && height * width > kMostPositions)
      return nullptr;
    const Winograd *best = nullptr;
    int64_t fewest = height * width * 9 * 3 / 4;
    for (int64_t outputs : {2, 4}) {
      const Winograd &algorithm = cpu::getWinograd(outputs, stride);
      int64_t products =
          WinogradGroups::get(algorithm, lanes, height, width).count * lanes *
          algorithm.products();
      if (channels >= kMinChannels && products <= fewest)
        std::tie(best, fewest) = std::pair(&algorithm, products);
    }
    return best;
  }
  // Multiplications, in vectors of 16 positions or tiles.
  constexpr int64_t kLanes = 16;
  auto products = [&](const Winograd &algorithm) {
    return WinogradGroups::get(algorithm, kLanes, height, width).count *
           kLanes * algorithm.products();
  };
  // The transforms cost as much for few channels as for many: with 4 those of
  // F(4x4) take what the products save. F(2x2) saves less.
  const Winograd &four = cpu::getWinograd(4), &two = cpu::getWinograd(2);
  constexpr int64_t kMinOfFour = 8, kMinOfTwo = 32;
  int64_t direct = height * width * 9;
  if (hasLongSums && channels >= kMinOfFour &&
      2 * products(four) <= llvm::alignTo(height * width, kLanes) * 9)
    return &four;
  if (channels >= kMinOfTwo && 3 * products(two) <= 2 * direct)
    return &two;
  return nullptr;
}

/// Filters in a block of Winograd's weights, of which there were `before`. A
/// tile of products one register wide loads a weight for each multiply-add, and
/// waits for these loads; filters in its lanes and tiles in its rows need half
/// as many.
int64_t chooseBlockRows(const Winograd &algorithm, int64_t filters,
                        int64_t height, int64_t width, unsigned vectorBits,
                        int64_t before) {
  int64_t lanes = vectorBits / 32;
  // Threads share the blocks.
  constexpr int64_t kMinBlocks = 4;
  bool isOneRegister =
      lanes >= 16 &&
      WinogradGroups::get(algorithm, lanes, height, width).count == 1;
  if (isOneRegister && filters % cpu::kPanelWidth == 0 &&
      filters >= kMinBlocks * cpu::kPanelWidth)
    return cpu::kPanelWidth;
  if (lanes == 8 && wastesFewRows(filters, kWinogradRowsOf8Lanes))
    return kWinogradRowsOf8Lanes;
  return before;
}

struct UseWinograd : OpRewritePattern<cpu::ConvOp> {
  UseWinograd(MLIRContext *context, unsigned vectorBits, bool strided,
              int64_t minChannels, PatternBenefit benefit)
      : OpRewritePattern(context, benefit), vectorBits(vectorBits),
        strided(strided), minChannels(minChannels) {}

  LogicalResult matchAndRewrite(cpu::ConvOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getAlgorithm() || op->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "is decided already");
    if (op.getExact())
      return rewriter.notifyMatchFailure(op, "must not round");
    auto all = [](ArrayRef<int64_t> values, int64_t value) {
      return llvm::all_of(values, [&](int64_t v) { return v == value; });
    };
    if (op.getNumSpatialDims() != 2 || op.getGroup() != 1 ||
        !all(op.getKernelShape(), 3) || !all(op.getDilations(), 1))
      return rewriter.notifyMatchFailure(op, "is not a plain 3x3");
    int64_t stride = op.getStrides().front();
    if (!all(op.getStrides(), stride) || stride > (strided ? 2 : 1))
      return rewriter.notifyMatchFailure(op, "skips positions");
    auto pack = op.getWeights().getDefiningOp<cpu::PackConvWeightsOp>();
    if (!pack)
      return rewriter.notifyMatchFailure(op, "weights are packed elsewhere");
    ArrayRef<int64_t> filters = pack.getSource().getType().getShape();
    ArrayRef<int64_t> out = op.getInit().getType().getShape();
    if (ShapedType::isDynamicShape(filters) ||
        ShapedType::isDynamicShape(out.drop_front(2)))
      return rewriter.notifyMatchFailure(op, "has sizes that are not known");
    const Winograd *algorithm = chooseAlgorithm(
        std::min(filters[0], filters[1]), filters[1] >= minChannels, out[2],
        out[3], stride, vectorBits);
    if (!algorithm)
      return rewriter.notifyMatchFailure(op, "has too few positions or "
                                             "channels");

    Location loc = op.getLoc();
    SmallVector<int64_t> packed(pack.getInit().getType().getShape());
    packed[2] = filters[1] * algorithm->taps();
    packed[3] = chooseBlockRows(*algorithm, filters[0], out[2], out[3],
                                vectorBits, packed[3]);
    packed[1] = llvm::divideCeil(filters[0], packed[3]);
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, packed, rewriter.getF32Type());
    auto transformed = PackConvWeightsOp::create(
        rewriter, pack.getLoc(), pack.getSource(), empty,
        FiltersAttr::get(op.getContext(), FilterElement::F32, packed[3],
                         /*in_lanes=*/packed[3] == kPanelWidth,
                         algorithm->outputs, stride));
    rewriter.modifyOpInPlace(op, [&] {
      op.setFiltersAttr(transformed.getFilters());
      op.getWeightsMutable().assign(transformed.getResult());
    });
    return success();
  }

private:
  unsigned vectorBits;
  bool strided;
  int64_t minChannels;
};

/// Few positions and many channels: weights in blocks as wide as a vector.
struct UseOutputChannels : OpRewritePattern<cpu::ConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(cpu::ConvOp op,
                                PatternRewriter &rewriter) const override {
    auto pack = op.getWeights().getDefiningOp<cpu::PackConvWeightsOp>();
    if (!pack || pack.getAlgorithm() || op->getNumResults() != 1 ||
        op.getFilters().getInLanes())
      return rewriter.notifyMatchFailure(op, "is decided already");
    ArrayRef<int64_t> filters = pack.getSource().getType().getShape();
    ArrayRef<int64_t> out = op.getInit().getType().getShape();
    if (ShapedType::isDynamicShape(filters) ||
        ShapedType::isDynamicShape(out.drop_front(2)))
      return rewriter.notifyMatchFailure(op, "has sizes that are not known");
    int64_t groupFilters = filters[0] / op.getGroup();
    if (groupFilters < cpu::kPanelWidth)
      return rewriter.notifyMatchFailure(op, "has too few channels");
    int64_t positions = ShapedType::getNumElements(out.drop_front(2));
    constexpr int64_t kLanes = 16;
    bool fills = 8 * positions >= 7 * llvm::alignTo<int64_t>(positions, kLanes);
    if (positions == 0 || positions > kMaxOutputChannelPositions || fills)
      return rewriter.notifyMatchFailure(op, "has positions for whole vectors");

    SmallVector<int64_t> packed(pack.getInit().getType().getShape());
    packed[1] = llvm::divideCeil(groupFilters, cpu::kPanelWidth);
    packed[3] = cpu::kPanelWidth;
    Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), packed,
                                          rewriter.getF32Type());
    auto wide = PackConvWeightsOp::create(
        rewriter, pack.getLoc(), pack.getSource(), empty,
        FiltersAttr::get(op.getContext(), FilterElement::F32, kPanelWidth,
                         /*in_lanes=*/true, /*winograd=*/0, /*stride=*/1));
    rewriter.modifyOpInPlace(op, [&] {
      op.setFiltersAttr(wide.getFilters());
      op.getWeightsMutable().assign(wide.getResult());
    });
    return success();
  }
};

struct ChooseConvFormPass
    : sardonyx::impl::CPUChooseConvFormBase<ChooseConvFormPass> {
  using Base::Base;

  void runOnOperation() override {
    cpu::TargetAttr target = cpu::getTargetOrDefault(getOperation());
    const bool isFast = numerics == Numerics::Fast;
    // Of shorter sums rounding errors of F(4x4, 3x3) are more than twice those
    // of the direct form.
    const int64_t minChannels = isFast ? 8 : 64;
    const bool strided =
        !isFast || target.getF32() != cpu::F32Product::AmxBf16x6;
    RewritePatternSet patterns(&getContext());
    patterns.add<UseOutputChannels>(&getContext());
    if (numerics != Numerics::Exact)
      patterns.add<UseWinograd>(&getContext(), target.getVectorBits(), strided,
                                minChannels,
                                /*benefit=*/2);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
