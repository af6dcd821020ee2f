//===- Compare.cpp - Comparisons and selections ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

template <class T> static bool isEqual(T a, T b) { return a == b; }
template <class T> static bool isOther(T a, T b) { return a < b || a > b; }
template <class T> static bool isLess(T a, T b) { return a < b; }
template <class T> static bool isLessOrEqual(T a, T b) { return a <= b; }
template <class T> static bool isGreater(T a, T b) { return a > b; }
template <class T> static bool isGreaterOrEqual(T a, T b) { return a >= b; }
// Without order (a NaN among them) these are true.
template <class T> static bool isEqualU(T a, T b) { return !isOther(a, b); }
template <class T> static bool isOtherU(T a, T b) { return !(a == b); }
template <class T> static bool isLessU(T a, T b) { return !(a >= b); }
template <class T> static bool isLessOrEqualU(T a, T b) { return !(a > b); }
template <class T> static bool isGreaterU(T a, T b) { return !(a <= b); }
template <class T> static bool isGreaterOrEqualU(T a, T b) { return !(a < b); }
template <class T> static bool hasOrder(T a, T b) { return a == a && b == b; }
template <class T> static bool hasNoOrder(T a, T b) { return !hasOrder(a, b); }

// What Instruction::flag says: how the result is combined with predicate c, and
// what set writes.
enum CompareFlag : uint8_t {
  kAnd = 1,
  kOr = 2,
  kXor = 3,
  kCombines = 3,
  kNegated = 4,
  kFloatResult = 8,
  kHalfResult = 16,
  kBrainResult = 32,
};

template <class Number, auto Compare>
static uint32_t compareLanes(const uint64_t *a, const uint64_t *b,
                             unsigned shift) {
  uint32_t result = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    result |= uint32_t(Compare(Number::load(a[lane] >> shift),
                               Number::load(b[lane] >> shift)))
              << lane;
  return result;
}

static uint32_t combine(Warp &warp, const Instruction &instruction,
                        uint32_t result) {
  if (!(instruction.flag & kCombines))
    return result;
  uint32_t with = warp.predicates[instruction.c];
  if (instruction.flag & kNegated)
    with = ~with;
  unsigned how = instruction.flag & kCombines;
  return how == kAnd  ? result & with
         : how == kOr ? result | with
                      : result ^ with;
}

static void setMasked(Warp &warp, uint32_t index, uint32_t value) {
  if (index == kNone)
    return;
  uint32_t &d = warp.predicates[index];
  d = (d & ~warp.mask) | (value & warp.mask);
}

template <class Number, auto Compare, bool Packed>
static void runCompare(Warp &warp, const Instruction &instruction) {
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b);
  uint32_t plain = compareLanes<Number, Compare>(a, b, 0);
  uint32_t second = ~plain;
  if constexpr (Packed)
    second = compareLanes<Number, Compare>(a, b, 16);
  // The second predicate is that of the upper halves, or of the opposite.
  uint32_t first = combine(warp, instruction, plain);
  second = combine(warp, instruction, second);
  setMasked(warp, instruction.p, first);
  setMasked(warp, instruction.q, second);
}

// set: all bits or 1.0 in a register.
template <class Number, auto Compare, bool Packed>
static void runSet(Warp &warp, const Instruction &instruction) {
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b);
  uint32_t low =
      combine(warp, instruction, compareLanes<Number, Compare>(a, b, 0));
  uint32_t high = 0;
  if constexpr (Packed)
    high = combine(warp, instruction, compareLanes<Number, Compare>(a, b, 16));
  unsigned flag = instruction.flag;
  uint64_t one = flag & kFloatResult   ? 0x3f800000
                 : flag & kHalfResult  ? 0x3c00
                 : flag & kBrainResult ? 0x3f80
                 : Packed              ? 0xffff
                                       : 0xffffffff;
  uint64_t *d = warp.row(instruction.d);
  forActive(warp, [=](unsigned lane) {
    d[lane] = (low >> lane & 1 ? one : 0) |
              (Packed && high >> lane & 1 ? one << 16 : 0);
  });
}

struct CompareHandlers {
  Handler compare = nullptr, set = nullptr;
};

template <class Number, bool Packed>
static CompareHandlers findCompare(const std::string &name) {
  using T = typename Number::Compute;
#define SARDONYX_COMPARE(NAME, FUNCTION)                                       \
  {                                                                            \
    NAME, {                                                                    \
      runCompare<Number, FUNCTION<T>, Packed>,                                 \
          runSet<Number, FUNCTION<T>, Packed>                                  \
    }                                                                          \
  }
  static const std::pair<const char *, CompareHandlers> kHandlers[] = {
      SARDONYX_COMPARE("eq", isEqual),
      SARDONYX_COMPARE("ne", isOther),
      SARDONYX_COMPARE("lt", isLess),
      SARDONYX_COMPARE("le", isLessOrEqual),
      SARDONYX_COMPARE("gt", isGreater),
      SARDONYX_COMPARE("ge", isGreaterOrEqual),
      SARDONYX_COMPARE("lo", isLess),
      SARDONYX_COMPARE("ls", isLessOrEqual),
      SARDONYX_COMPARE("hi", isGreater),
      SARDONYX_COMPARE("hs", isGreaterOrEqual),
      SARDONYX_COMPARE("equ", isEqualU),
      SARDONYX_COMPARE("neu", isOtherU),
      SARDONYX_COMPARE("ltu", isLessU),
      SARDONYX_COMPARE("leu", isLessOrEqualU),
      SARDONYX_COMPARE("gtu", isGreaterU),
      SARDONYX_COMPARE("geu", isGreaterOrEqualU),
      SARDONYX_COMPARE("num", hasOrder),
      SARDONYX_COMPARE("nan", hasNoOrder)};
#undef SARDONYX_COMPARE
  for (const auto &[known, handlers] : kHandlers)
    if (name == known)
      return handlers;
  return {};
}

static CompareHandlers findHandlers(const std::string &type,
                                    const std::string &compare, bool flushes) {
  if (type == "f32" && flushes)
    return findCompare<F32Ftz, false>(compare);
  using Find = CompareHandlers (*)(const std::string &);
  static const std::pair<const char *, Find> kFinds[] = {
      {"b16", findCompare<Plain<uint16_t>, false>},
      {"u16", findCompare<Plain<uint16_t>, false>},
      {"s16", findCompare<Plain<int16_t>, false>},
      {"b32", findCompare<Plain<uint32_t>, false>},
      {"u32", findCompare<Plain<uint32_t>, false>},
      {"s32", findCompare<Plain<int32_t>, false>},
      {"b64", findCompare<Plain<uint64_t>, false>},
      {"u64", findCompare<Plain<uint64_t>, false>},
      {"s64", findCompare<Plain<int64_t>, false>},
      {"f16", findCompare<F16, false>},
      {"bf16", findCompare<BF16, false>},
      {"f16x2", findCompare<F16, true>},
      {"bf16x2", findCompare<BF16, true>},
      {"f32", findCompare<F32, false>},
      {"f64", findCompare<F64, false>}};
  for (auto [known, find] : kFinds)
    if (type == known)
      return find(compare);
  return {};
}

template <class T>
static void runSelect(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b);
  uint32_t which = warp.predicates[instruction.c];
  forActive(warp, [=](unsigned lane) {
    d[lane] =
        Plain<T>::store(Plain<T>::load(which >> lane & 1 ? a[lane] : b[lane]));
  });
}

static bool decodeSelect(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  size_t bytes = sizeOfType(decoder.type());
  instruction.run = bytes == 2   ? runSelect<uint16_t>
                    : bytes == 4 ? runSelect<uint32_t>
                    : bytes == 8 ? runSelect<uint64_t>
                                 : nullptr;
  if (!instruction.run)
    return false;
  instruction.d = decoder.destination(decoder.operand(0));
  instruction.a = decoder.source(1);
  instruction.b = decoder.source(2);
  instruction.c = decoder.predicate(decoder.operand(3));
  return true;
}

bool decodeCompare(Decoder &decoder) {
  const std::string &name = decoder.base();
  const auto &parts = decoder.statement.parts;
  if (name == "selp")
    return decodeSelect(decoder);
  if ((name != "setp" && name != "set") || parts.size() < 3)
    return false;
  auto [compare, set] =
      findHandlers(decoder.type(), parts[1], decoder.has("ftz"));
  Instruction &instruction = decoder.instruction;
  instruction.run = name == "setp" ? compare : set;
  if (!instruction.run)
    return false;
  if (name == "setp") {
    std::string_view result = decoder.operand(0);
    size_t bar = result.find('|');
    instruction.p = decoder.predicate(result.substr(0, bar));
    if (bar != result.npos)
      instruction.q = decoder.predicate(result.substr(bar + 1));
  } else {
    const std::string &to = parts[parts.size() - 2];
    instruction.d = decoder.destination(decoder.operand(0));
    instruction.flag = to == "f32"                      ? kFloatResult
                       : to == "f16" || to == "f16x2"   ? kHalfResult
                       : to == "bf16" || to == "bf16x2" ? kBrainResult
                                                        : 0;
  }
  instruction.a = decoder.source(1);
  instruction.b = decoder.source(2);
  if (decoder.operandCount() > 3) {
    bool negated = false;
    instruction.c = decoder.predicate(decoder.operand(3), &negated);
    instruction.flag |= decoder.has("and")  ? kAnd
                        : decoder.has("or") ? kOr
                                            : kXor;
    instruction.flag |= negated ? kNegated : 0;
  }
  return true;
}

} // namespace sardonyx::fakecuda
