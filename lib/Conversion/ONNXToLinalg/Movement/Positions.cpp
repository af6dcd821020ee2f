//===- Positions.cpp - Places that data decide ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement/Positions.h"

#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/RowLoop.h"

using namespace mlir;

namespace sardonyx {

/// Slices of fewer elements are not copied by a task each.
static constexpr int64_t kMinSlice = 8;

Value checkedIndex(OpBuilder &b, Location loc, Value raw, Value size) {
  Value given = toIndex(b, loc, raw), index = given;
  Value zero = createIndex(b, loc, 0);
  Value negative = compare(b, loc, arith::CmpIPredicate::slt, index, zero);
  Value wrapped = arith::AddIOp::create(b, loc, index, size);
  index = arith::SelectOp::create(b, loc, negative, wrapped, index);
  Value inside = compare(b, loc, arith::CmpIPredicate::ult, index, size);
  createCheck(b, loc, inside,
              "index {0} is out of range for a dimension of size {1}",
              {Size(given), Size(size)});
  return arith::SelectOp::create(b, loc, inside, index, zero);
}

void checkReaches(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> want,
                  ArrayRef<OpFoldResult> have, int64_t except) {
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip(want, have)))
    if (int64_t(dim) != except)
      checkSizeAtMost(b, loc, std::get<0>(sizes), std::get<1>(sizes),
                      "sizes of the operands do not fit in dimension " +
                          Twine(dim));
}

/// Each element on its own, so that short slices can be part of what is
/// computed with them.
static Value takeElements(TensorBuilder &b, Value flat, Value list) {
  Value extent = b.index(b.dim(flat, 1));
  return createIndexed(
      b, b.getLoc(), {b.dim(flat, 0), b.dim(list, 0), b.dim(flat, 2)},
      elementTypeOf(flat),
      [&](OpBuilder &inner, Location at, ValueRange i) -> Value {
        Value raw = tensor::ExtractOp::create(inner, at, list, i[1]);
        Value index = checkedIndex(inner, at, raw, extent);
        return tensor::ExtractOp::create(inner, at, flat,
                                         ValueRange{i[0], index, i[2]});
      });
}

Value pickAlong(
    TensorBuilder &b, Value data, ArrayRef<int64_t> dims, ValueRange tables,
    ArrayRef<OpFoldResult> sizes,
    llvm::function_ref<Value(TensorBuilder &, Value index, Value picked)>
        placeLast) {
  const int64_t rank = sizes.size();
  SmallVector<AffineMap> maps;
  for (int64_t dim : dims)
    maps.push_back(b.dimsMap(rank, {dim}));
  return b
      .elementwise(
          sizes, tables, maps, {elementTypeOf(data)},
          [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
            SmallVector<Value> at;
            for (int64_t dim = 0; dim < rank; ++dim)
              at.push_back(linalg::IndexOp::create(s, dim));
            Value last = at.back();
            for (auto [dim, index] : llvm::zip_equal(dims, args))
              at[dim] = s.convert(index, s.getIndexType());
            if (placeLast)
              at.back() = placeLast(s, last, at.back());
            return {s.extract(data, at)};
          })
      .front();
}

Type getPositionType(TensorBuilder &b, OpFoldResult size) {
  std::optional<int64_t> known = getStaticSize(size);
  return known && *known <= std::numeric_limits<int32_t>::max()
             ? b.getI32Type()
             : b.getI64Type();
}

Value takeSlices(TensorBuilder &b, Value flat, Value list) {
  OpFoldResult rows = b.dim(flat, 0), extent = b.dim(flat, 1);
  OpFoldResult count = b.dim(list, 0), length = b.dim(flat, 2);
  std::optional<int64_t> known = getStaticSize(length);
  if (known && *known < kMinSlice)
    return takeElements(b, flat, list);
  if (isEmptyBox({rows, extent, count, length}))
    return takeElements(b, flat, list);
  // One slice is a view.
  if (getStaticSize(count) == 1) {
    Value raw = b.extract(list, b.index(int64_t(0)));
    Value index = checkedIndex(b, b.getLoc(), raw, b.index(extent));
    return b.slice(flat, {b.size(0), index, b.size(0)},
                   {rows, b.size(1), length});
  }
  Value end = b.index(extent), zero = b.index(int64_t(0));
  // Each slice is a task.
  auto take = [&](TensorBuilder &s, Value row, Value number) -> Values {
    Value raw = s.extract(list, number);
    Value index = checkedIndex(s, s.getLoc(), raw, end);
    return {s.slice(flat, {row, index, s.size(0)},
                    {s.size(1), s.size(1), length}, {0, 1})};
  };
  if (getStaticSize(rows) == 1) {
    Value empty = b.empty({count, length}, elementTypeOf(flat));
    auto body = [&](TensorBuilder &s, Value number, ValueRange) {
      return take(s, zero, number);
    };
    return asOneRow(b, forEachRow(b, empty, body).front());
  }
  Value empty = b.empty({rows, count, length}, elementTypeOf(flat));
  auto partOf = [&](TensorBuilder &s, ValueRange task, unsigned) {
    return Part{
        {task[0], task[1], s.size(0)}, {s.size(1), s.size(1), length}, {0, 1}};
  };
  auto body = [&](TensorBuilder &s, ValueRange task, ValueRange) {
    return take(s, task[0], task[1]);
  };
  return forEachTask(b, {rows, count}, empty, partOf, body).front();
}

SmallVector<Value> getTuple(OpBuilder &b, Location loc, Value indices,
                            ValueRange prefix, int64_t tuple,
                            ArrayRef<Value> extents, int64_t batch) {
  SmallVector<Value> position(prefix.take_front(batch));
  for (int64_t k = 0; k < tuple; ++k) {
    SmallVector<Value> at(prefix);
    at.push_back(createIndex(b, loc, k));
    Value raw = tensor::ExtractOp::create(b, loc, indices, at);
    position.push_back(checkedIndex(b, loc, raw, extents[batch + k]));
  }
  return position;
}

} // namespace sardonyx
