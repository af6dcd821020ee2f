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

Values Selection::select(TensorBuilder &b, Value k, Value count,
                         ValueRange heap, Source source) {
  Value zero = b.index(int64_t(0));
  countLevels(b, k);
  Values state =
      loop(b, zero, k, heap, [&](TensorBuilder &s, Value i, ValueRange heap) {
        return writeAt(s, source(s, i), heap, i);
      });
  state = heapify(b, k, state);
  // Better ones take the place of the worst.
  Value none = b.compare(arith::CmpIPredicate::eq, k, zero);
  state = loop(b, k, b.select(none, k, count), state,
               [&](TensorBuilder &s, Value i, ValueRange heap) {
                 Values next = source(s, i);
                 Value better = isBefore(s, next, readAt(s, heap, zero));
                 return when(s, better, heap, [&](TensorBuilder &t) {
                   return siftDown(t, zero, k, writeAt(t, next, heap, zero));
                 });
               });
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
        auto element = [&](TensorBuilder &t, Value i) -> Values {
          return {t.extract(matrix, {row, i}), t.convert(i, t.getI64Type())};
        };
        return Selection(isBefore).select(s, k, extent, heap, element);
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
