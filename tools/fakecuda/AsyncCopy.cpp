//===- AsyncCopy.cpp - Copies by cp.async ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

// A copy lands when its thread waits for it, not before; until then its bytes
// are 0xff, and to read them is a fault. flag 1: operand c is the number of
// bytes to read, the rest is zero; 2: q is a predicate to write zeros.
static void runCopy(Warp &warp, const Instruction &instruction) {
  forLanes(warp.mask, [&](unsigned lane) {
    if (!warp.block.fault.empty())
      return;
    unsigned bytes = instruction.bytes, source = bytes;
    if (instruction.flag == 1)
      source = unsigned(warp.get(instruction.c, lane));
    else if (instruction.flag == 2 && warp.predicate(instruction.q, lane))
      source = 0;
    if (source > bytes)
      return warp.fault(lane, "reads " + std::to_string(source) + " of " +
                                  std::to_string(bytes) + " bytes");
    uint64_t to =
        uint32_t(warp.get(instruction.a, lane) + uint64_t(instruction.offset));
    uint64_t from = warp.get(instruction.b, lane) +
                    uint64_t(int64_t(int32_t(instruction.target)));
    char *memory = warp.access(Space::Shared, lane, to, bytes, true);
    if (!memory)
      return;
    if (from % bytes != 0)
      return warp.fault(lane, "reads at an address that isn't aligned to " +
                                  std::to_string(bytes) + " bytes");
    AsyncCopy copy = {uint32_t(to), nullptr, bytes, source};
    if (source)
      copy.from = warp.access(Space::Global, lane, from, source, false);
    if ((source && !copy.from) ||
        !warp.block.touch(warp, lane, uint32_t(to), bytes, Touch::Write))
      return;
    memset(memory, 0xff, bytes);
    warp.block.markPending(uint32_t(to), bytes, 1);
    warp.block.copies[warp.thread(lane)].open.push_back(copy);
  });
}

static void land(Warp &warp, unsigned lane, const std::vector<AsyncCopy> &all) {
  Block &block = warp.block;
  for (const AsyncCopy &copy : all) {
    char *memory = block.shared.data() + copy.to;
    memset(memory, 0, copy.bytes);
    if (copy.sourceBytes)
      memcpy(memory, copy.from, copy.sourceBytes);
    block.markPending(copy.to, copy.bytes, -1);
    if (!block.touch(warp, lane, copy.to, copy.bytes, Touch::Write))
      return;
  }
}

static void runCommit(Warp &warp, const Instruction &) {
  forLanes(warp.mask, [&](unsigned lane) {
    ThreadCopies &copies = warp.block.copies[warp.thread(lane)];
    copies.groups.push_back(std::move(copies.open));
    copies.open.clear();
  });
}

static void runWait(Warp &warp, const Instruction &instruction) {
  forLanes(warp.mask, [&](unsigned lane) {
    ThreadCopies &copies = warp.block.copies[warp.thread(lane)];
    while (copies.groups.size() > size_t(instruction.offset) &&
           warp.block.fault.empty()) {
      land(warp, lane, copies.groups.front());
      copies.groups.pop_front();
    }
  });
}

static void runWaitAll(Warp &warp, const Instruction &instruction) {
  runCommit(warp, instruction);
  runWait(warp, instruction);
}

// cp.async.mbarrier.arrive: the copies so far land now, at the earliest moment
// that they may.
static void runArrive(Warp &warp, const Instruction &instruction) {
  runWaitAll(warp, instruction);
  forLanes(warp.mask, [&](unsigned lane) {
    uint64_t address =
        uint32_t(warp.get(instruction.a, lane) + uint64_t(instruction.target));
    auto found = warp.block.mbarriers.find(address);
    if (found == warp.block.mbarriers.end())
      return warp.fault(lane, "there is no mbarrier at this address");
    // Without .noinc the arrival is one more than those that were counted.
    if (instruction.flag)
      --found->second.pending;
    warp.block.advance(address, found->second);
  });
}

bool decodeAsyncCopy(Decoder &decoder) {
  const auto &parts = decoder.statement.parts;
  if (decoder.base() != "cp" || parts.size() < 3 || parts[1] != "async" ||
      parts[2] == "bulk")
    return false;
  Instruction &instruction = decoder.instruction;
  long long value = 0;
  if (parts[2] == "commit_group") {
    instruction.run = runCommit;
  } else if (parts[2] == "wait_all") {
    instruction.run = runWaitAll;
  } else if (parts[2] == "wait_group") {
    if (!parseInteger(decoder.operand(0), value))
      return decoder.fail("the number of groups isn't a constant");
    instruction.run = runWait;
    instruction.offset = value;
  } else if (parts[2] == "mbarrier") {
    decoder.program->checksRaces = false;
    instruction.run = runArrive;
    instruction.flag = decoder.has("noinc");
    decoder.address(decoder.operand(0), instruction.a, instruction.offset);
    instruction.target = uint32_t(instruction.offset);
    instruction.offset = 0;
  } else if (parts[2] == "ca" || parts[2] == "cg") {
    int64_t offset = 0;
    if (!parseInteger(decoder.operand(2), value) ||
        (value != 4 && value != 8 && value != 16))
      return decoder.fail("it copies 4, 8 or 16 bytes, given as a constant");
    instruction.run = runCopy;
    instruction.bytes = uint8_t(value);
    decoder.address(decoder.operand(1), instruction.b, offset);
    if (offset != int32_t(offset))
      return decoder.fail("the offset is too large");
    instruction.target = uint32_t(int32_t(offset));
    decoder.address(decoder.operand(0), instruction.a, instruction.offset);
    if (decoder.has("L2::cache_hint"))
      return false;
    if (decoder.operandCount() > 3) {
      bool predicated = decoder.isPredicate(decoder.operand(3));
      instruction.flag = predicated ? 2 : 1;
      if (predicated)
        instruction.q = decoder.predicate(decoder.operand(3));
      else
        instruction.c = decoder.source(decoder.operand(3), "b32");
    }
  }
  return instruction.run != nullptr;
}

} // namespace sardonyx::fakecuda
