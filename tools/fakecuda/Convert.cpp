//===- Convert.cpp - Conversions between types of numbers -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include <limits>

namespace sardonyx::fakecuda {

// What Instruction::flag says of a conversion.
enum ConversionFlag : uint8_t {
  kNearest = 0,
  kToZero = 1,
  kDown = 2,
  kUp = 3,
  kRounding = 3,
  kSaturates = 4,
  kFlushes = 8,
  kRectifies = 16,
};

template <class Number>
constexpr bool kIsInteger = std::is_integral_v<typename Number::Compute>;

static double roundToInteger(double value, unsigned flag) {
  switch (flag & kRounding) {
  case kToZero:
    return std::trunc(value);
  case kDown:
    return std::floor(value);
  case kUp:
    return std::ceil(value);
  }
  return std::nearbyint(value);
}

// Registers that are wider than the type take the sign along.
template <class T> static uint64_t storeInteger(T value) {
  return uint64_t(
      std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>(value));
}

template <class To> static To clampFloat(double value) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(value))
    return 0;
  // 2^bits is exact where the greatest integer isn't.
  if (value >= std::ldexp(1.0, Limits::digits))
    return Limits::max();
  if (value < double(Limits::min()))
    return Limits::min();
  return To(value);
}

template <class To, class From>
static uint64_t convert(uint64_t bits, unsigned flag) {
  using FromCompute = typename From::Compute;
  using ToCompute = typename To::Compute;
  FromCompute value = From::load(bits);
  if constexpr (kIsInteger<From> && kIsInteger<To>) {
    using Limits = std::numeric_limits<ToCompute>;
    if (flag & kSaturates) {
      auto wide = __int128(value);
      wide = wide < Limits::min() ? __int128(Limits::min()) : wide;
      wide = wide > Limits::max() ? __int128(Limits::max()) : wide;
      return storeInteger(ToCompute(wide));
    }
    return storeInteger(ToCompute(value));
  } else if constexpr (kIsInteger<To>) {
    auto number = double(value);
    if (flag & kFlushes)
      number = std::fabs(number) < 0x1p-126 ? 0 : number;
    return storeInteger(clampFloat<ToCompute>(roundToInteger(number, flag)));
  } else if constexpr (kIsInteger<From>) {
    if constexpr (std::is_same_v<To, F32>)
      return To::store(float(value));
    return To::store(ToCompute(double(value)));
  } else {
    auto number = double(value);
    if (std::is_same_v<To, From> && (flag & kRounding || flag & 32))
      number = roundToInteger(number, flag);
    if (flag & kFlushes)
      number =
          std::fabs(number) < 0x1p-126 ? std::copysign(0.0, number) : number;
    if (flag & kSaturates)
      number = number > 0 ? number < 1 ? number : 1 : 0;
    if (flag & kRectifies)
      number = number < 0 ? 0 : number;
    return To::store(ToCompute(number));
  }
}

template <class To, class From>
static void runConvert(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a);
  unsigned flag = instruction.flag;
  forActive(warp,
            [=](unsigned lane) { d[lane] = convert<To, From>(a[lane], flag); });
}

// Two floats to a pair of halves; the first operand is the upper one.
template <class To>
static void runPair(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b);
  unsigned flag = instruction.flag;
  forActive(warp, [=](unsigned lane) {
    d[lane] =
        convert<To, F32>(a[lane], flag) << 16 | convert<To, F32>(b[lane], flag);
  });
}

// TensorFloat-32: 10 bits after the point; ties go away from zero (rna) or to
// even (rn).
template <bool TiesAway>
static void runTensorFloat(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a);
  forActive(warp, [=](unsigned lane) {
    auto bits = uint32_t(a[lane]);
    if ((bits & 0x7f800000) != 0x7f800000)
      bits += TiesAway ? 0x1000 : 0xfff + (bits >> 13 & 1);
    d[lane] = bits & 0xffffe000;
  });
}

template <class To> static Handler findFrom(const std::string &from) {
  static const std::pair<const char *, Handler> kHandlers[] = {
      {"u8", runConvert<To, Plain<uint8_t>>},
      {"s8", runConvert<To, Plain<int8_t>>},
      {"u16", runConvert<To, Plain<uint16_t>>},
      {"s16", runConvert<To, Plain<int16_t>>},
      {"u32", runConvert<To, Plain<uint32_t>>},
      {"s32", runConvert<To, Plain<int32_t>>},
      {"u64", runConvert<To, Plain<uint64_t>>},
      {"s64", runConvert<To, Plain<int64_t>>},
      {"f16", runConvert<To, F16>},
      {"bf16", runConvert<To, BF16>},
      {"f32", runConvert<To, F32>},
      {"f64", runConvert<To, F64>}};
  for (auto [known, handler] : kHandlers)
    if (from == known)
      return handler;
  return nullptr;
}

static Handler findConversion(const std::string &to, const std::string &from) {
  using Find = Handler (*)(const std::string &);
  static const std::pair<const char *, Find> kFinds[] = {
      {"u8", findFrom<Plain<uint8_t>>},
      {"s8", findFrom<Plain<int8_t>>},
      {"u16", findFrom<Plain<uint16_t>>},
      {"s16", findFrom<Plain<int16_t>>},
      {"u32", findFrom<Plain<uint32_t>>},
      {"s32", findFrom<Plain<int32_t>>},
      {"u64", findFrom<Plain<uint64_t>>},
      {"s64", findFrom<Plain<int64_t>>},
      {"f16", findFrom<F16>},
      {"bf16", findFrom<BF16>},
      {"f32", findFrom<F32>},
      {"f64", findFrom<F64>}};
  for (auto [known, find] : kFinds)
    if (to == known)
      return find(from);
  if (from == "f32" && to == "f16x2")
    return runPair<F16>;
  if (from == "f32" && to == "bf16x2")
    return runPair<BF16>;
  return nullptr;
}

bool decodeConvert(Decoder &decoder) {
  const auto &parts = decoder.statement.parts;
  if (decoder.base() != "cvt" || parts.size() < 3 || decoder.has("satfinite"))
    return false;
  const std::string &to = parts[parts.size() - 2], &from = parts.back();
  Handler run = findConversion(to, from);
  uint8_t flag = 0;
  bool isFloat = to.find('f') != to.npos && from.find('f') != from.npos;
  for (size_t i = 1; i + 2 < parts.size(); ++i) {
    const std::string &part = parts[i];
    if (part == "rni" && isFloat)
      flag |= 32;
    else if (part == "rzi")
      flag |= kToZero;
    else if (part == "rmi")
      flag |= kDown;
    else if (part == "rpi")
      flag |= kUp;
    else if (part == "sat")
      flag |= kSaturates;
    else if (part == "ftz")
      flag |= kFlushes;
    else if (part == "relu")
      flag |= kRectifies;
    else if (part == "rna" && to == "tf32" && from == "f32")
      run = runTensorFloat<true>;
    else if (part == "rn" && to == "tf32" && from == "f32")
      run = runTensorFloat<false>;
    else if (part != "rn" && part != "rni")
      return false;
  }
  if (!run)
    return false;
  setOperands(decoder, run);
  decoder.instruction.flag = flag;
  return true;
}

} // namespace sardonyx::fakecuda
