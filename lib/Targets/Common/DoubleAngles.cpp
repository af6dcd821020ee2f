//===- DoubleAngles.cpp - sin, cos, tan and their inverses ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/Doubles.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::doubles;

/// pi/2 as a sum.
constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                              -0x1.f1976b7ed8fbcp-110};
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
/// From here on an angle is reduced by the bits of 2/pi.
constexpr double kLargeAngle = 0x1p31;

/// 64 bits that are 0, and those of 2/pi after the point.
static constexpr uint64_t kBitsOfTwoOverPi[] = {
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0,
    0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0,
    0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484,
    0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB};

namespace {

/// An angle from -pi/4 to pi/4, and by how many right angles another is larger,
/// of which the lowest two bits count.
struct Reduced {
  Double angle;
  Value quarters;
};

/// Integers of 64 bits.
class Words {
public:
  explicit Words(Double x) : b(*x.b), loc(x.loc) {}

  Value constant(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value bitAnd(Value x, int64_t y) {
    return arith::AndIOp::create(b, loc, x, constant(y));
  }
  Value left(Value x, Value y) { return arith::ShLIOp::create(b, loc, x, y); }
  Value right(Value x, Value y) { return arith::ShRUIOp::create(b, loc, x, y); }
  /// The upper and the lower word of a product.
  std::pair<Value, Value> multiply(Value x, Value y) {
    auto product = arith::MulUIExtendedOp::create(b, loc, x, y);
    return {product.getHigh(), product.getLow()};
  }
  /// 1 where the sum x = y + ... has overflown.
  Value carry(Value x, Value y) {
    Value less = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, y);
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), less);
  }

  OpBuilder &b;
  const Location loc;
};

} // namespace

/// The table in the module of kernels around.
static LLVM::GlobalOp getTable(OpBuilder &b, Location loc) {
  auto module =
      b.getInsertionBlock()->getParentOp()->getParentOfType<gpu::GPUModuleOp>();
  if (!module)
    return {};
  constexpr StringLiteral kName = "bits_of_two_over_pi";
  if (auto known = module.lookupSymbol<LLVM::GlobalOp>(kName))
    return known;
  SmallVector<int64_t> words(std::begin(kBitsOfTwoOverPi),
                             std::end(kBitsOfTwoOverPi));
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  constexpr unsigned kConstantSpace = 4;
  return LLVM::GlobalOp::create(
      top, loc, LLVM::LLVMArrayType::get(top.getI64Type(), words.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, kName,
      top.getI64TensorAttr(words), /*alignment=*/8, kConstantSpace);
}

/// A large angle x = m * 2^k, m of 53 bits, times 2/pi, modulo 4 (Payne and
/// Hanek): bits of 2/pi above those that count only add multiples of 4, and of
/// those below 192 are enough for the smallest remainder that there is.
static Reduced reduceLarge(Double x, LLVM::GlobalOp table) {
  Words w(x);
  OpBuilder &b = w.b;
  Location loc = w.loc;
  Type i64 = b.getI64Type();
  Value bits = arith::BitcastOp::create(b, loc, i64, x.value);
  Value exponent = w.bitAnd(w.right(bits, w.constant(52)), 0x7ff);
  Value m = arith::OrIOp::create(b, loc, w.bitAnd(bits, 0x000fffffffffffff),
                                 w.constant(0x0010000000000000));
  // k = exponent - 1075; the first bit that counts is k - 2, after 64 zeros.
  Value first = w.add(exponent, w.constant(64 - 2 - 1075));
  Value index = w.right(first, w.constant(6));
  Value shift = w.bitAnd(first, 63);
  Type pointer =
      LLVM::LLVMPointerType::get(b.getContext(), table.getAddrSpace());
  Value address =
      LLVM::AddressOfOp::create(b, loc, pointer, table.getSymName());
  SmallVector<Value> words;
  for (int64_t i = 0; i < 4; ++i) {
    Value place = LLVM::GEPOp::create(b, loc, pointer, i64, address,
                                      ValueRange{w.add(index, w.constant(i))});
    words.push_back(LLVM::LoadOp::create(b, loc, i64, place));
  }
  Value back = w.sub(w.constant(63), shift);
  SmallVector<Value> f;
  for (int64_t i = 0; i < 3; ++i)
    f.push_back(arith::OrIOp::create(
        b, loc, w.left(words[i], shift),
        w.right(w.right(words[i + 1], w.constant(1)), back)));
  // The lower 192 bits of m * f, in units of 2^-190.
  auto [high2, low2] = w.multiply(m, f[2]);
  auto [high1, low1] = w.multiply(m, f[1]);
  Value low0 = arith::MulIOp::create(b, loc, m, f[0]);
  Value middle = w.add(low1, high2);
  Value top = w.add(w.add(low0, high1), w.carry(middle, high2));
  (void)low2;
  Value quarters = w.right(w.add(w.right(top, w.constant(61)), w.constant(1)),
                           w.constant(1));
  Value rest = w.sub(top, w.left(quarters, w.constant(62)));
  auto toDouble = [&](Value value, bool isSigned, double unit) {
    Type f64 = b.getF64Type();
    Value number = isSigned
                       ? Value(arith::SIToFPOp::create(b, loc, f64, value))
                       : Value(arith::UIToFPOp::create(b, loc, f64, value));
    return x.with(number) * unit;
  };
  Double angle =
      toDouble(rest, true, 0x1p-62) + toDouble(middle, false, 0x1p-126);
  angle = angle * kHalfPi[0];
  Value isNegative = x < 0.0;
  angle = select(isNegative, -angle, angle);
  quarters = arith::SelectOp::create(b, loc, isNegative,
                                     w.sub(w.constant(0), quarters), quarters);
  // Infinity and what is no number have no angle.
  Double none = x - x;
  return {select(isEqual(x - x, 0.0), angle, none), quarters};
}

/// x - n * pi/2, n being the nearest.
static Reduced reduce(Double x) {
  OpBuilder &b = *x.b;
  Location loc = x.loc;
  Double n = round(x * kTwoOverPi);
  Double angle = x;
  for (double part : kHalfPi)
    angle = fma(n, -part, angle);
  // Keeps the sign of 0.
  angle = select(isEqual(n, 0.0), x, angle);
  Value quarters = n.toInteger();
  LLVM::GlobalOp table = getTable(b, loc);
  if (!table)
    return {angle, quarters};
  Value isSmall = abs(x) < kLargeAngle;
  auto ifOp = scf::IfOp::create(
      b, loc, TypeRange{b.getF64Type(), b.getI64Type()}, isSmall,
      /*addThenBlock=*/true, /*addElseBlock=*/true);
  auto yield = [&](Reduced reduced) {
    scf::YieldOp::create(b, loc,
                         ValueRange{reduced.angle.value, reduced.quarters});
  };
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  yield({angle, quarters});
  b.setInsertionPointToStart(ifOp.elseBlock());
  yield(reduceLarge(x, table));
  return {x.with(ifOp.getResult(0)), ifOp.getResult(1)};
}

/// Of an angle up to pi/4.
static Double sinNear(Double x) {
  SmallVector<double> series;
  for (int k = 19; k >= 3; k -= 2)
    series.push_back((k / 2 % 2 ? -1 : 1) / std::tgamma(k + 1.0));
  Double z = x * x;
  // -0 has no sign left after a sum with 0.
  return copySign(fma(z * x, polynomial(z, series), x), x);
}

static Double cosNear(Double x) {
  SmallVector<double> series;
  for (int k = 20; k >= 4; k -= 2)
    series.push_back((k / 2 % 2 ? -1 : 1) / std::tgamma(k + 1.0));
  Double z = x * x;
  // 1 - z/2 and what rounding it took.
  Double half = z * 0.5, high = 1.0 - half;
  Double low = (1.0 - high) - half;
  return high + fma(z * z, polynomial(z, series), low);
}

static Value hasBit(Value quarters, Double x, int64_t bit) {
  Value masked = arith::AndIOp::create(*x.b, x.loc, quarters, x.integer(bit));
  return arith::CmpIOp::create(*x.b, x.loc, arith::CmpIPredicate::ne, masked,
                               x.integer(0));
}

Double doubles::sin(Double x) {
  Reduced reduced = reduce(x);
  Double result = select(hasBit(reduced.quarters, x, 1), cosNear(reduced.angle),
                         sinNear(reduced.angle));
  return select(hasBit(reduced.quarters, x, 2), -result, result);
}

Double doubles::cos(Double x) {
  Reduced reduced = reduce(x);
  Double result = select(hasBit(reduced.quarters, x, 1),
                         -sinNear(reduced.angle), cosNear(reduced.angle));
  return select(hasBit(reduced.quarters, x, 2), -result, result);
}

Double doubles::tan(Double x) {
  Reduced reduced = reduce(x);
  Double sine = sinNear(reduced.angle), cosine = cosNear(reduced.angle);
  Value isOdd = hasBit(reduced.quarters, x, 1);
  return select(isOdd, -cosine, sine) / select(isOdd, sine, cosine);
}

/// atan(x) is pi/2 - atan(1/x) above 1, and pi/6 + atan((x * sqrt(3) - 1) /
/// (x + sqrt(3))) above tan(pi/12) = 2 - sqrt(3); below, its series.
Double doubles::atan(Double x) {
  constexpr double kRoot3 = 1.7320508075688772935;
  Double size = abs(x);
  Value isLarge = size > 1.0;
  Double y = select(isLarge, x.constant(1) / size, size);
  Value isMiddle = y > 2 - kRoot3;
  Double t = select(isMiddle, fma(y, kRoot3, x.constant(-1)) / (y + kRoot3), y);
  SmallVector<double> series;
  for (int k = 17; k >= 1; --k)
    series.push_back((k % 2 ? -1.0 : 1.0) / (2 * k + 1));
  Double z = t * t;
  Double angle = fma(t * z, polynomial(z, series), t);
  angle = select(isMiddle, angle + 0.52359877559829887308, angle);
  angle = select(isLarge, (kHalfPi[0] - angle) + kHalfPi[1], angle);
  return copySign(angle, x);
}

Double doubles::asin(Double x) { return atan(x / sqrt((1.0 - x) * (x + 1.0))); }

Double doubles::acos(Double x) {
  return atan(sqrt((1.0 - x) / (x + 1.0))) * 2.0;
}
