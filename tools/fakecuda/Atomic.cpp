//===- Atomic.cpp - Atomic operations -------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

enum class Change { Add, Inc, Dec, Min, Max, And, Or, Xor, Exchange, Compare };

template <class Number, Change C>
static uint64_t change(uint64_t old, uint64_t operand, uint64_t other) {
  using T = typename Number::Compute;
  T a = Number::load(old), b = Number::load(operand);
  if constexpr (C == Change::Add) {
    if constexpr (std::is_integral_v<T>)
      return Number::store(
          T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b)));
    else
      return Number::store(a + b);
  } else if constexpr (C == Change::Inc) {
    return Number::store(a >= b ? 0 : a + 1);
  } else if constexpr (C == Change::Dec) {
    return Number::store(a == 0 || a > b ? b : a - 1);
  } else if constexpr (C == Change::Min) {
    return Number::store(b < a ? b : a);
  } else if constexpr (C == Change::Max) {
    return Number::store(a < b ? b : a);
  } else if constexpr (C == Change::And) {
    return old & operand;
  } else if constexpr (C == Change::Or) {
    return old | operand;
  } else if constexpr (C == Change::Xor) {
    return old ^ operand;
  } else if constexpr (C == Change::Exchange) {
    return operand;
  } else {
    return a == b ? other : old;
  }
}

template <class Number, Change C, bool Packed>
static void runAtomic(Warp &warp, const Instruction &instruction) {
  constexpr unsigned kBytes = Packed ? 4 : Number::kBits / 8;
  forLanes(warp.mask, [&](unsigned lane) {
    if (!warp.block.fault.empty())
      return;
    uint64_t address =
        warp.get(instruction.a, lane) + uint64_t(instruction.offset);
    if (Space(instruction.flag) == Space::Shared)
      address = uint32_t(address);
    char *memory =
        warp.access(Space(instruction.flag), lane, address, kBytes, true);
    if (!memory)
      return;
    if (Warp::find(Space(instruction.flag), address) == Space::Shared &&
        !warp.block.touch(warp, lane, uint32_t(address), kBytes, Touch::Atomic))
      return;
    uint64_t old = 0, b = warp.get(instruction.b, lane),
             c = warp.get(instruction.c, lane);
    memcpy(&old, memory, kBytes);
    uint64_t value = change<Number, C>(old, b, c);
    if constexpr (Packed)
      value = (value & 0xffff) | change<Number, C>(old >> 16, b >> 16, c >> 16)
                                     << 16;
    memcpy(memory, &value, kBytes);
    warp.row(instruction.d)[lane] = old;
  });
}

template <class Number> static Handler findIntegers(const std::string &name) {
  if (name == "add")
    return runAtomic<Number, Change::Add, false>;
  if (name == "inc")
    return runAtomic<Number, Change::Inc, false>;
  if (name == "dec")
    return runAtomic<Number, Change::Dec, false>;
  if (name == "min")
    return runAtomic<Number, Change::Min, false>;
  if (name == "max")
    return runAtomic<Number, Change::Max, false>;
  if (name == "and")
    return runAtomic<Number, Change::And, false>;
  if (name == "or")
    return runAtomic<Number, Change::Or, false>;
  if (name == "xor")
    return runAtomic<Number, Change::Xor, false>;
  if (name == "exch")
    return runAtomic<Number, Change::Exchange, false>;
  if (name == "cas")
    return runAtomic<Number, Change::Compare, false>;
  return nullptr;
}

static Handler findAtomic(const std::string &type, const std::string &name) {
  if (type == "b16" && name == "cas")
    return runAtomic<Plain<uint16_t>, Change::Compare, false>;
  if (type == "u32" || type == "b32")
    return findIntegers<Plain<uint32_t>>(name);
  if (type == "s32")
    return findIntegers<Plain<int32_t>>(name);
  if (type == "u64" || type == "b64")
    return findIntegers<Plain<uint64_t>>(name);
  if (type == "s64")
    return findIntegers<Plain<int64_t>>(name);
  if (name != "add")
    return nullptr;
  return type == "f32"      ? runAtomic<F32, Change::Add, false>
         : type == "f64"    ? runAtomic<F64, Change::Add, false>
         : type == "f16"    ? runAtomic<F16, Change::Add, false>
         : type == "bf16"   ? runAtomic<BF16, Change::Add, false>
         : type == "f16x2"  ? runAtomic<F16, Change::Add, true>
         : type == "bf16x2" ? runAtomic<BF16, Change::Add, true>
                            : nullptr;
}

bool decodeAtomic(Decoder &decoder) {
  bool reduces = decoder.base() == "red";
  if ((decoder.base() != "atom" && !reduces) || decoder.has("async") ||
      decoder.has("shared::cluster") || decoder.has("v2") || decoder.has("v4"))
    return false;
  Instruction &instruction = decoder.instruction;
  for (const char *name :
       {"add", "inc", "dec", "min", "max", "and", "or", "xor", "exch", "cas"})
    if (decoder.has(name))
      instruction.run = findAtomic(decoder.type(), name);
  if (!instruction.run)
    return false;
  Space space = decoder.has("global") ? Space::Global
                : decoder.has("shared") || decoder.has("shared::cta")
                    ? Space::Shared
                    : Space::Generic;
  instruction.flag = uint8_t(space);
  if (space != Space::Global)
    decoder.watch(unsigned(sizeOfType(decoder.type())));
  size_t at = reduces ? 0 : 1;
  if (!reduces)
    instruction.d = decoder.destination(decoder.operand(0));
  decoder.address(decoder.operand(at), instruction.a, instruction.offset);
  instruction.b = decoder.source(at + 1);
  if (decoder.operandCount() > at + 2)
    instruction.c = decoder.source(at + 2);
  return true;
}

} // namespace sardonyx::fakecuda
