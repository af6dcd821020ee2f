//===- Integer.cpp - Arithmetic of integers -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include <limits>

namespace sardonyx::fakecuda {

// Sums and products wrap, therefore they are computed without a sign.
template <class T> using Bits = std::make_unsigned_t<T>;
template <class T>
using Wide =
    std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;

template <class T> static T add(T a, T b) { return T(Bits<T>(a) + Bits<T>(b)); }
template <class T> static T subtract(T a, T b) {
  return T(Bits<T>(a) - Bits<T>(b));
}
template <class T> static T multiplyLow(T a, T b) {
  return T(uint64_t(a) * uint64_t(b));
}
template <class T> static T multiplyHigh(T a, T b) {
  return T((Wide<T>(a) * b) >> (8 * sizeof(T)));
}
template <class T> static T multiplyAddLow(T a, T b, T c) {
  return T(uint64_t(a) * uint64_t(b) + uint64_t(c));
}
template <class T> static T multiplyAddHigh(T a, T b, T c) {
  return add(multiplyHigh(a, b), c);
}
// A division by zero gives all ones, as on the device.
template <class T> static T divide(T a, T b) {
  if (b == 0)
    return T(~Bits<T>(0));
  if (std::is_signed_v<T> && b == T(-1))
    return T(0 - Bits<T>(a));
  return T(a / b);
}
template <class T> static T remainder(T a, T b) {
  if (b == 0)
    return a;
  if (std::is_signed_v<T> && b == T(-1))
    return 0;
  return T(a % b);
}
template <class T> static T least(T a, T b) { return b < a ? b : a; }
template <class T> static T greatest(T a, T b) { return a < b ? b : a; }
template <class T> static T negate(T a) { return T(0 - Bits<T>(a)); }
template <class T> static T absolute(T a) { return a < 0 ? negate(a) : a; }
template <class T> static T difference(T a, T b) {
  return a < b ? subtract(b, a) : subtract(a, b);
}
template <class T> static T differenceAdd(T a, T b, T c) {
  return add(difference(a, b), c);
}
template <class T> static T clamp(Wide<T> value) {
  using Limits = std::numeric_limits<T>;
  return value < Limits::min()   ? Limits::min()
         : value > Limits::max() ? Limits::max()
                                 : T(value);
}
template <class T> static T addSaturated(T a, T b) {
  return clamp<T>(Wide<T>(a) + b);
}
template <class T> static T subtractSaturated(T a, T b) {
  return clamp<T>(Wide<T>(a) - b);
}

template <class T, auto Apply> static Handler plain() {
  return Elementwise<Plain<T>, false, Apply>::run;
}

// mul.wide and mad.wide: twice the bits.
template <class T, class W>
static void runWide(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b),
                 *c = warp.row(instruction.c);
  bool adds = instruction.flag;
  forActive(warp, [=](unsigned lane) {
    W product = W(W(Plain<T>::load(a[lane])) * W(Plain<T>::load(b[lane])));
    uint64_t sum = uint64_t(product) + (adds ? c[lane] : 0);
    d[lane] =
        Plain<std::make_unsigned_t<W>>::store(std::make_unsigned_t<W>(sum));
  });
}

template <class T> static Handler findProduct(Decoder &decoder, bool adds) {
  if (decoder.has("lo"))
    return adds ? plain<T, multiplyAddLow<T>>() : plain<T, multiplyLow<T>>();
  if (decoder.has("hi"))
    return adds ? plain<T, multiplyAddHigh<T>>() : plain<T, multiplyHigh<T>>();
  decoder.instruction.flag = adds;
  if (!decoder.has("wide"))
    return nullptr;
  if constexpr (sizeof(T) == 2)
    return runWide<T,
                   std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>;
  else if constexpr (sizeof(T) == 4)
    return runWide<T,
                   std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  else
    return nullptr;
}

// mul24 and mad24 of 24 bits are rare and not here.
template <class T> static Handler findHandler(Decoder &decoder) {
  const std::string &name = decoder.base();
  if (name == "mul" || name == "mad")
    return findProduct<T>(decoder, name == "mad");
  if (decoder.has("sat"))
    return name == "add"   ? plain<T, addSaturated<T>>()
           : name == "sub" ? plain<T, subtractSaturated<T>>()
                           : nullptr;
  static const std::pair<const char *, Handler> kHandlers[] = {
      {"add", plain<T, add<T>>()},          {"sub", plain<T, subtract<T>>()},
      {"div", plain<T, divide<T>>()},       {"rem", plain<T, remainder<T>>()},
      {"min", plain<T, least<T>>()},        {"max", plain<T, greatest<T>>()},
      {"neg", plain<T, negate<T>>()},       {"abs", plain<T, absolute<T>>()},
      {"sad", plain<T, differenceAdd<T>>()}};
  for (auto [known, handler] : kHandlers)
    if (name == known)
      return handler;
  return nullptr;
}

template <class T, auto Apply>
static void runPair(Warp &warp, const Instruction &instruction) {
  Elementwise<Plain<T>, true, Apply>::run(warp, instruction);
}

static Handler findPair(Decoder &decoder) {
  const std::string &name = decoder.base();
  bool isSigned = decoder.type()[0] == 's';
  if (name == "add")
    return runPair<uint16_t, add<uint16_t>>;
  if (name == "min")
    return isSigned ? runPair<int16_t, least<int16_t>>
                    : runPair<uint16_t, least<uint16_t>>;
  if (name == "max")
    return isSigned ? runPair<int16_t, greatest<int16_t>>
                    : runPair<uint16_t, greatest<uint16_t>>;
  return nullptr;
}

// dp4a: four products of bytes; dp2a: two of halves and bytes.
template <bool ASigned, bool BSigned>
static void runDotProduct(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b),
                 *c = warp.row(instruction.c);
  unsigned flag = instruction.flag;
  auto byte = [](uint64_t bits, unsigned i, bool isSigned) {
    return isSigned ? int32_t(int8_t(bits >> (8 * i)))
                    : int32_t(uint8_t(bits >> (8 * i)));
  };
  forActive(warp, [=](unsigned lane) {
    auto sum = uint32_t(c[lane]);
    for (unsigned i = 0; i < (flag ? 2 : 4); ++i) {
      int32_t x = byte(a[lane], i, ASigned);
      if (flag)
        x = ASigned ? int32_t(int16_t(a[lane] >> (16 * i)))
                    : int32_t(uint16_t(a[lane] >> (16 * i)));
      sum += uint32_t(x * byte(b[lane], flag == 2 ? i + 2 : i, BSigned));
    }
    d[lane] = sum;
  });
}

static bool decodeDotProduct(Decoder &decoder) {
  const auto &parts = decoder.statement.parts;
  bool isFour = decoder.base() == "dp4a";
  if ((!isFour && decoder.base() != "dp2a") || parts.size() < 3)
    return false;
  bool aSigned = parts[parts.size() - 2] == "s32";
  bool bSigned = parts.back() == "s32";
  setOperands(decoder, aSigned   ? bSigned ? runDotProduct<true, true>
                                           : runDotProduct<true, false>
                       : bSigned ? runDotProduct<false, true>
                                 : runDotProduct<false, false>);
  decoder.instruction.flag = isFour ? 0 : decoder.has("hi") ? 2 : 1;
  return true;
}

bool decodeInteger(Decoder &decoder) {
  if (decodeDotProduct(decoder))
    return true;
  const std::string &type = decoder.type();
  Handler run = nullptr;
  if (!decoder.hasOnly({"lo", "hi", "wide", "sat"}))
    return false;
  if (type == "u16x2" || type == "s16x2")
    run = findPair(decoder);
  else if (type == "s16")
    run = findHandler<int16_t>(decoder);
  else if (type == "u16")
    run = findHandler<uint16_t>(decoder);
  else if (type == "s32")
    run = findHandler<int32_t>(decoder);
  else if (type == "u32")
    run = findHandler<uint32_t>(decoder);
  else if (type == "s64")
    run = findHandler<int64_t>(decoder);
  else if (type == "u64")
    run = findHandler<uint64_t>(decoder);
  if (!run)
    return false;
  setOperands(decoder, run);
  // The addend of a wide product has all of its bits.
  if (decoder.base() == "mad" && decoder.has("wide"))
    decoder.instruction.c = decoder.source(decoder.operand(3), "b64");
  return true;
}

} // namespace sardonyx::fakecuda
