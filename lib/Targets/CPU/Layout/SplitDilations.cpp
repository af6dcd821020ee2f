//===- SplitDilations.cpp - Dilated convolutions as plain ones ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/SplitConvs.h"
#include "Plan/ConvPlan.h"
#include "Plan/WinogradTiles.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUSPLITDILATIONS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// The phases of a dilation along one dimension: results p, p + dilation, and
/// so on, that see inputs at the same distances. They lie behind each other.
struct Phases {
  /// How many there are, and the results and positions of each.
  int64_t count, results, positions;
  /// Where the first input is in its phase, times their number, and what pads
  /// there are beyond the positions of all.
  int64_t offset, padBefore, padBehind;

  int64_t size() const { return count * positions; }
};

} // namespace

static constexpr int64_t kTaps = 3;

static Phases getPhases(sdx::ConvOp op, unsigned d) {
  const int64_t count = op.getDilations()[d], before = op.getPadsBegin()[d],
                inputs = op.getInput().getType().getDimSize(2 + d);
  const int64_t results = llvm::divideCeil(
      op.getInit().getType().getDimSize(2 + d), static_cast<uint64_t>(count));
  // A phase sees two inputs more than it has results. Where these are pads, it
  // shares the last with the first of the next.
  if (before >= count && (results + 1) * count >= before + inputs)
    return {count, results, results + 1, before - count, 1, 1};
  return {count, results, results + 2, before, 0, 2};
}

/// Whether Winograd's algorithm has far fewer products for the phases side by
/// side, though some of its results are of none.
static bool maySplit(sdx::ConvOp op) {
  // Shorter sums are computed by smaller tiles, if by Winograd's algorithm.
  constexpr int64_t kMinChannels = 64, kMinFilters = 32;
  if (!mayTransform(op, 2))
    return false;
  auto fill = op.getInit().getDefiningOp<linalg::FillOp>();
  if (!fill || !matchPattern(fill.value(), m_AnyZeroFloat()))
    return false;
  auto all = [](ArrayRef<int64_t> values, int64_t value) {
    return llvm::all_of(values, [&](int64_t v) { return v == value; });
  };
  if (!all(op.getKernelShape(), kTaps) || !all(op.getStrides(), 1) ||
      all(op.getDilations(), 1))
    return false;
  ArrayRef<int64_t> weights = op.getWeights().getType().getShape();
  if (weights[0] < kMinFilters || weights[1] < kMinChannels)
    return false;
  // Tiles are multiplied in groups of so many.
  constexpr int64_t kLanes = 16;
  const Winograd &algorithm = cpu::getWinograd(4);
  const int64_t products =
      algorithm.products() * kLanes *
      WinogradGroups::get(algorithm, kLanes, getPhases(op, 0).size(),
                          getPhases(op, 1).size())
          .count;
  const int64_t direct = kTaps * kTaps * op.getInit().getType().getDimSize(2) *
                         op.getInit().getType().getDimSize(3);
  return 5 * products <= 3 * direct;
}

/// [N,C,a*b,c*d] as [N,C,b*a,d*c]: positions of one phase side by side, or
/// where they were.
static Value permute(OpBuilder &b, Location loc, Value tensor, int64_t rows,
                     int64_t columns) {
  const SmallVector<ReassociationIndices> groups{{0}, {1}, {2, 3}, {4, 5}};
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  auto type = cast<RankedTensorType>(tensor.getType());
  const int64_t height = type.getDimSize(2), width = type.getDimSize(3);
  SmallVector<int64_t> split{type.getDimSize(0), type.getDimSize(1),
                             height / rows,      rows,
                             width / columns,    columns};
  SmallVector<OpFoldResult> splitSizes{sizes[0], sizes[1]};
  for (int64_t size : ArrayRef(split).drop_front(2))
    splitSizes.push_back(b.getIndexAttr(size));
  Value expanded = tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(split, type.getElementType()), tensor,
      groups, splitSizes);
  std::swap(splitSizes[2], splitSizes[3]);
  std::swap(splitSizes[4], splitSizes[5]);
  Value empty =
      tensor::EmptyOp::create(b, loc, splitSizes, type.getElementType());
  Value permuted =
      linalg::TransposeOp::create(b, loc, expanded, empty,
                                  ArrayRef<int64_t>{0, 1, 3, 2, 5, 4})
          ->getResult(0);
  return tensor::CollapseShapeOp::create(b, loc, permuted, groups);
}

/// The part of `height` x `width` of images, from their corner on.
static Value cut(OpBuilder &b, Location loc, Value images, int64_t height,
                 int64_t width) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, images),
                            offsets(4, b.getIndexAttr(0)),
                            strides(4, b.getIndexAttr(1));
  sizes[2] = b.getIndexAttr(height);
  sizes[3] = b.getIndexAttr(width);
  return tensor::ExtractSliceOp::create(b, loc, images, offsets, sizes,
                                        strides);
}

static Value makeZeros(OpBuilder &b, Location loc, OpFoldResult images,
                       int64_t channels, int64_t height, int64_t width) {
  Value empty =
      tensor::EmptyOp::create(b, loc,
                              {images, b.getIndexAttr(channels),
                               b.getIndexAttr(height), b.getIndexAttr(width)},
                              b.getF32Type());
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

static Value splitDilations(OpBuilder &b, sdx::ConvOp op) {
  Location loc = op.getLoc();
  const Phases rows = getPhases(op, 0), columns = getPhases(op, 1);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, op.getInput());
  const ShapedType in = op.getInput().getType(), out = op.getInit().getType();
  SmallVector<OpFoldResult> offsets(4, b.getIndexAttr(0)),
      strides(4, b.getIndexAttr(1));
  offsets[2] = b.getIndexAttr(rows.offset);
  offsets[3] = b.getIndexAttr(columns.offset);
  Value padded = makeZeros(b, loc, sizes[0], in.getDimSize(1), rows.size(),
                           columns.size());
  padded = tensor::InsertSliceOp::create(b, loc, op.getInput(), padded, offsets,
                                         sizes, strides);
  Value images = permute(b, loc, padded, rows.count, columns.count);
  // As many results as positions; those that see two phases are of none.
  const SmallVector<int64_t> ones(2, 1),
      before{rows.padBefore, columns.padBefore},
      behind{rows.padBehind, columns.padBehind};
  Value zeros = makeZeros(b, loc, sizes[0], out.getDimSize(1), rows.size(),
                          columns.size());
  Value product = sdx::ConvOp::create(b, loc, images, op.getWeights(), zeros,
                                      ones, ones, before, behind, /*group=*/1)
                      ->getResult(0);
  Value results = permute(b, loc, product, rows.positions, columns.positions);
  return cut(b, loc, results, out.getDimSize(2), out.getDimSize(3));
}

namespace {

struct SplitDilationsPass
    : sardonyx::impl::CPUSplitDilationsBase<SplitDilationsPass> {
  void runOnOperation() override {
    splitConvs(getOperation(), maySplit, [](IRRewriter &b, sdx::ConvOp op) {
      b.replaceOp(op, splitDilations(b, op));
    });
  }
};

} // namespace
