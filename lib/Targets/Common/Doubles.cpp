//===- Doubles.cpp - Arithmetic on f64 ------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/Doubles.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::doubles;

/// A type of `element` with the lanes of `type`.
static Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.clone(element) : element;
}

static Value createConstant(OpBuilder &b, Location loc, Type type,
                            TypedAttr number) {
  if (auto vector = dyn_cast<VectorType>(type))
    number = DenseElementsAttr::get(vector, number);
  return arith::ConstantOp::create(b, loc, number);
}

Double Double::constant(double number) const {
  return with(
      createConstant(*b, loc, value.getType(), b->getF64FloatAttr(number)));
}

Value Double::integer(int64_t number) const {
  return createConstant(*b, loc, withElement(value.getType(), b->getI64Type()),
                        b->getI64IntegerAttr(number));
}

Value Double::toBits() const {
  Type type = withElement(value.getType(), b->getI64Type());
  return arith::BitcastOp::create(*b, loc, type, value);
}

Double Double::fromBits(Value bits) const {
  Type type = withElement(bits.getType(), b->getF64Type());
  return with(arith::BitcastOp::create(*b, loc, type, bits));
}

/// The sum with 1.5 * 2^52 has the integer in its last bits. No conversion of
/// vectors is an instruction of all processors.
Value Double::toInteger(int64_t bias) const {
  return (*this + (0x1.8p52 + bias)).toBits();
}

template <typename OpTy> static Double combine(Double x, Double y) {
  return x.with(OpTy::create(*x.b, x.loc, x.value, y.value));
}

Double doubles::operator+(Double x, Double y) {
  return combine<arith::AddFOp>(x, y);
}
Double doubles::operator-(Double x, Double y) {
  return combine<arith::SubFOp>(x, y);
}
Double doubles::operator*(Double x, Double y) {
  return combine<arith::MulFOp>(x, y);
}
Double doubles::operator/(Double x, Double y) {
  return combine<arith::DivFOp>(x, y);
}
Double doubles::operator-(Double x) {
  return x.with(arith::NegFOp::create(*x.b, x.loc, x.value));
}
Double doubles::operator+(Double x, double y) { return x + x.constant(y); }
Double doubles::operator-(double x, Double y) { return y.constant(x) - y; }
Double doubles::operator*(Double x, double y) { return x * x.constant(y); }

static Value compare(arith::CmpFPredicate predicate, Double x, Double y) {
  return arith::CmpFOp::create(*x.b, x.loc, predicate, x.value, y.value);
}

Value doubles::operator<(Double x, double y) {
  return compare(arith::CmpFPredicate::OLT, x, x.constant(y));
}
Value doubles::operator>(Double x, double y) {
  return compare(arith::CmpFPredicate::OGT, x, x.constant(y));
}
Value doubles::operator>(Double x, Double y) {
  return compare(arith::CmpFPredicate::OGT, x, y);
}
Value doubles::isEqual(Double x, double y) {
  return compare(arith::CmpFPredicate::OEQ, x, x.constant(y));
}
Value doubles::isEqual(Double x, Double y) {
  return compare(arith::CmpFPredicate::OEQ, x, y);
}
Value doubles::isNaN(Double x) {
  return compare(arith::CmpFPredicate::UNO, x, x);
}

Double doubles::fma(Double x, Double y, Double z) {
  return x.with(math::FmaOp::create(*x.b, x.loc, x.value, y.value, z.value));
}
Double doubles::fma(Double x, double y, Double z) {
  return fma(x, x.constant(y), z);
}
Double doubles::sqrt(Double x) {
  return x.with(math::SqrtOp::create(*x.b, x.loc, x.value));
}
Double doubles::abs(Double x) {
  return x.with(math::AbsFOp::create(*x.b, x.loc, x.value));
}
Double doubles::round(Double x) {
  return x.with(math::RoundEvenOp::create(*x.b, x.loc, x.value));
}
Double doubles::copySign(Double size, Double sign) {
  return size.with(
      math::CopySignOp::create(*size.b, size.loc, size.value, sign.value));
}
Double doubles::select(Value condition, Double x, Double y) {
  return x.with(
      arith::SelectOp::create(*x.b, x.loc, condition, x.value, y.value));
}

Double doubles::polynomial(Double x, ArrayRef<double> coefficients) {
  Double sum = x.constant(coefficients.front());
  for (double c : coefficients.drop_front())
    sum = fma(sum, x, x.constant(c));
  return sum;
}
