//===- Unique.cpp - Each value once ---------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sorts the indices of all elements, or slices, by what is there. Those of
// equal ones lie together then, the first occurrence first.
//
//===----------------------------------------------------------------------===//

#include "Ordering/Sorting.h"
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

/// What a pass over the sorted indices gives: for each group of equal slices,
/// with room for as many as there are slices, its first occurrence and size;
/// the group of each slice; the number of groups.
struct Groups {
  Value first, counts, ofElement, number;
};

/// The indices of all slices, sorted.
Values sortSlices(TensorBuilder &b, const Slices &slices) {
  Value zero = b.index(int64_t(0));
  OpFoldResult size = b.dim(slices.tensor, 1);
  Value count = b.index(size);
  bool isList = slices.isList(b);
  auto compare = [&](TensorBuilder &s, ValueRange x, ValueRange y) {
    return orderByIndex(s, x, y, [&](ValueRange x, ValueRange y) -> Value {
      if (isList)
        return isLess(s, x[0], y[0], slices.onnxType);
      return slices.isBefore(s, s.convert(x[0], s.getIndexType()),
                             s.convert(y[0], s.getIndexType()));
    });
  };
  // Elements of a list are sorted with their indices, which is faster.
  Values heap;
  if (isList)
    heap.push_back(b.empty({size}, elementTypeOf(slices.tensor)));
  heap.push_back(b.empty({size}, b.getI64Type()));
  if (isEmptyBox(size))
    return heap;
  auto source = [&](TensorBuilder &s, Value i) {
    Values entry;
    if (isList)
      entry.push_back(s.extract(slices.tensor, {zero, i, zero}));
    entry.push_back(s.convert(i, s.getI64Type()));
    return entry;
  };
  return runOnce(b, heap, [&](TensorBuilder &s, ValueRange heap) {
    return Selection(compare).select(s, count, count, heap, source);
  });
}

/// Walks over the sorted slices. The host reads the number of groups, which is
/// a size.
Groups findGroups(TensorBuilder &b, const Slices &slices) {
  Value sorted = sortSlices(b, slices).back();
  OpFoldResult size = b.dim(slices.tensor, 1);
  Type i64 = b.getI64Type();
  Value zero = b.index(int64_t(0)), one = b.index(1);
  Value no = b.integer(i64, 0), single = b.integer(i64, 1);
  // `number` is of the groups so far: that of the current one is less by 1.
  auto walk = [&](TensorBuilder &s, Value j, ValueRange state) {
    Value index = s.extract(sorted, j);
    Value previous = s.maximum(s.sub(j, one), zero);
    Value before = s.convert(s.extract(sorted, previous), s.getIndexType());
    Value here = s.convert(index, s.getIndexType());
    Value isFirst = s.compare(arith::CmpIPredicate::eq, j, zero);
    Value differs = slices.isBefore(s, before, here);
    Value isNew = arith::OrIOp::create(s, isFirst, differs);
    Value number = s.select(isNew, s.add(state[3], one), state[3]);
    Value group = s.sub(number, one);
    Value first = s.select(isNew, index, s.extract(state[0], group));
    Value count = s.select(isNew, no, s.extract(state[1], group));
    return Values{put(s, first, state[0], group),
                  put(s, s.add(count, single), state[1], group),
                  put(s, s.convert(group, i64), state[2], here), number};
  };
  Values made = {b.empty({size}, i64), b.empty({size}, i64),
                 b.empty({size}, i64), b.empty({b.size(1)}, i64)};
  if (isEmptyBox(size))
    return {made[0], made[1], made[2], zero};
  made = runOnce(b, made, [&](TensorBuilder &s, ValueRange made) {
    Values state(made.drop_back());
    state.push_back(zero);
    state = loop(s, zero, s.index(size), state, walk);
    state[3] = put(s, s.convert(state[3], i64), made.back(), zero);
    return state;
  });
  Value number = b.convert(b.extract(made[3], zero), b.getIndexType());
  return {made[0], made[1], made[2], number};
}

/// The same groups in the order of their first occurrences.
Groups orderByOccurrence(TensorBuilder &b, const Groups &groups) {
  OpFoldResult size = b.dim(groups.first, 0);
  Type i64 = b.getI64Type(), index = b.getIndexType();
  Value zero = b.index(int64_t(0)), one = b.index(1);
  if (isEmptyBox(size))
    return groups;
  // New first occurrences and counts, new numbers by old ones, how many.
  auto walk = [&](TensorBuilder &s, Value i, ValueRange state) {
    Value group = s.convert(s.extract(groups.ofElement, i), index);
    Value first = s.extract(groups.first, group);
    Value isFirst =
        s.compare(arith::CmpIPredicate::eq, s.convert(first, index), i);
    return when(s, isFirst, state, [&](TensorBuilder &t) {
      Value count = t.extract(groups.counts, group);
      Value number = t.convert(state[3], i64);
      return Values{put(t, first, state[0], state[3]),
                    put(t, count, state[1], state[3]),
                    put(t, number, state[2], group), t.add(state[3], one)};
    });
  };
  Values state = {b.empty({size}, i64), b.empty({size}, i64),
                  b.empty({size}, i64)};
  state = runOnce(b, state, [&](TensorBuilder &s, ValueRange made) {
    Values state(made);
    state.push_back(zero);
    state = loop(s, zero, s.index(size), state, walk);
    state.pop_back();
    return state;
  });
  Value numbers = state[2];
  Value ofElement =
      b.map(groups.ofElement, i64, [&](TensorBuilder &s, ValueRange in) {
        Value group = s.convert(in[0], index);
        return Values{s.extract(numbers, group)};
      });
  return {state[0], state[1], ofElement, groups.number};
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
  Groups groups = findGroups(b, {slices, onnxType});
  if (!b.op.getSorted())
    groups = orderByOccurrence(b, groups);
  Sizes made = sizes;
  Value first = groups.first, counts = groups.counts;
  if (!isEmptyBox(sizes[axis])) {
    made[axis] = groups.number;
    if (RankedTensorType declared = b.declared())
      made = refineSizes(b, made, declared);
    first = slice(b, loc, first, {b.size(0)}, {made[axis]});
    counts = slice(b, loc, counts, {b.size(0)}, {made[axis]});
  }
  Value result = createIndexed(
      b, loc, made, elementTypeOf(input),
      [&](OpBuilder &builder, Location at, ValueRange i) -> Value {
        TensorBuilder s(at, builder);
        SmallVector<Value> source(i);
        source[axis] = s.convert(s.extract(first, i[axis]), s.getIndexType());
        return s.extract(input, source);
      });
  Values results = {result};
  if (b.op.getIndices())
    results.push_back(first);
  if (b.op.getInverseIndices())
    results.push_back(groups.ofElement);
  if (b.op.getCounts())
    results.push_back(counts);
  return b.replace(results);
}

} // namespace

void populateUniquePatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::UniqueOp, lowerUnique>(patterns, converter);
}

} // namespace sardonyx
