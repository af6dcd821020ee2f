//===- Unique.cpp - Each value once ---------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sorts the indices of all elements, or slices, by what is there. Those of
// equal ones lie together then, the first occurrence first: where one differs
// from that before it a group begins, and running sums number the groups.
//
//===----------------------------------------------------------------------===//

#include "Ordering/Sorting.h"
#include "Reduction/RunningSums.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RuntimeCalls.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The slices of [P, N, T] along its second dimension.
struct Slices {
  Value tensor;
  Type onnxType;

  bool isList(TensorBuilder &b) const {
    return getStaticSize(b.dim(tensor, 0)) == 1 &&
           getStaticSize(b.dim(tensor, 2)) == 1;
  }
  /// Whether the slice `x` comes before the slice `y`, element by element.
  Value isBefore(TensorBuilder &b, Value x, Value y) const;
};

Value Slices::isBefore(TensorBuilder &b, Value x, Value y) const {
  Value length = b.index(b.dim(tensor, 2));
  Value count = arith::MulIOp::create(b, b.index(b.dim(tensor, 0)), length);
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  Value zero = b.index(int64_t(0));
  // The first difference decides.
  Type types[] = {b.getIndexType(), b.getI1Type(), b.getI1Type()};
  auto op = scf::WhileOp::create(
      b, types, ValueRange{zero, no, no},
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value more = s.compare(arith::CmpIPredicate::slt, state[0], count);
        scf::ConditionOp::create(s, s.select(state[2], no, more), state);
      },
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value outer = arith::DivUIOp::create(s, state[0], length);
        Value inner = arith::RemUIOp::create(s, state[0], length);
        Value left = s.extract(tensor, {outer, x, inner});
        Value right = s.extract(tensor, {outer, y, inner});
        Value less = isLess(s, left, right, onnxType);
        Value more = isLess(s, right, left, onnxType);
        Value differ = arith::OrIOp::create(s, less, more);
        Value next = s.add(state[0], s.index(1));
        scf::YieldOp::create(s, ValueRange{next, less, differ});
      });
  return op.getResult(1);
}

/// The elements of a list that are chosen.
struct Chosen {
  /// How many there are up to each element.
  Value ranks;
  /// Where they are, in order; behind that many is anything.
  Value places;

  /// Those whose `flags`, a list of i64, are 1 and not 0.
  static Chosen find(TensorBuilder &b, Value flags);
};

Chosen Chosen::find(TensorBuilder &b, Value flags) {
  OpFoldResult size = b.dim(flags, 0);
  Type i64 = b.getI64Type();
  Value one = b.integer(i64, 1), room = b.index(size);
  Value ranks = sumUpToEach(b, flags);
  // What is not chosen has places of its own behind the others, so that no
  // element is written twice.
  auto write = [&](TensorBuilder &s, ValueRange i, ValueRange state) -> Values {
    Value isChosen =
        s.compare(arith::CmpIPredicate::eq, s.extract(flags, i), one);
    Value rank = s.convert(s.sub(s.extract(ranks, i), one), s.getIndexType());
    Value place = s.select(isChosen, rank, s.add(room, i.front()));
    return {put(s, s.convert(i.front(), i64), state.front(), place)};
  };
  Value places = runOnce(b, b.empty({b.times(size, 2)}, i64),
                         [&](TensorBuilder &s, ValueRange made) {
                           return nest(s, size, made, write);
                         })
                     .front();
  return {ranks, places};
}

/// The indices of all elements of a list, sorted.
Value sortList(TensorBuilder &b, const Slices &slices) {
  OpFoldResult size = b.dim(slices.tensor, 1);
  Value row = b.reshape(slices.tensor, {b.size(1), size});
  return onlyRow(b,
                 sortRows(b, row, size, slices.onnxType, /*largest=*/false)[1]);
}

/// The same of slices.
Value sortSlices(TensorBuilder &b, const Slices &slices) {
  OpFoldResult size = b.dim(slices.tensor, 1);
  Value count = b.index(size);
  auto compare = [&](TensorBuilder &s, ValueRange x, ValueRange y) {
    return orderByIndex(s, x, y, [&](ValueRange x, ValueRange y) {
      return slices.isBefore(s, s.convert(x[0], s.getIndexType()),
                             s.convert(y[0], s.getIndexType()));
    });
  };
  return runOnce(
             b, b.empty({size}, b.getI64Type()),
             [&](TensorBuilder &s, ValueRange heap) {
               Values all = loop(
                   s, s.index(int64_t(0)), count, heap,
                   [&](TensorBuilder &t, Value i, ValueRange heap) -> Values {
                     return {put(t, t.convert(i, t.getI64Type()), heap[0], i)};
                   });
               return HeapSort(compare).sort(s, count, all);
             })
      .front();
}

/// For each sorted slice whether it is another one than that before it.
Value findDifferences(TensorBuilder &b, const Slices &slices, Value sorted) {
  OpFoldResult size = b.dim(slices.tensor, 1);
  Type i64 = b.getI64Type();
  Value zero = b.index(int64_t(0)), one = b.index(1);
  auto differs = [&](TensorBuilder &s, Value j) {
    Value previous = s.maximum(s.sub(j, one), zero);
    Value x = s.convert(s.extract(sorted, previous), s.getIndexType());
    Value y = s.convert(s.extract(sorted, j), s.getIndexType());
    Value isLater =
        slices.isList(s)
            ? isLess(s, s.extract(slices.tensor, {zero, x, zero}),
                     s.extract(slices.tensor, {zero, y, zero}), slices.onnxType)
            : slices.isBefore(s, x, y);
    Value isFirst = s.compare(arith::CmpIPredicate::eq, j, zero);
    return s.convert(arith::OrIOp::create(s, isFirst, isLater), i64,
                     /*isUnsigned=*/true);
  };
  if (slices.isList(b))
    return createIndexed(b, b.getLoc(), {size}, i64,
                         [&](OpBuilder &builder, Location at, ValueRange i) {
                           TensorBuilder s(at, builder);
                           return differs(s, i.front());
                         });
  Value flags =
      forEachRow(b, b.empty({size, b.size(1)}, i64),
                 [&](TensorBuilder &s, Value j, ValueRange rows) -> Values {
                   return {put(s, differs(s, j), rows.front(), zero)};
                 })
          .front();
  return b.reshape(flags, {size});
}

/// The groups of equal slices.
struct Groups {
  /// The indices of all slices, sorted; where in there groups begin; the group
  /// of each slice.
  Value sorted;
  Chosen begins;
  Value ofSlice;
  Value number;

  static Groups find(TensorBuilder &b, const Slices &slices);
  /// The first slice of group `group`, and how many it has, both i64.
  Value first(TensorBuilder &b, Value group) const;
  Value count(TensorBuilder &b, Value group) const;
};

Groups Groups::find(TensorBuilder &b, const Slices &slices) {
  OpFoldResult size = b.dim(slices.tensor, 1);
  Type i64 = b.getI64Type();
  Value one = b.integer(i64, 1);
  Groups groups;
  groups.sorted =
      slices.isList(b) ? sortList(b, slices) : sortSlices(b, slices);
  groups.begins = Chosen::find(b, findDifferences(b, slices, groups.sorted));
  groups.number = lastSum(b, groups.begins.ranks);
  auto write = [&](TensorBuilder &s, ValueRange j, ValueRange state) -> Values {
    Value here = s.convert(s.extract(groups.sorted, j), s.getIndexType());
    Value group = s.sub(s.extract(groups.begins.ranks, j), one);
    return {put(s, group, state.front(), here)};
  };
  groups.ofSlice =
      runOnce(b, b.empty({size}, i64), [&](TensorBuilder &s, ValueRange made) {
        return nest(s, size, made, write);
      }).front();
  return groups;
}

Value Groups::first(TensorBuilder &b, Value group) const {
  Value begin = b.convert(b.extract(begins.places, group), b.getIndexType());
  return b.extract(sorted, begin);
}

Value Groups::count(TensorBuilder &b, Value group) const {
  Value next = b.add(group, b.index(1));
  Value all = b.convert(b.index(b.dim(sorted, 0)), b.getI64Type());
  Value isLast = b.compare(arith::CmpIPredicate::sge, next, number);
  Value end = b.select(isLast, all, b.extract(begins.places, next));
  return b.sub(end, b.extract(begins.places, group));
}

/// The order of groups by their first occurrences: the slices that are such.
Chosen orderByOccurrence(TensorBuilder &b, const Groups &groups) {
  Type i64 = b.getI64Type(), index = b.getIndexType();
  Value flags = createIndexed(
      b, b.getLoc(), b.dims(groups.ofSlice), i64,
      [&](OpBuilder &builder, Location at, ValueRange i) {
        TensorBuilder s(at, builder);
        Value group = s.convert(s.extract(groups.ofSlice, i), index);
        Value first = s.convert(groups.first(s, group), index);
        Value isFirst = s.compare(arith::CmpIPredicate::eq, first, i.front());
        return s.convert(isFirst, i64, /*isUnsigned=*/true);
      });
  return Chosen::find(b, flags);
}

/// What the operator has of the groups: their first slices and sizes, and of
/// each slice its group, all i64.
struct UniqueLists {
  Value first, counts, ofSlice;

  /// `number` of groups, as a size.
  static UniqueLists make(TensorBuilder &b, const Groups &groups,
                          OpFoldResult number, bool isSorted);
};

UniqueLists UniqueLists::make(TensorBuilder &b, const Groups &groups,
                              OpFoldResult number, bool isSorted) {
  Type i64 = b.getI64Type(), index = b.getIndexType();
  std::optional<Chosen> order;
  if (!isSorted)
    order = orderByOccurrence(b, groups);
  auto list = [&](ArrayRef<OpFoldResult> sizes,
                  function_ref<Value(TensorBuilder &, Value)> element) {
    return createIndexed(b, b.getLoc(), sizes, i64,
                         [&](OpBuilder &builder, Location at, ValueRange i) {
                           TensorBuilder s(at, builder);
                           return element(s, i.front());
                         });
  };
  auto groupOf = [&](TensorBuilder &s, Value i) {
    if (!order)
      return i;
    Value slice = s.convert(s.extract(order->places, i), index);
    return s.convert(s.extract(groups.ofSlice, slice), index);
  };
  UniqueLists lists;
  lists.first = list(number, [&](TensorBuilder &s, Value i) {
    return order ? s.extract(order->places, i) : groups.first(s, i);
  });
  lists.counts = list(number, [&](TensorBuilder &s, Value i) {
    return groups.count(s, groupOf(s, i));
  });
  lists.ofSlice = groups.ofSlice;
  if (order)
    lists.ofSlice =
        list(b.dims(groups.ofSlice), [&](TensorBuilder &s, Value i) {
          Value group = s.convert(s.extract(groups.ofSlice, i), index);
          Value first = s.convert(groups.first(s, group), index);
          return s.sub(s.extract(order->ranks, first), s.integer(i64, 1));
        });
  return lists;
}

/// Of no slices there are no groups.
LogicalResult replaceWithNothing(Lowering<onnx::UniqueOp> &b, Value input) {
  Value none = b.empty({b.size(0)}, b.getI64Type());
  Values results = {input};
  for (Value wanted :
       {Value(b.op.getIndices()), Value(b.op.getInverseIndices()),
        Value(b.op.getCounts())})
    if (wanted)
      results.push_back(none);
  return b.replace(results);
}

LogicalResult lowerUnique(Lowering<onnx::UniqueOp> &b) {
  Location loc = b.getLoc();
  Value input = b.in.getX();
  Sizes sizes = b.dims(input);
  int64_t axis = 0;
  if (b.op.getAxis()) {
    FailureOr<int64_t> normal = normalizeAxis(*b.op.getAxis(), sizes.size());
    if (failed(normal))
      return b.refuse("axis out of range");
    axis = *normal;
  } else {
    sizes = {b.product(sizes)};
    input = b.reshape(input, sizes);
  }
  ArrayRef<OpFoldResult> all(sizes);
  OpFoldResult outer = b.product(all.take_front(axis));
  OpFoldResult inner = b.product(all.drop_front(axis + 1));
  // Handles of strings say what is equal; which comes first, their ranks do.
  Type onnxType = getOnnxElementType(b.op.getX());
  Value keys = input;
  if (isStringType(onnxType)) {
    onnxType = b.getI64Type();
    keys = callRuntime(b, "sdx_rt_string_ranks", input, sizes, onnxType);
  }
  Value slices = b.reshape(keys, {outer, sizes[axis], inner});
  if (isEmptyBox(sizes[axis]))
    return replaceWithNothing(b, input);
  Groups groups = Groups::find(b, {slices, onnxType});
  Sizes made = sizes;
  made[axis] = groups.number;
  if (RankedTensorType declared = b.declared())
    made = refineSizes(b, made, declared);
  UniqueLists lists =
      UniqueLists::make(b, groups, made[axis], b.op.getSorted() != 0);
  Value result = createIndexed(
      b, loc, made, elementTypeOf(input),
      [&](OpBuilder &builder, Location at, ValueRange i) -> Value {
        TensorBuilder s(at, builder);
        SmallVector<Value> source(i);
        source[axis] =
            s.convert(s.extract(lists.first, i[axis]), s.getIndexType());
        return s.extract(input, source);
      });
  Values results = {result};
  if (b.op.getIndices())
    results.push_back(lists.first);
  if (b.op.getInverseIndices())
    results.push_back(lists.ofSlice);
  if (b.op.getCounts())
    results.push_back(lists.counts);
  return b.replace(results);
}

} // namespace

void populateUniquePatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::UniqueOp, lowerUnique>(patterns, converter);
}

} // namespace sardonyx
