//===- Bits.cpp - Logic, shifts and bit fields ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

template <class T> static T bitAnd(T a, T b) { return a & b; }
template <class T> static T bitOr(T a, T b) { return a | b; }
template <class T> static T bitXor(T a, T b) { return a ^ b; }
template <class T> static T bitNot(T a) { return T(~a); }
template <class T> static T clearNot(T a) { return a == 0; }

// Amounts of shifts have 32 bits; beyond the width all bits are shifted out.
template <class T, bool Left>
static void runShift(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b);
  constexpr uint32_t kMost = 8 * sizeof(T) - 1;
  forActive(warp, [=](unsigned lane) {
    T value = Plain<T>::load(a[lane]);
    auto amount = uint32_t(b[lane]);
    if constexpr (Left)
      value = amount > kMost ? T(0) : T(uint64_t(value) << amount);
    else if constexpr (std::is_signed_v<T>)
      value = T(value >> (amount > kMost ? kMost : amount));
    else
      value = amount > kMost ? T(0) : T(value >> amount);
    d[lane] = Plain<T>::store(value);
  });
}

template <class T>
static void runExtract(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b),
                 *c = warp.row(instruction.c);
  constexpr unsigned kBits = 8 * sizeof(T);
  forActive(warp, [=](unsigned lane) {
    T value = Plain<T>::load(a[lane]);
    unsigned begin = b[lane] & 0xff, length = c[lane] & 0xff;
    // The bits above are the sign of the field, or of the whole.
    unsigned last = begin + length - 1;
    bool sign = std::is_signed_v<T> && length != 0 &&
                (uint64_t(value) >> (last < kBits ? last : kBits - 1) & 1);
    uint64_t field = begin < kBits ? Plain<T>::store(value) >> begin : 0;
    if (begin + length > kBits && sign && begin < kBits && begin > 0)
      field |= ~uint64_t(0) << (kBits - begin);
    if (begin >= kBits && sign)
      field = ~uint64_t(0);
    if (length < 64) {
      uint64_t inside = (uint64_t(1) << length) - 1;
      field = sign ? field | ~inside : field & inside;
    }
    d[lane] = Plain<T>::store(T(field));
  });
}

template <class T>
static void runInsert(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b),
                 *c = warp.row(instruction.c),
                 *e = warp.row(instruction.target);
  forActive(warp, [=](unsigned lane) {
    unsigned begin = c[lane] & 0xff, length = e[lane] & 0xff;
    uint64_t inside = length < 64 ? (uint64_t(1) << length) - 1 : ~uint64_t(0);
    inside = begin < 64 ? inside << begin : 0;
    uint64_t field = begin < 64 ? a[lane] << begin : 0;
    d[lane] = Plain<T>::store(T((b[lane] & ~inside) | (field & inside)));
  });
}

static void runLogic3(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b),
                 *c = warp.row(instruction.c);
  unsigned table = instruction.flag;
  forActive(warp, [=](unsigned lane) {
    uint32_t result = 0;
    for (unsigned i = 0; i < 8; ++i)
      if (table >> i & 1)
        result |= uint32_t(i & 4 ? a[lane] : ~a[lane]) &
                  uint32_t(i & 2 ? b[lane] : ~b[lane]) &
                  uint32_t(i & 1 ? c[lane] : ~c[lane]);
    d[lane] = result;
  });
}

// prmt: each byte of the result is one of eight; the high bit of its selector
// repeats that byte's sign.
static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    unsigned select = selector >> (4 * i) & 15;
    auto byte = uint32_t(bytes >> (8 * (select & 7)) & 0xff);
    if (select & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

template <bool Left, bool Wrap>
static uint32_t funnel(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t amount = Wrap ? c & 31 : c > 32 ? 32 : c;
  uint64_t both = uint64_t(b) << 32 | a;
  return uint32_t(Left ? both << amount >> 32 : both >> amount);
}

// The result of these has 32 bits whatever the operand has.
template <class T, int (*Apply)(T)>
static void runCount(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a);
  forActive(warp, [=](unsigned lane) {
    d[lane] = uint32_t(Apply(Plain<T>::load(a[lane])));
  });
}

template <class T> static int countOnes(T a) { return __builtin_popcountll(a); }
template <class T> static int countZeros(T a) {
  return a ? __builtin_clzll(a) - int(64 - 8 * sizeof(T)) : int(8 * sizeof(T));
}
template <class T> static int findHighest(T a) {
  using U = std::make_unsigned_t<T>;
  U bits = std::is_signed_v<T> && a < 0 ? U(~a) : U(a);
  return bits ? int(8 * sizeof(T)) - 1 - countZeros(bits) : -1;
}
template <class T> static int findShift(T a) {
  int found = findHighest(a);
  return found < 0 ? -1 : int(8 * sizeof(T)) - 1 - found;
}
template <class T> static T reverse(T a) {
  T result = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); ++i)
    result |= T(a >> i & 1) << (8 * sizeof(T) - 1 - i);
  return result;
}

template <class T> static Handler findLogic(const std::string &name) {
  auto plain = [](auto handler) { return Handler(handler); };
  if (name == "and")
    return plain(Elementwise<Plain<T>, false, bitAnd<T>>::run);
  if (name == "or")
    return plain(Elementwise<Plain<T>, false, bitOr<T>>::run);
  if (name == "xor")
    return plain(Elementwise<Plain<T>, false, bitXor<T>>::run);
  if (name == "not")
    return plain(Elementwise<Plain<T>, false, bitNot<T>>::run);
  if (name == "cnot")
    return plain(Elementwise<Plain<T>, false, clearNot<T>>::run);
  if (name == "shl")
    return runShift<T, true>;
  if (name == "shr")
    return runShift<T, false>;
  if constexpr (sizeof(T) == 2)
    return nullptr;
  if (name == "popc")
    return runCount<T, countOnes<T>>;
  if (name == "clz")
    return runCount<T, countZeros<T>>;
  if (name == "brev")
    return plain(Elementwise<Plain<T>, false, reverse<T>>::run);
  return nullptr;
}

template <class T> static Handler findField(Decoder &decoder) {
  const std::string &name = decoder.base();
  if (name == "shr")
    return runShift<T, false>;
  if (name == "bfe")
    return runExtract<T>;
  if (name == "bfind")
    return decoder.has("shiftamt") ? runCount<T, findShift<T>>
                                   : runCount<T, findHighest<T>>;
  return nullptr;
}

// Logic of predicates.
template <char Kind>
static void runPredicates(Warp &warp, const Instruction &instruction) {
  uint32_t a = warp.predicates[instruction.a];
  uint32_t b = warp.predicates[instruction.b];
  uint32_t result = Kind == '&' ? a & b : Kind == '|' ? a | b : a ^ b;
  if (Kind == '~')
    result = ~a;
  uint32_t &d = warp.predicates[instruction.p];
  d = (d & ~warp.mask) | (result & warp.mask);
}

static bool decodePredicates(Decoder &decoder) {
  const std::string &name = decoder.base();
  Instruction &instruction = decoder.instruction;
  instruction.run = name == "and"   ? runPredicates<'&'>
                    : name == "or"  ? runPredicates<'|'>
                    : name == "xor" ? runPredicates<'^'>
                    : name == "not" ? runPredicates<'~'>
                                    : nullptr;
  if (!instruction.run)
    return false;
  instruction.p = decoder.predicate(decoder.operand(0));
  instruction.a = decoder.predicate(decoder.operand(1));
  if (name != "not")
    instruction.b = decoder.predicate(decoder.operand(2));
  return true;
}

static Handler findWord(Decoder &decoder) {
  const std::string &name = decoder.base();
  bool wraps = decoder.has("wrap");
  if (name == "lop3")
    return runLogic3;
  if (name == "prmt" && decoder.statement.parts.size() == 2)
    return Elementwise<Plain<uint32_t>, false, permute>::run;
  if (name == "shf")
    return decoder.has("l") ? wraps ? Elementwise<Plain<uint32_t>, false,
                                                  funnel<true, true>>::run
                                    : Elementwise<Plain<uint32_t>, false,
                                                  funnel<true, false>>::run
           : wraps
               ? Elementwise<Plain<uint32_t>, false, funnel<false, true>>::run
               : Elementwise<Plain<uint32_t>, false, funnel<false, false>>::run;
  if (name == "bfi")
    return runInsert<uint32_t>;
  return nullptr;
}

bool decodeBits(Decoder &decoder) {
  const std::string &type = decoder.type(), &name = decoder.base();
  if (type == "pred")
    return decodePredicates(decoder);
  Handler run = nullptr;
  if (!decoder.hasOnly({"l", "r", "wrap", "clamp", "shiftamt"}))
    return false;
  if (type == "b16")
    run = findLogic<uint16_t>(name);
  else if (type == "b32" && !(run = findLogic<uint32_t>(name)))
    run = findWord(decoder);
  else if (type == "b64" && !(run = findLogic<uint64_t>(name)))
    run = name == "bfi" ? runInsert<uint64_t> : nullptr;
  else if (type == "u16" && name == "shr")
    run = runShift<uint16_t, false>;
  else if (type == "s16" && name == "shr")
    run = runShift<int16_t, false>;
  else if (type == "u32")
    run = findField<uint32_t>(decoder);
  else if (type == "s32")
    run = findField<int32_t>(decoder);
  else if (type == "u64")
    run = findField<uint64_t>(decoder);
  else if (type == "s64")
    run = findField<int64_t>(decoder);
  if (!run)
    return false;
  setOperands(decoder, run);
  long long value = 0;
  if (name == "lop3") {
    if (!parseInteger(decoder.operand(4), value))
      return decoder.fail("its table isn't a constant");
    decoder.instruction.flag = uint8_t(value);
  } else if (name == "bfi") {
    decoder.instruction.target = decoder.source(4);
  }
  return true;
}

} // namespace sardonyx::fakecuda
