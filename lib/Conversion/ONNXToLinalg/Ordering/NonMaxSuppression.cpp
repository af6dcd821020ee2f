//===- NonMaxSuppression.cpp - The best boxes that don't overlap ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each class of each batch is a row of its own: its candidates are sorted by
// their scores, then each is kept that overlaps none kept before. Running sums
// of what is kept say where each row's part of the result begins.
//
//===----------------------------------------------------------------------===//

#include "Ordering/ElementKeys.h"
#include "Reduction/RunningSums.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"
#include "dialects/SDX/TaskLoops.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace sardonyx {
namespace {

using FloatPredicate = arith::CmpFPredicate;

Value compareFloats(TensorBuilder &b, FloatPredicate predicate, Value x,
                    Value y) {
  return arith::CmpFOp::create(b, predicate, x, y);
}

/// low and high coordinates of boxes in two dimensions, and their areas: each
/// [batches, boxes].
struct Boxes {
  Values parts; // low 0, low 1, high 0, high 1, area

  static Boxes of(TensorBuilder &b, Value boxes, bool fromCenter);
  /// The numbers of a box.
  Values at(TensorBuilder &b, Value batch, Value box) const;
};

Boxes Boxes::of(TensorBuilder &b, Value boxes, bool fromCenter) {
  Values columns;
  for (int64_t k = 0; k < 4; ++k)
    columns.push_back(b.subTensor(boxes, 2, b.size(k)));
  Type type = elementTypeOf(boxes);
  SmallVector<AffineMap> maps(4, b.identityMap(2));
  SmallVector<Type> types(5, type);
  auto body = [&](TensorBuilder &s, ValueRange in) {
    Values low, high;
    for (int64_t dim = 0; dim < 2; ++dim) {
      if (fromCenter) {
        Value half = arith::DivFOp::create(s, in[dim + 2], s.scalar(type, 2));
        low.push_back(s.sub(in[dim], half));
        high.push_back(s.add(in[dim], half));
      } else {
        low.push_back(s.minimum(in[dim], in[dim + 2]));
        high.push_back(s.maximum(in[dim], in[dim + 2]));
      }
    }
    Value area = s.mul(s.sub(high[0], low[0]), s.sub(high[1], low[1]));
    return Values{low[0], low[1], high[0], high[1], area};
  };
  return {b.elementwise({b.dim(boxes, 0), b.dim(boxes, 1)}, columns, maps,
                        types, body)};
}

Values Boxes::at(TensorBuilder &b, Value batch, Value box) const {
  Values numbers;
  for (Value part : parts)
    numbers.push_back(b.extract(part, {batch, box}));
  return numbers;
}

/// Whether two boxes, as such numbers, overlap by more than `threshold` of
/// their union.
Value overlap(TensorBuilder &b, ValueRange x, ValueRange y, Value threshold) {
  Value zero = b.zero(threshold.getType());
  Value result, common;
  auto require = [&](Value left, Value right) {
    Value holds = compareFloats(b, FloatPredicate::OGT, left, right);
    result = result ? arith::AndIOp::create(b, result, holds) : holds;
  };
  // A box with a coordinate that is not a number has no area that is more than
  // zero: which one of two is chosen does not matter there.
  auto choose = [&](FloatPredicate predicate, Value left, Value right) {
    return b.select(compareFloats(b, predicate, left, right), left, right);
  };
  for (int64_t dim = 0; dim < 2; ++dim) {
    Value low = choose(FloatPredicate::OGT, x[dim], y[dim]);
    Value high = choose(FloatPredicate::OLT, x[dim + 2], y[dim + 2]);
    require(high, low);
    Value length = b.sub(high, low);
    common = common ? b.mul(common, length) : length;
  }
  Value whole = b.sub(b.add(x[4], y[4]), common);
  require(common, zero);
  require(x[4], zero);
  require(y[4], zero);
  require(whole, zero);
  require(arith::DivFOp::create(b, common, whole), threshold);
  return result;
}

/// What all rows share.
struct Suppression {
  Boxes boxes;
  Value scores, most, iouThreshold, scoreThreshold;

  /// For each score a number that is lower the better it is; not a number,
  /// which comes last, for one that is not enough. [rows, boxes]
  Value findKeys(TensorBuilder &b) const;
  /// How many candidates each row has, i64. [rows]
  Value countCandidates(TensorBuilder &b, Value keys) const;
  ElementKeys getKeys(TensorBuilder &b) const {
    return ElementKeys(b.getF32Type(), /*largest=*/false,
                       getStaticSize(b.dim(scores, 2)));
  }
  /// Puts a row's candidates in `list`, as packed keys; how many there are.
  Value collect(TensorBuilder &b, Value keys, Value row, KeyList &list) const;
  /// The indices of each row's candidates, the best first. [rows, boxes]
  Value sortCandidates(TensorBuilder &b, Value keys) const;
  /// The candidates of a row that are kept, in the first of `lists`, with their
  /// numbers in the second, [numbers, boxes]; and how many there are.
  Values keep(TensorBuilder &b, Value row, Value count, Value sorted,
              ValueRange lists) const;
};

Value Suppression::findKeys(TensorBuilder &b) const {
  Sizes sizes = b.dims(scores);
  Value keys =
      b.map(scores, b.getF32Type(), [&](TensorBuilder &s, ValueRange in) {
        Value key = arith::NegFOp::create(s, in[0]);
        if (!scoreThreshold)
          return Values{key};
        Value passes =
            compareFloats(s, FloatPredicate::OGT, in[0], scoreThreshold);
        Value none =
            s.scalar(key.getType(), std::numeric_limits<double>::quiet_NaN());
        return Values{s.select(passes, key, none)};
      });
  return b.reshape(keys, {b.times(sizes[0], sizes[1]), sizes[2]});
}

Value Suppression::countCandidates(TensorBuilder &b, Value keys) const {
  Type i64 = b.getI64Type();
  Sizes sizes = b.dims(keys);
  if (!scoreThreshold)
    return b.filled(sizes[0], b.convert(b.index(sizes[1]), i64));
  return b
      .generic(
          keys, b.zeros(sizes[0], i64), {b.identityMap(2), b.dimsMap(2, {0})},
          {utils::IteratorType::parallel, utils::IteratorType::reduction},
          [&](TensorBuilder &s, ValueRange args) -> Values {
            Value is = compareFloats(s, FloatPredicate::ORD, args[0], args[0]);
            return {s.add(args[1], s.convert(is, i64, /*isUnsigned=*/true))};
          })
      .front();
}

Value Suppression::collect(TensorBuilder &b, Value keys, Value row,
                           KeyList &list) const {
  Value zero = b.index(int64_t(0)), extent = b.index(b.dim(keys, 1));
  ElementKeys elements = getKeys(b);
  Type type = elements.rankType(b);
  // Ranks first, which vectors compute.
  Value ranks =
      loop(b, zero, extent, b.empty({b.dim(keys, 1)}, type),
           [&](TensorBuilder &s, Value i, ValueRange ranks) -> Values {
             Value rank = elements.rank(s, s.extract(keys, {row, i}));
             return {put(s, rank, ranks.front(), i)};
           })
          .front();
  Value none = elements.rank(
      b, b.scalar(b.getF32Type(), std::numeric_limits<double>::quiet_NaN()));
  Values state(list.tensors());
  state.push_back(zero);
  // What is no candidate is written, too, and what comes next over it.
  state = loop(b, zero, extent, state,
               [&](TensorBuilder &s, Value i, ValueRange state) {
                 Value rank = s.extract(ranks, i), count = state.back();
                 KeyList here = list.with(state.drop_back());
                 here.put(s, count, elements.entry(s, rank, i));
                 Value next = s.add(count, s.index(1));
                 if (scoreThreshold) {
                   Value is = s.compare(arith::CmpIPredicate::ne, rank, none);
                   next = s.select(is, next, count);
                 }
                 Values made(here.tensors());
                 made.push_back(next);
                 return made;
               });
  Value count = state.pop_back_val();
  list = list.with(state);
  return count;
}

Value Suppression::sortCandidates(TensorBuilder &b, Value keys) const {
  Sizes sizes = b.dims(keys);
  ElementKeys elements = getKeys(b);
  Values sorted = {b.empty(sizes, b.getF32Type()),
                   b.empty(sizes, b.getI64Type())};
  sorted =
      forEachRow(b, sorted, [&](TensorBuilder &s, Value row, ValueRange parts) {
        KeyList list = elements.makeList(s, sizes[1]);
        Value count = collect(s, keys, row, list);
        list.sort(s, count);
        return loop(s, s.index(int64_t(0)), count, parts,
                    [&](TensorBuilder &t, Value i, ValueRange parts) -> Values {
                      Value index = elements.index(t, list.get(t, i));
                      Value at = t.convert(index, t.getIndexType());
                      return {put(t, t.extract(keys, {row, at}), parts[0], i),
                              put(t, index, parts[1], i)};
                    });
      });
  // Who sorts a whole row has the candidates first, too.
  if (auto loop = sorted.front().getDefiningOp<scf::ForallOp>())
    loop->setAttr(sdx::kTopKAttr, b.getStringAttr("smallest"));
  return sorted[1];
}

Values Suppression::keep(TensorBuilder &b, Value row, Value count, Value sorted,
                         ValueRange lists) const {
  Value zero = b.index(int64_t(0));
  Value batch = arith::DivUIOp::create(b, row, b.index(b.dim(scores, 1)));
  Values state(lists);
  state.push_back(zero);
  return loop(
      b, zero, count, state, [&](TensorBuilder &s, Value i, ValueRange state) {
        Value list = state[0], numbers = state[1], kept = state[2];
        Value room = s.compare(arith::CmpIPredicate::slt, kept, most);
        return when(s, room, state, [&](TensorBuilder &t) {
          Value stored = t.extract(sorted, {row, i});
          Values box = boxes.at(t, batch, t.convert(stored, t.getIndexType()));
          Value covered =
              holdsForAny(t, zero, kept, [&](TensorBuilder &u, Value k) {
                Values other;
                for (size_t part = 0; part < box.size(); ++part)
                  other.push_back(
                      u.extract(numbers, {u.index(int64_t(part)), k}));
                return overlap(u, box, other, iouThreshold);
              });
          Value isKept = arith::XOrIOp::create(
              t, covered, arith::ConstantOp::create(t, t.getBoolAttr(true)));
          return when(t, isKept, state, [&](TensorBuilder &u) {
            Value next = numbers;
            for (auto [part, number] : llvm::enumerate(box))
              next = put(u, number, next, {u.index(int64_t(part)), kept});
            return Values{put(u, stored, list, kept), next,
                          u.add(kept, u.index(1))};
          });
        });
      });
}

/// The kept indices of each row, [rows, boxes], and their numbers, [rows].
Values selectBoxes(TensorBuilder &b, const Suppression &all) {
  Value keys = all.findKeys(b);
  Value counts = all.countCandidates(b, keys);
  Value sorted = all.sortCandidates(b, keys);
  Sizes sizes = b.dims(keys);
  Values made = {b.empty({sizes[0], b.size(1)}, b.getI64Type()),
                 b.empty(sizes, b.getI64Type()),
                 b.empty({sizes[0], b.size(all.boxes.parts.size()), sizes[1]},
                         elementTypeOf(all.boxes.parts.front()))};
  made = forEachRow(
      b, made, [&](TensorBuilder &s, Value row, ValueRange parts) -> Values {
        Value count = s.convert(s.extract(counts, row), s.getIndexType());
        Values kept = all.keep(s, row, count, sorted, parts.drop_front());
        Value number = s.convert(kept.pop_back_val(), s.getI64Type());
        number = put(s, number, parts.front(), s.index(int64_t(0)));
        kept.insert(kept.begin(), number);
        return kept;
      });
  return {made[1], b.reshape(made[0], {sizes[0]})};
}

/// The row of which element number `at` of all rows' is: the first one up to
/// which there are more.
Value findRow(TensorBuilder &b, Value sums, Value at) {
  Value rows = b.index(b.dim(sums, 0)), one = b.index(1), two = b.index(2);
  Value wanted = b.convert(at, b.getI64Type());
  Value zeros =
      math::CountLeadingZerosOp::create(b, b.convert(rows, b.getI64Type()));
  Value steps = b.sub(b.index(64), b.convert(zeros, b.getIndexType()));
  Values range = {b.index(int64_t(0)), b.sub(rows, one)};
  return loop(b, range[0], steps, range,
              [&](TensorBuilder &s, Value, ValueRange range) -> Values {
                Value middle =
                    arith::DivUIOp::create(s, s.add(range[0], range[1]), two);
                Value isThere = s.compare(arith::CmpIPredicate::sgt,
                                          s.extract(sums, middle), wanted);
                return {s.select(isThere, range[0], s.add(middle, one)),
                        s.select(isThere, middle, range[1])};
              })[1];
}

/// The list of [batch, class, box] of all rows. The host reads its length.
Value listSelected(TensorBuilder &b, Value indices, Value counts, Value groups,
                   RankedTensorType declared) {
  Type i64 = b.getI64Type();
  Value sums = sumUpToEach(b, counts);
  Sizes sizes = refineSizes(b, {Size(lastSum(b, sums)), b.size(3)}, declared);
  if (isEmptyBox(sizes))
    return b.empty(sizes, i64);
  auto write = [&](TensorBuilder &s, Value at, ValueRange parts) -> Values {
    Value row = findRow(s, sums, at);
    Value before = s.sub(s.extract(sums, row), s.extract(counts, row));
    Value place = s.sub(at, s.convert(before, s.getIndexType()));
    Value batch = arith::DivUIOp::create(s, row, groups);
    Value group = arith::RemUIOp::create(s, row, groups);
    Value line = parts.front();
    line = put(s, s.convert(batch, i64), line, s.index(int64_t(0)));
    line = put(s, s.convert(group, i64), line, s.index(1));
    return {put(s, s.extract(indices, {row, place}), line, s.index(2))};
  };
  return forEachRow(b, b.empty(sizes, i64), write).front();
}

LogicalResult lowerNonMaxSuppression(Lowering<onnx::NonMaxSuppressionOp> &b) {
  Location loc = b.getLoc();
  Value boxes = b.in.getBoxes(), scores = b.in.getScores();
  if (b.rank(boxes) != 3 || b.rank(scores) != 3)
    return b.refuse("boxes and scores must have three dimensions");
  if (!b.sameSize(b.dim(boxes, 2), b.size(4), "boxes have four coordinates") ||
      !b.sameSize(b.dim(scores, 0), b.dim(boxes, 0),
                  "boxes and scores differ in the number of batches") ||
      !b.sameSize(b.dim(scores, 2), b.dim(boxes, 1),
                  "boxes and scores differ in the number of boxes"))
    return b.refuse("boxes and scores do not fit");
  int64_t format = b.op.getCenterPointBox();
  if (format != 0 && format != 1)
    return b.refuseAlways("center_point_box must be 0 or 1");
  if (isEmptyBox(b.dims(scores)))
    return b.replace(b.empty({b.size(0), b.size(3)}, b.getI64Type()));
  auto scalarOr = [&](Value given, Value otherwise) {
    return given ? getScalar(b, loc, given) : otherwise;
  };
  Type f32 = b.getF32Type();
  Value none = b.integer(b.getI64Type(), 0);
  Value most = scalarOr(b.in.getMaxOutputBoxesPerClass(), none);
  Suppression all = {Boxes::of(b, boxes, format == 1), scores,
                     toIndex(b, loc, most),
                     scalarOr(b.in.getIouThreshold(), b.zero(f32)),
                     scalarOr(b.in.getScoreThreshold(), Value())};
  Values selected = selectBoxes(b, all);
  return b.replace(listSelected(b, selected[0], selected[1],
                                b.index(b.dim(scores, 1)), b.declared()));
}

} // namespace

void populateNonMaxSuppressionPatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns) {
  addLowering<onnx::NonMaxSuppressionOp, lowerNonMaxSuppression>(patterns,
                                                                 converter);
}

} // namespace sardonyx
