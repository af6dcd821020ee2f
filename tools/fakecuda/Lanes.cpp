//===- Lanes.cpp - What the lanes of a warp do together -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

static unsigned firstLane(const Warp &warp) {
  return unsigned(__builtin_ctz(warp.mask));
}

// The lanes that take part are in the row `members`; false while some of them
// are elsewhere.
static bool gather(Warp &warp, uint32_t members) {
  return warp.gather(uint32_t(warp.get(members, firstLane(warp))));
}

enum class Shuffle { Up, Down, Butterfly, Index };

template <Shuffle S>
static void runShuffle(Warp &warp, const Instruction &instruction) {
  if (!gather(warp, instruction.target))
    return;
  uint64_t values[kLanes];
  std::copy_n(warp.row(instruction.a), kLanes, values);
  forLanes(warp.mask, [&](unsigned lane) {
    unsigned b = warp.get(instruction.b, lane) & 31;
    auto clamp = unsigned(warp.get(instruction.c, lane));
    unsigned segment = clamp >> 8 & 31, last = clamp & 31;
    unsigned most = (lane & segment) | (last & ~segment & 31);
    int from = S == Shuffle::Up     ? int(lane) - int(b)
               : S == Shuffle::Down ? int(lane + b)
               : S == Shuffle::Butterfly
                   ? int(lane ^ b)
                   : int((lane & segment) | (b & ~segment));
    bool inside = S == Shuffle::Up ? from >= int(most) : from <= int(most);
    if (!inside)
      from = int(lane);
    if (!(warp.mask >> from & 1))
      return warp.fault(lane, "reads lane " + std::to_string(from) +
                                  ", which isn't there");
    warp.row(instruction.d)[lane] = uint32_t(values[from]);
    if (instruction.p != kNone)
      warp.setPredicate(instruction.p, lane, inside);
  });
}

// Splits "d|p".
static void decodeResult(Decoder &decoder) {
  std::string_view result = decoder.operand(0);
  size_t bar = result.find('|');
  decoder.instruction.d = decoder.destination(result.substr(0, bar));
  if (bar != result.npos)
    decoder.instruction.p = decoder.predicate(result.substr(bar + 1));
}

static bool decodeShuffle(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  instruction.run = decoder.has("up")     ? runShuffle<Shuffle::Up>
                    : decoder.has("down") ? runShuffle<Shuffle::Down>
                    : decoder.has("bfly") ? runShuffle<Shuffle::Butterfly>
                    : decoder.has("idx")  ? runShuffle<Shuffle::Index>
                                          : nullptr;
  if (!instruction.run || !decoder.has("sync"))
    return false;
  decodeResult(decoder);
  instruction.a = decoder.source(1);
  instruction.b = decoder.source(2);
  instruction.c = decoder.source(3);
  instruction.target = decoder.source(4);
  return true;
}

enum class Vote { All, Any, Uniform, Ballot };

template <Vote V>
static void runVote(Warp &warp, const Instruction &instruction) {
  if (!gather(warp, instruction.target))
    return;
  uint32_t votes = warp.predicates[instruction.a];
  votes = (instruction.flag ? ~votes : votes) & warp.mask;
  bool result = V == Vote::All   ? votes == warp.mask
                : V == Vote::Any ? votes != 0
                                 : votes == 0 || votes == warp.mask;
  forLanes(warp.mask, [&](unsigned lane) {
    if constexpr (V == Vote::Ballot)
      warp.row(instruction.d)[lane] = votes;
    else
      warp.setPredicate(instruction.p, lane, result);
  });
}

static bool decodeVote(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  instruction.run = decoder.has("all")      ? runVote<Vote::All>
                    : decoder.has("any")    ? runVote<Vote::Any>
                    : decoder.has("uni")    ? runVote<Vote::Uniform>
                    : decoder.has("ballot") ? runVote<Vote::Ballot>
                                            : nullptr;
  if (!instruction.run || !decoder.has("sync"))
    return false;
  bool negated = false;
  if (decoder.has("ballot"))
    instruction.d = decoder.destination(decoder.operand(0));
  else
    instruction.p = decoder.predicate(decoder.operand(0));
  instruction.a = decoder.predicate(decoder.operand(1), &negated);
  instruction.flag = negated;
  instruction.target = decoder.source(decoder.operand(2), "b32");
  return true;
}

template <class T, bool All>
static void runMatch(Warp &warp, const Instruction &instruction) {
  if (!gather(warp, instruction.target))
    return;
  uint64_t results[kLanes];
  forLanes(warp.mask, [&](unsigned lane) {
    uint32_t same = 0;
    forLanes(warp.mask, [&](unsigned other) {
      same |= uint32_t(T(warp.get(instruction.a, lane)) ==
                       T(warp.get(instruction.a, other)))
              << other;
    });
    bool all = same == warp.mask;
    results[lane] = All && !all ? 0 : same;
    if (instruction.p != kNone)
      warp.setPredicate(instruction.p, lane, all);
  });
  forLanes(warp.mask, [&](unsigned lane) {
    warp.row(instruction.d)[lane] = results[lane];
  });
}

static bool decodeMatch(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  bool all = decoder.has("all"), wide = decoder.type() == "b64";
  instruction.run =
      wide  ? all ? runMatch<uint64_t, true> : runMatch<uint64_t, false>
      : all ? runMatch<uint32_t, true>
            : runMatch<uint32_t, false>;
  decodeResult(decoder);
  instruction.a = decoder.source(1);
  instruction.target = decoder.source(decoder.operand(2), "b32");
  return true;
}

static void runActiveMask(Warp &warp, const Instruction &instruction) {
  forLanes(warp.mask,
           [&](unsigned lane) { warp.row(instruction.d)[lane] = warp.mask; });
}

// elect.sync: the lowest lane is it.
static void runElect(Warp &warp, const Instruction &instruction) {
  if (!gather(warp, instruction.target))
    return;
  unsigned chosen = firstLane(warp);
  forLanes(warp.mask, [&](unsigned lane) {
    warp.row(instruction.d)[lane] = chosen;
    if (instruction.p != kNone)
      warp.setPredicate(instruction.p, lane, lane == chosen);
  });
}

template <class T> static T sum(T a, T b) {
  return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
}
template <class T> static T least(T a, T b) { return b < a ? b : a; }
template <class T> static T greatest(T a, T b) { return a < b ? b : a; }
static uint32_t both(uint32_t a, uint32_t b) { return a & b; }
static uint32_t either(uint32_t a, uint32_t b) { return a | b; }
static uint32_t differing(uint32_t a, uint32_t b) { return a ^ b; }

template <class T, T (*Apply)(T, T)>
static void runReduction(Warp &warp, const Instruction &instruction) {
  if (!gather(warp, instruction.target))
    return;
  unsigned first = firstLane(warp);
  T result = T(warp.get(instruction.a, first));
  forLanes(warp.mask & ~(1u << first), [&](unsigned lane) {
    result = Apply(result, T(warp.get(instruction.a, lane)));
  });
  forLanes(warp.mask, [&](unsigned lane) {
    warp.row(instruction.d)[lane] = uint32_t(result);
  });
}

static bool decodeReduction(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  const std::string &type = decoder.type();
  bool isSigned = type == "s32";
  if (type != "s32" && type != "u32" && type != "b32")
    return false;
  instruction.run = decoder.has("add") ? runReduction<uint32_t, sum<uint32_t>>
                    : decoder.has("min")
                        ? isSigned ? runReduction<int32_t, least<int32_t>>
                                   : runReduction<uint32_t, least<uint32_t>>
                    : decoder.has("max")
                        ? isSigned ? runReduction<int32_t, greatest<int32_t>>
                                   : runReduction<uint32_t, greatest<uint32_t>>
                    : decoder.has("and") ? runReduction<uint32_t, both>
                    : decoder.has("or")  ? runReduction<uint32_t, either>
                    : decoder.has("xor") ? runReduction<uint32_t, differing>
                                         : nullptr;
  if (!instruction.run)
    return false;
  instruction.d = decoder.destination(decoder.operand(0));
  instruction.a = decoder.source(1);
  instruction.target = decoder.source(decoder.operand(2), "b32");
  return true;
}

bool decodeLanes(Decoder &decoder) {
  const std::string &name = decoder.base();
  Instruction &instruction = decoder.instruction;
  if (name == "shfl")
    return decodeShuffle(decoder);
  if (name == "vote")
    return decodeVote(decoder);
  if (name == "match")
    return decodeMatch(decoder);
  if (name == "redux")
    return decodeReduction(decoder);
  if (name == "activemask") {
    instruction.run = runActiveMask;
    instruction.d = decoder.destination(decoder.operand(0));
    return true;
  }
  if (name == "elect") {
    instruction.run = runElect;
    decodeResult(decoder);
    instruction.target = decoder.source(decoder.operand(1), "b32");
    return true;
  }
  return false;
}

} // namespace sardonyx::fakecuda
