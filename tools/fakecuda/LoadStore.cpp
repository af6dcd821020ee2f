//===- LoadStore.cpp - Moves, loads and stores ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

// Addresses become generic, or those of a space.
template <Space S, bool ToSpace>
static void runConvertAddress(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a);
  constexpr uint64_t kWindow = S == Space::Shared  ? kSharedWindow
                               : S == Space::Local ? kLocalWindow
                               : S == Space::Param ? kParamWindow
                                                   : 0;
  forActive(warp, [=](unsigned lane) {
    uint64_t address = a[lane];
    if (ToSpace && S != Space::Param && address >= kWindow)
      address -= kWindow;
    else if (!ToSpace && address < kWindow)
      address += kWindow;
    d[lane] = address;
  });
}

static bool decodeAddress(Decoder &decoder) {
  bool to = decoder.has("to");
  Handler run = nullptr;
  if (decoder.has("global") || decoder.has("const"))
    run = runConvertAddress<Space::Global, false>;
  else if (decoder.has("shared") || decoder.has("shared::cta") ||
           decoder.has("shared::cluster"))
    run = to ? runConvertAddress<Space::Shared, true>
             : runConvertAddress<Space::Shared, false>;
  else if (decoder.has("local"))
    run = to ? runConvertAddress<Space::Local, true>
             : runConvertAddress<Space::Local, false>;
  else if (decoder.has("param"))
    run = runConvertAddress<Space::Param, false>;
  if (!run)
    return false;
  setOperands(decoder, run);
  return true;
}

static void runPack(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint32_t *parts = &warp.program.operands[instruction.first];
  unsigned bits = 8 * instruction.bytes;
  uint64_t inside = (uint64_t(1) << bits) - 1;
  forActive(warp, [&](unsigned lane) {
    uint64_t value = 0;
    for (unsigned i = 0; i < instruction.count; ++i)
      value |= (warp.row(parts[i])[lane] & inside) << (i * bits);
    d[lane] = value;
  });
}

static void runUnpack(Warp &warp, const Instruction &instruction) {
  const uint32_t *parts = &warp.program.operands[instruction.first];
  unsigned bits = 8 * instruction.bytes;
  uint64_t inside = (uint64_t(1) << bits) - 1;
  forActive(warp, [&](unsigned lane) {
    uint64_t value = warp.row(instruction.a)[lane];
    for (unsigned i = 0; i < instruction.count; ++i)
      warp.row(parts[i])[lane] = value >> (i * bits) & inside;
  });
}

template <class T>
static void runCopy(Warp &warp, const Instruction &instruction) {
  uint64_t *d = warp.row(instruction.d);
  const uint64_t *a = warp.row(instruction.a);
  forActive(warp, [=](unsigned lane) {
    d[lane] = Plain<T>::store(Plain<T>::load(a[lane]));
  });
}

static void runCopyPredicate(Warp &warp, const Instruction &instruction) {
  uint32_t value = instruction.a != kNone ? warp.predicates[instruction.a]
                   : instruction.flag     ? ~0u
                                          : 0;
  uint32_t &d = warp.predicates[instruction.p];
  d = (d & ~warp.mask) | (value & warp.mask);
}

// The clock counts instructions of the warp.
static void runClock(Warp &warp, const Instruction &instruction) {
  forLanes(warp.mask,
           [&](unsigned lane) { warp.row(instruction.d)[lane] = warp.steps; });
}

bool decodeMove(Decoder &decoder) {
  const std::string &name = decoder.base(), &type = decoder.type();
  Instruction &instruction = decoder.instruction;
  if (name == "cvta")
    return decodeAddress(decoder);
  if (name != "mov")
    return false;
  const std::string &to = decoder.operand(0), &from = decoder.operand(1);
  size_t bytes = sizeOfType(type);
  if (type == "pred") {
    long long value = 0;
    instruction.run = runCopyPredicate;
    instruction.p = decoder.predicate(to);
    instruction.a = kNone;
    if (parseInteger(from, value))
      instruction.flag = value != 0;
    else
      instruction.a = decoder.predicate(from);
    return true;
  }
  if (from.substr(0, 6) == "%clock" || from.substr(0, 11) == "%globaltime") {
    instruction.run = runClock;
    instruction.d = decoder.destination(to);
    return true;
  }
  bool packs = !from.empty() && from[0] == '{';
  bool unpacks = !to.empty() && to[0] == '{';
  if (packs || unpacks) {
    size_t parts = splitList(std::string_view(packs ? from : to)
                                 .substr(1, (packs ? from : to).size() - 2))
                       .size();
    if (packs == unpacks || bytes > 8 || parts < 2 || bytes % parts)
      return decoder.fail("a move between these isn't known");
    instruction.run = packs ? runPack : runUnpack;
    instruction.bytes = uint8_t(bytes / parts);
    if (packs)
      decoder.sources(from, "b32");
    else
      decoder.destinations(to);
    (packs ? instruction.d : instruction.a) =
        packs ? decoder.destination(to) : decoder.source(from, type);
    return true;
  }
  if (bytes != 2 && bytes != 4 && bytes != 8)
    return false;
  setOperands(decoder, bytes == 2   ? runCopy<uint16_t>
                       : bytes == 4 ? runCopy<uint32_t>
                                    : runCopy<uint64_t>);
  return true;
}

// Loads and stores of a lane. `watched`: races are looked for.
template <Space S, class T, bool Store>
static void runAccess(Warp &warp, const Instruction &instruction) {
  const uint32_t *parts = &warp.program.operands[instruction.first];
  const uint64_t *addresses = warp.row(instruction.a);
  unsigned count = instruction.count;
  bool watched = instruction.flag;
  for (uint32_t left = warp.mask; left; left &= left - 1) {
    auto lane = unsigned(__builtin_ctz(left));
    uint64_t address = addresses[lane] + uint64_t(instruction.offset);
    if constexpr (S == Space::Shared)
      address = uint32_t(address); // Shared addresses have 32 bits.
    char *memory = warp.access(S, lane, address, sizeof(T) * count, Store);
    if (!memory)
      return;
    if constexpr (S == Space::Shared || S == Space::Generic) {
      if (watched && Warp::find(S, address) == Space::Shared &&
          !warp.block.touch(warp, lane, uint32_t(address),
                            Store ? unsigned(sizeof(T)) * count
                                  : instruction.used,
                            Store ? Touch::Write : Touch::Read))
        return;
    }
    for (unsigned i = 0; i < count; ++i) {
      T value;
      if constexpr (Store) {
        value = T(warp.row(parts[i])[lane]);
        memcpy(memory + i * sizeof(T), &value, sizeof(T));
      } else {
        memcpy(&value, memory + i * sizeof(T), sizeof(T));
        warp.row(parts[i])[lane] = uint64_t(
            std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>(value));
      }
    }
  }
}

template <Space S, bool Store>
static Handler findAccess(size_t bytes, bool isSigned) {
  switch (bytes) {
  case 1:
    return isSigned ? runAccess<S, int8_t, Store>
                    : runAccess<S, uint8_t, Store>;
  case 2:
    return isSigned ? runAccess<S, int16_t, Store>
                    : runAccess<S, uint16_t, Store>;
  case 4:
    return isSigned ? runAccess<S, int32_t, Store>
                    : runAccess<S, uint32_t, Store>;
  case 8:
    return runAccess<S, uint64_t, Store>;
  }
  return nullptr;
}

template <bool Store>
static Handler findAccess(Decoder &decoder, size_t bytes, bool isSigned) {
  if (decoder.has("global") || decoder.has("const"))
    return findAccess<Space::Global, Store>(bytes, isSigned);
  if (decoder.has("shared") || decoder.has("shared::cta"))
    return findAccess<Space::Shared, Store>(bytes, isSigned);
  if (decoder.has("local"))
    return findAccess<Space::Local, Store>(bytes, isSigned);
  // The parameters of functions that are called are local variables.
  return findAccess<Space::Generic, Store>(bytes, isSigned);
}

static void runNothing(Warp &, const Instruction &) {}

// Hints that change no value.
static bool decodeHint(Decoder &decoder) {
  const std::string &name = decoder.base();
  if (name == "prefetch" || name == "prefetchu" || name == "applypriority" ||
      name == "createpolicy")
    decoder.instruction.run = runNothing;
  if (name == "createpolicy")
    decoder.instruction.run = nullptr;
  return decoder.instruction.run != nullptr;
}

bool decodeLoadStore(Decoder &decoder) {
  const std::string &name = decoder.base();
  Instruction &instruction = decoder.instruction;
  bool stores = name == "st";
  if (name != "ld" && name != "ldu" && !stores)
    return decodeHint(decoder);
  static const std::vector<std::string> kUnknown = {"mmio", "async", "bulk"};
  for (const std::string &part : kUnknown)
    if (decoder.has(part))
      return false;
  size_t bytes = sizeOfType(decoder.type());
  bool isSigned = decoder.type()[0] == 's';
  const bool isOfCluster = decoder.has("shared::cluster");
  if (isOfCluster && stores)
    return false;
  instruction.run = stores        ? findAccess<true>(decoder, bytes, isSigned)
                    : isOfCluster ? findClusterLoad(bytes, isSigned)
                                  : findAccess<false>(decoder, bytes, isSigned);
  if (!instruction.run)
    return false;
  instruction.bytes = uint8_t(bytes);
  // What is volatile or ordered is meant to be seen by others.
  bool ordered = decoder.has("volatile") || decoder.has("relaxed") ||
                 decoder.has("acquire") || decoder.has("release");
  instruction.flag = !ordered;
  if (!decoder.has("global") && !decoder.has("param") && !decoder.has("local"))
    decoder.watch(unsigned(bytes));
  if (stores)
    decoder.sources(decoder.operand(1), decoder.type());
  else
    decoder.destinations(decoder.operand(0));
  size_t elements = decoder.program->operands.size() - instruction.first;
  size_t expected = decoder.has("v2")   ? 2
                    : decoder.has("v4") ? 4
                    : decoder.has("v8") ? 8
                                        : 1;
  if (elements != expected)
    return decoder.fail("it has another number of registers than it says");
  instruction.used = stores ? 0 : uint32_t(bytes * elements);
  decoder.address(decoder.operand(stores ? 0 : 1), instruction.a,
                  instruction.offset);
  return true;
}

} // namespace sardonyx::fakecuda
