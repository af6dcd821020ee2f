//===- Sorting.cpp - The best of a list, in order; TopK -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ordering/Sorting.h"
#include "Support/Patterns.h"

#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"

#include "dialects/ONNX/ONNX.h"
#include "dialects/SDX/TaskLoops.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace sardonyx {

static Values readAt(TensorBuilder &b, ValueRange heap, Value slot) {
  Values entry;
  for (Value part : heap)
    entry.push_back(b.extract(part, slot));
  return entry;
}

static Values writeAt(TensorBuilder &b, ValueRange entry, ValueRange heap,
                      Value slot) {
  Values result;
  for (auto [value, part] : llvm::zip_equal(entry, heap))
    result.push_back(put(b, value, part, slot));
  return result;
}

/// One step of sinking, given that there is a left child: the heap and where
/// the entry is then, `count` if it stays.
Values Selection::sinkOne(TensorBuilder &b, Value slot, Value left, Value count,
                          ValueRange heap) {
  // Without a right child the left one stands for it.
  Value right = b.add(left, b.index(1));
  Value isIn = b.compare(arith::CmpIPredicate::ult, right, count);
  right = b.select(isIn, right, left);
  Values here = readAt(b, heap, slot), x = readAt(b, heap, left),
         y = readAt(b, heap, right), worse;
  Value isRight = isBefore(b, x, y);
  for (auto [ifRight, ifLeft] : llvm::zip_equal(y, x))
    worse.push_back(b.select(isRight, ifRight, ifLeft));
  Value child = b.select(isRight, right, left);
  Values done(heap);
  done.push_back(count);
  return when(b, isBefore(b, here, worse), done, [&](TensorBuilder &s) {
    Values next = writeAt(s, worse, heap, slot);
    next = writeAt(s, here, next, child);
    next.push_back(child);
    return next;
  });
}

/// Lets the entry in slot `from` of a heap of `count` sink to its level.
Values Selection::siftDown(TensorBuilder &b, Value from, Value count,
                           ValueRange heap) {
  Values state(heap);
  state.push_back(from);
  state = loop(b, b.index(int64_t(0)), levels, state,
               [&](TensorBuilder &s, Value, ValueRange state) {
                 Value slot = state.back();
                 Value left = s.add(s.add(slot, slot), s.index(1));
                 Values done(state.drop_back());
                 done.push_back(count);
                 Value isIn = s.compare(arith::CmpIPredicate::ult, left, count);
                 return when(s, isIn, done, [&](TensorBuilder &t) {
                   return sinkOne(t, slot, left, count, state.drop_back());
                 });
               });
  state.pop_back();
  return state;
}

/// The number of bits of k.
void Selection::countLevels(TensorBuilder &b, Value k) {
  Value zeros =
      math::CountLeadingZerosOp::create(b, b.convert(k, b.getI64Type()));
  levels = b.sub(b.index(64), b.convert(zeros, b.getIndexType()));
}

/// Makes a heap from the bottom up.
Values Selection::heapify(TensorBuilder &b, Value count, ValueRange heap) {
  Value half = arith::DivUIOp::create(b, count, b.index(2));
  return loop(b, b.index(int64_t(0)), half, heap,
              [&](TensorBuilder &s, Value i, ValueRange heap) {
                Value slot = s.sub(s.sub(half, s.index(1)), i);
                return siftDown(s, slot, count, heap);
              });
}

/// The worst of all that are left goes last.
Values Selection::takeInOrder(TensorBuilder &b, Value count, ValueRange heap) {
  Value zero = b.index(int64_t(0));
  return loop(b, b.index(1), count, heap,
              [&](TensorBuilder &s, Value i, ValueRange heap) {
                Value last = s.sub(count, i);
                Values worst = readAt(s, heap, zero);
                Values moved = readAt(s, heap, last);
                Values next = writeAt(s, worst, heap, last);
                next = writeAt(s, moved, next, zero);
                return siftDown(s, zero, last, next);
              });
}

Values Selection::sort(TensorBuilder &b, Value count, ValueRange heap) {
  countLevels(b, count);
  return takeInOrder(b, count, heapify(b, count, heap));
}

/// Puts those of the entries in the range that are better in the places of the
/// worst of the heap.
Values Selection::offer(TensorBuilder &b, Value from, Value to, Value k,
                        ValueRange heap, Source source) {
  Value zero = b.index(int64_t(0));
  return loop(b, from, to, heap,
              [&](TensorBuilder &s, Value i, ValueRange heap) {
                Values next = source(s, i);
                Value better = isBefore(s, next, readAt(s, heap, zero));
                return when(s, better, heap, [&](TensorBuilder &t) {
                  return siftDown(t, zero, k, writeAt(t, next, heap, zero));
                });
              });
}

Values Selection::select(TensorBuilder &b, Value k, Value count,
                         ValueRange heap, Source source, Test test) {
  Value zero = b.index(int64_t(0));
  countLevels(b, k);
  Values state =
      loop(b, zero, k, heap, [&](TensorBuilder &s, Value i, ValueRange heap) {
        return writeAt(s, source(s, i), heap, i);
      });
  state = heapify(b, k, state);
  Value none = b.compare(arith::CmpIPredicate::eq, k, zero);
  Value end = b.select(none, k, count), width = b.index(kBlock);
  if (!test)
    return takeInOrder(b, k, offer(b, k, end, k, state, source));
  Value blocks = arith::DivUIOp::create(b, b.sub(end, k), width);
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  state = loop(b, zero, blocks, state,
               [&](TensorBuilder &s, Value block, ValueRange heap) {
                 Value from = s.add(k, s.mul(block, width));
                 // Of random entries the first k blocks have better ones.
                 Value isLater = s.compare(arith::CmpIPredicate::sge, block, k);
                 Value better =
                     when(s, isLater, yes, [&](TensorBuilder &t) {
                       return Values{test(t, from, readAt(t, heap, zero))};
                     }).front();
                 return when(s, better, heap, [&](TensorBuilder &t) {
                   return offer(t, from, t.add(from, width), k, heap, source);
                 });
               });
  state = offer(b, b.add(k, b.mul(blocks, width)), end, k, state, source);
  return takeInOrder(b, k, state);
}

Value isLess(TensorBuilder &b, Value x, Value y, Type onnxType) {
  x = loadScalar(b, b.getLoc(), x, onnxType);
  y = loadScalar(b, b.getLoc(), y, onnxType);
  if (isa<FloatType>(x.getType())) {
    using Predicate = arith::CmpFPredicate;
    Value isNumber = arith::CmpFOp::create(b, Predicate::ORD, x, x);
    Value less = arith::CmpFOp::create(b, Predicate::ULT, x, y);
    return arith::AndIOp::create(b, isNumber, less);
  }
  bool isUnsigned = isUnsignedType(onnxType) || isBoolType(onnxType);
  return b.greater(y, x, isUnsigned);
}

Value orderByIndex(TensorBuilder &b, ValueRange x, ValueRange y,
                   function_ref<Value(ValueRange, ValueRange)> isBefore) {
  Value before = isBefore(x, y), after = isBefore(y, x);
  Value earlier = b.compare(arith::CmpIPredicate::slt, x.back(), y.back());
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  return arith::OrIOp::create(b, before, b.select(after, no, earlier));
}

/// The largest or smallest of so many elements of a row of a matrix, as stored.
/// A NaN among them is the largest, and never the smallest but of nothing else.
static Value findBest(TensorBuilder &b, Value matrix, ValueRange at,
                      int64_t count, Type onnxType, bool largest) {
  Type type = elementTypeOf(matrix);
  const bool isUnsigned = isUnsignedType(onnxType) || isBoolType(onnxType);
  Value block = b.slice(matrix, {at[0], at[1]}, {b.size(1), b.size(count)},
                        /*dropped=*/{0});
  Value first = b.extract(matrix, at);
  Value init = b.filled({}, first);
  Value best =
      b.generic(block, init, {b.identityMap(1), b.dimsMap(1, {})},
                {utils::IteratorType::reduction},
                [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                  Value x = args[0], y = args[1];
                  if (!isa<FloatType>(type))
                    return {largest ? s.maximum(y, x, isUnsigned)
                                    : s.minimum(y, x, isUnsigned)};
                  if (largest)
                    return {arith::MaximumFOp::create(s, y, x)};
                  return {arith::MinNumFOp::create(s, y, x)};
                })
          .front();
  return b.extract(best, {});
}

namespace {

/// Entries, [count] each, and whether the first value is before the second: of
/// equals the one that was before remains so.
struct Merging {
  Value count;
  function_ref<Value(TensorBuilder &, Value, Value)> isBefore;

  /// Puts the runs of `width` entries of `from`, which are in order, together
  /// in pairs, in `to`.
  Values mergeRuns(TensorBuilder &b, ValueRange from, ValueRange to,
                   Value width) const {
    Value one = b.index(1), pair = b.add(width, width);
    Value pairs = arith::CeilDivUIOp::create(b, count, pair);
    return loop(
        b, b.index(int64_t(0)), pairs, to,
        [&](TensorBuilder &s, Value i, ValueRange to) {
          Value start = s.mul(i, pair);
          Value middle = s.minimum(s.add(start, width), count);
          Value end = s.minimum(s.add(start, pair), count);
          Values state(to);
          state.append({start, middle});
          Value lastLeft = s.sub(middle, one), lastRight = s.sub(end, one);
          state = loop(
              s, start, end, state,
              [&](TensorBuilder &t, Value at, ValueRange state) {
                ValueRange to = state.drop_back(2);
                Value left = state[to.size()], right = state.back();
                Values x = readAt(t, from, t.minimum(left, lastLeft)),
                       y = readAt(t, from, t.minimum(right, lastRight)), chosen;
                auto isLess = [&](Value a, Value b) {
                  return t.compare(arith::CmpIPredicate::slt, a, b);
                };
                Value isNext =
                    arith::OrIOp::create(t, isLess(lastLeft, left),
                                         isBefore(t, y.front(), x.front()));
                Value isRight =
                    arith::AndIOp::create(t, isLess(right, end), isNext);
                for (auto [ifRight, ifLeft] : llvm::zip_equal(y, x))
                  chosen.push_back(t.select(isRight, ifRight, ifLeft));
                Values next = writeAt(t, chosen, to, at);
                next.push_back(t.select(isRight, left, t.add(left, one)));
                next.push_back(t.select(isRight, t.add(right, one), right));
                return next;
              });
          state.pop_back_n(2);
          return state;
        });
  }

  /// `entries` in order; `room` is as large.
  Values sort(TensorBuilder &b, ValueRange entries, ValueRange room) const {
    // Twice in each step: they end where they were.
    Value zeros =
        math::CountLeadingZerosOp::create(b, b.convert(count, b.getI64Type()));
    Value bits = b.sub(b.index(64), b.convert(zeros, b.getIndexType()));
    Value steps = arith::CeilDivUIOp::create(b, bits, b.index(2));
    Values state(entries);
    llvm::append_range(state, room);
    state.push_back(b.index(1));
    state = loop(b, b.index(int64_t(0)), steps, state,
                 [&](TensorBuilder &s, Value, ValueRange state) {
                   Value width = state.back();
                   ValueRange entries = state.take_front(2);
                   Values room =
                       mergeRuns(s, entries, state.slice(2, 2), width);
                   Value wider = s.add(width, width);
                   Values next = mergeRuns(s, room, entries, wider);
                   llvm::append_range(next, room);
                   next.push_back(s.add(wider, wider));
                   return next;
                 });
    return Values(state.begin(), state.begin() + 2);
  }
};

} // namespace

/// All of a row's elements in order.
static Values sortRow(TensorBuilder &b, Value matrix, Value row,
                      ValueRange parts, Type onnxType, bool largest) {
  OpFoldResult size = b.dim(matrix, 1);
  Value extent = b.index(size);
  Values entries = loop(b, b.index(int64_t(0)), extent, parts,
                        [&](TensorBuilder &s, Value i, ValueRange parts) {
                          Values entry = {s.extract(matrix, {row, i}),
                                          s.convert(i, s.getI64Type())};
                          return writeAt(s, entry, parts, i);
                        });
  // Empty tensors of one type are one, which may not be changed as two.
  Values room = {b.empty({b.plus(size, 1)}, elementTypeOf(matrix)),
                 b.empty({b.plus(size, 2)}, b.getI64Type())};
  auto isBefore = [&](TensorBuilder &s, Value x, Value y) {
    return largest ? isLess(s, y, x, onnxType) : isLess(s, x, y, onnxType);
  };
  return Merging{extent, isBefore}.sort(b, entries, room);
}

Values sortRows(TensorBuilder &b, Value matrix, OpFoldResult count,
                Type onnxType, bool largest) {
  OpFoldResult rows = b.dim(matrix, 0);
  Value k = b.index(count), extent = b.index(b.dim(matrix, 1));
  auto isBefore = [&](TensorBuilder &s, ValueRange x, ValueRange y) {
    return orderByIndex(s, x, y, [&](ValueRange x, ValueRange y) {
      return largest ? isLess(s, y.front(), x.front(), onnxType)
                     : isLess(s, x.front(), y.front(), onnxType);
    });
  };
  Values results = {b.empty({rows, count}, elementTypeOf(matrix)),
                    b.empty({rows, count}, b.getI64Type())};
  results =
      forEachRow(b, results, [&](TensorBuilder &s, Value row, ValueRange heap) {
        if (isSameSize(count, b.dim(matrix, 1)))
          return sortRow(s, matrix, row, heap, onnxType, largest);
        auto element = [&](TensorBuilder &t, Value i) -> Values {
          return {t.extract(matrix, {row, i}), t.convert(i, t.getI64Type())};
        };
        auto isBetter = [&](TensorBuilder &t, Value from, ValueRange worst) {
          Value best = findBest(t, matrix, {row, from}, Selection::kBlock,
                                onnxType, largest);
          return largest ? isLess(t, worst.front(), best, onnxType)
                         : isLess(t, best, worst.front(), onnxType);
        };
        // Other types are not stored as what is compared.
        Type stored = elementTypeOf(matrix);
        const bool isPlain =
            isa<FloatType>(stored) == isa<FloatType>(onnxType) &&
            stored.getIntOrFloatBitWidth() == onnxType.getIntOrFloatBitWidth();
        Selection selection(isBefore);
        return isPlain ? selection.select(s, k, extent, heap, element, isBetter)
                       : selection.select(s, k, extent, heap, element);
      });
  if (auto loop = results.front().getDefiningOp<scf::ForallOp>()) {
    std::string words = largest ? "largest" : "smallest";
    if (isUnsignedType(onnxType) || isBoolType(onnxType))
      words += " unsigned";
    loop->setAttr(sdx::kTopKAttr, b.getStringAttr(words));
  }
  return results;
}

namespace {

//===----------------------------------------------------------------------===//
// TopK
//===----------------------------------------------------------------------===//

LogicalResult lowerTopK(Lowering<onnx::TopKOp> &b) {
  Value x = b.in.getX();
  Sizes sizes = b.dims(x);
  int64_t rank = sizes.size();
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), rank);
  if (failed(axis))
    return b.refuse("axis out of range");
  Value k = toIndex(b, b.getLoc(), getScalar(b, b.getLoc(), b.in.getK()));
  Value extent = b.index(sizes[*axis]);
  Value fits = b.compare(arith::CmpIPredicate::ule, k, extent);
  createCheck(b, b.getLoc(), fits, "k is {0}, and the axis has {1} elements",
              {Size(k), Size(extent)});
  Sizes result = sizes;
  result[*axis] = b.select(fits, k, extent);
  if (RankedTensorType declared = b.declared())
    result = refineSizes(b, result, declared);
  if (isEmptyBox(result))
    return b.replace(
        {b.empty(result, elementTypeOf(x)), b.empty(result, b.getI64Type())});

  // The axis goes last, everything else is rows.
  SmallVector<int64_t> order, back(rank);
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != *axis)
      order.push_back(dim);
  order.push_back(*axis);
  for (auto [to, from] : llvm::enumerate(order))
    back[from] = to;
  Value moved = b.transpose(x, order);
  Sizes movedSizes = b.dims(moved);
  OpFoldResult rows = b.product(ArrayRef(movedSizes).drop_back());
  moved = b.reshape(moved, {rows, movedSizes.back()});
  Values best =
      sortRows(b, moved, result[*axis], getOnnxElementType(b.op.getX()),
               b.op.getLargest() != 0);
  movedSizes.back() = result[*axis];
  for (Value &value : best)
    value = b.transpose(b.reshape(value, movedSizes), back);
  return b.replace(best);
}

} // namespace

void populateSortingPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  addLowering<onnx::TopKOp, lowerTopK>(patterns, converter);
}

} // namespace sardonyx
