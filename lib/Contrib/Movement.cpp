//===- Movement.cpp - What moves elements, or picks them by place ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Body.h"

using ::onnx::TensorProto;

namespace sardonyx::contrib {

/// The one element of an input that is a scalar or a list of one, as a scalar.
static Name asScalar(Body &b, llvm::StringRef input) {
  return b.rank(input) == 0 ? b.in(input) : b.reshape(b.in(input), {});
}

void buildPad(Body &b) {
  Attrs attrs;
  b.pass(attrs, {"mode"});
  Name value = b.has("value") ? asScalar(b, "value") : Name();
  b.give(
      "output",
      b.op("Pad", {b.in("data"), b.reshape(b.in("pads"), {-1}), value}, attrs));
}

void buildRange(Body &b) {
  Name delta = b.has("delta") ? asScalar(b, "delta") : b.scalarLike(1, "start");
  b.give("Y",
         b.op("Range", {asScalar(b, "start"), asScalar(b, "limit"), delta}));
}

void buildUnique(Body &b) {
  if (b.requireRank("x") != 1)
    b.refuse("input 'x' has rank " + llvm::Twine(b.requireRank("x")) +
             ", and must be a list");
  Names found = b.op(4, "Unique", {b.in("x")}, {{"sorted", 0}});
  b.give("y", found[0]);
  b.give("idx", found[2]);
  b.give("counts", found[3]);
}

void buildUnfoldTensor(Body &b) {
  int64_t rank = b.requireRank("input"), dim = b.getInt("dim");
  int64_t size = b.getInt("size"), step = b.getInt("step");
  if (dim < -rank || dim >= rank)
    b.refuse("attribute 'dim' is " + llvm::Twine(dim) +
             ", and the input has rank " + llvm::Twine(rank));
  if (size < 1 || step < 1)
    b.refuse("attributes 'size' and 'step' are " + llvm::Twine(size) + " and " +
             llvm::Twine(step) + ", and must be positive");
  if (dim < 0)
    dim += rank;
  if (int64_t length = b.size("input", dim); length >= 0 && length < size)
    b.refuse("attribute 'size' is " + llvm::Twine(size) +
             ", and the input has " + llvm::Twine(length) +
             " elements along the axis");
  // The first elements of all slices: fewer of them than elements by the rest
  // of one slice.
  Name last = b.sub(b.sizeOf(b.in("input"), dim), b.ints({size - 1}));
  Name starts =
      b.op("Range", {b.integer(0), b.op("Squeeze", {last}), b.integer(step)});
  Name places = b.add(b.unsqueeze(starts, {1}), b.iota(b.ints({size})));
  Name slices = b.op("Gather", {b.in("input"), places}, {{"axis", dim}});
  Ints perm;
  for (int64_t i = 0; i <= rank; ++i)
    if (i != dim + 1)
      perm.push_back(i);
  perm.push_back(dim + 1);
  b.give("output", b.transpose(slices, perm));
}

void buildGridSample(Body &b) {
  std::string mode = b.getString("mode");
  if (mode != "bilinear" && mode != "nearest" && mode != "bicubic")
    b.refuse("mode '" + llvm::Twine(mode) +
             "' is none of bilinear, nearest and bicubic");
  if (int64_t rank = b.requireRank("X"); rank != 4)
    b.refuse("input 'X' has rank " + llvm::Twine(rank) + ", and must have 4");
  Attrs attrs = {{"mode", mode == "bilinear"  ? "linear"
                          : mode == "bicubic" ? "cubic"
                                              : "nearest"}};
  b.pass(attrs, {"padding_mode", "align_corners"});
  b.give("Y", b.op("GridSample", {b.in("X"), b.in("Grid")}, attrs));
}

void buildConvTransposeWithDynamicPads(Body &b) {
  if (std::string pad = b.getString("auto_pad"); pad != "NOTSET")
    b.refuse("auto_pad '" + llvm::Twine(pad) + "' is not supported");
  Attrs attrs;
  b.pass(attrs,
         {"kernel_shape", "output_padding", "dilations", "strides", "group"});
  Name whole = b.op("ConvTranspose", {b.in("X"), b.in("W"), b.in("B")}, attrs);
  if (!b.has("Pads"))
    return b.give("Y", whole);
  Name pads = b.op("Neg", {b.in("Pads")});
  Names halves = b.op(2, "Split", {pads}, {{"axis", 0}, {"num_outputs", 2}});
  Name none = b.ints({0, 0});
  b.give("Y",
         b.op("Pad", {whole, b.concat({none, halves[0], none, halves[1]}, 0)}));
}

//===----------------------------------------------------------------------===//
// CropAndResize
//===----------------------------------------------------------------------===//

namespace {
/// The places along one axis of the images that the boxes are sampled at.
struct CropAxis {
  /// Places [boxes, size], whole numbers below and above them, and how far they
  /// are above the former.
  Name place, low, high, lerp;
  /// Which places lie in the image.
  Name isInside;
};
} // namespace

/// `from` and `to` are the columns of the boxes that bound them along `axis` of
/// the images, `crop` is the position of the axis in the size of a crop.
static CropAxis cropAxis(Body &b, int64_t from, int64_t to, int64_t axis,
                         int64_t crop) {
  int type = b.elementType("X");
  auto column = [&](int64_t i) {
    return b.slice(b.in("rois"), i, i + 1, 1); // [boxes, 1]
  };
  auto number = [&](double value) { return b.scalarLike(value, "X"); };
  Name one = b.integer(1);
  Name count =
      b.cast(b.slice(b.in("crop_size"), crop, crop + 1, 0), TensorProto::INT64);
  Name last = b.cast(b.sub(b.sizeOf(b.in("X"), axis), one), type);
  Name steps = b.cast(b.op("Max", {b.sub(count, one), one}), type);
  Name start = b.mul(column(from), last), end = b.mul(column(to), last);
  Name scale =
      b.op("Div", {b.mul(b.sub(column(to), column(from)), last), steps});
  Name i = b.iota(count);
  Name place = b.add(start, b.mul(b.cast(i, type), scale));
  // The corners are where the boxes say, whatever sums round to.
  place = b.op("Where", {b.op("Equal", {i, b.sub(count, one)}), end, place});
  place = b.op("Where", {b.op("Equal", {i, b.integer(0)}), start, place});
  Name middle =
      b.mul(b.mul(number(0.5), b.add(column(from), column(to))), last);
  place = b.op("Where", {b.op("Greater", {count, one}), place, middle});
  CropAxis result;
  result.isInside = b.op("And", {b.op("GreaterOrEqual", {place, number(0)}),
                                 b.op("LessOrEqual", {place, last})});
  result.place = b.op("Where", {result.isInside, place, number(0)});
  result.low = b.op("Floor", {result.place});
  result.high = b.op("Ceil", {result.place});
  result.lerp = b.sub(result.place, result.low);
  return result;
}

void buildCropAndResize(Body &b) {
  std::string mode = b.getString("mode");
  if (mode != "bilinear" && mode != "nearest")
    b.refuse("mode '" + llvm::Twine(mode) +
             "' is neither bilinear nor nearest");
  if (b.requireRank("X") != 4 || b.requireRank("rois") != 2)
    b.refuse("inputs 'X' and 'rois' must have rank 4 and 2");
  CropAxis y = cropAxis(b, 0, 2, 2, 0), x = cropAxis(b, 1, 3, 3, 1);
  Name images = b.transpose(b.in("X"), {0, 2, 3, 1});
  // All are [boxes, height, width] and an axis of one.
  auto alongHeight = [&](const Name &v) { return b.unsqueeze(v, {2, 3}); };
  auto alongWidth = [&](const Name &v) { return b.unsqueeze(v, {1, 3}); };
  Name image =
      b.unsqueeze(b.cast(b.in("batch_indices"), TensorProto::INT64), {1, 2, 3});
  Name isInside =
      b.op("And", {alongHeight(y.isInside), alongWidth(x.isInside)});
  Name shape = b.op("Shape", {isInside});
  auto pick = [&](const Name &row, const Name &column) {
    Names places = {image};
    for (const Name &place : {alongHeight(row), alongWidth(column)})
      places.push_back(b.cast(place, TensorProto::INT64));
    for (Name &place : places)
      place = b.op("Expand", {place, shape});
    return b.op("GatherND", {images, b.concat(places, 3)});
  };
  Name value;
  if (mode == "nearest") {
    // Halves go away from zero.
    auto nearest = [&](const CropAxis &axis) {
      Name isUp = b.op("GreaterOrEqual", {axis.lerp, b.scalarLike(0.5, "X")});
      return b.op("Where", {isUp, axis.high, axis.low});
    };
    value = pick(nearest(y), nearest(x));
  } else {
    auto between = [&](const Name &p, const Name &q, const Name &lerp) {
      return b.add(p, b.mul(b.sub(q, p), lerp));
    };
    auto row = [&](const Name &at) {
      return between(pick(at, x.low), pick(at, x.high), alongWidth(x.lerp));
    };
    value = between(row(y.low), row(y.high), alongHeight(y.lerp));
  }
  Name outside = b.scalarLike(b.getFloat("extrapolation_value"), "X");
  value = b.op("Where", {isInside, value, outside});
  b.give("Y", b.transpose(value, {0, 3, 1, 2}));
}

} // namespace sardonyx::contrib
