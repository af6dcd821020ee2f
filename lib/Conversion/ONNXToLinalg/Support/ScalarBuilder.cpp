//===- ScalarBuilder.cpp - Scalar arithmetic over ONNX types --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/ScalarBuilder.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace sardonyx {

Value ScalarBuilder::constant(double value) {
  return createConstant(*this, getLoc(), type, value);
}

Value ScalarBuilder::integer(int64_t value) {
  return createIntConstant(*this, getLoc(), type, value);
}

Value ScalarBuilder::boolean(bool value) {
  return createIntConstant(*this, getLoc(), getI1Type(), value);
}

static bool isFloatValue(Value x) { return isa<FloatType>(x.getType()); }

Value ScalarBuilder::add(Value x, Value y) {
  return isFloatValue(x) ? createOrFold<arith::AddFOp>(x, y)
                         : createOrFold<arith::AddIOp>(x, y);
}

Value ScalarBuilder::sub(Value x, Value y) {
  return isFloatValue(x) ? createOrFold<arith::SubFOp>(x, y)
                         : createOrFold<arith::SubIOp>(x, y);
}

Value ScalarBuilder::mul(Value x, Value y) {
  return isFloatValue(x) ? createOrFold<arith::MulFOp>(x, y)
                         : createOrFold<arith::MulIOp>(x, y);
}

Value ScalarBuilder::mulAdd(Value x, Value y, Value z) {
  if (x.getType().isF32() || x.getType().isF64())
    return createOrFold<math::FmaOp>(x, y, z);
  return add(mul(x, y), z);
}

/// A divisor that neither is zero nor overflows the quotient.
Value ScalarBuilder::guardDivisor(Value x, Value y, Value &isZero) {
  Value zero = createIntConstant(*this, getLoc(), y.getType(), 0);
  Value one = createIntConstant(*this, getLoc(), y.getType(), 1);
  isZero = createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, y, zero);
  Value unsafe = isZero;
  // A constant divisor other than -1 can't overflow.
  std::optional<double> known = getConstantScalar(y);
  if (!isUnsigned() && (!known || *known == -1)) {
    unsigned width = y.getType().getIntOrFloatBitWidth();
    Value lowest = arith::ConstantOp::create(
        *this, getIntegerAttr(y.getType(), APInt::getSignedMinValue(width)));
    Value minusOne = createIntConstant(*this, getLoc(), y.getType(), -1);
    Value overflow = createOrFold<arith::AndIOp>(
        createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, x, lowest),
        createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, y, minusOne));
    unsafe = createOrFold<arith::OrIOp>(unsafe, overflow);
  }
  return createOrFold<arith::SelectOp>(unsafe, one, y);
}

Value ScalarBuilder::div(Value x, Value y) {
  if (isFloatValue(x))
    return createOrFold<arith::DivFOp>(x, y);
  Value isZero;
  Value divisor = guardDivisor(x, y, isZero);
  Value quotient = isUnsigned() ? createOrFold<arith::DivUIOp>(x, divisor)
                                : createOrFold<arith::DivSIOp>(x, divisor);
  Value zero = createIntConstant(*this, getLoc(), y.getType(), 0);
  return createOrFold<arith::SelectOp>(isZero, zero, quotient);
}

Value ScalarBuilder::rem(Value x, Value y) {
  if (isFloatValue(x))
    return createOrFold<arith::RemFOp>(x, y);
  // A guarded divisor of 1 leaves no remainder, which is what is wanted.
  Value isZero;
  Value divisor = guardDivisor(x, y, isZero);
  return isUnsigned() ? createOrFold<arith::RemUIOp>(x, divisor)
                      : createOrFold<arith::RemSIOp>(x, divisor);
}

Value ScalarBuilder::mod(Value x, Value y) {
  Value remainder = rem(x, y);
  if (isUnsigned())
    return remainder;
  Value zero = createIntConstant(*this, getLoc(), x.getType(), 0);
  Value otherSign =
      createOrFold<arith::XOrIOp>(lt(remainder, zero), lt(y, zero));
  Value adjust = createOrFold<arith::AndIOp>(otherSign, ne(remainder, zero));
  return select(adjust, add(remainder, y), remainder);
}

Value ScalarBuilder::min(Value x, Value y) {
  if (isFloatValue(x))
    return createOrFold<arith::MinimumFOp>(x, y);
  return isUnsigned() || isBool() ? createOrFold<arith::MinUIOp>(x, y)
                                  : createOrFold<arith::MinSIOp>(x, y);
}

Value ScalarBuilder::max(Value x, Value y) {
  if (isFloatValue(x))
    return createOrFold<arith::MaximumFOp>(x, y);
  return isUnsigned() || isBool() ? createOrFold<arith::MaxUIOp>(x, y)
                                  : createOrFold<arith::MaxSIOp>(x, y);
}

Value ScalarBuilder::neg(Value x) {
  if (isFloatValue(x))
    return createOrFold<arith::NegFOp>(x);
  Value zero = createIntConstant(*this, getLoc(), x.getType(), 0);
  return createOrFold<arith::SubIOp>(zero, x);
}

Value ScalarBuilder::abs(Value x) {
  if (isFloatValue(x))
    return createOrFold<math::AbsFOp>(x);
  if (isUnsigned())
    return x;
  Value zero = createIntConstant(*this, getLoc(), x.getType(), 0);
  return select(lt(x, zero), neg(x), x);
}

Value ScalarBuilder::eq(Value x, Value y) {
  return isFloatValue(x)
             ? createOrFold<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x, y)
             : createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, x, y);
}

Value ScalarBuilder::ne(Value x, Value y) {
  return isFloatValue(x)
             ? createOrFold<arith::CmpFOp>(arith::CmpFPredicate::UNE, x, y)
             : createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne, x, y);
}

Value ScalarBuilder::lt(Value x, Value y) {
  if (isFloatValue(x))
    return createOrFold<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, y);
  return createOrFold<arith::CmpIOp>(isUnsigned() || isBool()
                                         ? arith::CmpIPredicate::ult
                                         : arith::CmpIPredicate::slt,
                                     x, y);
}

Value ScalarBuilder::le(Value x, Value y) {
  if (isFloatValue(x))
    return createOrFold<arith::CmpFOp>(arith::CmpFPredicate::OLE, x, y);
  return createOrFold<arith::CmpIOp>(isUnsigned() || isBool()
                                         ? arith::CmpIPredicate::ule
                                         : arith::CmpIPredicate::sle,
                                     x, y);
}

Value ScalarBuilder::select(Value condition, Value x, Value y) {
  return createOrFold<arith::SelectOp>(condition, x, y);
}

Value ScalarBuilder::logicalNot(Value x) {
  return createOrFold<arith::XOrIOp>(x, boolean(true));
}

Value ScalarBuilder::exp(Value x) { return createOrFold<math::ExpOp>(x); }
Value ScalarBuilder::log(Value x) { return createOrFold<math::LogOp>(x); }
Value ScalarBuilder::tanh(Value x) { return createOrFold<math::TanhOp>(x); }
Value ScalarBuilder::sqrt(Value x) { return createOrFold<math::SqrtOp>(x); }

/// exp(-x) may overflow to infinity, whose reciprocal is the right limit.
Value ScalarBuilder::sigmoid(Value x) {
  Value one = createConstant(*this, getLoc(), x.getType(), 1);
  return div(one, add(one, exp(neg(x))));
}

/// log(1 + e^x) = max(x, 0) + log1p(e^-|x|), which can't overflow.
Value ScalarBuilder::softplus(Value x) {
  Value zero = createConstant(*this, getLoc(), x.getType(), 0);
  Value tail = createOrFold<math::Log1pOp>(exp(neg(abs(x))));
  return add(atLeast(x, zero), tail);
}

Value ScalarBuilder::pow(Value x, Value y) {
  if (std::optional<double> exponent = getConstantScalar(y)) {
    if (*exponent == 1)
      return x;
    if (*exponent == 2)
      return mul(x, x);
    if (*exponent == 3)
      return mul(mul(x, x), x);
    if (*exponent == -1)
      return div(createConstant(*this, getLoc(), x.getType(), 1), x);
  }
  return createOrFold<math::PowFOp>(x, y);
}

double toDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

std::optional<double> getConstantScalar(Value value) {
  APFloat number(0.0);
  if (matchPattern(value, m_ConstantFloat(&number))) {
    return toDouble(number);
  }
  APInt integer;
  if (matchPattern(value, m_ConstantInt(&integer)))
    return integer.roundToDouble(/*isSigned=*/true);
  return std::nullopt;
}

} // namespace sardonyx
