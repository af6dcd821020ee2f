//===- AssignLayouts.cpp - Narrow convolutions with channels last ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions that multiply bytes sum up four neighbours, or two that were
// widened, which are channels where these come last. Operands are made unsigned
// bytes and signed ones:
//   sum (u - 128) v = sum u v - 128 sum v, of signed inputs u - 128;
//   sum u (w + 128) = sum u w + 128 sum u, of unsigned weights w + 128.
//
//===----------------------------------------------------------------------===//

#include "Common/ChannelsLast.h"
#include "Layout/Layout.h"
#include "MicroKernels/AmxMicroKernel.h"
#include "MicroKernels/MicroKernel.h"
#include "Rows/ByteTable.h"
#include "lib/Dispatch/Utils.h"

#include "dialects/CPU/CPU.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUASSIGNLAYOUTS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// What is added to a byte where its sign is taken for a digit.
static constexpr int64_t kSignShift = 128;

/// Whether each channel has a filter of its own.
static bool isDepthwise(sdx::ConvOp op) {
  ArrayRef<int64_t> weights = op.getWeights().getType().getShape();
  return op.getGroup() > 1 && weights[1] == 1 &&
         weights[0] == int64_t(op.getGroup());
}

/// Whether each element is picked from a table by the byte at its place.
static bool isLookUp(linalg::GenericOp op) {
  auto extract = dyn_cast_if_present<tensor::ExtractOp>(
      op.getBody()->getTerminator()->getOperand(0).getDefiningOp());
  return op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
         op.getNumDpsInputs() == 1 &&
         op.getNumParallelLoops() == op.getNumLoops() &&
         llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); }) &&
         extract && isByteTable(extract);
}

static bool hasKnownSizes(sdx::ConvOp op) {
  return op.getWeights().getType().hasStaticShape() &&
         op.getWeights().getType().getNumElements() > 0 &&
         !op.getInput().getType().isDynamicDim(1) &&
         !op.getInit().getType().isDynamicDim(1);
}

bool cpu::hasPanels(sdx::ConvOp op) {
  constexpr int64_t kFewestOfGroup = kPanelWidth / 2;
  return hasKnownSizes(op) &&
         (op.getGroup() == 1 ||
          op.getWeights().getType().getDimSize(0) / int64_t(op.getGroup()) >=
              kFewestOfGroup);
}

bool cpu::hasNarrowForm(sdx::ConvOp op) {
  // Taps of single channels are instructions one after the other.
  constexpr int64_t kMostTaps = 128;
  if (hasKnownSizes(op) && isDepthwise(op))
    return ShapedType::getNumElements(op.getKernelShape()) <= kMostTaps;
  return hasPanels(op);
}

namespace {

class LayoutAssigner : public ChannelsLast {
public:
  LayoutAssigner(IRRewriter &b, TargetAttr target)
      : ChannelsLast(b), target(target) {}

protected:
  bool isWorth(sdx::ConvOp op) override {
    if (!op.hasPureTensorSemantics() || !hasKnownSizes(op))
      return false;
    if (op.getInput().getType().getElementType().isBF16() &&
        op.getWeights().getType().getElementType().isBF16())
      return target.getBf16() == Bf16Product::Amx && hasNarrowForm(op);
    if (!op.isOfBytes() || target.getInt8() == Int8Product::Generic)
      return false;
    return hasNarrowForm(op) &&
           (op.getGroup() == 1 || isDepthwise(op) || !op.getWeightsUnsigned());
  }
  bool canConvert(sdx::ConvOp) override { return false; }
  bool canConvert(sdx::MaxPoolOp op) override {
    ShapedType input = op.getInput().getType(), init = op.getInit().getType();
    return !input.isDynamicDim(2) && !input.isDynamicDim(3) &&
           !init.isDynamicDim(2) && !init.isDynamicDim(3);
  }
  bool canConvert(linalg::GenericOp op) override {
    return isElementwiseGeneric(op) || isLookUp(op);
  }

  bool canPickPixels() override { return true; }

  Value convert(sdx::ConvOp op, Value input, Value init) override {
    const Location loc = op.getLoc();
    Value weights = op.getWeights();
    if (!op.isOfBytes())
      return multiply(op, input, weights, init, /*padding=*/0);
    int64_t padding = op.getPadding();
    if (!op.getInputUnsigned()) {
      input = flipSigns(loc, input);
      padding += kSignShift;
    }
    if (op.getWeightsUnsigned())
      weights = flipSigns(loc, weights);
    Value result = multiply(op, input, weights, init, padding);
    if (!op.getInputUnsigned())
      result = addTimes(loc, result, sumFilters(op), -kSignShift);
    if (op.getWeightsUnsigned())
      result =
          addTimes(loc, result, sumWindows(op, input, padding), kSignShift);
    return result;
  }

  Value convert(sdx::MaxPoolOp op, Value input, Value init) override {
    return ChannelsLastMaxPoolOp::create(
               b, op.getLoc(), init.getType(), input, init, op.getKernelShape(),
               op.getStrides(), op.getPadsBegin(), op.getIsUnsigned())
        ->getResult(0);
  }

private:
  RankedTensorType typeOf(Value tensor) {
    return cast<RankedTensorType>(tensor.getType());
  }

  /// The product of unsigned bytes by signed ones, or of bf16.
  Value multiply(sdx::ConvOp op, Value input, Value weights, Value init,
                 int64_t padding) {
    const Location loc = op.getLoc();
    const PackedElement element =
        op.isOfBytes() ? getPackedByte(target) : PackedElement::BF16;
    auto packing = PackingAttr::get(b.getContext(), element, kPanelWidth);
    if (isDepthwise(op))
      return DepthwiseNarrowConvOp::create(
                 b, loc, init.getType(), input,
                 packChannels(loc, weights, packing), init, op.getKernelShape(),
                 op.getStrides(), op.getDilations(), op.getPadsBegin(),
                 op.getPadsEnd(), padding)
          ->getResult(0);
    if (element == PackedElement::I16)
      input = widenBytes(b, loc, input, /*areUnsigned=*/true);
    return NarrowConvOp::create(
               b, loc, init.getType(), input,
               packFilters(loc, weights, op.getGroup(), packing), init, packing,
               op.getKernelShape(), op.getStrides(), op.getDilations(),
               op.getPadsBegin(), op.getPadsEnd(), op.getGroup(), padding)
        ->getResult(0);
  }

  /// `bytes` with 128 added, modulo 256.
  Value flipSigns(Location loc, Value bytes) {
    return mapElements(
        b, loc, bytes, b.getI8Type(), [&](OpBuilder &s, Value x) {
          Value bit = arith::ConstantOp::create(
              s, loc, s.getIntegerAttr(x.getType(), APInt(8, kSignShift)));
          return arith::XOrIOp::create(s, loc, x, bit).getResult();
        });
  }

  /// The sums of the filters [OC,...], as they are given, over all but the
  /// first dimension.
  Value sumFilters(sdx::ConvOp op) {
    const Location loc = op.getLoc();
    Value weights = op.getWeights();
    RankedTensorType type = typeOf(weights);
    const OpFoldResult count = b.getIndexAttr(type.getDimSize(0));
    Value zeros = createZeros(b, loc, count, b.getI32Type());
    AffineMap all = b.getMultiDimIdentityMap(type.getRank());
    SmallVector<AffineMap> maps = {
        all, AffineMap::get(type.getRank(), 0, b.getAffineDimExpr(0))};
    SmallVector<utils::IteratorType> loops(type.getRank(),
                                           utils::IteratorType::reduction);
    loops[0] = utils::IteratorType::parallel;
    return linalg::GenericOp::create(
               b, loc, TypeRange(zeros.getType()), weights, zeros, maps, loops,
               [&](OpBuilder &s, Location at, ValueRange args) {
                 Type i32 = args[1].getType();
                 Value wide =
                     op.getWeightsUnsigned()
                         ? Value(arith::ExtUIOp::create(s, at, i32, args[0]))
                         : arith::ExtSIOp::create(s, at, i32, args[0]);
                 Value sum = arith::AddIOp::create(s, at, args[1], wide);
                 linalg::YieldOp::create(s, at, sum);
               })
        .getResult(0);
  }

  /// The sums of the windows of `input`, of all channels or of each: one more
  /// filter, of ones.
  Value sumWindows(sdx::ConvOp op, Value input, int64_t padding) {
    const Location loc = op.getLoc();
    SmallVector<int64_t> shape(op.getWeights().getType().getShape());
    if (!isDepthwise(op))
      shape[0] = 1;
    auto type = RankedTensorType::get(shape, b.getI8Type());
    Value ones = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getI8IntegerAttr(1)));
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, loc, op.getInit());
    std::rotate(sizes.begin() + 1, sizes.begin() + 2, sizes.end());
    sizes.back() = b.getIndexAttr(shape[0]);
    Value zeros = createZeros(b, loc, sizes, b.getI32Type());
    return multiply(op, input, ones, zeros, padding);
  }

  /// `sums` + factor * `numbers`, which are a list along the last dimension, or
  /// [N,O...,C] or [N,O...,1].
  Value addTimes(Location loc, Value sums, Value numbers, int64_t factor) {
    RankedTensorType type = typeOf(sums), other = typeOf(numbers);
    const int64_t rank = type.getRank();
    AffineMap all = b.getMultiDimIdentityMap(rank);
    SmallVector<AffineExpr> exprs(all.getResults());
    if (other.getRank() == 1)
      exprs = {exprs.back()};
    else if (other.getShape().back() == 1)
      exprs.back() = b.getAffineConstantExpr(0);
    SmallVector<AffineMap> maps = {
        all, AffineMap::get(rank, 0, exprs, b.getContext()), all};
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    Value empty = tensor::EmptyOp::create(
        b, loc, tensor::getMixedSizes(b, loc, sums), type.getElementType());
    return linalg::GenericOp::create(
               b, loc, TypeRange(type), ValueRange{sums, numbers}, empty, maps,
               loops,
               [&](OpBuilder &inner, Location at, ValueRange args) {
                 ImplicitLocOpBuilder s(at, inner);
                 Value by =
                     arith::ConstantOp::create(s, s.getI32IntegerAttr(factor));
                 Value added = arith::MulIOp::create(s, args[1], by);
                 linalg::YieldOp::create(
                     s, arith::AddIOp::create(s, args[0], added).getResult());
               })
        .getResult(0);
  }

  /// Filters [C,1,k...] as cpu.depthwise_narrow_conv has them.
  Value packChannels(Location loc, Value weights, PackingAttr packing) {
    RankedTensorType type = typeOf(weights);
    Type element = type.getElementType();
    const int64_t rank = type.getRank(), channels = type.getDimSize(0),
                  taps = type.getShape().back();
    const int64_t lines = type.getNumElements() / channels / taps;
    const int64_t size = packing.isOfBytes() ? packing.getDepthGroup() : 1;
    const int64_t quads = llvm::divideCeil(lines, size);
    SmallVector<ReassociationIndices> groups = {{0}, {}, {rank - 1}};
    for (int64_t dim = 1; dim < rank - 1; ++dim)
      groups[1].push_back(dim);
    Value filters = tensor::CollapseShapeOp::create(b, loc, weights, groups);
    filters = padWithZeros(loc, filters, {channels, quads * size, taps});
    Value split = tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get({channels, quads, size, taps}, element),
        filters, ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}});
    Value moved = createTranspose(b, loc, split, {1, 3, 0, 2});
    return widenWeights(
        loc,
        tensor::CollapseShapeOp::create(
            b, loc, moved, ArrayRef<ReassociationIndices>{{0, 1}, {2, 3}}),
        packing);
  }

  /// `tensor`, of three dimensions, with zeros behind it.
  Value padWithZeros(Location loc, Value tensor, ArrayRef<int64_t> shape) {
    RankedTensorType type = typeOf(tensor);
    if (type.getShape() == shape)
      return tensor;
    Value zeros =
        createZeros(b, loc, getAsIndexOpFoldResult(b.getContext(), shape),
                    type.getElementType());
    SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
        steps(shape.size(), b.getIndexAttr(1));
    return tensor::InsertSliceOp::create(
        b, loc, tensor, zeros, offsets,
        getAsIndexOpFoldResult(b.getContext(), type.getShape()), steps);
  }

  /// Filters [OC,C/G,k...] in panels, as cpu.narrow_conv has them. With tile
  /// registers values of k fill whole rows of these.
  Value packFilters(Location loc, Value weights, int64_t group,
                    PackingAttr packing) {
    RankedTensorType type = typeOf(weights);
    Type element = type.getElementType();
    const int64_t filters = type.getDimSize(0) / group;
    const int64_t depth = type.getNumElements() / type.getDimSize(0);
    const int64_t panels = llvm::divideCeil(filters, kPanelWidth);
    const int64_t size = packing.getDepthGroup();
    const bool hasTiles = selectMicroKernel(packing.getElement(), target,
                                            MicroKernel::Unit::Tiles);
    const int64_t groups =
        llvm::alignTo(llvm::divideCeil(depth, size), hasTiles ? kTileRows : 1);
    Value last = createTranspose(b, loc, weights, orderLast(type.getRank()));
    SmallVector<ReassociationIndices> rows = {{0}, {}};
    for (int64_t dim = 1; dim < type.getRank(); ++dim)
      rows[1].push_back(dim);
    Value matrix = tensor::CollapseShapeOp::create(b, loc, last, rows);
    Value grouped = tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get({group, filters, depth}, element), matrix,
        ArrayRef<ReassociationIndices>{{0, 1}, {2}});
    grouped = padWithZeros(loc, grouped,
                           {group, panels * kPanelWidth, groups * size});
    Value split = tensor::ExpandShapeOp::create(
        b, loc,
        RankedTensorType::get({group, panels, kPanelWidth, groups, size},
                              element),
        grouped, ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3, 4}});
    Value moved = createTranspose(b, loc, split, {0, 1, 3, 2, 4});
    return widenWeights(
        loc,
        tensor::CollapseShapeOp::create(
            b, loc, moved, ArrayRef<ReassociationIndices>{{0, 1}, {2}, {3, 4}}),
        packing);
  }

  /// Packed weights as `packing` says they are.
  Value widenWeights(Location loc, Value weights, PackingAttr packing) {
    return packing.getElement() == PackedElement::I16
               ? widenBytes(b, loc, weights, /*areUnsigned=*/false)
               : weights;
  }

  TargetAttr target;
};

struct AssignLayoutsPass
    : sardonyx::impl::CPUAssignLayoutsBase<AssignLayoutsPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    LayoutAssigner(rewriter, cpu::getTargetOrDefault(getOperation()))
        .run(getOperation());
  }
};

} // namespace
