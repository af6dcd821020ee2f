//===- Fragments.h - Elements of matrices in registers -------- -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_FRAGMENTS_H
#define SARDONYX_TOOLS_FAKECUDA_FRAGMENTS_H

#include "Numbers.h"
#include <cmath>

namespace sardonyx::fakecuda {

// Each tells how many elements a register holds, what they are computed in, how
// element `i` is read, and, for sums, what is written.

struct FloatElement {
  using Compute = float;
  static constexpr unsigned kEach = 1;
  static float load(uint64_t bits, unsigned) { return F32::load(bits); }
  static uint64_t store(float value) { return F32::store(value); }
};

struct DoubleElement {
  using Compute = double;
  static constexpr unsigned kEach = 1;
  static double load(uint64_t bits, unsigned) { return F64::load(bits); }
  static uint64_t store(double value) { return F64::store(value); }
};

/// The lower 13 bits of a TensorFloat-32 are not looked at.
struct TensorFloatElement {
  static constexpr unsigned kEach = 1;
  static float load(uint64_t bits, unsigned) {
    return F32::load(bits & 0xffffe000);
  }
};

struct HalfElement {
  using Compute = float;
  static constexpr unsigned kEach = 2;
  static float load(uint64_t bits, unsigned i) {
    return halfToFloat(uint16_t(bits >> (16 * i)));
  }
  static uint64_t store(float value) { return halfFromFloat(value); }
};

struct BrainElement {
  static constexpr unsigned kEach = 2;
  static float load(uint64_t bits, unsigned i) {
    return bfloatToFloat(uint16_t(bits >> (16 * i)));
  }
};

/// Floats of eight bits: a sign, an exponent and so many bits of a mantissa.
/// Those of three bits have no infinity, and a NaN where all bits are 1.
template <unsigned Mantissa> struct ByteFloatElement {
  static constexpr unsigned kEach = 4;
  static float load(uint64_t bits, unsigned i) {
    const unsigned code = bits >> (8 * i) & 0xff, magnitude = code & 0x7f;
    const unsigned fraction = magnitude & ((1u << Mantissa) - 1);
    const int exponent = int(magnitude >> Mantissa);
    constexpr int kBias = (1 << (6 - Mantissa)) - 1,
                  kLast = (1 << (7 - Mantissa)) - 1;
    float value = exponent
                      ? std::ldexp(float(fraction + (1u << Mantissa)),
                                   exponent - kBias - int(Mantissa))
                      : std::ldexp(float(fraction), 1 - kBias - int(Mantissa));
    if (Mantissa == 3 ? magnitude == 0x7f : exponent == kLast && fraction)
      value = NAN;
    else if (Mantissa != 3 && exponent == kLast)
      value = INFINITY;
    return code & 0x80 ? -value : value;
  }
};

struct SignedElement {
  static constexpr unsigned kEach = 4;
  static int32_t load(uint64_t bits, unsigned i) {
    return int8_t(bits >> (8 * i));
  }
};

struct UnsignedElement {
  static constexpr unsigned kEach = 4;
  static int32_t load(uint64_t bits, unsigned i) {
    return uint8_t(bits >> (8 * i));
  }
};

/// Sums of integers wrap.
struct WordElement {
  using Compute = uint32_t;
  static constexpr unsigned kEach = 1;
  static uint32_t load(uint64_t bits, unsigned) { return uint32_t(bits); }
  static uint64_t store(uint32_t value) { return value; }
};

/// .satfinite: sums of integers stay within 32 bits.
struct SaturatedWordElement {
  using Compute = int64_t;
  static constexpr unsigned kEach = 1;
  static int64_t load(uint64_t bits, unsigned) { return int32_t(bits); }
  static uint64_t store(int64_t value) {
    value = value < INT32_MIN ? INT32_MIN : value;
    return uint32_t(value > INT32_MAX ? INT32_MAX : value);
  }
};

} // namespace sardonyx::fakecuda

#endif // SARDONYX_TOOLS_FAKECUDA_FRAGMENTS_H
