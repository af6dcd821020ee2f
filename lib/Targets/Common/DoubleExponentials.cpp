//===- DoubleExponentials.cpp - exp, log and what is made of them ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments are reduced to a short range, where a Taylor series of as many
// terms as f64 needs is the function. Where a result would cancel, parts that
// rounding took are carried along.
//
//===----------------------------------------------------------------------===//

#include "Common/Doubles.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::doubles;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// ln(2) as a sum.
constexpr double kLn2 = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;

/// 1 / first! to 1 / last!, the last first.
static SmallVector<double> getReciprocalFactorials(int first, int last,
                                                   int step = 1) {
  SmallVector<double> result;
  for (int k = last; k >= first; k -= step)
    result.push_back(1 / std::tgamma(k + 1.0));
  return result;
}

/// 2^n for a whole number n from -1022 to 1023.
static Double makePower(Double n) {
  return n.fromBits(arith::ShLIOp::create(
      *n.b, n.loc, n.toInteger(/*bias=*/1023), n.integer(52)));
}

/// exp(x + low) * 2^shift for a small `low`. Two factors overflow and underflow
/// as the result does.
static Double expScaled(Double x, Double low, double shift) {
  // Beyond, the result is infinity or 0. A NaN is on neither side.
  x = select(x > 720.0, x.constant(720.0), x);
  x = select(x < -760.0, x.constant(-760.0), x);
  Double n = round(x * 0x1.71547652b82fep+0);
  Double r = fma(n, -kLn2, x);
  r = fma(n, -kLn2Low, r) + low;
  Double p = polynomial(r, getReciprocalFactorials(0, 13));
  n = n + shift;
  Double half = round(n * 0.5);
  return p * makePower(half) * makePower(n - half);
}

Double doubles::exp(Double x) { return expScaled(x, x.constant(0), 0); }

/// x * (1 + x/2! + ...) near 0.
Double doubles::expm1(Double x) {
  Double series = x * polynomial(x, getReciprocalFactorials(1, 15));
  Value isSmall = abs(x) < 0.35;
  return select(isSmall, series, exp(x) + -1.0);
}

namespace {
/// A number as a sum of two, the second below half a unit in the last place of
/// the first.
struct Sum {
  Double high, low;
};
} // namespace

std::pair<Double, Double> doubles::splitExponent(Double x) {
  OpBuilder &b = *x.b;
  Location loc = x.loc;
  Value bits = x.toBits();
  // The exponent of x / sqrt(1/2), whose bits these are, plus 1023.
  Value above = arith::AddIOp::create(
      b, loc, bits, x.integer((int64_t(1023) << 52) - 0x3fe6a09e667f3bcd));
  Value biased = arith::ShRUIOp::create(b, loc, above, x.integer(52));
  Value e = arith::SubIOp::create(b, loc, biased, x.integer(1023));
  Double m = x.fromBits(arith::SubIOp::create(
      b, loc, bits, arith::ShLIOp::create(b, loc, e, x.integer(52))));
  // As the last bits of a number above 2^52.
  Double exponent = x.fromBits(arith::OrIOp::create(
                        b, loc, biased, x.integer(0x4330000000000000))) +
                    -(0x1p52 + 1023);
  return {exponent, m};
}

/// The logarithm of a positive normal number or a subnormal one:
/// x = 2^e * m with sqrt(1/2) <= m < sqrt(2), log(m) = 2 * atanh(s) with
/// s = (m - 1) / (m + 1) up to 0.172.
static Sum logAsSum(Double x) {
  Value isSmall = x < std::numeric_limits<double>::min();
  Double scaled = select(isSmall, x * 0x1p54, x);
  auto [exponent, m] = splitExponent(scaled);
  exponent = select(isSmall, exponent + -54.0, exponent);

  // m - 1 is exact. What rounding m + 1 took counts in the quotient.
  Double up = m + -1.0, down = m + 1.0;
  Double lost = m - (down + -1.0);
  Double s = up / down;
  Double rest = fma(-s, down, up);
  rest = fma(-s, lost, rest);
  Double low = rest / down;
  Double z = s * s;
  SmallVector<double> series;
  for (int k = 11; k >= 0; --k)
    series.push_back(2.0 / (2 * k + 3));
  Double tail = s * z * polynomial(z, series);
  tail = fma(low, 2.0, tail);
  tail = fma(exponent, kLn2Low, tail);
  // e * ln(2) + 2 * s, exactly as a sum, the larger first.
  Double large = exponent * kLn2;
  Double largeLow = fma(exponent, kLn2, -large);
  Double second = s * 2.0;
  Double sum = large + second;
  Double back = sum - large;
  Double sumLow = (large - (sum - back)) + (second - back);
  tail = tail + (sumLow + largeLow);
  Double high = sum + tail;
  return {high, (sum - high) + tail};
}

Double doubles::log(Double x) {
  Double result = logAsSum(x).high;
  result = select(isEqual(x, kInfinity), x, result);
  result = select(isEqual(x, 0.0), x.constant(-kInfinity), result);
  Double none = x.constant(std::numeric_limits<double>::quiet_NaN());
  result = select(x < 0.0, none, result);
  return select(isNaN(x), x, result);
}

/// log(u) for u = 1 + x, and what rounding u took.
Double doubles::log1p(Double x) {
  Double u = x + 1.0;
  Double lost = x - (u + -1.0);
  Double result = log(u) + lost / u;
  // Where u is infinite or 0 nothing was lost.
  result = select(isEqual(u, kInfinity), u, result);
  result = select(isEqual(u, 0.0), x.constant(-kInfinity), result);
  // Keeps the sign of 0, and numbers that 1 swallows.
  return select(abs(x) < 0x1p-54, x, result);
}

/// Whether y is whole, and whether it is odd.
static std::pair<Value, Value> classify(Double y) {
  Value isWhole = isEqual(round(y), y);
  Double half = y * 0.5;
  Value isEven = isEqual(round(half), half);
  OpBuilder &b = *y.b;
  Value isOdd = arith::CmpIOp::create(b, y.loc, arith::CmpIPredicate::ult,
                                      isEven, isWhole);
  return {isWhole, isOdd};
}

/// exp(y * log(|x|)) with a logarithm that is a sum, and C's special cases.
Double doubles::pow(Double x, Double y) {
  OpBuilder &b = *x.b;
  Location loc = x.loc;
  Double size = abs(x);
  auto [high, low] = logAsSum(size);
  Double product = y * high;
  Double productLow = fma(y, low, fma(y, high, -product));
  // Far beyond, where parts are no numbers, the size alone counts.
  Double zero = x.constant(0);
  productLow = select(abs(product) < 800.0, productLow, zero);
  Double result = expScaled(product, productLow, 0);

  Value isZero = isEqual(size, 0.0), isInfinite = isEqual(size, kInfinity);
  Value isExtreme = arith::OrIOp::create(b, loc, isZero, isInfinite);
  // |x| > 1 to a positive power, or below 1 to a negative one, grows.
  Value grows = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                      size > 1.0, y > 0.0);
  Double extreme = select(grows, x.constant(kInfinity), zero);
  Value isExtremeY = isEqual(abs(y), kInfinity);
  result = select(arith::OrIOp::create(b, loc, isExtreme, isExtremeY), extreme,
                  result);
  auto [isWhole, isOdd] = classify(y);
  Double none = x.constant(std::numeric_limits<double>::quiet_NaN());
  Value isNegative = x < 0.0;
  Value isNegativeFraction = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ult, isWhole, isNegative);
  Value hasNone =
      arith::AndIOp::create(b, loc, isNegativeFraction, abs(x) < kInfinity);
  result = select(hasNone, none, result);
  result = select(isOdd, copySign(result, x), result);
  result = select(isNaN(x), x, result);
  result = select(isNaN(y), y, result);
  Value isOne = arith::AndIOp::create(b, loc, isEqual(size, 1.0), isExtremeY);
  isOne = arith::OrIOp::create(b, loc, isOne, isEqual(x, 1.0));
  isOne = arith::OrIOp::create(b, loc, isOne, isEqual(y, 0.0));
  return select(isOne, x.constant(1), result);
}

/// The series near 0, where exp(x) and exp(-x) would cancel. Halves overflow
/// where the result does.
Double doubles::sinh(Double x) {
  Double zero = x.constant(0), z = x * x, size = abs(x);
  Double series = x * polynomial(z, getReciprocalFactorials(1, 21, 2));
  Double halves = expScaled(size, zero, -1) - expScaled(-size, zero, -1);
  return select(size < 1.0, series, copySign(halves, x));
}

Double doubles::cosh(Double x) {
  Double zero = x.constant(0), size = abs(x);
  return expScaled(size, zero, -1) + expScaled(-size, zero, -1);
}

/// t / (t + 2) for t = exp(2 * |x|) - 1, which is 1 from 22 on.
Double doubles::tanh(Double x) {
  Double size = abs(x);
  size = select(size > 22.0, x.constant(22.0), size);
  Double t = expm1(size * 2.0);
  return copySign(t / (t + 2.0), x);
}

Double doubles::asinh(Double x) {
  Double size = abs(x);
  Double root = sqrt(fma(size, size, x.constant(1)));
  Double near = log1p(size + size * size / (root + 1.0));
  Double far = log(size) + kLn2;
  return copySign(select(size > 0x1p28, far, near), x);
}

Double doubles::acosh(Double x) {
  Double t = x + -1.0;
  Double near = log1p(t + sqrt(t * (t + 2.0)));
  Double none = x.constant(std::numeric_limits<double>::quiet_NaN());
  Double result = select(x > 0x1p28, log(x) + kLn2, near);
  return select(x < 1.0, none, result);
}

Double doubles::atanh(Double x) {
  Double size = abs(x);
  Double half = log1p(size * 2.0 / (1.0 - size)) * 0.5;
  return copySign(half, x);
}

/// Up to 1 the series; from there to 6, where it rounds to 1,
/// 1 - exp(-x^2) * p((x - 2) / (x + 2)), p being the interpolation of
/// exp(x^2) * erfc(x) at Chebyshev's nodes (relative error 2.6e-17).
Double doubles::erf(Double x) {
  SmallVector<double> series;
  for (int k = 20; k >= 0; --k)
    series.push_back((k % 2 ? -1 : 1) * 1.12837916709551257390 /
                     (std::tgamma(k + 1.0) * (2 * k + 1)));
  Double z = x * x;
  Double near = x * polynomial(z, series);
  Double size = abs(x);
  size = select(size > 6.0, x.constant(6.0), size);
  Double t = (size + -2.0) / (size + 2.0);
  Double u = (t + -1.0 / 12) * 2.4;
  Double p = polynomial(
      u,
      {-1.44699824416527e-13, -9.322625665077648e-13, 1.3814895666696317e-13,
       2.2116979780642114e-11, 7.360808783224864e-11, -2.686679834785184e-10,
       -2.624003915784767e-09, -5.886312276426317e-10, 7.005318619856776e-08,
       1.6349938600825785e-07, -1.9795618160494947e-06, -7.340517941396605e-06,
       8.079220426246222e-05, 0.0001971391777283485, -0.005588816281839575,
       0.038560570425182406, -0.16189356804102498, 0.2214295402299318});
  Double far = 1.0 - exp(-(size * size)) * p;
  return select(abs(x) < 1.0, near, copySign(far, x));
}
