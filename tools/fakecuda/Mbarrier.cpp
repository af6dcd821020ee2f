//===- Mbarrier.cpp - Barriers in shared memory ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

enum class Action { Init, Invalidate, Arrive, ArriveExpect, Expect, Complete };

// The address of an mbarrier in shared memory, or false after a fault.
static bool locate(Warp &warp, const Instruction &instruction, unsigned lane,
                   uint64_t &address) {
  address = warp.get(instruction.a, lane) + uint64_t(instruction.offset);
  if (Space(instruction.flag) == Space::Shared)
    address = uint32_t(address);
  else if (Warp::find(Space::Generic, address) != Space::Shared) {
    warp.fault(lane, "the mbarrier isn't in shared memory");
    return false;
  }
  return warp.access(Space::Shared, lane, address, 8, true) != nullptr;
}

static Mbarrier *find(Warp &warp, unsigned lane, uint64_t address) {
  auto found = warp.block.mbarriers.find(address);
  if (found != warp.block.mbarriers.end())
    return &found->second;
  warp.fault(lane, "there is no mbarrier at byte " + std::to_string(address) +
                       " of shared memory");
  return nullptr;
}

template <Action A>
static void runAction(Warp &warp, const Instruction &instruction) {
  for (uint32_t left = warp.mask; left; left &= left - 1) {
    auto lane = unsigned(__builtin_ctz(left));
    uint64_t address;
    if (!locate(warp, instruction, lane, address))
      return;
    auto value = uint32_t(warp.get(instruction.b, lane));
    if constexpr (A == Action::Init) {
      if (value == 0 || value >= 1u << 20)
        return warp.fault(lane, "an mbarrier of " + std::to_string(value) +
                                    " arrivals");
      Mbarrier barrier;
      barrier.count = value;
      barrier.pending = value;
      warp.block.mbarriers[address] = barrier;
      continue;
    }
    Mbarrier *barrier = find(warp, lane, address);
    if (!barrier)
      return;
    if constexpr (A == Action::Invalidate) {
      warp.block.mbarriers.erase(address);
      continue;
    }
    if constexpr (A == Action::ArriveExpect || A == Action::Expect)
      barrier->bytes += value;
    if constexpr (A == Action::Complete)
      barrier->bytes -= value;
    warp.row(instruction.d)[lane] = barrier->phase;
    if constexpr (A == Action::Arrive || A == Action::ArriveExpect) {
      int64_t arrivals = A == Action::Arrive ? value : 1;
      if (arrivals > barrier->pending)
        return warp.fault(lane, "more threads arrive than the " +
                                    std::to_string(barrier->count) +
                                    " that are expected");
      barrier->pending -= arrivals;
    }
    warp.block.advance(address, *barrier);
  }
}

// try_wait waits; test_wait doesn't. Copies that the barrier counts land here.
template <bool Waits>
static void runWait(Warp &warp, const Instruction &instruction) {
  uint32_t all = warp.mask, waiting = 0;
  for (uint32_t left = all; left; left &= left - 1) {
    auto lane = unsigned(__builtin_ctz(left));
    uint64_t address;
    if (!locate(warp, instruction, lane, address))
      return;
    Mbarrier *barrier = find(warp, lane, address);
    if (!barrier)
      return;
    std::vector<std::function<bool()>> copies;
    copies.swap(barrier->copies);
    for (auto &copy : copies)
      if (!copy())
        return warp.fault(lane, "more bytes arrive at the mbarrier than a "
                                "phase can count");
    warp.block.advance(address, *barrier);
    bool done = barrier->phase != bool(warp.get(instruction.b, lane) & 1);
    warp.setPredicate(instruction.p, lane, done);
    if (!done && Waits) {
      waiting |= 1u << lane;
      warp.waitsFor[lane] = address;
    }
  }
  if (!waiting)
    return;
  warp.mask = waiting;
  std::array<uint64_t, kLanes> what = warp.waitsFor;
  warp.stop(LaneState::AtMbarrier, 0, false);
  forLanes(waiting, [&](unsigned lane) { warp.waitsFor[lane] = what[lane]; });
}

static bool decodeWait(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  instruction.run = decoder.has("try_wait") ? runWait<true> : runWait<false>;
  instruction.p = decoder.predicate(decoder.operand(0));
  decoder.address(decoder.operand(1), instruction.a, instruction.offset);
  instruction.b = decoder.source(decoder.operand(2), "b64");
  return true;
}

bool decodeMbarrier(Decoder &decoder) {
  if (decoder.base() != "mbarrier" || decoder.has("noComplete"))
    return false;
  Instruction &instruction = decoder.instruction;
  decoder.program->checksRaces = false;
  bool isShared = decoder.has("shared") || decoder.has("shared::cta") ||
                  decoder.has("shared::cluster");
  instruction.flag = uint8_t(isShared ? Space::Shared : Space::Generic);
  if (decoder.has("try_wait") || decoder.has("test_wait"))
    return decodeWait(decoder);
  bool expects = decoder.has("expect_tx");
  instruction.run = decoder.has("init")    ? runAction<Action::Init>
                    : decoder.has("inval") ? runAction<Action::Invalidate>
                    : decoder.has("arrive")
                        ? expects ? runAction<Action::ArriveExpect>
                                  : runAction<Action::Arrive>
                    : expects                    ? runAction<Action::Expect>
                    : decoder.has("complete_tx") ? runAction<Action::Complete>
                                                 : nullptr;
  if (!instruction.run)
    return false;
  size_t at = 0;
  if (decoder.operand(0)[0] != '[')
    instruction.d = decoder.destination(decoder.operand(at++));
  decoder.address(decoder.operand(at), instruction.a, instruction.offset);
  instruction.b = decoder.operandCount() > at + 1
                      ? decoder.source(decoder.operand(at + 1), "b32")
                      : decoder.constant(1);
  return true;
}

} // namespace sardonyx::fakecuda
