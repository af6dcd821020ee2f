//===- HalfConversions.cpp - Half float conversions -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM calls these by the names of compiler-rt where the processor has no
// instruction. Not every libgcc has them all.
//
//===----------------------------------------------------------------------===//

#include "HalfConversions.h"
#include <cstring>

using namespace sardonyx::runtime;

template <typename To, typename From> static To bitsOf(From value) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// The double `value` rounded to nearest, ties to even, to a float with
/// `exponentBits` and `mantissaBits`.
static uint16_t truncate(double value, int exponentBits, int mantissaBits) {
  uint64_t bits = bitsOf<uint64_t>(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 63) << 15;
  int64_t exponent = static_cast<int64_t>((bits >> 52) & 0x7ff) - 1023;
  uint64_t mantissa = bits & ((uint64_t(1) << 52) - 1);
  int bias = (1 << (exponentBits - 1)) - 1;
  uint16_t infinity = ((1 << exponentBits) - 1) << mantissaBits;
  if (exponent == 1024) {
    if (!mantissa)
      return sign | infinity;
    uint16_t payload = static_cast<uint16_t>(mantissa >> (52 - mantissaBits));
    return sign | infinity | payload | (1 << (mantissaBits - 1));
  }
  if (exponent > bias)
    return sign | infinity;
  mantissa |= uint64_t(1) << 52;
  int shift = 52 - mantissaBits;
  int64_t biased = exponent + bias;
  if (biased <= 0) { // denormal: the implied one moves right too
    int64_t extra = 1 - biased;
    if (extra > mantissaBits + 1)
      return sign;
    shift += static_cast<int>(extra);
    biased = 0;
  } else {
    --biased; // the implied one adds it back
  }
  uint64_t kept = mantissa >> shift;
  uint64_t rest = mantissa & ((uint64_t(1) << shift) - 1);
  uint64_t half = uint64_t(1) << (shift - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept; // may carry into the exponent, which is right
  return sign | static_cast<uint16_t>(
                    (static_cast<uint64_t>(biased) << mantissaBits) + kept);
}

uint16_t sardonyx::runtime::halfFromDouble(double value) {
  return truncate(value, 5, 10);
}

uint16_t sardonyx::runtime::bfloatFromDouble(double value) {
  return truncate(value, 8, 7);
}

float sardonyx::runtime::floatFromHalf(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  uint32_t exponent = (half >> 10) & 0x1f, mantissa = half & 0x3ff;
  if (exponent == 0x1f)
    return bitsOf<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    // mantissa * 2^-24 is exact.
    float value = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
    return sign ? -value : value;
  }
  return bitsOf<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

#if defined(__x86_64__) || defined(__aarch64__)
_Float16 sardonyx::runtime::truncsfhf2(float value) {
  return bitsOf<_Float16>(halfFromDouble(value));
}
_Float16 sardonyx::runtime::truncdfhf2(double value) {
  return bitsOf<_Float16>(halfFromDouble(value));
}
float sardonyx::runtime::extendhfsf2(_Float16 value) {
  return floatFromHalf(bitsOf<uint16_t>(value));
}
double sardonyx::runtime::extendhfdf2(_Float16 value) {
  return floatFromHalf(bitsOf<uint16_t>(value));
}
__bf16 sardonyx::runtime::truncsfbf2(float value) {
  return bitsOf<__bf16>(bfloatFromDouble(value));
}
__bf16 sardonyx::runtime::truncdfbf2(double value) {
  return bitsOf<__bf16>(bfloatFromDouble(value));
}
#endif
