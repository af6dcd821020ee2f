//===- Resize.cpp - Resize ------------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Resampling is separable. For each resized axis small tables say, for each
// output position, which input positions it reads and with which weights; the
// data is then gathered with them, axis by axis (all axes at once for
// "nearest"). Tables come from coordinates in f64, as the specification's
// formulas round differently in f32.
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Patterns.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace sardonyx {
namespace {

/// A number that is known when compiling, or a host value of type f64.
struct Number {
  std::optional<double> known;
  Value value;

  Value get(TensorBuilder &b) const {
    return known ? b.scalar(b.getF64Type(), *known) : value;
  }
};

/// One resized axis.
struct Axis {
  int64_t dim;
  OpFoldResult inputSize, outputSize;
  Number scale, roiBegin, roiEnd;
};

/// The attributes.
struct Resampling {
  StringRef mode, coordinates, nearest;
  double cubicA, extrapolation;
  bool antialias, excludeOutside;
  bool crops() const { return coordinates == "tf_crop_and_resize"; }
  /// Input positions on either side of a coordinate that have a weight.
  double support() const { return mode == "cubic" ? 2 : 1; }
};

Number toNumber(TensorBuilder &b, OpFoldResult size) {
  if (std::optional<int64_t> known = getStaticSize(size))
    return {static_cast<double>(*known), Value()};
  return {std::nullopt, b.convert(b.index(size), b.getF64Type())};
}

Number divide(TensorBuilder &b, Number x, Number y) {
  if (x.known && y.known && *y.known != 0)
    return {*x.known / *y.known, Value()};
  return {std::nullopt, arith::DivFOp::create(b, x.get(b), y.get(b))};
}

Number multiply(TensorBuilder &b, Number x, Number y) {
  if (x.known && y.known)
    return {*x.known * *y.known, Value()};
  return {std::nullopt, b.mul(x.get(b), y.get(b))};
}

Number extremum(TensorBuilder &b, Number x, Number y, bool larger) {
  if (x.known && y.known)
    return {larger ? std::max(*x.known, *y.known)
                   : std::min(*x.known, *y.known),
            Value()};
  return {std::nullopt, larger ? b.maximum(x.get(b), y.get(b))
                               : b.minimum(x.get(b), y.get(b))};
}

/// floor(x + offset) as a size that is not negative.
OpFoldResult floorToSize(TensorBuilder &b, Number x, double offset) {
  if (x.known && std::fabs(*x.known) < 1e12)
    return b.size(std::max<int64_t>(0, std::floor(*x.known + offset)));
  Value sum = b.add(x.get(b), b.scalar(b.getF64Type(), offset));
  Value whole = math::FloorOp::create(b, sum);
  Value integer = arith::FPToSIOp::create(b, b.getI64Type(), whole);
  return b.atLeast(b.convert(integer, b.getIndexType()), 0);
}

/// The elements of a small float tensor of rank 1; fails when there are not
/// `count`.
FailureOr<SmallVector<Number>> getNumbers(TensorBuilder &b, Value original,
                                          Value converted, int64_t count,
                                          StringRef name) {
  if (failed(checkLength(b, b.getLoc(), converted, count, name)))
    return failure();
  SmallVector<Number> result;
  std::optional<SmallVector<double>> known = getConstantFloats(original);
  for (int64_t i = 0; i < count; ++i) {
    if (known) {
      result.push_back({(*known)[i], Value()});
      continue;
    }
    Value element = b.extract(converted, b.index(i));
    result.push_back({std::nullopt, b.convert(element, b.getF64Type())});
  }
  return result;
}

/// floor(size * scale), the product being one of f32 as where types are
/// inferred: 10 * 0.7 is 7.
OpFoldResult scaleSize(TensorBuilder &b, OpFoldResult size,
                       const Number &scale) {
  Number number = toNumber(b, size);
  if (number.known && scale.known)
    return floorToSize(
        b,
        {static_cast<float>(*number.known) * static_cast<float>(*scale.known),
         Value()},
        0);
  Type f32 = b.getF32Type();
  Value product =
      b.mul(b.convert(number.get(b), f32), b.convert(scale.get(b), f32));
  return floorToSize(b, {std::nullopt, b.convert(product, b.getF64Type())}, 0);
}

/// The check that where the first size is 0 the second is too; fails when it is
/// known not to be.
LogicalResult checkEmptiness(TensorBuilder &b, OpFoldResult first,
                             OpFoldResult second) {
  std::optional<int64_t> x = getStaticSize(first), y = getStaticSize(second);
  if ((x && *x > 0) || y == 0)
    return success();
  if (x && y)
    return failure();
  Value zero = b.index(int64_t(0));
  Value some = b.compare(arith::CmpIPredicate::sgt, b.index(first), zero);
  Value none = b.compare(arith::CmpIPredicate::eq, b.index(second), zero);
  createCheck(b, b.getLoc(), arith::OrIOp::create(b, some, none),
              "an empty dimension stays empty, and no other becomes so: sizes "
              "{0} and {1}",
              {first, second});
  return success();
}

/// A scale makes a size of a size: it is positive, and not so large that their
/// product leaves the integers.
LogicalResult checkScale(TensorBuilder &b, const Number &scale) {
  constexpr double most = double(int64_t(1) << 40), least = 1 / most;
  if (scale.known)
    return success(*scale.known >= least && *scale.known <= most);
  Type f64 = b.getF64Type();
  Value positive = b.greater(scale.value, b.scalar(f64, least));
  Value bounded = arith::CmpFOp::create(b, arith::CmpFPredicate::OLE,
                                        scale.value, b.scalar(f64, most));
  createCheck(b, b.getLoc(), arith::AndIOp::create(b, positive, bounded),
              "an element of input 'scales' is not positive, or impossible");
  return success();
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

/// The coordinate in the input of output position `at` (f64), inside a body.
Value createCoordinate(TensorBuilder &s, const Resampling &r, const Axis &axis,
                       Value at) {
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

Value createPositionAsFloat(TensorBuilder &s, int64_t dim) {
  Value at = linalg::IndexOp::create(s, dim);
  return s.convert(at, s.getF64Type());
}

/// Whether a coordinate lies outside of the input, for the crop mode.
Value isOutside(TensorBuilder &s, const Axis &axis, Value coordinate) {
  Type f64 = s.getF64Type();
  Value last = toNumber(s, s.plus(axis.inputSize, -1)).get(s);
  Value before = s.greater(s.scalar(f64, 0), coordinate);
  return arith::OrIOp::create(s, before, s.greater(coordinate, last));
}

/// An f64 whole number as an index within the input.
Value clampToInput(TensorBuilder &s, const Axis &axis, Value whole) {
  Value integer = arith::FPToSIOp::create(s, s.getI64Type(), whole);
  Value last = s.convert(s.index(s.plus(axis.inputSize, -1)), s.getI64Type());
  return s.maximum(s.minimum(integer, last), s.integer(s.getI64Type(), 0));
}

//===----------------------------------------------------------------------===//
// Nearest
//===----------------------------------------------------------------------===//

/// For each output position of an axis the input position, or -1 outside.
Value createNearestTable(TensorBuilder &b, const Resampling &r,
                         const Axis &axis) {
  Type i64 = b.getI64Type();
  return b
      .elementwise(
          {axis.outputSize}, {}, {}, {i64},
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
            Value index = clampToInput(s, axis, whole);
            if (r.crops())
              index =
                  s.select(isOutside(s, axis, x), s.integer(i64, -1), index);
            return {index};
          })
      .front();
}

Value createNearest(TensorBuilder &b, const Resampling &r, Value data,
                    ArrayRef<Axis> axes) {
  Sizes sizes = b.dims(data);
  int64_t rank = sizes.size();
  SmallVector<Value> tables;
  SmallVector<AffineMap> maps;
  for (const Axis &axis : axes) {
    tables.push_back(createNearestTable(b, r, axis));
    maps.push_back(b.dimsMap(rank, {axis.dim}));
    sizes[axis.dim] = axis.outputSize;
  }
  Type element = elementTypeOf(data);
  return b
      .elementwise(
          sizes, tables, maps, {element},
          [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
            SmallVector<Value> at;
            for (int64_t dim = 0; dim < rank; ++dim)
              at.push_back(linalg::IndexOp::create(s, dim));
            Value outside;
            Value none = s.integer(s.getI64Type(), 0);
            for (auto [axis, index] : llvm::zip_equal(axes, args)) {
              Value inside = index;
              if (r.crops()) {
                Value here = s.compare(arith::CmpIPredicate::slt, index, none);
                outside =
                    outside ? arith::OrIOp::create(s, outside, here) : here;
                inside = s.maximum(index, none);
              }
              at[axis.dim] = s.convert(inside, s.getIndexType());
            }
            Value value = s.extract(data, at);
            if (outside)
              value =
                  s.select(outside, s.scalar(element, r.extrapolation), value);
            return {value};
          })
      .front();
}

//===----------------------------------------------------------------------===//
// Linear and cubic
//===----------------------------------------------------------------------===//

/// The filter at a distance (f64) from its centre.
Value createFilter(TensorBuilder &s, const Resampling &r, Value distance) {
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

struct Tables {
  Value positions, weights;
};

/// How many input positions an output position reads.
OpFoldResult getTapCount(TensorBuilder &b, const Resampling &r,
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
Value normalizeRows(TensorBuilder &b, Value weights) {
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

Tables createTables(TensorBuilder &b, const Resampling &r, const Axis &axis,
                    Type type) {
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

/// Resamples one axis of `data`, whose element type is that of the weights.
Value createInterpolation(TensorBuilder &b, const Resampling &r, Value data,
                          const Axis &axis) {
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

//===----------------------------------------------------------------------===//
// The pattern
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>> getAxes(onnx::ResizeOp op, int64_t rank) {
  std::optional<ArrayRef<int64_t>> axes = op.getAxes();
  if (!axes || axes->empty())
    return llvm::to_vector(llvm::seq<int64_t>(rank));
  // In their own order, which is that of the scales.
  SmallVector<int64_t> result;
  for (int64_t axis : *axes) {
    FailureOr<int64_t> dim = normalizeAxis(axis, rank);
    if (failed(dim) || llvm::is_contained(result, *dim))
      return failure();
    result.push_back(*dim);
  }
  return result;
}

/// Gives the axes these sizes, and the scales that `policy` makes of them.
void setSizes(TensorBuilder &b, MutableArrayRef<Axis> axes,
              ArrayRef<OpFoldResult> wanted, StringRef policy) {
  for (auto [axis, size] : llvm::zip_equal(axes, wanted)) {
    axis.outputSize = b.atLeast(size, 0);
    axis.scale =
        divide(b, toNumber(b, axis.outputSize), toNumber(b, axis.inputSize));
  }
  if (policy != "not_larger" && policy != "not_smaller")
    return;
  Number scale = axes.front().scale;
  for (const Axis &axis : axes.drop_front())
    scale = extremum(b, scale, axis.scale, policy == "not_smaller");
  for (Axis &axis : axes) {
    axis.scale = scale;
    axis.outputSize =
        floorToSize(b, multiply(b, scale, toNumber(b, axis.inputSize)), 0.5);
  }
}

/// The resized axes with their sizes and scales. Those that keep everything
/// as it is are left out.
FailureOr<SmallVector<Axis>> getResizedAxes(Lowering<onnx::ResizeOp> &b,
                                            const Resampling &r) {
  Value data = b.in.getX();
  int64_t rank = rankedType(data).getRank();
  FailureOr<SmallVector<int64_t>> dims = getAxes(b.op, rank);
  if (failed(dims))
    return failure();
  int64_t count = dims->size();
  auto declared = getConvertedType(b.op.getY());
  // An inference that gave up half way leaves a shape without dimensions.
  if (declared && declared.getRank() != rank)
    return failure();
  auto hasElements = [&](Value value) {
    return value && !(rankedType(value).hasStaticShape() &&
                      rankedType(value).getNumElements() == 0);
  };
  bool bySizes = hasElements(b.in.getSizes());
  if (!bySizes && !hasElements(b.in.getScales()))
    return failure();
  if (r.crops() && !hasElements(b.in.getRoi()))
    return failure();

  SmallVector<Axis> axes;
  for (int64_t dim : *dims)
    axes.push_back({dim, b.dim(data, dim), OpFoldResult(), {}, {}, {}});
  if (bySizes) {
    FailureOr<Sizes> wanted =
        getIntListAsSizes(b, b.getLoc(), b.in.getSizes(), count, "sizes");
    if (failed(wanted))
      return failure();
    for (Size size : *wanted)
      if (failed(checkRange(b, b.getLoc(), size, 0, kMostSize,
                            "an element of input 'sizes' is impossible")))
        return failure();
    for (auto [axis, size] : llvm::zip_equal(axes, *wanted))
      if (failed(checkEmptiness(b, size, axis.inputSize)))
        return failure();
    setSizes(b, axes, *wanted, b.op.getKeepAspectRatioPolicy());
  } else {
    FailureOr<SmallVector<Number>> scales =
        getNumbers(b, b.op.getScales(), b.in.getScales(), count, "scales");
    if (failed(scales))
      return failure();
    for (auto [axis, scale] : llvm::zip_equal(axes, *scales)) {
      if (failed(checkScale(b, scale)))
        return failure();
      axis.scale = scale;
      axis.outputSize = scaleSize(b, axis.inputSize, scale);
    }
  }
  if (r.crops()) {
    FailureOr<SmallVector<Number>> roi =
        getNumbers(b, b.op.getRoi(), b.in.getRoi(), 2 * count, "roi");
    if (failed(roi))
      return failure();
    for (auto [i, axis] : llvm::enumerate(axes)) {
      axis.roiBegin = (*roi)[i];
      axis.roiEnd = (*roi)[count + i];
    }
  }
  Sizes sizes = b.dims(data);
  for (const Axis &axis : axes)
    sizes[axis.dim] = axis.outputSize;
  checkSizes(b, b.getLoc(), sizes, b.getF64Type());
  for (Axis &axis : axes) {
    if (!declared || declared.isDynamicDim(axis.dim))
      continue;
    // Where both are known they differ by rounding at most.
    OpFoldResult stated = b.size(declared.getDimSize(axis.dim));
    if (!getStaticSize(axis.outputSize))
      checkSameSize(b, b.getLoc(), axis.outputSize, stated,
                    "dimension " + Twine(axis.dim) +
                        " of a result does not have the size declared for it");
    axis.outputSize = stated;
  }
  llvm::erase_if(axes, [&](const Axis &axis) {
    bool same = isSameSize(axis.inputSize, axis.outputSize);
    bool unscaled = bySizes ? b.op.getKeepAspectRatioPolicy() == "stretch"
                            : axis.scale.known == 1.0;
    bool whole =
        !r.crops() || (axis.roiBegin.known == 0.0 && axis.roiEnd.known == 1.0);
    return same && whole && (unscaled || axis.scale.known == 1.0);
  });
  return axes;
}

LogicalResult lowerResize(Lowering<onnx::ResizeOp> &b) {
  Resampling r{b.op.getMode(),
               b.op.getCoordinateTransformationMode(),
               b.op.getNearestMode(),
               b.op.getCubicCoeffA().convertToFloat(),
               b.op.getExtrapolationValue().convertToFloat(),
               b.op.getAntialias() != 0,
               b.op.getExcludeOutside() != 0};
  if (isStringType(getOnnxElementType(b.op.getX())) && r.mode != "nearest")
    return b.refuseAlways("there is nothing between two strings");
  FailureOr<SmallVector<Axis>> axes = getResizedAxes(b, r);
  if (failed(axes))
    return b.refuse(
        "axes do not fit, or neither scales nor sizes (nor roi) given");
  Value data = b.in.getX();
  if (axes->empty())
    return b.replace(data);
  for (const Axis &axis : *axes)
    if (failed(checkEmptiness(b, axis.inputSize, axis.outputSize)))
      return b.refuse("nothing can be made of an empty dimension");
  if (r.mode == "nearest")
    return b.replace(createNearest(b, r, data, *axes));

  Type element = getOnnxElementType(b.op.getX());
  Type stored = elementTypeOf(data);
  Type compute = stored.isF64() ? stored : Type(b.getF32Type());
  if (isBoolType(element))
    return b.refuseAlways("booleans are not interpolated");
  Value value = b.convertElements(data, compute, isUnsignedType(element));
  for (const Axis &axis : *axes)
    value = createInterpolation(b, r, value, axis);
  if (stored != compute)
    value = createMapped(
        b, b.getLoc(), {{value, compute}}, {b.identityMap(b.rank(value))},
        b.dims(value), element,
        [&](OpBuilder &s, Location loc, ValueRange args) {
          return isa<IntegerType>(element)
                     ? requantize(s, loc, args[0], Value(), element)
                     : castScalar(s, loc, args[0], compute, element);
        });
  return b.replace(value);
}

} // namespace

void populateResizePatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::ResizeOp, lowerResize>(patterns, converter);
}

} // namespace sardonyx
