//===- RoiPool.cpp - RoiAlign and MaxRoiPool ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Data decide how many points a bin looks at, so that each result is a loop of
// its own over them.
//
//===----------------------------------------------------------------------===//

#include "Movement/Sampling.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

Value divide(TensorBuilder &s, Value x, Value y) {
  return arith::DivFOp::create(s, x, y);
}

/// Values in a loop over [from, to) that carries one scalar.
Value createLoop(
    TensorBuilder &s, Value from, Value to, Value init,
    function_ref<Value(TensorBuilder &, Value at, Value carried)> body) {
  auto loop = scf::ForOp::create(
      s, from, to, s.index(int64_t(1)), init,
      [&](OpBuilder &builder, Location loc, Value at, ValueRange carried) {
        TensorBuilder inner(loc, builder);
        scf::YieldOp::create(inner, body(inner, at, carried.front()));
      });
  return loop.getResult(0);
}

/// An image's number, checked to be one of `count`.
Value checkImage(TensorBuilder &s, Value given, Value count) {
  Value inside = s.compare(arith::CmpIPredicate::ult, given, count);
  createCheck(s, s.getLoc(), inside,
              "a region is in image {0}, and there are {1}",
              {OpFoldResult(given), OpFoldResult(count)});
  return s.select(inside, given, s.index(int64_t(0)));
}

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

struct Alignment {
  bool halfPixel, average;
  int64_t ratio;
  double scale;
};

/// The points of a region's bin in one dimension.
struct BinPoints {
  Value first, step, count;
};

/// The bin `at` of `bins` between two coordinates of the image.
BinPoints getBinPoints(TensorBuilder &s, const Alignment &a, Value begin,
                       Value end, Value at, OpFoldResult bins) {
  Type type = begin.getType();
  Value scale = s.scalar(type, a.scale);
  Value offset = s.scalar(type, a.halfPixel ? 0.5 : 0);
  begin = s.sub(s.mul(begin, scale), offset);
  Value extent = s.sub(s.sub(s.mul(end, scale), offset), begin);
  if (!a.halfPixel) // No region is smaller than a point.
    extent = s.maximum(extent, s.scalar(type, 1));
  Value size = divide(s, extent, s.convert(s.index(bins), type));
  Value count = s.index(a.ratio);
  if (a.ratio <= 0)
    count = clampToIndex(s, math::CeilOp::create(s, size), s.zero(type),
                         s.scalar(type, 0x1p31));
  Value first = s.add(begin, s.mul(s.convert(at, type), size));
  return {first, size, count};
}

Value getBinPoint(TensorBuilder &s, const BinPoints &points, Value at) {
  Type type = points.first.getType();
  Value middle = s.add(s.convert(at, type), s.scalar(type, 0.5));
  Value count = s.convert(points.count, type);
  return s.add(points.first, divide(s, s.mul(middle, points.step), count));
}

/// The neighbours of a coordinate and their weights.
struct Neighbours {
  Value low, high, lowWeight, highWeight, inside;
};

/// A point may lie beyond the image by one: the border reaches that far.
Neighbours getNeighbours(TensorBuilder &s, Value x, OpFoldResult size) {
  Type type = x.getType();
  Value zero = s.zero(type), one = s.scalar(type, 1);
  Value lastIndex = s.index(s.plus(size, -1));
  Value last = s.convert(lastIndex, type);
  auto within = [&](arith::CmpFPredicate predicate, Value bound) -> Value {
    return arith::CmpFOp::create(s, predicate, x, bound);
  };
  Neighbours n;
  n.inside = arith::AndIOp::create(
      s, within(arith::CmpFPredicate::OGE, s.scalar(type, -1)),
      within(arith::CmpFPredicate::OLE, s.convert(s.index(size), type)));
  x = s.select(s.greater(x, zero), x, zero);
  x = s.select(s.greater(x, last), last, x);
  n.low = clampToIndex(s, x, zero, last);
  n.high = s.minimum(s.add(n.low, s.index(int64_t(1))), lastIndex);
  n.highWeight = s.sub(x, s.convert(n.low, type));
  n.lowWeight = s.sub(one, n.highWeight);
  return n;
}

Value createSample(TensorBuilder &s, const Alignment &a, Value data,
                   Value image, Value channel, const Neighbours &y,
                   const Neighbours &x) {
  Type type = y.lowWeight.getType();
  auto read = [&](Value row, Value column, Value p, Value q) {
    Value at[] = {image, channel, row, column};
    return s.mul(s.mul(p, q), s.convert(s.extract(data, at), type));
  };
  // The largest is one of the weighted neighbours, not of interpolated values:
  // so the specification's own implementation has it.
  auto combine = [&](Value v, Value w) {
    return a.average ? s.add(v, w) : s.maximum(v, w);
  };
  Value upper = combine(read(y.low, x.low, y.lowWeight, x.lowWeight),
                        read(y.low, x.high, y.lowWeight, x.highWeight));
  Value lower = combine(read(y.high, x.low, y.highWeight, x.lowWeight),
                        read(y.high, x.high, y.highWeight, x.highWeight));
  Value inside = arith::AndIOp::create(s, y.inside, x.inside);
  return s.select(inside, combine(upper, lower), s.zero(type));
}

/// One result of RoiAlign: the average or the largest of a bin's samples.
Value createAligned(TensorBuilder &s, const Alignment &a, Value data,
                    Value image, Value channel, const BinPoints &rows,
                    const BinPoints &columns) {
  Type type = rows.first.getType();
  Value zero = s.index(int64_t(0));
  OpFoldResult height = s.dim(data, 2), width = s.dim(data, 3);
  Value init = a.average ? s.zero(type) : s.lowest(type, false);
  Value total = createLoop(
      s, zero, rows.count, init,
      [&](TensorBuilder &outer, Value iy, Value carried) {
        Neighbours y =
            getNeighbours(outer, getBinPoint(outer, rows, iy), height);
        return createLoop(
            outer, zero, columns.count, carried,
            [&](TensorBuilder &t, Value ix, Value sum) {
              Neighbours x =
                  getNeighbours(t, getBinPoint(t, columns, ix), width);
              Value sample = createSample(t, a, data, image, channel, y, x);
              return a.average ? t.add(sum, sample) : t.maximum(sum, sample);
            });
      });
  Value count = s.mul(rows.count, columns.count);
  if (a.average)
    return divide(s, total,
                  s.convert(s.maximum(count, s.index(int64_t(1))), type));
  Value some = s.compare(arith::CmpIPredicate::sgt, count, zero);
  return s.select(some, total, s.zero(type));
}

LogicalResult lowerRoiAlign(Lowering<onnx::RoiAlignOp> &b) {
  Value data = b.in.getX(), rois = b.in.getRois();
  Value images = b.in.getBatchIndices();
  if (b.rank(data) != 4 || b.rank(rois) != 2 || b.rank(images) != 1)
    return b.refuse("needs images, a matrix of regions and a list");
  StringRef mode = b.op.getMode();
  StringRef coordinates = b.op.getCoordinateTransformationMode();
  Alignment a{coordinates == "half_pixel", mode == "avg",
              b.op.getSamplingRatio(), b.op.getSpatialScale().convertToFloat()};
  int64_t height = b.op.getOutputHeight(), width = b.op.getOutputWidth();
  if (height < 0 || height > INT32_MAX || width < 0 || width > INT32_MAX ||
      a.ratio < 0 || a.ratio > INT32_MAX)
    return b.refuse("a size is impossible");
  if (failed(checkHasPoints(b, data, 2)))
    return b.refuse("the images are empty");
  if (!b.sameSize(b.dim(rois, 1), b.size(4),
                  "a region does not have four coordinates") ||
      !b.sameSize(b.dim(images, 0), b.dim(rois, 0),
                  "there is not an image for each region"))
    return b.refuse("regions and images do not fit");

  Sizes sizes{b.dim(rois, 0), b.dim(data, 1), b.size(height), b.size(width)};
  Type stored = elementTypeOf(data);
  checkSizes(b, b.getLoc(), sizes, stored);
  Type type = stored.isF64() ? stored : Type(b.getF32Type());
  Value result = createIndexed(
      b, b.getLoc(), sizes, stored,
      [&](OpBuilder &builder, Location at, ValueRange i) -> Value {
        TensorBuilder s(at, builder);
        auto corner = [&](int64_t column) {
          Value of[] = {i[0], s.index(column)};
          return s.convert(s.extract(rois, of), type);
        };
        Value image = toIndex(s, at, s.extract(images, i[0]));
        image = checkImage(s, image, s.index(s.dim(data, 0)));
        BinPoints rows =
            getBinPoints(s, a, corner(1), corner(3), i[2], sizes[2]);
        BinPoints columns =
            getBinPoints(s, a, corner(0), corner(2), i[3], sizes[3]);
        Value value = createAligned(s, a, data, image, i[1], rows, columns);
        return s.convert(value, stored);
      });
  return b.replace(result);
}

//===----------------------------------------------------------------------===//
// MaxRoiPool
//===----------------------------------------------------------------------===//

/// The points [begin, end) of a region's bin in one dimension, which reaches
/// from one coordinate to the other, both included.
std::pair<Value, Value> getBin(TensorBuilder &s, Value from, Value to, Value at,
                               OpFoldResult bins, OpFoldResult size) {
  Type type = from.getType();
  Value one = s.scalar(type, 1), zero = s.zero(type);
  Value extent = s.add(s.sub(to, from), one);
  extent = s.select(s.greater(extent, one), extent, one);
  Value step = divide(s, extent, s.convert(s.index(bins), type));
  Value bin = s.convert(at, type);
  Value begin = math::FloorOp::create(s, s.mul(bin, step));
  Value end = math::CeilOp::create(s, s.mul(s.add(bin, one), step));
  Value last = s.convert(s.index(size), type);
  return {clampToIndex(s, s.add(begin, from), zero, last),
          clampToIndex(s, s.add(end, from), zero, last)};
}

LogicalResult lowerMaxRoiPool(Lowering<onnx::MaxRoiPoolOp> &b) {
  Value data = b.in.getX(), rois = b.in.getRois();
  if (b.rank(data) != 4 || b.rank(rois) != 2)
    return b.refuse("needs images and a matrix of regions");
  ArrayRef<int64_t> pooled = b.op.getPooledShape();
  if (pooled.size() != 2 || llvm::any_of(pooled, [](int64_t size) {
        return size < 1 || size > INT32_MAX;
      }))
    return b.refuse("the pooled shape is impossible");
  if (!b.sameSize(b.dim(rois, 1), b.size(5),
                  "a region does not have an image and four coordinates"))
    return b.refuse("a region does not have an image and four coordinates");

  Sizes sizes{b.dim(rois, 0), b.dim(data, 1), b.size(pooled[0]),
              b.size(pooled[1])};
  Type stored = elementTypeOf(data);
  checkSizes(b, b.getLoc(), sizes, stored);
  Type type = stored.isF64() ? stored : Type(b.getF32Type());
  double scale = b.op.getSpatialScale().convertToFloat();
  Value result = createIndexed(
      b, b.getLoc(), sizes, stored,
      [&](OpBuilder &builder, Location at, ValueRange i) -> Value {
        TensorBuilder s(at, builder);
        auto read = [&](int64_t column) {
          Value of[] = {i[0], s.index(column)};
          return s.convert(s.extract(rois, of), type);
        };
        auto corner = [&](int64_t column) -> Value {
          Value x = s.mul(read(column), s.scalar(type, scale));
          return math::RoundOp::create(s, x);
        };
        Value bound = s.scalar(type, 0x1p31);
        Value image = clampToIndex(s, read(0), s.scalar(type, -1), bound);
        image = checkImage(s, image, s.index(s.dim(data, 0)));
        auto [top, bottom] =
            getBin(s, corner(2), corner(4), i[2], sizes[2], s.dim(data, 2));
        auto [left, right] =
            getBin(s, corner(1), corner(3), i[3], sizes[3], s.dim(data, 3));
        Value lowest = s.lowest(stored, /*isUnsigned=*/false);
        Value largest = createLoop(
            s, top, bottom, lowest,
            [&, left = left, right = right](TensorBuilder &outer, Value y,
                                            Value carried) {
              return createLoop(outer, left, right, carried,
                                [&](TensorBuilder &t, Value x, Value most) {
                                  Value of[] = {image, i[1], y, x};
                                  return t.maximum(most, t.extract(data, of));
                                });
            });
        auto isEmpty = [&](Value from, Value to) {
          return s.compare(arith::CmpIPredicate::sge, from, to);
        };
        Value none =
            arith::OrIOp::create(s, isEmpty(top, bottom), isEmpty(left, right));
        return s.select(none, s.zero(stored), largest);
      });
  return b.replace(result);
}

} // namespace

void populateRoiPoolPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  addLowering<onnx::RoiAlignOp, lowerRoiAlign>(patterns, converter);
  addLowering<onnx::MaxRoiPoolOp, lowerMaxRoiPool>(patterns, converter);
}

} // namespace sardonyx
