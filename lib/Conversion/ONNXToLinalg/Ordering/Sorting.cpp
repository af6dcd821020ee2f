//===- Sorting.cpp - The best of a list, in order; TopK -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ordering/Sorting.h"

#include "Ordering/ElementKeys.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"
#include "dialects/SDX/TaskLoops.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace sardonyx {

using Predicate = arith::CmpIPredicate;

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
Values HeapSort::siftDown(TensorBuilder &b, Value from, Value count,
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

/// The number of bits of the count.
void HeapSort::countLevels(TensorBuilder &b, Value count) {
  Value zeros =
      math::CountLeadingZerosOp::create(b, b.convert(count, b.getI64Type()));
  levels = b.sub(b.index(64), b.convert(zeros, b.getIndexType()));
}

/// Makes a heap from the bottom up.
Values HeapSort::heapify(TensorBuilder &b, Value count, ValueRange heap) {
  Value half = arith::DivUIOp::create(b, count, b.index(2));
  return loop(b, b.index(int64_t(0)), half, heap,
              [&](TensorBuilder &s, Value i, ValueRange heap) {
                Value slot = s.sub(s.sub(half, s.index(1)), i);
                return siftDown(s, slot, count, heap);
              });
}

/// The worst of all that are left goes last.
Values HeapSort::takeInOrder(TensorBuilder &b, Value count, ValueRange heap) {
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

Values HeapSort::sort(TensorBuilder &b, Value count, ValueRange heap) {
  countLevels(b, count);
  return takeInOrder(b, count, heapify(b, count, heap));
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

namespace {

/// The best `count` elements of the rows of a matrix.
///
/// Of a row that is many times as long, most elements are passed over: the best
/// of each of several groups of elements is found, then a bound that at least
/// `count` of these keep, so that as many elements do, and few more.
class RowSorter {
public:
  RowSorter(TensorBuilder &b, Value matrix, OpFoldResult count, Type onnxType,
            bool largest)
      : matrix(matrix), count(count), size(b.dim(matrix, 1)),
        groups(countGroups(b)), keys(onnxType, largest, getStaticSize(size)) {}

  bool packsIndices() const { return keys.packsIndices(); }
  /// The elements of a row and their indices, in `results`.
  Values sort(TensorBuilder &b, Value row, ValueRange results);

private:
  /// A multiple of this many groups, which is a vector of most processors.
  static constexpr int64_t kLanes = 16;
  /// Elements that are gone through one by one in all.
  static constexpr int64_t kMostTests = 2048;

  OpFoldResult countGroups(TensorBuilder &b) const;
  Value rankAt(TensorBuilder &b, Value i) const {
    return keys.rank(b, b.extract(matrix, {row, i}));
  }
  /// Whether most elements are passed over (i1).
  Value isLong(TensorBuilder &b) const;
  Values sortListed(TensorBuilder &b, ValueRange results) const;
  OpFoldResult capacity(TensorBuilder &b, Value isLong) const;
  Value isEnough(TensorBuilder &b, Value kept) const;
  Values store(TensorBuilder &b, ValueRange entry, Value at,
               ValueRange results) const;
  Value isTakenOneByOne(TensorBuilder &b) const;
  Values takeOneByOne(TensorBuilder &b, ValueRange results) const;
  Value findBestOfGroups(TensorBuilder &b) const;
  Value findBound(TensorBuilder &b) const;
  Values listAll(TensorBuilder &b, const KeyList &list) const;
  Values listFrom(TensorBuilder &b, const KeyList &list, Value bound) const;

  Value matrix, row;
  OpFoldResult count, size, groups;
  ElementKeys keys;
};

} // namespace

/// The values of one of two branches, of which there is only one where the
/// condition is known.
static Values either(TensorBuilder &b, Value condition,
                     function_ref<Values(TensorBuilder &)> then,
                     function_ref<Values(TensorBuilder &)> otherwise) {
  if (auto known = condition.getDefiningOp<arith::ConstantOp>())
    return cast<BoolAttr>(known.getValue()).getValue() ? then(b) : otherwise(b);
  auto branch = [](function_ref<Values(TensorBuilder &)> body) {
    return [body](OpBuilder &builder, Location loc) {
      TensorBuilder s(loc, builder);
      scf::YieldOp::create(s, body(s));
    };
  };
  return Values(scf::IfOp::create(b, condition, branch(then), branch(otherwise))
                    .getResults());
}

/// Of more groups fewer elements are listed; of a short row they would be too
/// short.
OpFoldResult RowSorter::countGroups(TensorBuilder &b) const {
  auto round = [&](OpFoldResult number) {
    return b.times(b.ceilDiv(number, b.size(kLanes)), kLanes);
  };
  OpFoldResult least = round(b.times(count, 2)),
               most = round(b.times(count, 4));
  OpFoldResult usual = round(b.ceilDiv(size, b.size(4)));
  std::optional<int64_t> n = getStaticSize(usual), from = getStaticSize(least),
                         to = getStaticSize(most);
  if (n && from && to)
    return b.size(std::clamp(*n, *from, *to));
  return b.minimum(b.maximum(b.index(usual), b.index(least)), b.index(most));
}

/// Groups must have a few elements each, and more where there are many, which
/// are sorted faster by the element.
Value RowSorter::isLong(TensorBuilder &b) const {
  constexpr int64_t kMany = 512;
  OpFoldResult twice = b.times(groups, 2);
  OpFoldResult thrice = b.minus(b.times(groups, 3), b.size(kMany));
  std::optional<int64_t> n = getStaticSize(size), k = getStaticSize(count),
                         x = getStaticSize(twice), y = getStaticSize(thrice);
  auto known = [&](bool value) {
    return arith::ConstantOp::create(b, b.getBoolAttr(value));
  };
  if (isSameSize(count, size) || (n && *n <= KeyList::kFew))
    return known(false);
  if (n && k && x && y)
    return known(*k > 0 && *n >= std::max(*x, *y));
  Value least = b.maximum(b.index(twice), b.index(thrice));
  least = b.maximum(least, b.index(KeyList::kFew + 1));
  Value isSome = b.compare(Predicate::sgt, b.index(count), b.index(int64_t(0)));
  Value isMore = b.compare(Predicate::sge, b.index(size), least);
  return arith::AndIOp::create(b, isSome, isMore);
}

/// Whether so few groups are kept that their elements are few.
Value RowSorter::isEnough(TensorBuilder &b, Value kept) const {
  Value most = b.index(b.plus(count, b.floorDiv(count, b.size(4))));
  return b.compare(Predicate::sle, kept, most);
}

/// The most elements that are listed: of a bound that few groups keep all of
/// theirs; of another those of fewer than `count` groups that are better, and
/// `count` that equal it.
OpFoldResult RowSorter::capacity(TensorBuilder &b, Value isLong) const {
  std::optional<bool> known;
  if (auto constant = isLong.getDefiningOp<arith::ConstantOp>())
    known = cast<BoolAttr>(constant.getValue()).getValue();
  if (known == false)
    return size;
  OpFoldResult kept = b.plus(count, b.floorDiv(count, b.size(4)));
  OpFoldResult length = b.ceilDiv(size, b.atLeast(groups, 1));
  OpFoldResult few = b.plus(b.times(kept, length), count);
  std::optional<int64_t> n = getStaticSize(size), m = getStaticSize(few);
  if (known && n && m)
    return b.size(std::min(*n, *m));
  Value all = b.index(size);
  return b.select(isLong, b.minimum(b.index(few), all), all);
}

/// The rank of the best of each group, [groups]: of every so manieth element.
Value RowSorter::findBestOfGroups(TensorBuilder &b) const {
  Value zero = b.index(int64_t(0)), width = b.index(groups);
  Value rounds = arith::DivUIOp::create(b, b.index(size), width);
  Values best = {b.empty({groups}, keys.rankType(b))};
  best = loop(b, zero, width, best,
              [&](TensorBuilder &s, Value i, ValueRange best) -> Values {
                return {put(s, rankAt(s, i), best[0], i)};
              });
  auto take = [&](TensorBuilder &s, Value begin, Value to, ValueRange best) {
    return loop(
        s, zero, to, best,
        [&](TensorBuilder &t, Value i, ValueRange best) -> Values {
          Value here = rankAt(t, t.add(begin, i));
          return {put(t, t.maximum(t.extract(best[0], i), here), best[0], i)};
        });
  };
  best = loop(b, b.index(1), rounds, best,
              [&](TensorBuilder &s, Value round, ValueRange best) {
                return take(s, s.mul(round, width), width, best);
              });
  Value begin = b.mul(rounds, width);
  return take(b, begin, b.sub(b.index(size), begin), best).front();
}

/// A rank that the best of at least `count` groups have, and of few more if
/// there is such a one; else the largest of them.
Value RowSorter::findBound(TensorBuilder &b) const {
  Value best = findBestOfGroups(b);
  auto type = cast<IntegerType>(keys.rankType(b));
  Value zero = b.index(int64_t(0)), one = b.integer(type, 1);
  Value width = b.index(groups);
  Value first = b.extract(best, zero);
  Values state =
      loop(b, zero, width, {first, first},
           [&](TensorBuilder &s, Value i, ValueRange ends) -> Values {
             Value here = s.extract(best, i);
             return {s.minimum(ends[0], here), s.maximum(ends[1], here)};
           });
  Value isOne = b.compare(Predicate::eq, b.index(count), b.index(int64_t(1)));
  state[0] = b.select(isOne, state[1], state[0]);
  // The least bound that is left, the largest, and what keep the least.
  state.push_back(width);
  auto op = scf::WhileOp::create(
      b, TypeRange(ValueRange(state)), state,
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value isOpen = s.compare(Predicate::slt, state[0], state[1]);
        Value isMany = arith::XOrIOp::create(
            s, isEnough(s, state[2]),
            arith::ConstantOp::create(s, s.getBoolAttr(true)));
        scf::ConditionOp::create(s, arith::AndIOp::create(s, isOpen, isMany),
                                 state);
      },
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value half = arith::ShRUIOp::create(s, s.sub(state[1], state[0]), one);
        Value middle = s.sub(state[1], half);
        Value kept =
            loop(s, zero, width, s.zero(type),
                 [&](TensorBuilder &t, Value i, ValueRange sum) -> Values {
                   Value is =
                       t.compare(Predicate::sge, t.extract(best, i), middle);
                   return {t.add(sum[0], t.convert(is, type, true))};
                 })
                .front();
        kept = s.convert(kept, s.getIndexType());
        Value holds = s.compare(Predicate::sge, kept, s.index(count));
        scf::YieldOp::create(
            s, ValueRange{s.select(holds, middle, state[0]),
                          s.select(holds, state[1], s.sub(middle, one)),
                          s.select(holds, kept, state[2])});
      });
  return op.getResult(0);
}

/// Lists all elements. Returns the list's tensors, and how many there are.
Values RowSorter::listAll(TensorBuilder &b, const KeyList &list) const {
  Value extent = b.index(size);
  Values state = loop(b, b.index(int64_t(0)), extent, list.tensors(),
                      [&](TensorBuilder &s, Value i, ValueRange tensors) {
                        KeyList next = list.with(tensors);
                        next.put(s, i, keys.entry(s, rankAt(s, i), i));
                        return Values(next.tensors());
                      });
  state.push_back(extent);
  return state;
}

/// The same with those whose rank is more than a bound, and the first `count`
/// that equal it.
Values RowSorter::listFrom(TensorBuilder &b, const KeyList &list,
                           Value bound) const {
  auto type = cast<IntegerType>(bound.getType());
  Value zero = b.index(int64_t(0)), one = b.index(1);
  Value end = b.index(size), most = b.index(count);
  Value last = b.integer(type, llvm::maxIntN(type.getWidth()));
  Value isLast = b.compare(Predicate::eq, bound, last);
  Value above = b.add(bound, b.integer(type, 1));
  // The list, where to go on, the least rank, how many equal the bound, and how
  // many are listed.
  Values state(list.tensors());
  const size_t parts = state.size();
  state.append({zero, bound, zero, zero});
  auto op = scf::WhileOp::create(
      b, TypeRange(ValueRange(state)), state,
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value least = state[parts + 1];
        Values found =
            findFirst(s, state[parts], end, [&](TensorBuilder &t, Value i) {
              return t.compare(Predicate::sge, rankAt(t, i), least);
            });
        Values next(state);
        next[parts] = found[0];
        scf::ConditionOp::create(s, found[1], next);
      },
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value next = state[parts], equal = state[parts + 2];
        Value at = s.sub(next, one), here = rankAt(s, at);
        Value isEqual = s.compare(Predicate::eq, here, bound);
        equal = s.select(isEqual, s.add(equal, one), equal);
        Value isFull = s.compare(Predicate::sge, equal, most);
        Value isOver = arith::AndIOp::create(s, isFull, isLast);
        KeyList longer = list.with(state.take_front(parts));
        longer.put(s, state.back(), keys.entry(s, here, at));
        Values made(longer.tensors());
        made.append({s.select(isOver, end, next),
                     s.select(isFull, above, bound), equal,
                     s.add(state.back(), one)});
        scf::YieldOp::create(s, made);
      });
  Values made(op.getResults().take_front(parts));
  made.push_back(op.getResults().back());
  return made;
}

/// Whether going through a row for each element of the result takes least
/// (i1); null where it is known not to.
Value RowSorter::isTakenOneByOne(TensorBuilder &b) const {
  std::optional<int64_t> n = getStaticSize(size), k = getStaticSize(count);
  if (!keys.packsIndices() || isSameSize(count, size) || k == 0)
    return {};
  if (n && k)
    return 4 * *k <= *n && *n <= kMostTests / *k
               ? arith::ConstantOp::create(b, b.getBoolAttr(true))
               : Value();
  if (n.value_or(0) > kMostTests || k.value_or(0) > kMostTests)
    return {};
  Value fits = b.compare(Predicate::ule, b.index(size), b.index(kMostTests));
  Value isLong =
      b.compare(Predicate::ule, b.index(b.times(count, 4)), b.index(size));
  Value isShort = b.compare(Predicate::ule, b.index(b.times(count, size)),
                            b.index(kMostTests));
  return arith::AndIOp::create(b, fits,
                               arith::AndIOp::create(b, isLong, isShort));
}

/// The largest key, then the largest of those below it, and so on.
Values RowSorter::takeOneByOne(TensorBuilder &b, ValueRange results) const {
  Type i64 = b.getI64Type();
  Value zero = b.index(int64_t(0)), none = b.integer(i64, INT64_MIN);
  OpFoldResult capacity = getStaticSize(size) ? size : b.size(kMostTests);
  Value list = loop(b, zero, b.index(size), b.empty({capacity}, i64),
                    [&](TensorBuilder &s, Value i, ValueRange list) -> Values {
                      Value key = keys.entry(s, rankAt(s, i), i).front();
                      return {put(s, key, list.front(), i)};
                    })
                   .front();
  Values state(results);
  state.push_back(b.integer(i64, INT64_MAX));
  state = loop(b, zero, b.index(count), state,
               [&](TensorBuilder &s, Value i, ValueRange state) -> Values {
                 auto take = [&](TensorBuilder &t, Value j,
                                 ValueRange best) -> Values {
                   Value key = t.extract(list, j);
                   Value isLeft = t.compare(Predicate::sle, key, state[2]);
                   return {t.maximum(best[0], t.select(isLeft, key, none))};
                 };
                 Value best = loop(s, zero, b.index(size), none, take).front();
                 Values next = store(s, best, i, state.take_front(2));
                 next.push_back(s.sub(best, s.integer(i64, 1)));
                 return next;
               });
  state.pop_back();
  return state;
}

/// Puts the element and the index of an entry in the results.
Values RowSorter::store(TensorBuilder &b, ValueRange entry, Value at,
                        ValueRange results) const {
  Value index = keys.index(b, entry);
  Value place = b.convert(index, b.getIndexType());
  return {put(b, b.extract(matrix, {row, place}), results[0], at),
          put(b, index, results[1], at)};
}

Values RowSorter::sort(TensorBuilder &b, Value at, ValueRange results) {
  row = at;
  Value isShort = isTakenOneByOne(b);
  if (!isShort)
    return sortListed(b, results);
  return either(
      b, isShort, [&](TensorBuilder &s) { return takeOneByOne(s, results); },
      [&](TensorBuilder &s) { return sortListed(s, results); });
}

/// Lists what may be among the best, and sorts that.
Values RowSorter::sortListed(TensorBuilder &b, ValueRange results) const {
  Value isMore = isLong(b);
  KeyList list = keys.makeList(b, capacity(b, isMore));
  Values state = either(
      b, isMore,
      [&](TensorBuilder &s) { return listFrom(s, list, findBound(s)); },
      [&](TensorBuilder &s) { return listAll(s, list); });
  Value listed = state.pop_back_val();
  list = list.with(state);
  list.sort(b, listed);
  return loop(b, b.index(int64_t(0)), b.index(count), results,
              [&](TensorBuilder &s, Value i, ValueRange parts) {
                return store(s, list.get(s, i), i, parts);
              });
}

Values sortRows(TensorBuilder &b, Value matrix, OpFoldResult count,
                Type onnxType, bool largest) {
  OpFoldResult rows = b.dim(matrix, 0), size = b.dim(matrix, 1);
  RowSorter sorter(b, matrix, count, onnxType, largest);
  std::optional<int64_t> known = getStaticSize(size);
  if (sorter.packsIndices() && !known)
    createCheck(b, b.getLoc(),
                b.compare(arith::CmpIPredicate::ule, b.index(size),
                          b.index(ElementKeys::kMostPacked)),
                "cannot sort {0} elements, more than 2^32", {size});
  Values results = {b.empty({rows, count}, elementTypeOf(matrix)),
                    b.empty({rows, count}, b.getI64Type())};
  results =
      forEachRow(b, results, [&](TensorBuilder &s, Value row, ValueRange part) {
        return sorter.sort(s, row, part);
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
