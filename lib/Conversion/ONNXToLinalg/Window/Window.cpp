//===- Window.cpp - Sliding windows ---------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Window/Window.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace sardonyx {

bool Window::hasPads() const {
  auto isZero = [](OpFoldResult pad) { return isZeroInteger(pad); };
  return !llvm::all_of(padsBegin, isZero) || !llvm::all_of(padsEnd, isZero);
}

bool Window::isPlain() const {
  constexpr int64_t kLongestSide = 16;
  if (rank() != 2)
    return false;
  for (int64_t dim = 0; dim < rank(); ++dim) {
    std::optional<int64_t> in = getStaticSize(inputs[dim]);
    std::optional<int64_t> out = getStaticSize(outputs[dim]);
    std::optional<int64_t> begin = getStaticSize(padsBegin[dim]);
    std::optional<int64_t> end = getStaticSize(padsEnd[dim]);
    if (!begin || !end || *begin < 0 || *end < 0 || dilations[dim] != 1 ||
        kernel[dim] > kLongestSide || *begin >= kernel[dim] ||
        (out && *out < 1))
      return false;
    const bool seesSome = in && out ? (*out - 1) * strides[dim] - *begin < *in
                                    : *end < kernel[dim];
    if (!seesSome)
      return false;
  }
  return true;
}

SmallVector<int64_t> Window::knownPadsBegin() const {
  return llvm::map_to_vector(
      padsBegin, [](OpFoldResult pad) { return *getStaticSize(pad); });
}

/// An attribute's list for `rank` spatial dimensions; fails on another length
/// or on a value below `least`.
static FailureOr<SmallVector<int64_t>>
getList(std::optional<ArrayRef<int64_t>> attribute, int64_t count,
        int64_t absent, int64_t least) {
  if (!attribute || attribute->empty())
    return SmallVector<int64_t>(count, absent);
  if (static_cast<int64_t>(attribute->size()) != count ||
      llvm::any_of(*attribute, [&](int64_t value) {
        return value < least || value > INT32_MAX;
      }))
    return failure();
  return SmallVector<int64_t>(*attribute);
}

/// Pads of auto_pad = SAME_*: as many outputs as strides fit into the input.
static void computeSamePads(TensorBuilder &b, Window &window, int64_t dim,
                            bool upper) {
  OpFoldResult input = window.inputs[dim];
  OpFoldResult stride = b.size(window.strides[dim]);
  OpFoldResult output = b.ceilDiv(input, stride);
  OpFoldResult total;
  if (window.strides[dim] == 1) {
    total = b.size(window.span(dim) - 1);
  } else {
    OpFoldResult reach =
        b.plus(b.times(b.minus(output, b.size(1)), stride), window.span(dim));
    total = b.atLeast(b.minus(reach, input), 0);
  }
  OpFoldResult smaller = b.floorDiv(total, b.size(2));
  OpFoldResult larger = b.minus(total, smaller);
  window.padsBegin.push_back(upper ? smaller : larger);
  window.padsEnd.push_back(upper ? larger : smaller);
  window.outputs.push_back(output);
}

static OpFoldResult computeOutput(TensorBuilder &b, const Window &window,
                                  int64_t dim, bool ceilMode) {
  OpFoldResult stride = b.size(window.strides[dim]);
  OpFoldResult fromBegin = b.plus(window.inputs[dim], window.padsBegin[dim]);
  OpFoldResult room =
      b.plus(b.plus(fromBegin, window.padsEnd[dim]), b.size(-window.span(dim)));
  if (!ceilMode)
    return b.atLeast(b.plus(b.floorDiv(room, stride), 1), 0);
  // The last window must begin in the input or in the border before it.
  OpFoldResult rounded = b.plus(b.ceilDiv(room, stride), 1);
  OpFoldResult begins = b.ceilDiv(fromBegin, stride);
  std::optional<int64_t> x = getStaticSize(rounded), y = getStaticSize(begins);
  OpFoldResult least =
      x && y ? b.size(std::min(*x, *y))
             : OpFoldResult(b.minimum(b.index(rounded), b.index(begins)));
  return b.atLeast(least, 0);
}

FailureOr<Window> getWindow(TensorBuilder &b, Value input,
                            const WindowAttributes &attributes) {
  int64_t rank = rankedType(input).getRank() - 2;
  if (rank < 1 || static_cast<int64_t>(attributes.kernel.size()) != rank ||
      llvm::any_of(
          attributes.kernel,
          [](int64_t size) { return size < 1 || size > INT32_MAX; }))
    return failure();
  FailureOr<SmallVector<int64_t>> strides =
      getList(attributes.strides, rank, 1, 1);
  FailureOr<SmallVector<int64_t>> dilations =
      getList(attributes.dilations, rank, 1, 1);
  FailureOr<SmallVector<int64_t>> pads =
      getList(attributes.pads, 2 * rank, 0, -INT32_MAX);
  if (failed(strides) || failed(dilations) || failed(pads))
    return failure();

  Window window;
  window.kernel = attributes.kernel;
  window.strides = *strides;
  window.dilations = *dilations;
  for (int64_t dim = 0; dim < rank; ++dim)
    window.inputs.push_back(b.dim(input, dim + 2));
  StringRef autoPad = attributes.autoPad;
  bool same = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  bool explicitPads = autoPad == "NOTSET" || autoPad.empty();
  window.withinPads = !(explicitPads && attributes.ceilMode);
  if (!same && !explicitPads && autoPad != "VALID")
    return failure();
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (same) {
      computeSamePads(b, window, dim, autoPad == "SAME_UPPER");
      continue;
    }
    window.padsBegin.push_back(b.size(explicitPads ? (*pads)[dim] : 0));
    window.padsEnd.push_back(b.size(explicitPads ? (*pads)[rank + dim] : 0));
    window.outputs.push_back(
        computeOutput(b, window, dim, explicitPads && attributes.ceilMode));
  }
  return window;
}

/// How much a negative pad takes away.
static int64_t getCrop(OpFoldResult pad) {
  return std::max<int64_t>(0, -getStaticSize(pad).value_or(0));
}

Value padForWindow(TensorBuilder &b, Value input, const Window &window,
                   Value value) {
  Sizes low(2, b.size(0)), high(2, b.size(0));
  Sizes offsets(2, b.size(0)), sizes{b.dim(input, 0), b.dim(input, 1)};
  bool crops = false;
  for (int64_t dim = 0; dim < window.rank(); ++dim) {
    OpFoldResult begin = window.padsBegin[dim];
    OpFoldResult size = window.inputs[dim];
    int64_t cropped = getCrop(begin), croppedEnd = getCrop(window.padsEnd[dim]);
    crops |= cropped > 0 || croppedEnd > 0;
    offsets.push_back(b.size(cropped));
    sizes.push_back(b.atLeast(b.plus(size, -cropped - croppedEnd), 0));
    low.push_back(cropped ? b.size(0) : begin);
    // What the windows see is at most the pads but for ceil mode. Where sizes
    // are open, no pads are none for sure.
    if (window.withinPads && !getStaticSize(size)) {
      high.push_back(croppedEnd ? b.size(0) : window.padsEnd[dim]);
      continue;
    }
    OpFoldResult last =
        b.times(b.plus(window.outputs[dim], -1), window.strides[dim]);
    OpFoldResult seen = b.plus(last, window.span(dim));
    high.push_back(b.atLeast(b.minus(b.minus(seen, begin), size), 0));
  }
  if (crops)
    input = b.slice(input, offsets, sizes);
  return b.pad(input, low, high, value);
}

AffineMap getWindowMap(TensorBuilder &b, const Window &window) {
  int64_t rank = window.rank();
  SmallVector<AffineExpr> exprs{b.getAffineDimExpr(0), b.getAffineDimExpr(1)};
  for (int64_t dim = 0; dim < rank; ++dim)
    exprs.push_back(b.getAffineDimExpr(2 + dim) * window.strides[dim] +
                    b.getAffineDimExpr(2 + rank + dim) * window.dilations[dim]);
  return AffineMap::get(2 + 2 * rank, 0, exprs, b.getContext());
}

FailureOr<SmallVector<int64_t>>
getKernelShape(TensorBuilder &b, Value &weights,
               std::optional<ArrayRef<int64_t>> attribute) {
  RankedTensorType type = rankedType(weights);
  if (type.getRank() < 3)
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  MutableArrayRef<int64_t> kernel = MutableArrayRef(shape).drop_front(2);
  if (attribute && !attribute->empty()) {
    if (attribute->size() != kernel.size())
      return failure();
    for (auto [dim, size] : llvm::enumerate(*attribute)) {
      if (size < 1 || !b.sameSize(b.dim(weights, dim + 2), b.size(size),
                                  "kernel_shape differs from the weights'"))
        return failure();
      kernel[dim] = size;
    }
  }
  if (llvm::any_of(kernel, ShapedType::isDynamic))
    return failure();
  weights =
      b.cast(weights, RankedTensorType::get(shape, type.getElementType()));
  return SmallVector<int64_t>(kernel);
}

Value alignChannels(TensorBuilder &b, Value tensor, int64_t spatialRank) {
  RankedTensorType type = rankedType(tensor);
  if (type.getRank() != 1 || type.getDimSize(0) == 1)
    return tensor;
  return unsqueeze(b, b.getLoc(), tensor,
                   llvm::to_vector(llvm::seq<int64_t>(1, spatialRank + 1)));
}

} // namespace sardonyx
