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

} // namespace

Value repeatEnds(TensorBuilder &b, Value data, ArrayRef<OpFoldResult> low,
                 ArrayRef<OpFoldResult> high, ArrayRef<OpFoldResult> sizes,
                 StringRef mode) {
  SmallVector<int64_t> dims;
  SmallVector<Value> tables;
  for (auto [dim, in] : llvm::enumerate(b.dims(data))) {
    if (getStaticSize(low[dim]) == 0 && getStaticSize(high[dim]) == 0)
      continue;
    PaddedDim padded{in, low[dim], high[dim], sizes[dim]};
    dims.push_back(dim);
    tables.push_back(padded.makeTable(b, mode));
  }
  return dims.empty() ? data : pickAlong(b, data, dims, tables, sizes);
}

} // namespace sardonyx
