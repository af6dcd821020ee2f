//===- Doubles.h - Arithmetic on f64 ----------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_COMMON_DOUBLES_H
#define SARDONYX_TARGETS_COMMON_DOUBLES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

namespace sardonyx::doubles {

/// A number of f64, or a vector of such, and where operations on it are put.
struct Double {
  mlir::OpBuilder *b;
  mlir::Location loc;
  mlir::Value value;

  Double with(mlir::Value other) const { return {b, loc, other}; }
  Double constant(double number) const;
  /// As many integers of 64 bits.
  mlir::Value integer(int64_t number) const;
  /// The bits as integers, and the numbers of which `bits` are these.
  mlir::Value toBits() const;
  Double fromBits(mlir::Value bits) const;
  /// A whole number of less than 2^51 as an integer plus `bias`, which counts
  /// modulo 2^51.
  mlir::Value toInteger(int64_t bias = 0) const;
};

Double operator+(Double x, Double y);
Double operator-(Double x, Double y);
Double operator*(Double x, Double y);
Double operator/(Double x, Double y);
Double operator-(Double x);
Double operator+(Double x, double y);
Double operator-(double x, Double y);
Double operator*(Double x, double y);
mlir::Value operator<(Double x, double y);
mlir::Value operator>(Double x, double y);
mlir::Value operator>(Double x, Double y);
mlir::Value isEqual(Double x, double y);
mlir::Value isEqual(Double x, Double y);
mlir::Value isNaN(Double x);

/// x * y + z, rounded once.
Double fma(Double x, Double y, Double z);
Double fma(Double x, double y, Double z);
Double sqrt(Double x);
Double abs(Double x);
/// The nearest whole number, the even one of two.
Double round(Double x);
Double copySign(Double size, Double sign);
/// `x` where `condition` (i1) holds, else `y`.
Double select(mlir::Value condition, Double x, Double y);
/// The polynomial in x of these coefficients, the highest first.
Double polynomial(Double x, llvm::ArrayRef<double> coefficients);

/// e and m of a positive normal number x = 2^e * m with sqrt(1/2) <= m <
/// sqrt(2).
std::pair<Double, Double> splitExponent(Double x);

/// The functions of the C library, to a few units in the last place.
Double exp(Double x);
Double expm1(Double x);
Double log(Double x);
Double log1p(Double x);
Double pow(Double x, Double y);
Double sinh(Double x);
Double cosh(Double x);
Double tanh(Double x);
Double asinh(Double x);
Double acosh(Double x);
Double atanh(Double x);
Double erf(Double x);
/// Angles of 2^31 and more have the results of others, but in modules of
/// kernels of a GPU, where they are scalars.
Double sin(Double x);
Double cos(Double x);
Double tan(Double x);
Double asin(Double x);
Double acos(Double x);
Double atan(Double x);
/// Exact; of scalars.
Double fmod(Double x, Double y);

/// Adds a PatternT of each operation that one of these but fmod computes, and
/// of the function.
template <template <typename OpT, auto function> typename PatternT,
          typename... ArgsT>
void addPatterns(mlir::RewritePatternSet &patterns, ArgsT... args) {
  namespace math = mlir::math;
  patterns.add<PatternT<math::ExpOp, exp>, PatternT<math::ExpM1Op, expm1>,
               PatternT<math::LogOp, log>, PatternT<math::Log1pOp, log1p>,
               PatternT<math::PowFOp, pow>, PatternT<math::SinhOp, sinh>,
               PatternT<math::CoshOp, cosh>, PatternT<math::TanhOp, tanh>,
               PatternT<math::AsinhOp, asinh>, PatternT<math::AcoshOp, acosh>,
               PatternT<math::AtanhOp, atanh>, PatternT<math::ErfOp, erf>,
               PatternT<math::SinOp, sin>, PatternT<math::CosOp, cos>,
               PatternT<math::TanOp, tan>, PatternT<math::AsinOp, asin>,
               PatternT<math::AcosOp, acos>, PatternT<math::AtanOp, atan>>(
      patterns.getContext(), args...);
}

} // namespace sardonyx::doubles

#endif // SARDONYX_TARGETS_COMMON_DOUBLES_H
