//===- Doubles.cpp - Arithmetic on f64 ------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Doubles.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

Double Double::constant(double number) const {
  return with(arith::ConstantOp::create(*b, loc, b->getF64FloatAttr(number)));
}

template <typename OpTy> static Double combine(Double x, Double y) {
  return x.with(OpTy::create(*x.b, x.loc, x.value, y.value));
}

Double nv::operator+(Double x, Double y) {
  return combine<arith::AddFOp>(x, y);
}
Double nv::operator-(Double x, Double y) {
  return combine<arith::SubFOp>(x, y);
}
Double nv::operator*(Double x, Double y) {
  return combine<arith::MulFOp>(x, y);
}
Double nv::operator/(Double x, Double y) {
  return combine<arith::DivFOp>(x, y);
}
Double nv::operator-(Double x) {
  return x.with(arith::NegFOp::create(*x.b, x.loc, x.value));
}
Double nv::operator+(Double x, double y) { return x + x.constant(y); }
Double nv::operator-(double x, Double y) { return y.constant(x) - y; }
Double nv::operator*(Double x, double y) { return x * x.constant(y); }

static Value compare(arith::CmpFPredicate predicate, Double x, Double y) {
  return arith::CmpFOp::create(*x.b, x.loc, predicate, x.value, y.value);
}

Value nv::operator<(Double x, double y) {
  return compare(arith::CmpFPredicate::OLT, x, x.constant(y));
}
Value nv::operator>(Double x, double y) {
  return compare(arith::CmpFPredicate::OGT, x, x.constant(y));
}
Value nv::operator>(Double x, Double y) {
  return compare(arith::CmpFPredicate::OGT, x, y);
}
Value nv::isEqual(Double x, double y) {
  return compare(arith::CmpFPredicate::OEQ, x, x.constant(y));
}
Value nv::isEqual(Double x, Double y) {
  return compare(arith::CmpFPredicate::OEQ, x, y);
}
Value nv::isNaN(Double x) { return compare(arith::CmpFPredicate::UNO, x, x); }

Double nv::fma(Double x, Double y, Double z) {
  return x.with(math::FmaOp::create(*x.b, x.loc, x.value, y.value, z.value));
}
Double nv::fma(Double x, double y, Double z) {
  return fma(x, x.constant(y), z);
}
Double nv::sqrt(Double x) {
  return x.with(math::SqrtOp::create(*x.b, x.loc, x.value));
}
Double nv::abs(Double x) {
  return x.with(math::AbsFOp::create(*x.b, x.loc, x.value));
}
Double nv::round(Double x) {
  return x.with(math::RoundEvenOp::create(*x.b, x.loc, x.value));
}
Double nv::copySign(Double size, Double sign) {
  return size.with(
      math::CopySignOp::create(*size.b, size.loc, size.value, sign.value));
}
Double nv::select(Value condition, Double x, Double y) {
  return x.with(
      arith::SelectOp::create(*x.b, x.loc, condition, x.value, y.value));
}

Double nv::polynomial(Double x, ArrayRef<double> coefficients) {
  Double sum = x.constant(coefficients.front());
  for (double c : coefficients.drop_front())
    sum = fma(sum, x, x.constant(c));
  return sum;
}
