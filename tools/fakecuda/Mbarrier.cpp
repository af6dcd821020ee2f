//===- Mbarrier.cpp - Barriers in shared memory ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

enum class Action { Init, Invalidate, Arrive, ArriveExpect, Expect, Complete };

// Whose mbarriers Instruction::bytes says that it is for: those of the block;
// of all blocks of the cluster; of all of them, but it orders what a thread has
// done before it for the threads of its own block only.
enum Reach : uint8_t { kOfBlock, kOfCluster, kOfClusterInBlock };

// The block of an mbarrier, and its address in the shared memory there; null
// after a fault.
static Block *locate(Warp &warp, const Instruction &instruction, unsigned lane,
                     uint64_t &address) {
  address = warp.get(instruction.a, lane) + uint64_t(instruction.offset);
  Block *block = &warp.block;
  if (instruction.bytes != kOfBlock)
    block = warp.reachAt(lane, address);
  if (Space(instruction.flag) == Space::Shared)
    address = uint32_t(address);
  else if (Warp::find(Space::Generic, address) != Space::Shared) {
    warp.fault(lane, "the mbarrier isn't in shared memory");
    return nullptr;
  }
  if (block != &warp.block && instruction.bytes == kOfClusterInBlock)
    warp.fault(lane, "the mbarrier is another block's, for whose threads "
                     "nothing is ordered without .cluster");
  // All blocks have as much.
  if (!warp.access(Space::Shared, lane, address, 8, true) ||
      !warp.block.fault.empty())
    return nullptr;
  return block;
}

Mbarrier *Warp::findMbarrier(unsigned lane, Block &of, uint64_t address) {
  auto found = of.mbarriers.find(address);
  std::string where =
      "mbarrier at byte " + std::to_string(address) + " of shared memory" +
      (&of == &block
           ? std::string()
           : " of block " + std::to_string(of.rank) + " of the cluster");
  if (found == of.mbarriers.end())
    fault(lane, "there is no " + where);
  else if (&of != &block && found->second.madeIn == of.clusterEpoch)
    fault(lane, "the " + where +
                    " was made since the last barrier of the "
                    "cluster");
  return block.fault.empty() ? &found->second : nullptr;
}

template <Action A>
static void runAction(Warp &warp, const Instruction &instruction) {
  for (uint32_t left = warp.mask; left; left &= left - 1) {
    auto lane = unsigned(__builtin_ctz(left));
    uint64_t address;
    Block *block = locate(warp, instruction, lane, address);
    if (!block)
      return;
    auto value = uint32_t(warp.get(instruction.b, lane));
    if constexpr (A == Action::Init) {
      if (value == 0 || value >= 1u << 20)
        return warp.fault(lane, "an mbarrier of " + std::to_string(value) +
                                    " arrivals");
      Mbarrier barrier;
      barrier.count = value;
      barrier.pending = value;
      barrier.madeIn = block->clusterEpoch;
      block->mbarriers[address] = barrier;
      continue;
    }
    Mbarrier *barrier = warp.findMbarrier(lane, *block, address);
    if (!barrier)
      return;
    if constexpr (A == Action::Invalidate) {
      block->mbarriers.erase(address);
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
    block->advance(address, *barrier);
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
    Mbarrier *barrier = warp.findMbarrier(lane, warp.block, address);
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
  const bool isOfCluster = decoder.has("shared::cluster");
  const bool isShared =
      decoder.has("shared") || decoder.has("shared::cta") || isOfCluster;
  instruction.flag = uint8_t(isShared ? Space::Shared : Space::Generic);
  // Barriers of other blocks are arrived at, and their bytes counted.
  if (isOfCluster) {
    if (!decoder.has("arrive") && !decoder.has("expect_tx") &&
        !decoder.has("complete_tx"))
      return false;
    instruction.bytes = decoder.has("cluster") ? kOfCluster : kOfClusterInBlock;
  }
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
  if (decoder.operand(0)[0] != '[') {
    if (isOfCluster && decoder.operand(0) != "_")
      return decoder.fail("another block's mbarrier says nothing of its phase");
    instruction.d = decoder.destination(decoder.operand(at++));
  }
  decoder.address(decoder.operand(at), instruction.a, instruction.offset);
  instruction.b = decoder.operandCount() > at + 1
                      ? decoder.source(decoder.operand(at + 1), "b32")
                      : decoder.constant(1);
  return true;
}

} // namespace sardonyx::fakecuda
