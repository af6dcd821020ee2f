//===- Numbers.h - The types of numbers in registers ---------- -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_NUMBERS_H
#define SARDONYX_TOOLS_FAKECUDA_NUMBERS_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace sardonyx::fakecuda {

template <class To, class From> To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

inline float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16, rest = half & 0x7fff;
  if (rest >= 0x7c00)
    return bitCast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  // The exponent of subnormal halves is made by the multiplication.
  float value = bitCast<float>(rest << 13) * 0x1p112f;
  return bitCast<float>(sign | bitCast<uint32_t>(value));
}

inline float bfloatToFloat(uint16_t value) {
  return bitCast<float>(uint32_t(value) << 16);
}

/// Rounds to a float of `mantissa` bits after the point and exponents from
/// `least` to `most`, to nearest, ties to even. Returns the rounded value;
/// beyond the range it is infinite.
inline double roundTo(double value, int mantissa, int least, int most) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent = std::ilogb(value);
  if (exponent < least)
    exponent = least;
  double unit = std::ldexp(1.0, exponent - mantissa);
  double rounded = std::nearbyint(value / unit) * unit;
  if (std::fabs(rounded) >= std::ldexp(1.0, most + 1))
    return std::copysign(INFINITY, value);
  return rounded;
}

/// The bits of a value that the format holds exactly.
inline uint16_t exactHalf(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  value = std::fabs(value);
  if (std::isnan(value))
    return 0x7fff;
  if (std::isinf(value))
    return sign | 0x7c00;
  if (value < 0x1p-14)
    return sign | uint16_t(value * 0x1p24);
  uint32_t bits = bitCast<uint32_t>(float(value));
  return sign | uint16_t((bits >> 13) - (112 << 10));
}

inline uint16_t halfFromDouble(double value) {
  return exactHalf(roundTo(value, 10, -14, 15));
}

inline uint16_t halfFromFloat(float value) {
  uint32_t bits = bitCast<uint32_t>(value), sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return 0x7fff;
  if (bits >= 0x477ff000) // 65520 and more
    return uint16_t(sign | 0x7c00);
  if (bits < 0x38800000) { // Subnormal: 2^-24 is one.
    float scaled = bitCast<float>(bits) + 0.5f;
    return uint16_t(sign | (bitCast<uint32_t>(scaled) - 0x3f000000));
  }
  bits += 0xfff + (bits >> 13 & 1);
  return uint16_t(sign | ((bits >> 13) - (112 << 10)));
}

inline uint16_t bfloatFromFloat(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline uint16_t bfloatFromDouble(double value) {
  double rounded = roundTo(value, 7, -126, 127);
  return bfloatFromFloat(float(rounded));
}

inline float flushSubnormal(float value) {
  return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}

/// A type of numbers tells what it is computed in, how it is read from a row
/// and how it is written there.
template <class T> struct Plain {
  using Compute = T;
  static constexpr unsigned kBits = 8 * sizeof(T);
  static T load(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
  }
  static uint64_t store(T value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
  }
};

using F64 = Plain<double>;
using F32 = Plain<float>;

/// .ftz: subnormal numbers are zero, read and written.
struct F32Ftz {
  using Compute = float;
  static constexpr unsigned kBits = 32;
  static float load(uint64_t bits) { return flushSubnormal(F32::load(bits)); }
  static uint64_t store(float value) {
    return F32::store(flushSubnormal(value));
  }
};

struct F16 {
  using Compute = double;
  static constexpr unsigned kBits = 16;
  static double load(uint64_t bits) { return halfToFloat(uint16_t(bits)); }
  static uint64_t store(double value) { return halfFromDouble(value); }
};

struct BF16 {
  using Compute = double;
  static constexpr unsigned kBits = 16;
  static double load(uint64_t bits) { return bfloatToFloat(uint16_t(bits)); }
  static uint64_t store(double value) { return bfloatFromDouble(value); }
};

/// .sat: results are within [0, 1], NaN becomes 0.
template <class Number> struct Saturated : Number {
  static uint64_t store(typename Number::Compute value) {
    return Number::store(value > 0 ? value < 1 ? value : 1 : 0);
  }
};

/// .relu: results are not negative, NaN stays.
template <class Number> struct Rectified : Number {
  static uint64_t store(typename Number::Compute value) {
    return Number::store(value < 0 ? 0 : value);
  }
};

} // namespace sardonyx::fakecuda

#endif // SARDONYX_TOOLS_FAKECUDA_NUMBERS_H
