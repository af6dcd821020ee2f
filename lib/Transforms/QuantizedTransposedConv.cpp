//===- QuantizedTransposedConv.cpp - ConvTranspose of bytes ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Output s * q + r of a transposed convolution with stride s is a sum over the
// taps r, r + s, r + 2 s, ... of the inputs q, q - 1, q - 2, ...: each phase r
// is a convolution of its own. With a kernel of u * s taps they are one
// convolution of u taps with s * s times as many filters, whose channels
// become blocks of positions. Both are known on quantised tensors.
//
//===----------------------------------------------------------------------===//

#include "Quantized.h"

using namespace mlir;
using namespace sardonyx;

/// `list`, of which there is one for each filter or one for all, for the
/// filters of `phases` phases.
template <typename T>
static SmallVector<T> repeat(ArrayRef<T> list, int64_t phases) {
  SmallVector<T> result(list);
  for (int64_t i = 1; i < phases && list.size() > 1; ++i)
    result.append(list.begin(), list.end());
  return result;
}

static Value createList(OpBuilder &b, Location loc, ArrayRef<float> list,
                        RankedTensorType type) {
  return onnx::createConstant(b, loc, DenseElementsAttr::get(type, list));
}

static Value createList(OpBuilder &b, Location loc, ArrayRef<int64_t> list,
                        RankedTensorType type) {
  SmallVector<APInt> bits;
  for (int64_t number : list)
    bits.emplace_back(type.getElementTypeBitWidth(), number,
                      /*isSigned=*/false, /*implicitTrunc=*/true);
  return onnx::createConstant(b, loc, DenseElementsAttr::get(type, bits));
}

/// A constant of one element or a list, for the filters of all phases; null if
/// it is not known. One element stays as it is.
static Value repeatConstant(OpBuilder &b, Location loc, Value constant,
                            int64_t phases) {
  if (!constant || hasOneElement(constant))
    return constant;
  auto type = cast<RankedTensorType>(constant.getType());
  auto result = RankedTensorType::get(type.getNumElements() * phases,
                                      type.getElementType());
  if (auto floats = readFloats(constant))
    return createList(b, loc, repeat<float>(*floats, phases), result);
  if (auto integers = readIntegers(constant))
    return createList(b, loc, repeat<int64_t>(*integers, phases), result);
  return nullptr;
}

namespace {

/// A transposed convolution of two dimensions whose phases have equally many
/// taps.
struct TransposedConv {
  Quantization input, weights;
  int64_t stride;
  /// Taps of a phase.
  SmallVector<int64_t> taps;
  SmallVector<int64_t> pads;

  static std::optional<TransposedConv> match(onnx::ConvTransposeOp op);
};

} // namespace

/// Whether a parameter of each filter is there to be repeated.
static bool isKnown(Value parameter) {
  return !parameter || hasOneElement(parameter) || readFloats(parameter) ||
         readIntegers(parameter);
}

std::optional<TransposedConv> TransposedConv::match(onnx::ConvTransposeOp op) {
  auto input = Quantization::ofDequantized(op.getX());
  auto weights = Quantization::ofDequantized(op.getW());
  auto type = dyn_cast<RankedTensorType>(op.getX().getType());
  auto filters = dyn_cast<RankedTensorType>(op.getW().getType());
  auto isNot = [](std::optional<ArrayRef<int64_t>> list, int64_t number) {
    return list && llvm::any_of(*list, [=](int64_t n) { return n != number; });
  };
  if (!input || !weights || input->axis || weights->axis.value_or(1) != 1 ||
      input->integer.getWidth() != 8 || weights->integer.getWidth() != 8 ||
      !type || !filters || type.getRank() != 4 || filters.getRank() != 4 ||
      !filters.hasStaticShape() || filters.getNumElements() == 0 ||
      !isa<RankedTensorType>(op.getType()) || op.getGroup() != 1 ||
      op.getAutoPad() != "NOTSET" || op.getOutputShape() ||
      isNot(op.getOutputPadding(), 0) || isNot(op.getDilations(), 1) ||
      !op.getStrides() || op.getStrides()->size() != 2 ||
      !isKnown(weights->scale) || !isKnown(weights->zeroPoint))
    return std::nullopt;
  TransposedConv conv{*input, *weights, op.getStrides()->front(), {}, {}};
  constexpr int64_t kMostPhases = 256;
  if (conv.stride < 2 || conv.stride != op.getStrides()->back() ||
      conv.stride * conv.stride > kMostPhases)
    return std::nullopt;
  for (int64_t size : filters.getShape().drop_front(2)) {
    if (size % conv.stride != 0)
      return std::nullopt;
    conv.taps.push_back(size / conv.stride);
  }
  conv.pads.assign(4, 0);
  if (op.getPads() && op.getPads()->size() == 4)
    conv.pads = llvm::to_vector(*op.getPads());
  for (auto [i, pad] : llvm::enumerate(conv.pads))
    if (pad < 0 || pad >= filters.getDimSize(2 + i % 2))
      return std::nullopt;
  return conv;
}

namespace {

struct ConvolvePhases : OpRewritePattern<onnx::ConvTransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::ConvTransposeOp op,
                                PatternRewriter &b) const override {
    auto conv = TransposedConv::match(op);
    if (!conv)
      return b.notifyMatchFailure(op, "no phases of dequantised bytes");
    const int64_t phases = conv->stride * conv->stride;
    auto biasOp = op.getB()
                      ? op.getB().getDefiningOp<onnx::DequantizeLinearOp>()
                      : onnx::DequantizeLinearOp();
    if (op.getB() &&
        (biasOp ? !isKnown(biasOp.getX()) || hasOneElement(biasOp.getX()) ||
                      !isZeroPointZero(biasOp.getXZeroPoint()) ||
                      !isKnown(biasOp.getXScale())
                : !readFloats(op.getB()) || hasOneElement(op.getB())))
      return b.notifyMatchFailure(op, "the bias is not known");
    const Location loc = op.getLoc();
    Value bias = biasOp ? repeatConstant(b, loc, biasOp.getX(), phases)
                        : repeatConstant(b, loc, op.getB(), phases);
    if (biasOp)
      bias = onnx::DequantizeLinearOp::create(
          b, loc, cast<RankedTensorType>(bias.getType()).clone(b.getF32Type()),
          bias, repeatConstant(b, loc, biasOp.getXScale(), phases), Value(),
          b.getIntegerAttr(b.getIntegerType(64, /*isSigned=*/true), 0));

    auto input = cast<RankedTensorType>(op.getX().getType());
    auto result = cast<RankedTensorType>(op.getType());
    const int64_t filters =
        cast<RankedTensorType>(op.getW().getType()).getDimSize(1);
    SmallVector<int64_t> sums = {input.getDimSize(0), filters * phases};
    SmallVector<int64_t> blocks = {input.getDimSize(0), filters}, pads;
    for (auto [dim, taps] : llvm::enumerate(conv->taps)) {
      const int64_t size = input.getDimSize(2 + dim);
      const bool isOpen = ShapedType::isDynamic(size);
      sums.push_back(isOpen ? size : size + taps - 1);
      blocks.push_back(isOpen ? size : sums.back() * conv->stride);
      pads.push_back(taps - 1);
    }
    pads.append(SmallVector<int64_t>(pads));
    Value sum = onnx::ConvOp::create(
        b, loc, result.clone(sums), op.getX(), createWeights(b, op, *conv),
        bias, b.getStringAttr("NOTSET"), /*dilations=*/nullptr,
        b.getIntegerAttr(b.getIntegerType(64, /*isSigned=*/true), 1),
        b.getDenseI64ArrayAttr(conv->taps), b.getDenseI64ArrayAttr(pads),
        /*strides=*/nullptr);
    Value all = onnx::DepthToSpaceOp::create(b, loc, result.clone(blocks), sum,
                                             conv->stride, "DCR");
    auto isZero = [](int64_t pad) { return pad == 0; };
    if (llvm::all_of(conv->pads, isZero)) {
      b.replaceOp(op, all);
      return success();
    }
    auto list = [&](ArrayRef<int64_t> numbers) {
      auto type = RankedTensorType::get(numbers.size(), b.getI64Type());
      return onnx::createConstant(b, loc,
                                  DenseElementsAttr::get(type, numbers));
    };
    SmallVector<int64_t> ends;
    for (int64_t pad : ArrayRef(conv->pads).drop_front(2))
      ends.push_back(pad == 0 ? INT64_MAX : -pad);
    b.replaceOpWithNewOp<onnx::SliceOp>(
        op, result, all, list(ArrayRef(conv->pads).take_front(2)), list(ends),
        list({2, 3}), Value());
    return success();
  }

private:
  /// Weights [C,M,u*s,u*s] as filters [s*s*M,C,u,u], dequantised: tap j of
  /// phase r, from the last to the first, is tap j * s + r.
  static Value createWeights(PatternRewriter &b, onnx::ConvTransposeOp op,
                             const TransposedConv &conv) {
    const Location loc = op.getLoc();
    Value integers = op.getW().getDefiningOp<onnx::DequantizeLinearOp>().getX();
    auto type = cast<RankedTensorType>(integers.getType());
    auto list = [&](ArrayRef<int64_t> numbers) {
      auto listType = RankedTensorType::get(numbers.size(), b.getI64Type());
      return onnx::createConstant(b, loc,
                                  DenseElementsAttr::get(listType, numbers));
    };
    auto reshape = [&](Value value, ArrayRef<int64_t> shape) {
      return onnx::ReshapeOp::create(b, loc, type.clone(shape), value,
                                     list(shape), /*allowzero=*/0);
    };
    const int64_t s = conv.stride, c = type.getDimSize(0),
                  m = type.getDimSize(1), u = conv.taps[0], v = conv.taps[1];
    Value split = reshape(integers, {c, m, u, s, v, s});
    if (u > 1 || v > 1)
      split = onnx::SliceOp::create(
          b, loc, split.getType(), split, list({-1, -1}),
          list({INT64_MIN, INT64_MIN}), list({2, 4}), list({-1, -1}));
    Value moved =
        onnx::TransposeOp::create(b, loc, type.clone({s, s, m, c, u, v}), split,
                                  b.getDenseI64ArrayAttr({3, 5, 1, 0, 2, 4}));
    Quantization given = conv.weights;
    given.scale = repeatConstant(b, loc, given.scale, s * s);
    given.zeroPoint = repeatConstant(b, loc, given.zeroPoint, s * s);
    if (given.axis)
      given.axis = 0;
    return given.createDequantize(b, loc, reshape(moved, {s * s * m, c, u, v}));
  }
};

} // namespace

void sardonyx::populateQuantizedTransposedConvPatterns(
    RewritePatternSet &patterns) {
  patterns.add<ConvolvePhases>(patterns.getContext());
}
