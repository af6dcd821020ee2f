//===- Resampling.cpp - Values between the points of axes -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement/Resampling.h"
#include "Movement/Positions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::resize;

Number resize::toNumber(TensorBuilder &b, OpFoldResult size) {
  if (std::optional<int64_t> known = getStaticSize(size))
    return {static_cast<double>(*known), Value()};
  return {std::nullopt, b.convert(b.index(size), b.getF64Type())};
}

Number resize::divide(TensorBuilder &b, Number x, Number y) {
  if (x.known && y.known && *y.known != 0)
    return {*x.known / *y.known, Value()};
  return {std::nullopt, arith::DivFOp::create(b, x.get(b), y.get(b))};
}

Number resize::multiply(TensorBuilder &b, Number x, Number y) {
  if (x.known && y.known)
    return {*x.known * *y.known, Value()};
  return {std::nullopt, b.mul(x.get(b), y.get(b))};
}

Number resize::extremum(TensorBuilder &b, Number x, Number y, bool larger) {
  if (x.known && y.known)
    return {larger ? std::max(*x.known, *y.known)
                   : std::min(*x.known, *y.known),
            Value()};
  return {std::nullopt, larger ? b.maximum(x.get(b), y.get(b))
                               : b.minimum(x.get(b), y.get(b))};
}

OpFoldResult resize::floorToSize(TensorBuilder &b, Number x, double offset) {
  if (x.known && std::fabs(*x.known) < 1e12)
    return b.size(std::max<int64_t>(0, std::floor(*x.known + offset)));
  Value sum = b.add(x.get(b), b.scalar(b.getF64Type(), offset));
  Value whole = math::FloorOp::create(b, sum);
  Value integer = arith::FPToSIOp::create(b, b.getI64Type(), whole);
  return b.atLeast(b.convert(integer, b.getIndexType()), 0);
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

/// The coordinate in the input of output position `at` (f64), inside a body.
static Value createCoordinate(TensorBuilder &s, const Resampling &r,
                              const Axis &axis, Value at) {
  Type f64 = s.getF64Type();
  auto number = [&](double value) { return s.scalar(f64, value); };
  auto div = [&](Value x, Value y) -> Value {
    return arith::DivFOp::create(s, x, y);
  };
  Value scale = axis.scale.get(s);
  Value input = toNumber(s, axis.inputSize).get(s);
  Value output = s.mul(scale, input);
  Value half = number(0.5), one = number(1);
  Value isSingle =
      arith::CmpFOp::create(s, arith::CmpFPredicate::OEQ, output, one);
  Value halfPixel = s.sub(div(s.add(at, half), scale), half);
  if (r.coordinates == "asymmetric")
    return div(at, scale);
  if (r.coordinates == "pytorch_half_pixel")
    return s.select(isSingle, number(-0.5), halfPixel);
  if (r.coordinates == "half_pixel_symmetric") {
    // halfPixel + input / 2 * (1 - whole / output), with a single division: a
    // position that is whole, or a half, must not end up beside itself.
    Value whole = toNumber(s, axis.outputSize).get(s);
    Value centre = s.mul(half, s.sub(input, one));
    Value fromCentre = s.sub(s.add(at, half), s.mul(half, whole));
    return s.add(centre, div(fromCentre, scale));
  }
  Value last = s.sub(input, one);
  if (r.coordinates == "align_corners")
    return s.select(isSingle, number(0),
                    div(s.mul(at, last), s.sub(output, one)));
  if (r.crops()) {
    Value begin = axis.roiBegin.get(s);
    Value reach = s.mul(s.sub(axis.roiEnd.get(s), begin), last);
    Value inner = s.select(isSingle, s.mul(reach, half),
                           div(s.mul(at, reach), s.sub(output, one)));
    return s.add(inner, s.mul(begin, last));
  }
  return halfPixel;
}

static Value createPositionAsFloat(TensorBuilder &s, int64_t dim) {
  Value at = linalg::IndexOp::create(s, dim);
  return s.convert(at, s.getF64Type());
}

/// Whether a coordinate lies outside of the input, for the crop mode.
static Value isOutside(TensorBuilder &s, const Axis &axis, Value coordinate) {
  Type f64 = s.getF64Type();
  Value last = toNumber(s, s.plus(axis.inputSize, -1)).get(s);
  Value before = s.greater(s.scalar(f64, 0), coordinate);
  return arith::OrIOp::create(s, before, s.greater(coordinate, last));
}

/// An f64 whole number as an index within the input.
static Value clampToInput(TensorBuilder &s, const Axis &axis, Value whole) {
  Value integer = arith::FPToSIOp::create(s, s.getI64Type(), whole);
  Value last = s.convert(s.index(s.plus(axis.inputSize, -1)), s.getI64Type());
  return s.maximum(s.minimum(integer, last), s.integer(s.getI64Type(), 0));
}

//===----------------------------------------------------------------------===//
// Nearest
//===----------------------------------------------------------------------===//

/// For each output position of an axis the input position, or -1 outside.
static Value createNearestTable(TensorBuilder &b, const Resampling &r,
                                const Axis &axis) {
  Type type = getPositionType(b, axis.inputSize);
  return b
      .elementwise(
          {axis.outputSize}, {}, {}, {type},
          [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
            Value x = createCoordinate(s, r, axis, createPositionAsFloat(s, 0));
            Value half = s.scalar(s.getF64Type(), 0.5), whole;
            if (r.nearest == "floor")
              whole = math::FloorOp::create(s, x);
            else if (r.nearest == "ceil")
              whole = math::CeilOp::create(s, x);
            else if (r.nearest == "round_prefer_ceil")
              whole = math::FloorOp::create(s, s.add(x, half));
            else
              whole = math::CeilOp::create(s, s.sub(x, half));
            Value index = s.convert(clampToInput(s, axis, whole), type);
            if (r.crops())
              index =
                  s.select(isOutside(s, axis, x), s.integer(type, -1), index);
            return {index};
          })
      .front();
}

static Value pickNearest(TensorBuilder &b, const Resampling &r, Value data,
                         ArrayRef<Axis> axes) {
  Sizes sizes = b.dims(data);
  int64_t rank = sizes.size();
  SmallVector<int64_t> dims;
  SmallVector<Value> tables;
  SmallVector<AffineMap> maps;
  for (const Axis &axis : axes) {
    dims.push_back(axis.dim);
    tables.push_back(createNearestTable(b, r, axis));
    maps.push_back(b.dimsMap(rank, {axis.dim}));
    sizes[axis.dim] = axis.outputSize;
  }
  if (!r.crops())
    return pickAlong(b, data, dims, tables, sizes);
  Type element = elementTypeOf(data);
  return b
      .elementwise(
          sizes, tables, maps, {element},
          [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
            SmallVector<Value> at;
            for (int64_t dim = 0; dim < rank; ++dim)
              at.push_back(linalg::IndexOp::create(s, dim));
            Value outside;
            for (auto [axis, index] : llvm::zip_equal(axes, args)) {
              Value none = s.integer(index.getType(), 0);
              Value here = s.compare(arith::CmpIPredicate::slt, index, none);
              outside = outside ? arith::OrIOp::create(s, outside, here) : here;
              at[axis.dim] =
                  s.convert(s.maximum(index, none), s.getIndexType());
            }
            return {s.select(outside, s.scalar(element, r.extrapolation),
                             s.extract(data, at))};
          })
      .front();
}

std::optional<int64_t> resize::getWholeScale(const Number &scale) {
  constexpr double kMost = 1 << 20;
  if (!scale.known || *scale.known < 1 || *scale.known > kMost ||
      *scale.known != std::floor(*scale.known))
    return std::nullopt;
  return static_cast<int64_t>(*scale.known);
}

/// The nearest position to that of element `at` of the output, which may lie
/// outside; by coordinates that need nothing but the scale.
static double getNearest(const Resampling &r, double scale, int64_t at) {
  const double x =
      r.coordinates == "asymmetric" ? at / scale : (at + 0.5) / scale - 0.5;
  if (r.nearest == "floor")
    return std::floor(x);
  if (r.nearest == "ceil")
    return std::ceil(x);
  return r.nearest == "round_prefer_ceil" ? std::floor(x + 0.5)
                                          : std::ceil(x - 0.5);
}

std::optional<int64_t> resize::getWholeShrink(const Number &scale) {
  int exponent;
  if (!scale.known || *scale.known >= 1 || *scale.known < 1. / (1 << 20) ||
      std::frexp(*scale.known, &exponent) != 0.5)
    return std::nullopt;
  return int64_t(1) << (1 - exponent);
}

/// How often each element along `axis` is repeated, where that is what the
/// nearest ones come to. Coordinates of these kinds advance by 1 with each
/// `scale` positions, so a few tell of all.
static std::optional<int64_t> getRepeats(const Resampling &r,
                                         const Axis &axis) {
  std::optional<int64_t> repeats = getWholeScale(axis.scale);
  if (!repeats || *repeats < 2 ||
      !(r.coordinates == "asymmetric" || r.coordinates == "half_pixel" ||
        r.coordinates == "pytorch_half_pixel"))
    return std::nullopt;
  std::optional<int64_t> input = getStaticSize(axis.inputSize),
                         output = getStaticSize(axis.outputSize);
  if (input.has_value() != output.has_value() ||
      (input && *input * *repeats != *output))
    return std::nullopt;
  for (int64_t at = 0; at < 2 * *repeats; ++at)
    if (std::max<int64_t>(getNearest(r, *repeats, at), 0) != at / *repeats)
      return std::nullopt;
  return repeats;
}

namespace {
/// Every so many elements, from the first one on.
struct Stride {
  int64_t first, step;
};
} // namespace

/// What the nearest elements along `axis` come to where they are equally far
/// from each other, and all in the input.
static std::optional<Stride> getStride(const Resampling &r, const Axis &axis) {
  // A single element of the output is another case of pytorch_half_pixel.
  if (!axis.scale.known || *axis.scale.known > 0.5 ||
      (r.coordinates != "asymmetric" && r.coordinates != "half_pixel"))
    return std::nullopt;
  const double scale = *axis.scale.known;
  const auto first = static_cast<int64_t>(getNearest(r, scale, 0));
  const Stride stride{first,
                      static_cast<int64_t>(getNearest(r, scale, 1)) - first};
  std::optional<int64_t> input = getStaticSize(axis.inputSize),
                         output = getStaticSize(axis.outputSize);
  if (stride.first < 0 || stride.step < 2)
    return std::nullopt;
  // The output has as many elements as whole steps fit into the input.
  if (!input)
    return getWholeShrink(axis.scale) == stride.step &&
                   stride.first < stride.step
               ? std::optional(stride)
               : std::nullopt;
  if (!output)
    return std::nullopt;
  for (int64_t at = 0; at < *output; ++at) {
    const double nearest = getNearest(r, scale, at);
    if (nearest != stride.first + at * stride.step || nearest >= *input)
      return std::nullopt;
  }
  return stride;
}

static Value pickStrided(TensorBuilder &b, Value data, ArrayRef<Axis> axes,
                         ArrayRef<Stride> strides) {
  Sizes sizes = b.dims(data);
  SmallVector<AffineExpr> read;
  for (int64_t dim = 0, rank = sizes.size(); dim < rank; ++dim)
    read.push_back(b.getAffineDimExpr(dim));
  for (auto [axis, stride] : llvm::zip_equal(axes, strides)) {
    sizes[axis.dim] = axis.outputSize;
    read[axis.dim] = read[axis.dim] * stride.step + stride.first;
  }
  const AffineMap map = AffineMap::get(sizes.size(), 0, read, b.getContext());
  return b
      .elementwise(sizes, {data}, {map}, {elementTypeOf(data)},
                   [](TensorBuilder &, ValueRange args) {
                     return SmallVector<Value>{args.front()};
                   })
      .front();
}

/// The tensor with each element along the axes so often, as a dimension behind
/// the axis, which then becomes one with it.
static Value repeatElements(TensorBuilder &b, Value data, ArrayRef<Axis> axes,
                            ArrayRef<int64_t> repeats) {
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> read;
  Sizes sizes;
  for (auto [dim, size] : llvm::enumerate(b.dims(data))) {
    const int64_t first = sizes.size();
    read.push_back(first);
    sizes.push_back(size);
    for (auto [axis, count] : llvm::zip_equal(axes, repeats))
      if (axis.dim == int64_t(dim))
        sizes.push_back(b.size(count));
    appendGroup(groups, first, int64_t(sizes.size()) - first);
  }
  const AffineMap map = b.dimsMap(sizes.size(), read);
  Value repeated = b.elementwise(sizes, {data}, {map}, {elementTypeOf(data)},
                                 [](TensorBuilder &, ValueRange args) {
                                   return SmallVector<Value>{args.front()};
                                 })
                       .front();
  return b.collapse(repeated, groups);
}

Value resize::createNearest(TensorBuilder &b, const Resampling &r, Value data,
                            ArrayRef<Axis> all) {
  // Fewer elements are repeated where other axes come first.
  SmallVector<Axis> axes, repeated;
  SmallVector<int64_t> repeats;
  for (const Axis &axis : all) {
    std::optional<int64_t> count = getRepeats(r, axis);
    (count ? repeated : axes).push_back(axis);
    if (count)
      repeats.push_back(*count);
  }
  SmallVector<Stride> strides;
  for (const Axis &axis : axes)
    if (std::optional<Stride> stride = getStride(r, axis))
      strides.push_back(*stride);
  if (strides.size() < axes.size())
    data = pickNearest(b, r, data, axes);
  else if (!axes.empty())
    data = pickStrided(b, data, axes, strides);
  return repeated.empty() ? data : repeatElements(b, data, repeated, repeats);
}

//===----------------------------------------------------------------------===//
// Linear and cubic
//===----------------------------------------------------------------------===//

/// The filter at a distance (f64) from its centre.
static Value createFilter(TensorBuilder &s, const Resampling &r,
                          Value distance) {
  Type f64 = s.getF64Type();
  auto number = [&](double value) { return s.scalar(f64, value); };
  Value x = math::AbsFOp::create(s, distance);
  if (r.mode == "linear")
    return s.maximum(s.sub(number(1), x), number(0));
  double a = r.cubicA;
  Value near =
      s.add(s.mul(s.mul(s.sub(s.mul(number(a + 2), x), number(a + 3)), x), x),
            number(1));
  Value far = s.mul(s.add(s.mul(s.sub(x, number(5)), x), number(8)), x);
  far = s.mul(number(a), s.sub(far, number(4)));
  Value tail = s.select(s.greater(number(2), x), far, number(0));
  return s.select(s.greater(x, number(1)), tail, near);
}

namespace {
struct Tables {
  Value positions, weights;
};
} // namespace

/// How many input positions an output position reads.
static OpFoldResult getTapCount(TensorBuilder &b, const Resampling &r,
                                const Number &shrink) {
  if (!r.antialias)
    return b.size(2 * r.support());
  // 2 - 2 * (floor(-support / shrink) + 1) = 2 * ceil(support / shrink)
  Number reach = divide(b, {r.support(), Value()}, shrink);
  if (reach.known)
    return b.size(2 * std::ceil(*reach.known));
  Value whole = math::CeilOp::create(b, reach.get(b));
  return b.times(floorToSize(b, {std::nullopt, whole}, 0), 2);
}

/// Divides each row of the weights by its sum.
static Value normalizeRows(TensorBuilder &b, Value weights) {
  Type type = elementTypeOf(weights);
  Value sums =
      b.generic(weights, b.zeros({b.dim(weights, 0)}, type),
                {b.identityMap(2), b.dimsMap(2, {0})},
                {utils::IteratorType::parallel, utils::IteratorType::reduction},
                [](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                  return {s.add(args[1], args[0])};
                })
          .front();
  return b
      .elementwise(
          b.dims(weights), {weights, sums},
          {b.identityMap(2), b.dimsMap(2, {0})}, {type},
          [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
            Value none = arith::CmpFOp::create(s, arith::CmpFPredicate::OEQ,
                                               args[1], s.zero(type));
            Value sum = s.select(none, s.scalar(type, 1), args[1]);
            return {arith::DivFOp::create(s, args[0], sum)};
          })
      .front();
}

static Tables createTables(TensorBuilder &b, const Resampling &r,
                           const Axis &axis, Type type) {
  // An antialiasing filter is stretched when shrinking.
  Number shrink =
      r.antialias ? extremum(b, axis.scale, {1.0, Value()}, /*larger=*/false)
                  : Number{1.0, Value()};
  OpFoldResult taps = getTapCount(b, r, shrink);
  Type f64 = b.getF64Type();
  SmallVector<Value> tables = b.elementwise(
      {axis.outputSize, taps}, {}, {}, {b.getI64Type(), type},
      [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
        Value x = createCoordinate(s, r, axis, createPositionAsFloat(s, 0));
        Value tap = createPositionAsFloat(s, 1);
        // Half of the taps, less one, lie below floor(x).
        Value below =
            toNumber(s, s.plus(s.floorDiv(taps, s.size(2)), -1)).get(s);
        Value position = s.add(math::FloorOp::create(s, x), s.sub(tap, below));
        Value distance = s.mul(s.sub(position, x), shrink.get(s));
        Value weight = createFilter(s, r, distance);
        Value zero = s.scalar(f64, 0);
        if (r.excludeOutside)
          weight = s.select(isOutside(s, axis, position), zero, weight);
        return {clampToInput(s, axis, position), s.convert(weight, type)};
      });
  Tables result{tables[0], tables[1]};
  if (r.antialias || r.excludeOutside)
    result.weights = normalizeRows(b, result.weights);
  return result;
}

Value resize::createInterpolation(TensorBuilder &b, const Resampling &r,
                                  Value data, const Axis &axis) {
  Type type = elementTypeOf(data);
  Tables tables = createTables(b, r, axis, type);
  Sizes sizes = b.dims(data);
  sizes[axis.dim] = axis.outputSize;
  int64_t rank = sizes.size();
  AffineMap table = b.dimsMap(rank + 1, {axis.dim, rank});
  SmallVector<utils::IteratorType> iterators(rank + 1,
                                             utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  Value result =
      b.generic(
           {tables.positions, tables.weights}, b.zeros(sizes, type),
           {table, table,
            b.dimsMap(rank + 1, llvm::to_vector(llvm::seq<int64_t>(rank)))},
           iterators,
           [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
             SmallVector<Value> at;
             for (int64_t dim = 0; dim < rank; ++dim)
               at.push_back(dim == axis.dim
                                ? s.convert(args[0], s.getIndexType())
                                : Value(linalg::IndexOp::create(s, dim)));
             Value value = s.mul(args[1], s.extract(data, at));
             return {s.add(args[2], value)};
           })
          .front();
  if (!r.crops())
    return result;
  // Elements outside of the crop take the extrapolation value.
  return b.map(result, type,
               [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                 Value x = createCoordinate(s, r, axis,
                                            createPositionAsFloat(s, axis.dim));
                 return {s.select(isOutside(s, axis, x),
                                  s.scalar(type, r.extrapolation), args[0])};
               });
}
