//===- Select.cpp - Results whose sizes the data decide -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements that are selected are counted by ranges, a task each; the host reads
// the sum, which is a size; then each range writes its part of the result.
//
//===----------------------------------------------------------------------===//

#include "Movement/Positions.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

Value isTrue(TensorBuilder &b, Value stored, Type onnxType) {
  return castScalar(b, b.getLoc(), loadScalar(b, b.getLoc(), stored, onnxType),
                    onnxType, b.getI1Type());
}

/// Elements that are worth a task of their own.
constexpr int64_t kMinRange = 4096;

/// The positions of the true elements of a tensor of at least one dimension.
class TrueElements {
public:
  /// Only the elements within `sizes` are looked at.
  TrueElements(TensorBuilder &b, Value tensor, Type onnxType, Sizes sizes)
      : tensor(tensor), onnxType(onnxType), sizes(std::move(sizes)),
        split(findSplit()), ranges(b, this->sizes[split], leastInRange()) {}

  /// How many there are, a size that the host reads.
  OpFoldResult count(TensorBuilder &b);
  /// Their coordinates, a column for each element, in a tensor of the sizes
  /// `out`. They must have been counted.
  Value positions(TensorBuilder &b, ArrayRef<OpFoldResult> out);

private:
  /// The first dimension that is not known to be of size 1, or the last.
  int64_t findSplit() const {
    int64_t dim = 0, last = sizes.size() - 1;
    while (dim < last && getStaticSize(sizes[dim]) == 1)
      ++dim;
    return dim;
  }
  int64_t leastInRange() const {
    int64_t inner = 1;
    for (OpFoldResult size : ArrayRef(sizes).drop_front(split + 1)) {
      int64_t known = getStaticSize(size).value_or(kMinRange);
      inner =
          std::min(inner * std::clamp<int64_t>(known, 1, kMinRange), kMinRange);
    }
    return kMinRange / inner;
  }
  /// Runs `body` at each true element of a range, with its coordinates.
  Values walk(TensorBuilder &b, Value range, ValueRange state,
              function_ref<Values(TensorBuilder &, ValueRange at, ValueRange)>
                  body) const;

  Value tensor;
  Type onnxType;
  Sizes sizes;
  /// The dimension that is cut into ranges.
  int64_t split;
  Ranges ranges;
  /// For each range, how many true elements there are in it, [ranges,1], and
  /// before it, [ranges].
  Value inRange, before;
};

Values TrueElements::walk(
    TensorBuilder &b, Value range, ValueRange state,
    function_ref<Values(TensorBuilder &, ValueRange, ValueRange)> body) const {
  Value begin = ranges.begin(b, range);
  Sizes counts = sizes;
  counts[split] = ranges.size(b, begin);
  return nest(
      b, counts, state, [&](TensorBuilder &s, ValueRange i, ValueRange state) {
        SmallVector<Value> at(i);
        at[split] = s.add(at[split], begin);
        Value hit = isTrue(s, s.extract(tensor, at), onnxType);
        return when(s, hit, state,
                    [&](TensorBuilder &t) { return body(t, at, state); });
      });
}

OpFoldResult TrueElements::count(TensorBuilder &b) {
  Type i64 = b.getI64Type();
  inRange =
      forEachRow(b, b.empty({ranges.count(), b.size(1)}, i64),
                 [&](TensorBuilder &s, Value range, ValueRange rows) -> Values {
                   Value sum =
                       walk(s, range, s.integer(i64, 0),
                            [&](TensorBuilder &t, ValueRange,
                                ValueRange state) -> Values {
                              return {t.add(state.front(), t.integer(i64, 1))};
                            })
                           .front();
                   return {put(s, sum, rows.front(), s.index(int64_t(0)))};
                 })
          .front();
  Value zero = b.index(int64_t(0)), number = b.index(ranges.count());
  Values made = {b.empty(ranges.count(), i64), b.empty(b.size(1), i64)};
  made = runOnce(b, made, [&](TensorBuilder &s, ValueRange made) -> Values {
    Values state = {made.front(), s.integer(i64, 0)};
    state = loop(s, zero, number, state,
                 [&](TensorBuilder &t, Value i, ValueRange state) -> Values {
                   Value next = t.add(state[1], t.extract(inRange, {i, zero}));
                   return {put(t, state[1], state[0], i), next};
                 });
    return {state[0], put(s, state[1], made.back(), zero)};
  });
  before = made.front();
  return b.convert(b.extract(made.back(), zero), b.getIndexType());
}

Value TrueElements::positions(TensorBuilder &b, ArrayRef<OpFoldResult> out) {
  Type i64 = b.getI64Type();
  OpFoldResult rank = b.size(sizes.size());
  Value zero = b.index(int64_t(0));
  auto partOf = [&](TensorBuilder &s, ValueRange range, unsigned) {
    auto read = [&](Value list, ValueRange at) {
      return s.convert(s.extract(list, at), s.getIndexType());
    };
    return Part{{s.size(0), s.size(0), read(before, range.front())},
                {s.size(1), rank, read(inRange, {range.front(), zero})},
                {0}};
  };
  auto write = [&](TensorBuilder &s, ValueRange range, ValueRange parts) {
    Values state = {parts.front(), zero};
    state =
        walk(s, range.front(), state,
             [&](TensorBuilder &t, ValueRange at, ValueRange state) -> Values {
               Value part = state[0];
               for (auto [dim, index] : llvm::enumerate(at))
                 part = put(t, t.convert(index, i64), part,
                            {t.index(static_cast<int64_t>(dim)), state[1]});
               return {part, t.add(state[1], t.index(1))};
             });
    return Values{state.front()};
  };
  Value row = asOneRow(b, b.empty(out, i64));
  return onlyRow(b, forEachTask(b, ranges.count(), row, partOf, write).front());
}

LogicalResult lowerNonZero(Lowering<onnx::NonZeroOp> &b) {
  Value x = b.in.getX();
  Sizes sizes = b.dims(x);
  int64_t rank = sizes.size();
  if (rank == 0) { // The rank of a scalar is 0: a [0, n] result.
    x = b.reshape(x, {b.size(1)});
    sizes = {b.size(1)};
  }
  TrueElements elements(b, x, getOnnxElementType(b.op.getX()), sizes);
  Sizes out = {b.size(rank), elements.count(b)};
  if (RankedTensorType declared = b.declared())
    out = refineSizes(b, out, declared);
  if (isEmptyBox(out))
    return b.replace(b.empty(out, b.getI64Type()));
  return b.replace(elements.positions(b, out));
}

LogicalResult lowerCompress(Lowering<onnx::CompressOp> &b) {
  Value input = b.in.getInput(), condition = b.in.getCondition();
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
  // Conditions past the axis' end select nothing.
  Size length = b.dim(condition, 0);
  std::optional<int64_t> given = getStaticSize(length),
                         known = getStaticSize(sizes[axis]);
  length = given && known
               ? b.size(std::min(*given, *known))
               : Size(b.minimum(b.index(length), b.index(sizes[axis])));
  TrueElements elements(b, condition, b.getI1Type(), {length});
  Sizes out = sizes;
  out[axis] = elements.count(b);
  if (RankedTensorType declared = b.declared())
    out = refineSizes(b, out, declared);
  if (isEmptyBox(out))
    return b.replace(b.empty(out, elementTypeOf(input)));
  Value list = elements.positions(b, {b.size(1), out[axis]});
  list = b.reshape(list, {out[axis]});
  ArrayRef<Size> all(sizes);
  Value flat = b.reshape(input, {b.product(all.take_front(axis)), sizes[axis],
                                 b.product(all.drop_front(axis + 1))});
  return b.replace(b.reshape(takeSlices(b, flat, list), out));
}

} // namespace

void populateSelectPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::NonZeroOp, lowerNonZero>(patterns, converter);
  addLowering<onnx::CompressOp, lowerCompress>(patterns, converter);
}

} // namespace sardonyx
