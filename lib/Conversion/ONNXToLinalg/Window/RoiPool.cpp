//===- RoiPool.cpp - RoiAlign and MaxRoiPool ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// RoiAlign reads points between pixels: tables tell, for each point of a
// region's bins along one dimension, its neighbours and their weights. The
// channels of an image lie beside each other meanwhile, so that all of them are
// read at once. In MaxRoiPool each result is a loop of its own over the pixels
// of a bin.
//
//===----------------------------------------------------------------------===//

#include "Movement/Sampling.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"
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

/// How many points a bin has along one dimension, for each region: a tensor of
/// i64, and the largest of these; of a ratio the number.
struct PointCounts {
  Value ofRegion;
  OpFoldResult most;
};

/// One dimension of the regions' bins.
struct BinAxis {
  const Alignment &a;
  Value rois;
  int64_t from, to; // columns of `rois`
  OpFoldResult bins, size;
  Type type;

  BinPoints getPoints(TensorBuilder &s, Value region, Value bin) const {
    auto corner = [&](int64_t column) {
      return s.convert(s.extract(rois, {region, s.index(column)}), type);
    };
    return getBinPoints(s, a, corner(from), corner(to), bin, bins);
  }

  PointCounts countPoints(TensorBuilder &b) const {
    if (a.ratio > 0)
      return {Value(), b.size(a.ratio)};
    Type i64 = b.getI64Type();
    Value counts = b.elementwise({b.dim(rois, 0)}, {}, {}, {i64},
                                 [&](TensorBuilder &s, ValueRange) -> Values {
                                   Value region = linalg::IndexOp::create(s, 0);
                                   Value first = s.index(int64_t(0));
                                   return {s.convert(
                                       getPoints(s, region, first).count, i64)};
                                 })
                       .front();
    Value most = b.generic(counts, b.zeros({}, i64),
                           {b.identityMap(1), b.dimsMap(1, {})},
                           {utils::IteratorType::reduction},
                           [](TensorBuilder &s, ValueRange args) -> Values {
                             return {s.maximum(args[1], args[0])};
                           })
                     .front();
    Value known = b.convert(b.extract(most, {}), b.getIndexType());
    return {counts, OpFoldResult(known)};
  }

  /// For each point the two pixels beside it and their weights, [regions, bins,
  /// points]. The lower pixel of a point beyond the image is -1, that of what
  /// is no point of the bin -2.
  Values makeTables(TensorBuilder &b, const PointCounts &counts) const {
    Type i64 = b.getI64Type();
    return b.elementwise(
        {b.dim(rois, 0), bins, counts.most}, {}, {}, {i64, i64, type, type},
        [&](TensorBuilder &s, ValueRange) -> Values {
          Value region = linalg::IndexOp::create(s, 0);
          Value bin = linalg::IndexOp::create(s, 1);
          Value at = linalg::IndexOp::create(s, 2);
          BinPoints points = getPoints(s, region, bin);
          Neighbours n = getNeighbours(s, getBinPoint(s, points, at), size);
          Value low =
              s.select(n.inside, s.convert(n.low, i64), s.integer(i64, -1));
          Value isPoint =
              s.compare(arith::CmpIPredicate::slt, at, points.count);
          low = s.select(isPoint, low, s.integer(i64, -2));
          return {low, s.convert(n.high, i64), n.lowWeight, n.highWeight};
        });
  }
};

/// What a body reads of a table: the pixels, in the image even where there are
/// none, and whether the point is in the image or one at all.
struct TablePoint {
  Value low, high, lowWeight, highWeight, inside, isPoint;

  TablePoint(TensorBuilder &s, ValueRange entry) {
    Value zero = s.integer(s.getI64Type(), 0);
    low = s.convert(s.maximum(entry[0], zero), s.getIndexType());
    high = s.convert(entry[1], s.getIndexType());
    lowWeight = entry[2];
    highWeight = entry[3];
    inside = s.compare(arith::CmpIPredicate::sge, entry[0], zero);
    isPoint = s.compare(arith::CmpIPredicate::sge, entry[0],
                        s.integer(s.getI64Type(), -1));
  }
};

/// The value at a point of an image [images, rows, columns, channels].
Value createSample(TensorBuilder &s, const Alignment &a, Value data,
                   Value image, Value channel, const TablePoint &y,
                   const TablePoint &x) {
  Type type = y.lowWeight.getType();
  auto read = [&](Value row, Value column, Value p, Value q) {
    Value at[] = {image, row, column, channel};
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

/// The image of each region, checked to be one of `count`: i64.
Value checkImages(TensorBuilder &b, Value images, OpFoldResult count) {
  Type i64 = b.getI64Type();
  return b.map(images, i64, [&](TensorBuilder &s, ValueRange args) -> Values {
    Value image = toIndex(s, s.getLoc(), args[0]);
    return {s.convert(checkImage(s, image, s.index(count)), i64)};
  });
}

/// The sums, or the largest, of the points of each bin: [regions, rows,
/// columns, channels].
Value combinePoints(TensorBuilder &b, const Alignment &a, Value data,
                    Value images, const BinAxis &rows, const BinAxis &columns,
                    const PointCounts &rowPoints,
                    const PointCounts &columnPoints) {
  Type type = rows.type;
  Values inputs = rows.makeTables(b, rowPoints);
  llvm::append_range(inputs, columns.makeTables(b, columnPoints));
  inputs.push_back(checkImages(b, images, b.dim(data, 0)));
  SmallVector<AffineMap> maps(4, b.dimsMap(6, {0, 1, 4}));
  maps.append(4, b.dimsMap(6, {0, 2, 5}));
  maps.push_back(b.dimsMap(6, {0}));
  maps.push_back(b.dimsMap(6, {0, 1, 2, 3}));
  SmallVector<utils::IteratorType> iterators(6, utils::IteratorType::parallel);
  iterators[4] = iterators[5] = utils::IteratorType::reduction;
  Value init = a.average ? b.zero(type) : b.lowest(type, /*isUnsigned=*/false);
  Value empty = b.filled(
      {b.dim(rows.rois, 0), rows.bins, columns.bins, b.dim(data, 3)}, init);
  return b
      .generic(inputs, empty, maps, iterators,
               [&](TensorBuilder &s, ValueRange args) -> Values {
                 TablePoint y(s, args.take_front(4)), x(s, args.slice(4, 4));
                 Value image = s.convert(args[8], s.getIndexType());
                 Value channel = linalg::IndexOp::create(s, 3);
                 Value sample = createSample(s, a, data, image, channel, y, x);
                 Value total = args[9];
                 Value next = a.average ? s.add(total, sample)
                                        : s.maximum(total, sample);
                 if (a.ratio > 0)
                   return {next};
                 Value isPoint = arith::AndIOp::create(s, y.isPoint, x.isPoint);
                 return {s.select(isPoint, next, total)};
               })
      .front();
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
  Value channelsLast = b.transpose(data, {0, 2, 3, 1});
  BinAxis rows{a, rois, 1, 3, sizes[2], b.dim(data, 2), type};
  BinAxis columns{a, rois, 0, 2, sizes[3], b.dim(data, 3), type};
  PointCounts rowPoints = rows.countPoints(b);
  PointCounts columnPoints = columns.countPoints(b);
  Value totals = combinePoints(b, a, channelsLast, images, rows, columns,
                               rowPoints, columnPoints);
  Values inputs = {totals};
  SmallVector<AffineMap> maps = {b.identityMap(4)};
  if (a.ratio <= 0)
    for (Value counts : {rowPoints.ofRegion, columnPoints.ofRegion}) {
      inputs.push_back(counts);
      maps.push_back(b.dimsMap(4, {0}));
    }
  Value result =
      b.elementwise(
           b.dims(totals), inputs, maps, {stored},
           [&](TensorBuilder &s, ValueRange args) -> Values {
             Value total = args[0];
             Value count = s.integer(s.getI64Type(), a.ratio * a.ratio);
             if (a.ratio <= 0)
               count = s.mul(args[1], args[2]);
             Value one = s.integer(s.getI64Type(), 1);
             if (a.average)
               total = divide(s, total, s.convert(s.maximum(count, one), type));
             else if (a.ratio <= 0)
               total =
                   s.select(s.compare(arith::CmpIPredicate::sge, count, one),
                            total, s.zero(type));
             return {s.convert(total, stored)};
           })
          .front();
  return b.replace(b.transpose(result, {0, 3, 1, 2}));
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
