//===- ShortConvWeights.cpp - Winograd's weights in 24 bits ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a picture has few tiles, Winograd's algorithm takes as long as memory
// takes to give its weights, of which there are up to four times as many as the
// filters have. Each value that a filter has become meets the inputs in sums
// over channels; so these are the columns that have a scale. 21 bits would be
// as fast, but the transform of outputs makes their errors five times larger.
//
//===----------------------------------------------------------------------===//

#include "Layout/ConstantColumns.h"
#include "Layout/Layout.h"

#include "dialects/CPU/CPU.h"
#include "dialects/CPU/Winograd.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <vector>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// How many times more bytes it takes than for the weights of one row. Each is
/// used sixteen times here, so those that an L3 cache gives are best as they
/// are; with 2.3 MB in 21 bits squeezenet's take 1.12 of the time.
static constexpr int64_t kTimesMoreBytes = 4;

/// [channel, (block, value, filter in block)] of filters [OC,C,3,3]: what they
/// become, zero past the last filter.
static std::vector<float> transformFilters(const ConstantView &filters,
                                           const cpu::Winograd &algorithm,
                                           int64_t blocks, int64_t width) {
  constexpr int64_t kSide = 3;
  ArrayRef<int64_t> shape = filters.shape, strides = filters.strides;
  int64_t taps = algorithm.taps(), columns = blocks * taps * width;
  std::vector<float> result(shape[1] * columns);
  SmallVector<float> filter(kSide * kSide), values(taps);
  for (int64_t channel = 0; channel < shape[1]; ++channel)
    for (int64_t f = 0; f < shape[0]; ++f) {
      int64_t first = f * strides[0] + channel * strides[1];
      for (int64_t i = 0; i < kSide * kSide; ++i)
        filter[i] = loadFloat(filters.data, first + i / kSide * strides[2] +
                                                i % kSide * strides[3]);
      cpu::transformFilter(algorithm, filter, values);
      float *column =
          &result[channel * columns + f / width * taps * width + f % width];
      for (int64_t tap = 0; tap < taps; ++tap)
        column[tap * width] = values[tap];
    }
  return result;
}

namespace {

struct ShortenConvWeights : OpRewritePattern<cpu::ConvOp> {
  ShortenConvWeights(MLIRContext *context, const ShortWeightLimits &limits)
      : OpRewritePattern(context), limits(limits) {}

  LogicalResult matchAndRewrite(cpu::ConvOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getScales())
      return rewriter.notifyMatchFailure(op, "is decided already");
    if (!op.getWinograd() || op.getBlockRows() != cpu::kPanelWidth)
      return rewriter.notifyMatchFailure(op, "has no filters in the lanes");
    auto pack = op.getWeights().getDefiningOp<cpu::PackConvWeightsOp>();
    if (!pack)
      return rewriter.notifyMatchFailure(op, "weights are packed elsewhere");
    ArrayRef<int64_t> packed = pack.getInit().getType().getShape();
    if (ShapedType::isDynamicShape(packed) ||
        op.getInput().getType().isDynamicDim(1) ||
        ShapedType::getNumElements(packed) * int64_t(sizeof(float)) <
            kTimesMoreBytes * limits.fewestBytes)
      return rewriter.notifyMatchFailure(op, "weights are few");
    std::optional<ConstantView> filters = viewConstant(pack.getSource());
    if (!filters)
      return rewriter.notifyMatchFailure(op, "weights are no constant");

    const cpu::Winograd &algorithm = *op.getAlgorithm();
    int64_t blocks = packed[1], width = packed[3], taps = algorithm.taps();
    int64_t channels = filters->shape[1], columns = blocks * taps * width;
    std::vector<float> values =
        transformFilters(*filters, algorithm, blocks, width);
    std::optional<ShortWeights> chosen = chooseShortWeights(
        {reinterpret_cast<const char *>(values.data()), columns, channels,
         /*step=*/1, /*stride=*/columns},
        width, rewriter.getContext(), {limits.fewestBytes});
    if (!chosen)
      return rewriter.notifyMatchFailure(op, "weights need more bits");

    Location loc = pack.getLoc();
    Value scales = arith::ConstantOp::create(rewriter, loc, chosen->scales);
    SmallVector<int64_t> sizes(packed);
    sizes[3] = 3 * width;
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, sizes, rewriter.getI8Type());
    auto shortened =
        cpu::PackConvWeightsOp::create(rewriter, loc, pack.getSource(), empty);
    shortened.setWinogradAttr(pack.getWinogradAttr());
    shortened.setWinogradStrideAttr(pack.getWinogradStrideAttr());
    shortened.getScalesMutable().assign(scales);
    rewriter.modifyOpInPlace(op, [&] {
      op.getWeightsMutable().assign(shortened.getResult());
      op.getScalesMutable().assign(scales);
    });
    return success();
  }

private:
  ShortWeightLimits limits;
};

} // namespace

void cpu::populateShortenConvWeightsPatterns(RewritePatternSet &patterns,
                                             const ShortWeightLimits &limits) {
  if (limits.fewestBytes)
    patterns.add<ShortenConvWeights>(patterns.getContext(), limits);
}
