//===- SmallFloats.cpp - Floats of at most eight bits ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/SmallFloats.h"

#include "Support/Common.h"

using namespace mlir;

namespace sardonyx {

namespace {

struct Format {
  unsigned mantissaBits;
  int bias;
  /// The position of the sign bit.
  unsigned signBit;
  /// The code of the largest finite value; of infinity and NaN, or -1.
  int largest, infinity, nan;
  /// Negative zero's code is NaN's.
  bool isUnsignedZero;
};

} // namespace

/// f8E8M0FNU has no mantissa and no sign: it isn't described by a Format.
static std::optional<Format> getFormat(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return Format{3, 7, 7, 0x7e, -1, 0x7f, false};
  if (isa<Float8E4M3FNUZType>(type))
    return Format{3, 8, 7, 0x7f, -1, 0x80, true};
  if (isa<Float8E5M2Type>(type))
    return Format{2, 15, 7, 0x7b, 0x7c, 0x7e, false};
  if (isa<Float8E5M2FNUZType>(type))
    return Format{2, 16, 7, 0x7f, -1, 0x80, true};
  if (isa<Float4E2M1FNType>(type))
    return Format{1, 1, 3, 0x7, -1, -1, false};
  if (isa<Float6E2M3FNType>(type))
    return Format{3, 1, 5, 0x1f, -1, -1, false};
  if (isa<Float6E3M2FNType>(type))
    return Format{2, 3, 5, 0x1f, -1, -1, false};
  return std::nullopt;
}

bool isSmallFloat(Type type) {
  return type && (getFormat(type) || isa<Float8E8M0FNUType>(type));
}

namespace {

/// Integer arithmetic on one type with constants as right operands.
struct Bits : ImplicitLocOpBuilder {
  Bits(OpBuilder &b, Location loc, Type type)
      : ImplicitLocOpBuilder(loc, b), type(type) {}

  Value number(int64_t value) {
    return createIntConstant(*this, getLoc(), type, value);
  }
  Value shl(Value x, int64_t n) {
    return arith::ShLIOp::create(*this, x, number(n));
  }
  Value shr(Value x, int64_t n) {
    return arith::ShRUIOp::create(*this, x, number(n));
  }
  Value mask(Value x, int64_t m) {
    return arith::AndIOp::create(*this, x, number(m));
  }
  Value combine(Value x, Value y) { return arith::OrIOp::create(*this, x, y); }
  Value add(Value x, Value y) { return arith::AddIOp::create(*this, x, y); }
  Value is(arith::CmpIPredicate predicate, Value x, int64_t n) {
    return arith::CmpIOp::create(*this, predicate, x, number(n));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(*this, condition, x, y);
  }

  Type type;
};

} // namespace

using Predicate = arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static Value decodeExponent(OpBuilder &b, Location loc, Value byte) {
  Bits i(b, loc, b.getI32Type());
  Value code = arith::ExtUIOp::create(b, loc, i.type, byte);
  Value bits = i.shl(code, 23);
  // Code 0 is 2^-127, which is a denormal f32; 255 is NaN.
  bits = i.select(i.is(Predicate::eq, code, 0), i.number(0x00400000), bits);
  bits = i.select(i.is(Predicate::eq, code, 0xff), i.number(0x7fc00000), bits);
  return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
}

Value decodeSmallFloat(OpBuilder &b, Location loc, Value byte, Type type) {
  std::optional<Format> format = getFormat(type);
  if (!format)
    return decodeExponent(b, loc, byte);
  Bits i(b, loc, b.getI32Type());
  unsigned m = format->mantissaBits;
  Value code = arith::ExtUIOp::create(b, loc, i.type, byte);
  Value magnitude = i.mask(code, (1 << format->signBit) - 1);
  Value sign = i.shl(i.mask(i.shr(code, format->signBit), 1), 31);
  Value rebased = i.shl(i.number(127 - format->bias), 23);
  Value normal = i.add(i.shl(magnitude, 23 - m), rebased);
  // Without an exponent the mantissa counts units of the smallest value.
  Value units = arith::UIToFPOp::create(b, loc, b.getF32Type(), magnitude);
  Value unit = createConstant(b, loc, b.getF32Type(),
                              std::ldexp(1.0, 1 - format->bias - int(m)));
  Value small = arith::BitcastOp::create(
      b, loc, i.type, arith::MulFOp::create(b, loc, units, unit));
  Value isSmall = i.is(Predicate::ult, magnitude, 1 << m);
  Value bits = i.combine(i.select(isSmall, small, normal), sign);
  if (format->infinity >= 0) {
    Value infinity = i.combine(i.number(0x7f800000), sign);
    bits = i.select(i.is(Predicate::eq, magnitude, format->infinity), infinity,
                    bits);
    bits = i.select(i.is(Predicate::ugt, magnitude, format->infinity),
                    i.number(0x7fc00000), bits);
  } else if (format->nan >= 0) {
    Value tested = format->isUnsignedZero ? code : magnitude;
    bits = i.select(i.is(Predicate::eq, tested, format->nan),
                    i.number(0x7fc00000), bits);
  }
  return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

static Value encodeExponent(OpBuilder &b, Location loc, Value value,
                            bool saturate, StringRef roundMode) {
  Bits i(b, loc, b.getI32Type());
  Value bits = arith::BitcastOp::create(b, loc, i.type, value);
  Value exponent = i.mask(i.shr(bits, 23), 0xff);
  Value fraction = i.mask(bits, 0x7fffff), roundsUp;
  if (roundMode == "nearest") {
    // Ties go up, but for denormals, whose exponent is even.
    Value above = i.is(Predicate::ugt, fraction, 0x400000);
    Value tie =
        arith::AndIOp::create(b, loc, i.is(Predicate::eq, fraction, 0x400000),
                              i.is(Predicate::ne, exponent, 0));
    roundsUp = i.combine(above, tie);
  } else if (roundMode == "up") {
    roundsUp = i.is(Predicate::ne, fraction, 0);
  } else {
    roundsUp = createIntConstant(b, loc, b.getI1Type(), 0);
  }
  Value limited = i.is(Predicate::ult, exponent, saturate ? 0xfe : 0xff);
  roundsUp = arith::AndIOp::create(b, loc, roundsUp, limited);
  Value step = arith::ExtUIOp::create(b, loc, i.type, roundsUp);
  return arith::TruncIOp::create(b, loc, b.getI8Type(), i.add(exponent, step));
}

Value encodeSmallFloat(OpBuilder &b, Location loc, Value value, Type type,
                       bool saturate, StringRef roundMode) {
  std::optional<Format> format = getFormat(type);
  if (!format)
    return encodeExponent(b, loc, value, saturate, roundMode);
  // In f64 the target's denormals can be made f64's by scaling: then all codes
  // are the leading bits, and rounding them is integer arithmetic.
  Type f64 = b.getF64Type();
  Bits i(b, loc, b.getI64Type());
  unsigned dropped = 52 - format->mantissaBits;
  Value wide = arith::ExtFOp::create(b, loc, f64, value);
  Value absolute = math::AbsFOp::create(b, loc, wide);
  Value scale =
      createConstant(b, loc, f64, std::ldexp(1.0, format->bias - 1023));
  Value bits = arith::BitcastOp::create(
      b, loc, i.type, arith::MulFOp::create(b, loc, absolute, scale));
  Value tieToEven = i.mask(i.shr(bits, dropped), 1);
  Value half = i.number((int64_t(1) << (dropped - 1)) - 1);
  Value code = i.shr(i.add(i.add(bits, half), tieToEven), dropped);
  bool clips = saturate || (format->infinity < 0 && format->nan < 0);
  int overflow = clips                   ? format->largest
                 : format->infinity >= 0 ? format->infinity
                                         : format->nan;
  code = i.select(i.is(Predicate::ugt, code, format->largest),
                  i.number(overflow), code);
  Value sign = arith::BitcastOp::create(b, loc, i.type, wide);
  sign = i.shl(i.shr(sign, 63), format->signBit);
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  if (format->isUnsignedZero)
    sign = i.select(i.is(Predicate::eq, code, 0), code, sign);
  Value result = i.combine(code, sign);
  // A type without NaN gives 0 for it.
  result = i.select(isNaN, i.number(std::max(format->nan, 0)), result);
  return arith::TruncIOp::create(b, loc, b.getI8Type(), result);
}

} // namespace sardonyx
