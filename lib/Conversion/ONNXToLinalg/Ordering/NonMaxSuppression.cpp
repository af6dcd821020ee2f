//===- NonMaxSuppression.cpp - The best boxes that don't overlap ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each class of each batch is a row of its own: its candidates are sorted by
// their scores, then each is kept that overlaps none kept before.
//
//===----------------------------------------------------------------------===//

#include "Ordering/Sorting.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

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
  /// Whether two boxes of a batch overlap by more than `threshold` of their
  /// union.
  Value overlap(TensorBuilder &b, Value batch, Value first, Value second,
                Value threshold) const;
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

Value Boxes::overlap(TensorBuilder &b, Value batch, Value first, Value second,
                     Value threshold) const {
  Values x, y;
  for (Value part : parts) {
    x.push_back(b.extract(part, {batch, first}));
    y.push_back(b.extract(part, {batch, second}));
  }
  Value zero = b.zero(threshold.getType());
  Value result, common;
  auto require = [&](Value left, Value right) {
    Value holds = compareFloats(b, FloatPredicate::OGT, left, right);
    result = result ? arith::AndIOp::create(b, result, holds) : holds;
  };
  for (int64_t dim = 0; dim < 2; ++dim) {
    Value low = b.maximum(x[dim], y[dim]);
    Value high = b.minimum(x[dim + 2], y[dim + 2]);
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

  /// The scores and indices of the candidates, and how many there are.
  Values collect(TensorBuilder &b, Value batch, Value group,
                 ValueRange rows) const;
  /// Moves the indices that are kept to the front; and how many there are.
  Values keep(TensorBuilder &b, Value batch, Value candidates,
              Value indices) const;
};

Values Suppression::collect(TensorBuilder &b, Value batch, Value group,
                            ValueRange rows) const {
  Value zero = b.index(int64_t(0));
  Values state = {rows[0], rows[1], zero};
  return loop(b, zero, b.index(b.dim(scores, 2)), state,
              [&](TensorBuilder &s, Value i, ValueRange state) {
                Value score = s.extract(scores, {batch, group, i});
                auto add = [&](TensorBuilder &t) {
                  Value index = t.convert(i, t.getI64Type());
                  return Values{put(t, score, state[0], state[2]),
                                put(t, index, state[1], state[2]),
                                t.add(state[2], t.index(1))};
                };
                if (!scoreThreshold)
                  return add(s);
                Value passes = compareFloats(s, FloatPredicate::OGT, score,
                                             scoreThreshold);
                return when(s, passes, state, add);
              });
}

Values Suppression::keep(TensorBuilder &b, Value batch, Value candidates,
                         Value indices) const {
  Value zero = b.index(int64_t(0));
  Values state = {indices, zero};
  return loop(
      b, zero, candidates, state,
      [&](TensorBuilder &s, Value i, ValueRange state) {
        Value list = state[0], kept = state[1];
        Value room = s.compare(arith::CmpIPredicate::slt, kept, most);
        return when(s, room, state, [&](TensorBuilder &t) {
          Value stored = t.extract(list, i);
          Value box = t.convert(stored, t.getIndexType());
          Value covered =
              holdsForAny(t, zero, kept, [&](TensorBuilder &u, Value k) {
                Value other = u.convert(u.extract(list, k), u.getIndexType());
                return boxes.overlap(u, batch, box, other, iouThreshold);
              });
          Value isKept = arith::XOrIOp::create(
              t, covered, arith::ConstantOp::create(t, t.getBoolAttr(true)));
          return when(t, isKept, state, [&](TensorBuilder &u) {
            return Values{put(u, stored, list, kept), u.add(kept, u.index(1))};
          });
        });
      });
}

/// The kept indices of each row and their numbers.
Values selectBoxes(TensorBuilder &b, const Suppression &all) {
  Sizes sizes = b.dims(all.scores);
  OpFoldResult rows = b.times(sizes[0], sizes[1]);
  Value groups = b.index(sizes[1]);
  Values results = {b.empty({rows, sizes[2]}, b.getF32Type()),
                    b.empty({rows, sizes[2]}, b.getI64Type()),
                    b.empty({rows, b.size(1)}, b.getI64Type())};
  // Not a number comes last.
  auto isBetter = [](TensorBuilder &s, ValueRange x, ValueRange y) {
    return orderByIndex(s, x, y, [&](ValueRange x, ValueRange y) {
      Value isNumber = compareFloats(s, FloatPredicate::ORD, x[0], x[0]);
      Value greater = compareFloats(s, FloatPredicate::UGT, x[0], y[0]);
      return Value(arith::AndIOp::create(s, isNumber, greater));
    });
  };
  Values made = forEachRow(
      b, results, [&](TensorBuilder &s, Value row, ValueRange parts) {
        Value batch = arith::DivUIOp::create(s, row, groups);
        Value group = arith::RemUIOp::create(s, row, groups);
        Values found = all.collect(s, batch, group, parts);
        Value count = found.pop_back_val();
        found = Selection(isBetter).sort(s, count, found);
        Values kept = all.keep(s, batch, count, found[1]);
        Value number = s.convert(kept[1], s.getI64Type());
        return Values{found[0], kept[0],
                      put(s, number, parts[2], s.index(int64_t(0)))};
      });
  return {made[1], made[2]};
}

/// The list of [batch, class, box] of all rows. The host reads its length.
Value listSelected(TensorBuilder &b, Value indices, Value counts, Value groups,
                   RankedTensorType declared) {
  Type i64 = b.getI64Type();
  Value zero = b.index(int64_t(0)), one = b.index(1);
  Value rows = b.index(b.dim(indices, 0));
  auto addCount = [&](TensorBuilder &s, Value row, ValueRange sum) -> Values {
    return {s.add(sum[0], s.extract(counts, {row, zero}))};
  };
  Value total = runOnce(b, b.empty(b.size(1), i64),
                        [&](TensorBuilder &s, ValueRange made) -> Values {
                          Value none = s.integer(i64, 0);
                          Value sum =
                              loop(s, zero, rows, none, addCount).front();
                          return {put(s, sum, made.front(), zero)};
                        })
                    .front();
  total = b.convert(b.extract(total, zero), b.getIndexType());
  Sizes sizes = refineSizes(b, {Size(total), b.size(3)}, declared);
  if (isEmptyBox(sizes))
    return b.empty(sizes, i64);
  auto listRow = [&](TensorBuilder &s, Value row, ValueRange state) {
    Value batch = arith::DivUIOp::create(s, row, groups);
    Value group = arith::RemUIOp::create(s, row, groups);
    Value count = s.convert(s.extract(counts, {row, zero}), s.getIndexType());
    return loop(s, zero, count, state,
                [&](TensorBuilder &t, Value i, ValueRange state) {
                  Value list = state[0], place = state[1];
                  list = put(t, t.convert(batch, i64), list, {place, zero});
                  list = put(t, t.convert(group, i64), list, {place, one});
                  list = put(t, t.extract(indices, {row, i}), list,
                             {place, t.index(2)});
                  return Values{list, t.add(place, one)};
                });
  };
  return runOnce(b, b.empty(sizes, i64),
                 [&](TensorBuilder &s, ValueRange made) -> Values {
                   Values state = {made.front(), zero};
                   return {loop(s, zero, rows, state, listRow).front()};
                 })
      .front();
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
