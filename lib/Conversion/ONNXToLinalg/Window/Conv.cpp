//===- Conv.cpp - Conv ----------------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Window/Window.h"
#include "dialects/ONNX/ONNX.h"
#include "dialects/SDX/SDX.h"

using namespace mlir;

namespace sardonyx {

Value padInput(TensorBuilder &b, Value input, Window &window, Value value) {
  Value padded = padForWindow(b, input, window, value);
  for (int64_t dim = 0; dim < window.rank(); ++dim) {
    window.padsBegin[dim] = window.padsEnd[dim] = b.size(0);
    window.inputs[dim] = b.dim(padded, dim + 2);
  }
  return padded;
}

/// A window whose pads `sdx.conv` can carry, over an input cropped or padded
/// with `padding` where it can't.
static Value normalizePads(TensorBuilder &b, Value input, Window &window,
                           int64_t padding) {
  auto isCarried = [](OpFoldResult pad) {
    std::optional<int64_t> known = getStaticSize(pad);
    return known && *known >= 0;
  };
  if (llvm::all_of(window.padsBegin, isCarried) &&
      llvm::all_of(window.padsEnd, isCarried))
    return input;
  Type element = elementTypeOf(input);
  return padInput(b, input, window,
                  padding ? b.integer(element, padding) : b.zero(element));
}

/// Leaves out the taps at a kernel's ends that see pads wherever the window is,
/// as those of wide dilations do: only zeros, which add nothing.
static Value dropTapsInPads(TensorBuilder &b, Value weights, Window &window) {
  const int64_t rank = window.rank();
  Sizes offsets(rank + 2, b.size(0)), sizes = b.dims(weights);
  bool drops = false;
  for (int64_t dim = 0; dim < rank; ++dim) {
    std::optional<int64_t> in = getStaticSize(window.inputs[dim]),
                           out = getStaticSize(window.outputs[dim]);
    if (!in || !out || *in == 0)
      continue;
    const int64_t taps = window.kernel[dim], step = window.dilations[dim];
    const int64_t begin = *getStaticSize(window.padsBegin[dim]),
                  end = *getStaticSize(window.padsEnd[dim]);
    auto seesInput = [&](int64_t tap) {
      for (int64_t o = 0; o < *out; ++o) {
        const int64_t at = o * window.strides[dim] + tap * step - begin;
        if (at >= 0 && at < *in)
          return true;
      }
      return false;
    };
    // Pads may get no less than nothing.
    int64_t first = 0, last = taps - 1;
    while (first < last && (first + 1) * step <= begin && !seesInput(first))
      ++first;
    while (last > first && (taps - last) * step <= end && !seesInput(last))
      --last;
    if (first == 0 && last == taps - 1)
      continue;
    drops = true;
    window.kernel[dim] = last - first + 1;
    window.padsBegin[dim] = b.size(begin - first * step);
    window.padsEnd[dim] = b.size(end - (taps - 1 - last) * step);
    offsets[dim + 2] = b.size(first);
    sizes[dim + 2] = b.size(window.kernel[dim]);
  }
  if (!drops)
    return weights;
  Sizes ones(rank + 2, b.size(1));
  return tensor::ExtractSliceOp::create(b, weights, offsets, sizes, ones);
}

static Value createConvOp(TensorBuilder &b, Value input, Value weights,
                          Window window, int64_t group,
                          std::optional<ConvBytes> bytes) {
  input = normalizePads(b, input, window, bytes ? bytes->padding : 0);
  if (!bytes)
    weights = dropTapsInPads(b, weights, window);
  auto type = rankedType(weights);
  SmallVector<int64_t> shape(type.getShape());
  llvm::copy(window.kernel, shape.begin() + 2);
  weights = b.cast(weights, type.clone(shape));
  Sizes sizes{b.dim(input, 0), b.dim(weights, 0)};
  sizes.append(window.outputs);
  SmallVector<int64_t> begin, end;
  for (auto [x, y] : llvm::zip_equal(window.padsBegin, window.padsEnd)) {
    begin.push_back(*getStaticSize(x));
    end.push_back(*getStaticSize(y));
  }
  Type sum = bytes ? Type(b.getI32Type()) : elementTypeOf(input);
  auto conv =
      sdx::ConvOp::create(b, input, weights, b.zeros(sizes, sum),
                          window.strides, window.dilations, begin, end, group);
  if (bytes) {
    conv.setInputUnsigned(bytes->isInputUnsigned);
    conv.setWeightsUnsigned(bytes->areWeightsUnsigned);
    if (window.hasPads())
      conv.setPadding(bytes->padding);
  }
  return conv->getResult(0);
}

FailureOr<Value> createConv(TensorBuilder &b, Value input, Value weights,
                            const Window &window, int64_t group,
                            std::optional<ConvBytes> bytes) {
  if (group < 1 || window.rank() > 3 ||
      !b.sameSize(b.dim(input, 1), b.times(b.dim(weights, 1), group),
                  "channels of the input and the weights differ"))
    return failure();
  OpFoldResult channels = b.dim(weights, 0);
  if (std::optional<int64_t> known = getStaticSize(channels)) {
    if (*known % group != 0)
      return failure();
  } else if (group > 1) {
    OpFoldResult whole = b.times(b.floorDiv(channels, b.size(group)), group);
    (void)b.sameSize(channels, whole,
                     "output channels are no multiple of group");
  }
  // Weights tell what an input of open sizes leaves open.
  auto type = rankedType(input);
  if (int64_t known = rankedType(weights).getDimSize(1);
      type.isDynamicDim(1) && !ShapedType::isDynamic(known)) {
    SmallVector<int64_t> shape(type.getShape());
    shape[1] = known * group;
    input = b.cast(input, type.clone(shape));
  }
  return createConvOp(b, input, weights, window, group, bytes);
}

FailureOr<Value> addBias(TensorBuilder &b, Value product, Value bias,
                         Type element) {
  if (!bias)
    return b.convertElements(product, element);
  int64_t rank = rankedType(product).getRank();
  if (!b.sameSize(b.dim(bias, 0), b.dim(product, 1),
                  "the bias is not as long as there are output channels"))
    return failure();
  return createMapped(
      b, b.getLoc(), {{product, elementTypeOf(product)}, {bias, element}},
      {b.identityMap(rank), b.dimsMap(rank, {1})}, b.dims(product), element,
      [](OpBuilder &s, Location loc, ValueRange args) -> Value {
        return arith::AddFOp::create(s, loc, args[0], args[1]);
      });
}

namespace {

LogicalResult lowerConv(Lowering<onnx::ConvOp> &b) {
  Type element = getOnnxElementType(b.op.getX());
  auto floatType = dyn_cast_or_null<FloatType>(element);
  if (!floatType || floatType.getWidth() < 16)
    return b.refuseAlways("element type is not supported");
  Value weights = b.in.getW();
  FailureOr<SmallVector<int64_t>> kernel =
      getKernelShape(b, weights, b.op.getKernelShape());
  if (failed(kernel))
    return b.refuse("kernel sizes are not known");
  WindowAttributes attributes = getWindowAttributes(b.op);
  attributes.kernel = *kernel;
  FailureOr<Window> window = getWindow(b, b.in.getX(), attributes);
  if (failed(window))
    return b.refuse("attributes do not fit the input");

  Type accumulator = getAccumulatorType(element);
  FailureOr<Value> product = createConv(
      b, b.convertElements(b.in.getX(), accumulator),
      b.convertElements(weights, accumulator), *window, b.op.getGroup());
  if (failed(product))
    return b.refuse("channels do not fit, or more than 3 spatial dimensions");
  FailureOr<Value> result = addBias(b, *product, b.in.getB(), element);
  if (failed(result))
    return b.refuse("bias does not fit");
  return b.replace(*result);
}

} // namespace

void populateConvPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns) {
  addLowering<onnx::ConvOp, lowerConv>(patterns, converter);
}

} // namespace sardonyx
