//===- DoubleRemainder.cpp - The remainder of a division ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/Doubles.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::doubles;

/// A size x = mantissa * 2^(exponent - 1075) with a mantissa of 53 bits, unless
/// x is 0.
static std::pair<Value, Value> split(Double x) {
  OpBuilder &b = *x.b;
  Location loc = x.loc;
  Value bits = arith::BitcastOp::create(b, loc, b.getI64Type(), x.value);
  Value field = arith::ShRUIOp::create(b, loc, bits, x.integer(52));
  Value fraction =
      arith::AndIOp::create(b, loc, bits, x.integer(0x000fffffffffffff));
  Value normal =
      arith::OrIOp::create(b, loc, fraction, x.integer(0x0010000000000000));
  // A subnormal number has no first bit by itself.
  Value zeros = arith::SubIOp::create(
      b, loc, math::CountLeadingZerosOp::create(b, loc, fraction),
      x.integer(11));
  Value moved = arith::ShLIOp::create(b, loc, fraction, zeros);
  Value isSubnormal = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                            field, x.integer(0));
  Value less = arith::SubIOp::create(b, loc, x.integer(1), zeros);
  return {arith::SelectOp::create(b, loc, isSubnormal, moved, normal),
          arith::SelectOp::create(b, loc, isSubnormal, less, field)};
}

/// The division by hand, a bit of the quotient at a time, which is exact.
Double doubles::fmod(Double x, Double y) {
  OpBuilder &b = *x.b;
  Location loc = x.loc;
  Double sizeX = abs(x), sizeY = abs(y);
  auto [m, exponent] = split(sizeX);
  const std::pair<Value, Value> ofY = split(sizeY);
  Value divisor = ofY.first, least = ofY.second;
  Value zero = x.integer(0), one = x.integer(1);
  auto subtract = [&](Value from) -> Value {
    Value rest = arith::SubIOp::create(b, loc, from, divisor);
    Value fits =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, rest, zero);
    return arith::SelectOp::create(b, loc, fits, rest, from);
  };
  Value steps = arith::SubIOp::create(b, loc, exponent, least);
  auto loop = scf::ForOp::create(b, loc, zero, steps, one, ValueRange{m});
  Block *after = b.getInsertionBlock();
  auto place = b.getInsertionPoint();
  b.setInsertionPointToStart(loop.getBody());
  Value next =
      arith::ShLIOp::create(b, loc, subtract(loop.getRegionIterArgs()[0]), one);
  scf::YieldOp::create(b, loc, next);
  b.setInsertionPoint(after, place);
  Value rest = subtract(loop.getResult(0));
  // rest * 2^(least - 1075) by two factors, neither of which leaves the range.
  auto power = [&](Value n) {
    Value bits = arith::ShLIOp::create(
        b, loc, arith::AddIOp::create(b, loc, n, x.integer(1023)),
        x.integer(52));
    return x.with(arith::BitcastOp::create(b, loc, b.getF64Type(), bits));
  };
  Value n = arith::SubIOp::create(b, loc, least, x.integer(1075));
  Value half = arith::ShRSIOp::create(b, loc, n, one);
  Double result =
      x.with(arith::UIToFPOp::create(b, loc, b.getF64Type(), rest)) *
      power(half) * power(arith::SubIOp::create(b, loc, n, half));
  result = copySign(result, x);
  result = select(sizeY > sizeX, x, result);
  // Nothing is left of infinity, nor after a division by 0.
  Double none = x.constant(std::numeric_limits<double>::quiet_NaN());
  result = select(isEqual(y, 0.0), none, result);
  result = select(isEqual(sizeX, std::numeric_limits<double>::infinity()), none,
                  result);
  result = select(isNaN(x), x, result);
  return select(isNaN(y), y, result);
}
