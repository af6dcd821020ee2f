//===- RepeatedEnds.cpp - Paddings that repeat elements -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table for each padded dimension names the positions that are read.
//
//===----------------------------------------------------------------------===//

#include "Movement/RepeatedEnds.h"
#include "Movement/Positions.h"
#include "Support/DataMovement.h"

using namespace mlir;

namespace sardonyx {

/// The position in [0, size) that `mode` reads for `position`, which may lie
/// outside: only up to a size away if it `isNear`.
static Value mapPosition(OpBuilder &b, Location loc, Value position, Value size,
                         StringRef mode, bool isNear) {
  Value zero = createIndex(b, loc, 0), one = createIndex(b, loc, 1);
  Value last = arith::SubIOp::create(b, loc, size, one);
  if (mode == "edge")
    return arith::MaxSIOp::create(
        b, loc, arith::MinSIOp::create(b, loc, position, last), zero);
  auto isLess = [&](Value x, Value y) {
    return compare(b, loc, arith::CmpIPredicate::slt, x, y);
  };
  if (isNear && mode == "wrap") {
    Value above = arith::AddIOp::create(b, loc, position, size);
    Value below = arith::SubIOp::create(b, loc, position, size);
    Value rest = arith::SelectOp::create(b, loc, isLess(last, position), below,
                                         position);
    return arith::SelectOp::create(b, loc, isLess(position, zero), above, rest);
  }
  if (isNear) {
    Value negated = arith::SubIOp::create(b, loc, zero, position);
    Value size = arith::MaxSIOp::create(b, loc, position, negated);
    Value period = arith::AddIOp::create(b, loc, last, last);
    return arith::MinSIOp::create(b, loc, size,
                                  arith::SubIOp::create(b, loc, period, size));
  }
  // A non-negative remainder, by a divisor of at least one.
  auto modulo = [&](Value value, Value divisor) -> Value {
    divisor = arith::MaxSIOp::create(b, loc, divisor, one);
    Value rest = arith::RemSIOp::create(b, loc, value, divisor);
    Value negative = compare(b, loc, arith::CmpIPredicate::slt, rest, zero);
    Value wrapped = arith::AddIOp::create(b, loc, rest, divisor);
    return arith::SelectOp::create(b, loc, negative, wrapped, rest);
  };
  if (mode == "wrap")
    return modulo(position, size);
  Value period = arith::AddIOp::create(b, loc, last, last);
  Value rest = modulo(position, period);
  Value mirrored = arith::SubIOp::create(b, loc, period, rest);
  Value past = compare(b, loc, arith::CmpIPredicate::sgt, rest, last);
  return arith::SelectOp::create(b, loc, past, mirrored, rest);
}

namespace {

/// What one dimension of a padding reads and makes.
struct PaddedDim {
  Size in, low, high, size;

  /// Whether no position is further outside than `mode` repeats at once; null
  /// if only a run knows.
  std::optional<bool> isNear(StringRef mode) const {
    std::optional<int64_t> known = getStaticSize(in), l = getStaticSize(low),
                           h = getStaticSize(high);
    if (!known || !l || !h)
      return std::nullopt;
    return std::max(*l, *h) <= *known - (mode == "reflect");
  }

  /// The position that is read for each of the result.
  Value makeTable(TensorBuilder &b, StringRef mode, bool isNear) const {
    Type type = getPositionType(b, in);
    return b
        .elementwise({size}, {}, {}, {type},
                     [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
                       Value at = linalg::IndexOp::create(s, 0);
                       Value place =
                           mapPosition(s, s.getLoc(), s.sub(at, s.index(low)),
                                       s.index(in), mode, isNear);
                       return {s.convert(place, type)};
                     })
        .front();
  }

  Value makeTable(TensorBuilder &b, StringRef mode) const {
    if (mode == "edge")
      return makeTable(b, mode, /*isNear=*/true);
    if (std::optional<bool> known = isNear(mode))
      return makeTable(b, mode, *known);
    Value reach = b.maximum(b.index(low), b.index(high));
    Value isNear = b.compare(mode == "reflect" ? arith::CmpIPredicate::slt
                                               : arith::CmpIPredicate::sle,
                             reach, b.index(in));
    auto yield = [&](bool near) {
      return [&, near](OpBuilder &builder, Location loc) {
        TensorBuilder s(loc, builder);
        scf::YieldOp::create(s, makeTable(s, mode, near));
      };
    };
    return scf::IfOp::create(b, isNear, yield(true), yield(false)).getResult(0);
  }
};

/// Where a position of a padded dimension is in what is padded.
struct PaddedPlace {
  PaddedPlace(TensorBuilder &b, Value index, OpFoldResult low, OpFoldResult in)
      : position(getStaticSize(low) == 0 ? index : b.sub(index, b.index(low))),
        // As unsigned, a negative position is out of range, too.
        isInside(b.compare(arith::CmpIPredicate::ult, position, b.index(in))) {}

  Value position, isInside;
};

} // namespace

Value repeatEnds(TensorBuilder &b, Value data, ArrayRef<OpFoldResult> low,
                 ArrayRef<OpFoldResult> high, ArrayRef<OpFoldResult> sizes,
                 StringRef mode) {
  SmallVector<int64_t> dims;
  SmallVector<Value> tables;
  const Sizes in = b.dims(data);
  for (auto [dim, size] : llvm::enumerate(in)) {
    if (getStaticSize(low[dim]) == 0 && getStaticSize(high[dim]) == 0)
      continue;
    PaddedDim padded{size, low[dim], high[dim], sizes[dim]};
    dims.push_back(dim);
    tables.push_back(padded.makeTable(b, mode));
  }
  if (dims.empty())
    return data;
  const int64_t last = sizes.size() - 1;
  if (dims.back() != last)
    return pickAlong(b, data, dims, tables, sizes);
  // Most of a row is a copy, which needs no table.
  return pickAlong(b, data, dims, tables, sizes,
                   [&](TensorBuilder &s, Value index, Value position) {
                     PaddedPlace place(s, index, low[last], in[last]);
                     return s.select(place.isInside, place.position, position);
                   });
}

Value surround(TensorBuilder &b, Value data, ArrayRef<OpFoldResult> low,
               ArrayRef<OpFoldResult> sizes, Value fill) {
  const int64_t rank = sizes.size();
  const Sizes in = b.dims(data);
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (getStaticSize(low[dim]) != 0 || !isSameSize(in[dim], sizes[dim]))
      dims.push_back(dim);
  if (dims.empty())
    return data;
  return createIndexed(
      b, b.getLoc(), sizes, elementTypeOf(data),
      [&](OpBuilder &inner, Location loc, ValueRange indices) -> Value {
        TensorBuilder s(loc, inner);
        SmallVector<Value> at(indices);
        Value isInside;
        for (int64_t dim : dims) {
          PaddedPlace place(s, at[dim], low[dim], in[dim]);
          at[dim] =
              s.select(place.isInside, place.position, s.index(int64_t(0)));
          isInside = isInside
                         ? arith::AndIOp::create(s, isInside, place.isInside)
                               .getResult()
                         : place.isInside;
        }
        return s.select(isInside, s.extract(data, at), fill);
      });
}

} // namespace sardonyx
