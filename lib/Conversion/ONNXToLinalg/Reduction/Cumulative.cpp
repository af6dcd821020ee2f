//===- Cumulative.cpp - CumSum, CumProd -----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Along a short axis, or one that only the run tells, an element of the result
// is reduced from the operand's elements before it: quadratic in the number of
// them, but parallel. A long axis is gone through once.
//
//===----------------------------------------------------------------------===//

#include "Reduction/ReductionKinds.h"
#include "Reduction/RunningSums.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"

#include "dialects/ONNX/ONNX.h"
#include "dialects/SDX/TaskLoops.h"

using namespace mlir;

namespace sardonyx {

namespace {

/// A longer axis is long.
constexpr int64_t kLong = 32;
/// Columns that are worth a range of their own.
constexpr int64_t kMinColumns = 64;

class CumulativeBuilder {
public:
  CumulativeBuilder(Type type, bool isProduct, bool exclusive, bool reverse)
      : type(type), isProduct(isProduct), exclusive(exclusive),
        reverse(reverse) {
    // Half precision is rounded once.
    accumulator = type.isF16() || type.isBF16()
                      ? Type(Float32Type::get(type.getContext()))
                      : type;
  }

  /// Along the axis for which `isAxis` (an i1 for each dimension) holds, whose
  /// size is `extent`.
  Value buildWhole(TensorBuilder &b, Value x, ArrayRef<Value> isAxis,
                   Value extent) {
    Value dest = createFilled(b, b.getLoc(), b.dims(x), neutral(b));
    return round(b, reduceBefore(b, x, dest, isAxis, extent));
  }

  /// By one pass along dimension `axis`: a task for each position of the
  /// dimensions before it and each range of those behind it.
  Value buildScan(TensorBuilder &b, Value x, int64_t axis) {
    Sizes sizes = b.dims(x);
    Size before = b.product(ArrayRef<Size>(sizes).take_front(axis));
    Size after = b.product(ArrayRef<Size>(sizes).drop_front(axis + 1));
    Size length = sizes[axis];
    x = b.reshape(x, {before, length, after});
    Value result =
        b.empty({before, length, after}, convertElementType(accumulator));
    if (!isEmptyBox(sizes))
      result = say(b, getStaticSize(after) == 1 ? scanRows(b, x, result)
                                                : scanColumns(b, x, result));
    return round(b, b.reshape(result, sizes));
  }

private:
  Value neutral(OpBuilder &b, Location loc) {
    return createIntConstant(b, loc, getComputeType(accumulator),
                             isProduct ? 1 : 0);
  }
  Value neutral(TensorBuilder &b) { return neutral(b, b.getLoc()); }

  Value combine(OpBuilder &b, Location loc, Value total, Value element) {
    element = castScalar(b, loc, element, type, accumulator);
    ScalarBuilder s(b, loc, accumulator);
    return isProduct ? s.mul(total, element) : s.add(total, element);
  }

  /// Says at the loop what it computes.
  Value say(TensorBuilder &b, Value result) {
    auto loop = result.getDefiningOp<scf::ForallOp>();
    if (!loop)
      return result;
    std::string words = isProduct ? "product" : "sum";
    if (exclusive)
      words += " exclusive";
    if (reverse)
      words += " reverse";
    loop->setAttr(sdx::kScanAttr, b.getStringAttr(words));
    return result;
  }

  /// Step `i` of `end` is at this place of the axis.
  Value placeOf(TensorBuilder &b, Value i, Value end) const {
    return reverse ? b.sub(b.sub(end, b.index(1)), i) : i;
  }

  /// A row at a time, its total so far in a register. All are [before,axis,1].
  Value scanRows(TensorBuilder &b, Value x, Value result) {
    Value end = b.index(b.dim(x, 1)), zero = b.index(int64_t(0));
    return forEachRow(
               b, result,
               [&](TensorBuilder &s, Value row, ValueRange rows) -> Values {
                 Values state = {rows.front(), neutral(s)};
                 state = nest(
                     s, b.dim(x, 1), state,
                     [&](TensorBuilder &t, ValueRange i,
                         ValueRange state) -> Values {
                       Value place = placeOf(t, i.front(), end);
                       Value element = t.extract(x, {row, place, zero});
                       Value next = add(t, state[1], element);
                       Value out = exclusive ? state[1] : next;
                       return {put(t, store(t, out), state[0], {place, zero}),
                               next};
                     });
                 return {state.front()};
               })
        .front();
  }

  /// A step of all columns at a time: a total is what the result has at the
  /// place before or, where only the run tells how far that is from the next
  /// one and whether vectors of the two overlap, in a row of its own. All are
  /// [before,axis,after].
  Value scanColumns(TensorBuilder &b, Value x, Value result) {
    Size length = b.dim(x, 1);
    Value end = b.index(length), one = b.index(1);
    Ranges ranges(b, b.dim(x, 2), kMinColumns, b.dim(x, 0));
    auto partOf = [&](TensorBuilder &s, ValueRange task, unsigned) {
      Value begin = ranges.begin(s, task[1]);
      return Part{{task[0], s.size(0), begin},
                  {s.size(1), length, ranges.size(s, begin)},
                  {0}};
    };
    auto scan = [&](TensorBuilder &s, ValueRange task, ValueRange parts) {
      Value begin = ranges.begin(s, task[1]), none = s.index(int64_t(0));
      Size columns = ranges.size(s, begin);
      auto read = [&](TensorBuilder &t, Value step, Value column) {
        return t.extract(
            x, {task[0], placeOf(t, step, end), t.add(begin, column)});
      };
      Value place = placeOf(s, none, end);
      const bool isApart = !getStaticSize(b.dim(x, 2));
      Values initial(parts);
      if (isApart)
        initial.push_back(s.empty({columns}, elementTypeOf(result)));
      auto putTotal = [&](TensorBuilder &t, Value total, ValueRange state,
                          Value at, Value column) {
        Values next = {put(t, total, state.front(), {at, column})};
        if (isApart)
          next.push_back(put(t, total, state.back(), column));
        return next;
      };
      // An axis may turn out to be empty.
      Value isEmpty = s.compare(arith::CmpIPredicate::eq, end, none);
      Values state =
          loop(s, none, s.select(isEmpty, none, s.index(columns)), initial,
               [&](TensorBuilder &t, Value j, ValueRange state) -> Values {
                 Value first = neutral(t);
                 if (!exclusive)
                   first = add(t, first, read(t, none, j));
                 return putTotal(t, store(t, first), state, place, j);
               });
      Values done = nest(
          s, {s.plus(length, -1), columns}, state,
          [&](TensorBuilder &t, ValueRange i, ValueRange state) -> Values {
            Value step = t.add(i[0], one);
            Value stored = isApart ? t.extract(state.back(), i[1])
                                   : t.extract(state.front(),
                                               {placeOf(t, i[0], end), i[1]});
            Value total = loadScalar(t, t.getLoc(), stored, accumulator);
            Value next = add(t, total, read(t, exclusive ? i[0] : step, i[1]));
            return putTotal(t, store(t, next), state, placeOf(t, step, end),
                            i[1]);
          });
      return Values{done.front()};
    };
    return forEachTask(b, {b.dim(x, 0), ranges.count()}, result, partOf, scan)
        .front();
  }

  /// A total with one more element, as stored in `x`.
  Value add(TensorBuilder &b, Value total, Value element) {
    return combine(b, b.getLoc(), total,
                   loadScalar(b, b.getLoc(), element, type));
  }
  Value store(TensorBuilder &b, Value total) {
    return storeScalar(b, b.getLoc(), total, accumulator);
  }

  /// The result's elements from those of `x` before them, beginning with
  /// `dest`.
  Value reduceBefore(TensorBuilder &b, Value x, Value dest,
                     ArrayRef<Value> isAxis, Value extent) {
    int64_t rank = isAxis.size();
    Value steps = createEmpty(b, b.getLoc(), {Size(extent)}, b.getI8Type());
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    iterators.push_back(utils::IteratorType::reduction);
    SmallVector<AffineExpr> outer;
    for (int64_t d = 0; d < rank; ++d)
      outer.push_back(b.getAffineDimExpr(d));
    SmallVector<AffineMap> maps = {
        AffineMap::get(rank + 1, 0, b.getAffineDimExpr(rank), b.getContext()),
        AffineMap::get(rank + 1, 0, outer, b.getContext())};
    auto generic = linalg::GenericOp::create(
        b, TypeRange{dest.getType()}, ValueRange{steps}, ValueRange{dest}, maps,
        iterators, [&](OpBuilder &n, Location at, ValueRange args) {
          Value step = linalg::IndexOp::create(n, at, rank);
          SmallVector<Value> position;
          Value here;
          for (int64_t d = 0; d < rank; ++d) {
            Value index = linalg::IndexOp::create(n, at, d);
            here = here ? n.createOrFold<arith::SelectOp>(at, isAxis[d], index,
                                                          here)
                        : index;
            position.push_back(
                n.createOrFold<arith::SelectOp>(at, isAxis[d], step, index));
          }
          auto predicate = reverse ? (exclusive ? arith::CmpIPredicate::sgt
                                                : arith::CmpIPredicate::sge)
                                   : (exclusive ? arith::CmpIPredicate::slt
                                                : arith::CmpIPredicate::sle);
          Value counts = arith::CmpIOp::create(n, at, predicate, step, here);
          Value element = tensor::ExtractOp::create(n, at, x, position);
          Value next =
              combine(n, at, args[1], loadScalar(n, at, element, type));
          ScalarBuilder s(n, at, accumulator);
          linalg::YieldOp::create(n, at, s.select(counts, next, args[1]));
        });
    return generic.getResult(0);
  }

  Value round(TensorBuilder &b, Value totals) {
    if (accumulator == type)
      return totals;
    Sizes sizes = b.dims(totals);
    return createMapped(
        b, b.getLoc(), {{totals, accumulator}},
        {b.getMultiDimIdentityMap(sizes.size())}, sizes, type,
        [](OpBuilder &, Location, ValueRange args) { return args.front(); });
  }

  Type type, accumulator;
  bool isProduct, exclusive, reverse;
};

/// An i1 for each dimension that says whether it is the axis, and the axis'
/// size.
std::pair<SmallVector<Value>, Value> findAxis(OpBuilder &b, Location loc,
                                              Value x, Value given) {
  Sizes sizes = getSizes(b, loc, x);
  int64_t rank = sizes.size();
  Value negative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         given, createIndex(b, loc, 0));
  Value wrapped =
      arith::AddIOp::create(b, loc, given, createIndex(b, loc, rank));
  Value axis = arith::SelectOp::create(b, loc, negative, wrapped, given);
  SmallVector<Value> isAxis;
  Value extent = createIndex(b, loc, 1), valid;
  for (int64_t d = 0; d < rank; ++d) {
    Value here = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                               axis, createIndex(b, loc, d));
    isAxis.push_back(here);
    valid = valid ? b.createOrFold<arith::OrIOp>(loc, valid, here) : here;
    extent = b.createOrFold<arith::SelectOp>(loc, here,
                                             asIndex(b, loc, sizes[d]), extent);
  }
  createCheck(b, loc, valid, "axis {0} is out of range", {Size(given)});
  return {isAxis, extent};
}

template <typename OpT, bool isProduct>
LogicalResult lowerCumulative(Lowering<OpT> &b) {
  Location loc = b.getLoc();
  Value x = b.in.getX();
  auto type = dyn_cast<RankedTensorType>(x.getType());
  if (!type || type.getRank() == 0)
    return b.refuse("the operand has no known axis");
  FailureOr<SmallVector<Value>> axes =
      getIntListAsIndices(b, loc, b.in.getAxis(), 1, "axis");
  if (failed(axes))
    return b.refuse("axis is not one number");
  CumulativeBuilder builder(getOnnxElementType(b.op.getX()), isProduct,
                            b.op.getExclusive(), b.op.getReverse());
  if (std::optional<int64_t> known = getStaticSize(Size(axes->front()))) {
    FailureOr<int64_t> axis = normalizeAxis(*known, type.getRank());
    if (failed(axis))
      return b.refuse("its axis is out of range");
    int64_t size = type.getDimSize(*axis);
    if (ShapedType::isDynamic(size) || size > kLong)
      return b.replace(builder.buildScan(b, x, *axis));
  }
  auto [isAxis, extent] = findAxis(b, loc, x, axes->front());
  return b.replace(builder.buildWhole(b, x, isAxis, extent));
}

} // namespace

Value sumUpToEach(TensorBuilder &b, Value list) {
  CumulativeBuilder sums(elementTypeOf(list), /*isProduct=*/false,
                         /*exclusive=*/false, /*reverse=*/false);
  return sums.buildScan(b, list, /*axis=*/0);
}

Value lastSum(TensorBuilder &b, Value sums) {
  Value size = b.index(b.dim(sums, 0)), zero = b.index(int64_t(0));
  Type type = elementTypeOf(sums);
  Value none = b.integer(type, 0);
  auto body = [&](TensorBuilder &s, ValueRange made) -> Values {
    Value some = s.compare(arith::CmpIPredicate::sgt, size, zero);
    Values last = when(s, some, none, [&](TensorBuilder &t) -> Values {
      return {t.extract(sums, t.sub(size, t.index(1)))};
    });
    return {put(s, last.front(), made.front(), zero)};
  };
  Value last = runOnce(b, b.empty({b.size(1)}, type), body).front();
  return b.convert(b.extract(last, zero), b.getIndexType());
}

void populateCumulativePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  addLowering<onnx::CumSumOp, lowerCumulative<onnx::CumSumOp, false>>(
      patterns, converter);
  addLowering<onnx::CumProdOp, lowerCumulative<onnx::CumProdOp, true>>(
      patterns, converter);
}

} // namespace sardonyx
