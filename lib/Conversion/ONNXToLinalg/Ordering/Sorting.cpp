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

/// Lets the entry in slot `from` of a heap of `count` sink to its level: the
/// worse of two children goes where it was, as long as it is worse. Which way
/// entries go is data that no processor foresees, so steps are selections, and
/// there are as many as the heap has levels.
Values Selection::siftDown(TensorBuilder &b, Value from, Value count,
                           ValueRange heap) {
  const size_t parts = heap.size();
  Values state(heap), entry = readAt(b, heap, from);
  state.append(entry.begin(), entry.end());
  state.push_back(from);
  Value one = b.index(1);
  state = loop(
      b, one, levels, state, [&](TensorBuilder &s, Value, ValueRange state) {
        ValueRange heap = state.take_front(parts);
        ValueRange entry = state.slice(parts, parts);
        Value slot = state.back();
        // Without children the entry stands for them, and stays.
        auto childAt = [&](Value at, Value otherwise) {
          Value isIn = s.compare(arith::CmpIPredicate::ult, at, count);
          return s.select(isIn, at, otherwise);
        };
        Value first = s.add(s.add(slot, slot), one);
        Value left = childAt(first, slot);
        Value right = childAt(s.add(first, one), left);
        Values x = readAt(s, heap, left), y = readAt(s, heap, right);
        Value isRight = isBefore(s, x, y);
        Value child = s.select(isRight, right, left);
        auto choose = [&](Value condition, ValueRange x, ValueRange y) {
          return llvm::map_to_vector(llvm::zip_equal(x, y), [&](auto pair) {
            auto [ifSo, otherwise] = pair;
            return s.select(condition, ifSo, otherwise);
          });
        };
        Values worse = choose(isRight, y, x);
        Value sinks = isBefore(s, entry, worse);
        Values next = writeAt(s, choose(sinks, worse, entry), heap, slot);
        slot = s.select(sinks, child, slot);
        next = writeAt(s, entry, next, slot);
        next.append(entry.begin(), entry.end());
        next.push_back(slot);
        return next;
      });
  return Values(state.begin(), state.begin() + parts);
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

bool PackedKeys::has(Type onnxType) {
  return isBoolType(onnxType) ||
         (onnxType.isIntOrFloat() && onnxType.getIntOrFloatBitWidth() <= 32);
}

/// The number of f32 or of at most 32 bits as an integer of 32 bits that is
/// larger where it is. Zeros are equal, and NaN is the largest.
static Value toOrderedInteger(TensorBuilder &b, Value value, bool isUnsigned) {
  Type i32 = b.getI32Type();
  auto constant = [&](int32_t number) { return b.integer(i32, number); };
  if (auto type = dyn_cast<IntegerType>(value.getType())) {
    if (type.getWidth() < 32)
      return b.convert(value, i32, isUnsigned);
    return isUnsigned
               ? Value(arith::XOrIOp::create(b, value, constant(INT32_MIN)))
               : value;
  }
  if (!value.getType().isF32())
    value = arith::ExtFOp::create(b, b.getF32Type(), value);
  Value isNaN =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  // -0 + 0 = 0.
  value = arith::AddFOp::create(b, value, b.zero(b.getF32Type()));
  Value bits = arith::BitcastOp::create(b, i32, value);
  // Of negative numbers the larger has the smaller bits.
  Value sign = arith::ShRSIOp::create(b, bits, constant(31));
  Value flipped = arith::AndIOp::create(b, sign, constant(INT32_MAX));
  Value ordered = arith::XOrIOp::create(b, bits, flipped);
  return b.select(isNaN, constant(INT32_MAX), ordered);
}

Value PackedKeys::pack(TensorBuilder &b, Value stored, Value index) const {
  Type i64 = b.getI64Type();
  Value value = loadScalar(b, b.getLoc(), stored, onnxType);
  const bool isUnsigned = isUnsignedType(onnxType) || isBoolType(onnxType);
  Value ordered = toOrderedInteger(b, value, isUnsigned);
  if (!largest)
    ordered = arith::XOrIOp::create(b, ordered, b.integer(b.getI32Type(), -1));
  Value high =
      arith::ShLIOp::create(b, b.convert(ordered, i64), b.integer(i64, 32));
  Value low = arith::XOrIOp::create(b, b.convert(index, i64),
                                    b.integer(i64, UINT32_MAX));
  return arith::OrIOp::create(b, high, low);
}

Value PackedKeys::getIndex(TensorBuilder &b, Value key) {
  Value low =
      arith::AndIOp::create(b, key, b.integer(key.getType(), UINT32_MAX));
  return arith::XOrIOp::create(b, low, b.integer(key.getType(), UINT32_MAX));
}

Value PackedKeys::isBefore(TensorBuilder &b, ValueRange x, ValueRange y) {
  return b.compare(arith::CmpIPredicate::sgt, x.front(), y.front());
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

/// Entries, [count] each, and their order: of equals the one that was before
/// remains so.
struct Merging {
  Value count;
  Selection::Order isBefore;

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
                Value isNext = arith::OrIOp::create(t, isLess(lastLeft, left),
                                                    isBefore(t, y, x));
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
    const size_t parts = entries.size();
    Values state(entries);
    llvm::append_range(state, room);
    state.push_back(b.index(1));
    state = loop(b, b.index(int64_t(0)), steps, state,
                 [&](TensorBuilder &s, Value, ValueRange state) {
                   Value width = state.back();
                   ValueRange entries = state.take_front(parts);
                   Values room =
                       mergeRuns(s, entries, state.slice(parts, parts), width);
                   Value wider = s.add(width, width);
                   Values next = mergeRuns(s, room, entries, wider);
                   llvm::append_range(next, room);
                   next.push_back(s.add(wider, wider));
                   return next;
                 });
    return Values(state.begin(), state.begin() + parts);
  }
};

} // namespace

namespace {

/// The best elements of rows of a matrix.
struct RowSorter {
  Value matrix;
  OpFoldResult count;
  Type onnxType;
  bool largest;

  Values byKeys(TensorBuilder &b, Value row, ValueRange results) const;
  Values byEntries(TensorBuilder &b, Value row, ValueRange results) const;

private:
  bool isWhole(TensorBuilder &b) const {
    return isSameSize(count, b.dim(matrix, 1));
  }
  Value isBetter(TensorBuilder &b, Value x, Value y) const {
    return largest ? isLess(b, y, x, onnxType) : isLess(b, x, y, onnxType);
  }
  Values sortAll(TensorBuilder &b, ValueRange entries, Selection::Source source,
                 Selection::Order isBefore) const;
  Values
  select(TensorBuilder &b, Value row, ValueRange heap, Selection::Source source,
         Selection::Order isBefore,
         function_ref<Value(TensorBuilder &, ValueRange)> getValue) const;
};

} // namespace

/// All entries of `source` in order.
Values RowSorter::sortAll(TensorBuilder &b, ValueRange entries,
                          Selection::Source source,
                          Selection::Order isBefore) const {
  OpFoldResult size = b.dim(matrix, 1);
  Value extent = b.index(size);
  Values filled = loop(b, b.index(int64_t(0)), extent, entries,
                       [&](TensorBuilder &s, Value i, ValueRange parts) {
                         return writeAt(s, source(s, i), parts, i);
                       });
  // Empty tensors of one type are one, which may not be changed as two.
  Values room;
  for (Value part : entries)
    room.push_back(
        b.empty({b.plus(size, int64_t(room.size()) + 1)}, elementTypeOf(part)));
  return Merging{extent, isBefore}.sort(b, filled, room);
}

/// The best entries of `source`, of which `getValue` gives the stored element.
Values RowSorter::select(
    TensorBuilder &b, Value row, ValueRange heap, Selection::Source source,
    Selection::Order isBefore,
    function_ref<Value(TensorBuilder &, ValueRange)> getValue) const {
  Value k = b.index(count), extent = b.index(b.dim(matrix, 1));
  auto test = [&](TensorBuilder &t, Value from, ValueRange worst) {
    Value best =
        findBest(t, matrix, {row, from}, Selection::kBlock, onnxType, largest);
    return isBetter(t, best, getValue(t, worst));
  };
  // Other types are not stored as what is compared.
  Type stored = elementTypeOf(matrix);
  const bool isPlain =
      isa<FloatType>(stored) == isa<FloatType>(onnxType) &&
      stored.getIntOrFloatBitWidth() == onnxType.getIntOrFloatBitWidth();
  Selection selection(isBefore);
  return isPlain ? selection.select(b, k, extent, heap, source, test)
                 : selection.select(b, k, extent, heap, source);
}

/// Sorts keys in the place of the indices, then reads the elements.
Values RowSorter::byKeys(TensorBuilder &b, Value row,
                         ValueRange results) const {
  PackedKeys keys(onnxType, largest);
  auto source = [&](TensorBuilder &t, Value i) -> Values {
    return {keys.pack(t, t.extract(matrix, {row, i}), i)};
  };
  auto getValue = [&](TensorBuilder &t, ValueRange key) -> Value {
    Value index = PackedKeys::getIndex(t, key.front());
    return t.extract(matrix, {row, t.convert(index, t.getIndexType())});
  };
  Value found =
      isWhole(b)
          ? sortAll(b, results[1], source, PackedKeys::isBefore).front()
          : select(b, row, results[1], source, PackedKeys::isBefore, getValue)
                .front();
  return loop(b, b.index(int64_t(0)), b.index(count), {results[0], found},
              [&](TensorBuilder &s, Value i, ValueRange state) -> Values {
                Value key = s.extract(state[1], i);
                return {put(s, getValue(s, key), state[0], i),
                        put(s, PackedKeys::getIndex(s, key), state[1], i)};
              });
}

/// Sorts elements together with their indices.
Values RowSorter::byEntries(TensorBuilder &b, Value row,
                            ValueRange results) const {
  auto source = [&](TensorBuilder &t, Value i) -> Values {
    return {t.extract(matrix, {row, i}), t.convert(i, t.getI64Type())};
  };
  if (isWhole(b))
    return sortAll(b, results, source,
                   [&](TensorBuilder &s, ValueRange x, ValueRange y) {
                     return isBetter(s, x.front(), y.front());
                   });
  auto isBefore = [&](TensorBuilder &s, ValueRange x, ValueRange y) {
    return orderByIndex(s, x, y, [&](ValueRange x, ValueRange y) {
      return isBetter(s, x.front(), y.front());
    });
  };
  return select(
      b, row, results, source, isBefore,
      [](TensorBuilder &, ValueRange entry) { return entry.front(); });
}

Values sortRows(TensorBuilder &b, Value matrix, OpFoldResult count,
                Type onnxType, bool largest) {
  OpFoldResult rows = b.dim(matrix, 0), size = b.dim(matrix, 1);
  constexpr int64_t kMostKeys = int64_t(1) << 32;
  std::optional<int64_t> known = getStaticSize(size);
  const bool hasKeys =
      PackedKeys::has(onnxType) && known.value_or(0) <= kMostKeys;
  if (hasKeys && !known)
    createCheck(
        b, b.getLoc(),
        b.compare(arith::CmpIPredicate::ule, b.index(size), b.index(kMostKeys)),
        "cannot sort {0} elements, more than 2^32", {size});
  RowSorter sorter{matrix, count, onnxType, largest};
  Values results = {b.empty({rows, count}, elementTypeOf(matrix)),
                    b.empty({rows, count}, b.getI64Type())};
  results =
      forEachRow(b, results, [&](TensorBuilder &s, Value row, ValueRange part) {
        return hasKeys ? sorter.byKeys(s, row, part)
                       : sorter.byEntries(s, row, part);
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
