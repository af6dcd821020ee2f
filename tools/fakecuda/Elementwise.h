//===- Elementwise.h - Instructions that each lane runs for itself  -*- C++
//-*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_ELEMENTWISE_H
#define SARDONYX_TOOLS_FAKECUDA_ELEMENTWISE_H

#include "Decoder.h"
#include "Numbers.h"
#include "Warp.h"

namespace sardonyx::fakecuda {

/// Calls `body(lane)` for the lanes that run; all of them in a plain loop,
/// which compilers turn into vectors.
template <class Body> inline void forActive(Warp &warp, Body &&body) {
  if (warp.mask == ~0u) {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      body(lane);
    return;
  }
  forLanes(warp.mask, body);
}

/// Applies a function to one, two or three operands of one type of numbers.
/// What `Packed` holds are two numbers in the halves of 32 bits.
template <class Number, bool Packed, auto Apply> struct Elementwise {
  using Compute = typename Number::Compute;

  static uint64_t one(uint64_t a, uint64_t b, uint64_t c) {
    if constexpr (std::is_invocable_v<decltype(Apply), Compute>)
      return Number::store(Apply(Number::load(a)));
    else if constexpr (std::is_invocable_v<decltype(Apply), Compute, Compute>)
      return Number::store(Apply(Number::load(a), Number::load(b)));
    else
      return Number::store(
          Apply(Number::load(a), Number::load(b), Number::load(c)));
  }

  static void run(Warp &warp, const Instruction &instruction) {
    uint64_t *d = warp.row(instruction.d);
    const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b),
                   *c = warp.row(instruction.c);
    forActive(warp, [=](unsigned lane) {
      uint64_t result = one(a[lane], b[lane], c[lane]);
      if constexpr (Packed)
        result = (result & 0xffff) |
                 one(a[lane] >> 16, b[lane] >> 16, c[lane] >> 16) << 16;
      d[lane] = result;
    });
  }
};

/// Sets the operands of an instruction with a result and up to three sources;
/// there have to be as many as its name asks for.
inline void setOperands(Decoder &decoder, Handler run) {
  if (!decoder.checkOperandCount())
    return;
  Instruction &instruction = decoder.instruction;
  instruction.run = run;
  instruction.d = decoder.destination(decoder.operand(0));
  uint32_t *rows[] = {&instruction.a, &instruction.b, &instruction.c};
  for (size_t i = 1; i < decoder.operandCount() && i < 4; ++i)
    *rows[i - 1] = decoder.source(i);
}

} // namespace sardonyx::fakecuda

#endif // SARDONYX_TOOLS_FAKECUDA_ELEMENTWISE_H
