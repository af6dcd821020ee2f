//===- Barrier.cpp - Barriers and fences ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

static void arrive(Warp &warp, const Instruction &instruction, bool waits,
                   uint32_t trueLanes) {
  auto first = unsigned(__builtin_ctz(warp.mask));
  uint64_t number = uint32_t(warp.get(instruction.a, first));
  uint32_t expected =
      instruction.target ? uint32_t(warp.get(instruction.b, first)) : 0;
  if (number >= kClusterBarrier)
    return warp.fault(first, "there is no barrier " + std::to_string(number));
  if (expected % kLanes || (instruction.target && expected == 0))
    return warp.fault(first, "a barrier of " + std::to_string(expected) +
                                 " threads, which aren't whole warps");
  warp.block.arrive(warp, unsigned(number), expected, waits, trueLanes);
}

static void runSync(Warp &warp, const Instruction &instruction) {
  arrive(warp, instruction, true, 0);
}

static void runArrive(Warp &warp, const Instruction &instruction) {
  arrive(warp, instruction, false, 0);
}

static void runReduce(Warp &warp, const Instruction &instruction) {
  uint32_t lanes = warp.predicates[instruction.c];
  arrive(warp, instruction, true, instruction.bytes ? ~lanes : lanes);
}

static void runWarpSync(Warp &warp, const Instruction &instruction) {
  auto first = unsigned(__builtin_ctz(warp.mask));
  if (warp.gather(uint32_t(warp.get(instruction.a, first))))
    ++warp.epoch;
}

static void runNothing(Warp &, const Instruction &) {}

/// What comes before has ended: launches run one after the other.
static void runGridWait(Warp &warp, const Instruction &) {
  warp.hasWaited |= warp.mask;
}

static bool decodeReduce(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  instruction.run = runReduce;
  instruction.flag = decoder.has("popc") ? 1 : decoder.has("and") ? 2 : 3;
  if (instruction.flag == 1)
    instruction.d = decoder.destination(decoder.operand(0));
  else
    instruction.p = decoder.predicate(decoder.operand(0));
  size_t last = decoder.operandCount() - 1;
  bool negated = false;
  instruction.a = decoder.source(decoder.operand(1), "u32");
  if (last == 3) {
    instruction.b = decoder.source(decoder.operand(2), "u32");
    instruction.target = 1;
  }
  instruction.c = decoder.predicate(decoder.operand(last), &negated);
  instruction.bytes = negated;
  return true;
}

bool decodeBarrier(Decoder &decoder) {
  const std::string &name = decoder.base();
  Instruction &instruction = decoder.instruction;
  if (name == "fence" || name == "membar" || name == "nanosleep" ||
      name == "setmaxnreg") {
    instruction.run = runNothing;
    return true;
  }
  if (name == "griddepcontrol") {
    instruction.run = decoder.has("wait") ? runGridWait : runNothing;
    return true;
  }
  if (name != "bar" && name != "barrier")
    return false;
  if (decoder.has("cluster"))
    return false;
  if (decoder.has("warp")) {
    instruction.run = runWarpSync;
    instruction.a = decoder.source(decoder.operand(0), "b32");
    return true;
  }
  if (decoder.has("red"))
    return decodeReduce(decoder);
  instruction.run = decoder.has("sync")     ? runSync
                    : decoder.has("arrive") ? runArrive
                                            : nullptr;
  if (!instruction.run)
    return false;
  instruction.a = decoder.source(decoder.operand(0), "u32");
  if (decoder.operandCount() > 1) {
    instruction.b = decoder.source(decoder.operand(1), "u32");
    instruction.target = 1;
  }
  return true;
}

} // namespace sardonyx::fakecuda
