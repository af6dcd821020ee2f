//===- SplitTaps.cpp - Wide dilations tap by tap --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/SplitConvs.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUSPLITTAPS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// Positions of a dimension's outputs, from `begin` on.
struct Span {
  int64_t begin, size;
};

/// A convolution's taps and where in the output they see input.
class Taps {
public:
  explicit Taps(sdx::ConvOp op) : op(op) {
    ArrayRef<int64_t> in = op.getInput().getType().getShape().drop_front(2);
    ArrayRef<int64_t> out = op.getInit().getType().getShape().drop_front(2);
    for (auto [d, taps] : llvm::enumerate(op.getKernelShape())) {
      ranges.emplace_back();
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t first = getOffset(d, tap);
        const int64_t begin = std::max<int64_t>(0, -first);
        const int64_t end = std::min(out[d], in[d] - first);
        ranges.back().push_back({begin, std::max<int64_t>(end - begin, 0)});
      }
    }
  }

  /// The input's position that the tap sees at the output's position 0.
  int64_t getOffset(unsigned d, int64_t tap) const {
    return tap * op.getDilations()[d] - op.getPadsBegin()[d];
  }
  Span getRange(unsigned d, int64_t tap) const { return ranges[d][tap]; }

  /// Whether so few positions see input that single taps are faster.
  bool areSparse() const {
    constexpr int64_t kMostTaps = 25;
    // Of all products; the rest pays for sums that are loaded and stored again.
    constexpr double kMostProducts = 0.6;
    double share = 1;
    int64_t taps = 1;
    ArrayRef<int64_t> out = op.getInit().getType().getShape().drop_front(2);
    for (auto [d, each] : llvm::enumerate(ranges)) {
      int64_t seen = 0;
      for (Span range : each)
        seen += range.size;
      share *= double(seen) / double(each.size() * out[d]);
      taps *= each.size();
    }
    return taps > 1 && taps <= kMostTaps && share <= kMostProducts;
  }

  /// Each tap, those that see input everywhere first: what they add needs no
  /// slice.
  SmallVector<SmallVector<int64_t>> list() const {
    SmallVector<SmallVector<int64_t>> all(1);
    for (const auto &each : ranges) {
      SmallVector<SmallVector<int64_t>> next;
      for (const SmallVector<int64_t> &tap : all)
        for (int64_t i = 0, e = each.size(); i < e; ++i)
          if (each[i].size > 0) {
            next.push_back(tap);
            next.back().push_back(i);
          }
      all = std::move(next);
    }
    llvm::stable_sort(all, [&](const auto &a, const auto &b) {
      return isEverywhere(a) && !isEverywhere(b);
    });
    return all;
  }

  bool isEverywhere(ArrayRef<int64_t> tap) const {
    ArrayRef<int64_t> out = op.getInit().getType().getShape().drop_front(2);
    for (auto [d, i] : llvm::enumerate(tap))
      if (ranges[d][i].size != out[d])
        return false;
    return true;
  }

private:
  mutable sdx::ConvOp op; // its accessors are not const
  SmallVector<SmallVector<Span>> ranges;
};

} // namespace

static bool maySplit(sdx::ConvOp op) {
  constexpr int64_t kMinChannels = 32;
  if (!op.hasPureTensorSemantics() || op.getGroup() != 1)
    return false;
  for (Type type : op->getOperandTypes())
    if (!getElementTypeOrSelf(type).isF32())
      return false;
  ArrayRef<int64_t> weights = op.getWeights().getType().getShape();
  return llvm::all_of(op.getStrides(), [](int64_t s) { return s == 1; }) &&
         !ShapedType::isDynamicShape(weights) && weights[0] >= kMinChannels &&
         weights[1] >= kMinChannels &&
         !ShapedType::isDynamicShape(
             op.getInput().getType().getShape().drop_front(2)) &&
         !ShapedType::isDynamicShape(
             op.getInit().getType().getShape().drop_front(2)) &&
         Taps(op).areSparse();
}

/// `op` as convolutions by its taps, each added onto what it has a part in.
static Value splitTaps(OpBuilder &b, sdx::ConvOp op) {
  Location loc = op.getLoc();
  const Taps taps(op);
  const unsigned rank = op.getNumSpatialDims();
  Value sum = op.getInit();
  SmallVector<OpFoldResult> ones(rank + 2, b.getIndexAttr(1));
  const SmallVector<int64_t> steps(rank, 1), pads(rank, 0);
  for (ArrayRef<int64_t> tap : taps.list()) {
    SmallVector<OpFoldResult> from(2, b.getIndexAttr(0)), to(from), at(from);
    auto sizes = [&](Value value) {
      SmallVector<OpFoldResult> all = tensor::getMixedSizes(b, loc, value);
      all.resize(2);
      return all;
    };
    SmallVector<OpFoldResult> read = sizes(op.getInput()), written = sizes(sum),
                              one = sizes(op.getWeights());
    for (unsigned d = 0; d < rank; ++d) {
      const Span range = taps.getRange(d, tap[d]);
      from.push_back(b.getIndexAttr(range.begin + taps.getOffset(d, tap[d])));
      to.push_back(b.getIndexAttr(range.begin));
      at.push_back(b.getIndexAttr(tap[d]));
      read.push_back(b.getIndexAttr(range.size));
      written.push_back(b.getIndexAttr(range.size));
      one.push_back(b.getIndexAttr(1));
    }
    Value input =
        tensor::ExtractSliceOp::create(b, loc, op.getInput(), from, read, ones);
    Value weights =
        tensor::ExtractSliceOp::create(b, loc, op.getWeights(), at, one, ones);
    const bool isWhole = taps.isEverywhere(tap);
    Value init =
        isWhole ? sum
                : tensor::ExtractSliceOp::create(b, loc, sum, to, written, ones)
                      .getResult();
    Value product =
        sdx::ConvOp::create(b, loc, input, weights, init, steps, steps, pads,
                            pads, /*group=*/1, op.getExact())
            ->getResult(0);
    sum = isWhole ? product
                  : tensor::InsertSliceOp::create(b, loc, product, sum, to,
                                                  written, ones)
                        .getResult();
  }
  return sum;
}

namespace {

struct SplitTapsPass : sardonyx::impl::CPUSplitTapsBase<SplitTapsPass> {
  void runOnOperation() override {
    splitConvs(getOperation(), maySplit, [](IRRewriter &b, sdx::ConvOp op) {
      b.replaceOp(op, splitTaps(b, op));
    });
  }
};

} // namespace
