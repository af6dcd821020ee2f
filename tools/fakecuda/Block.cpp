//===- Block.cpp - Blocks of a launch, barriers and races -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"
#include <algorithm>
#include <cstring>
#include <set>

namespace sardonyx::fakecuda {

/// A block that runs longer than this many instructions is taken to hang.
constexpr uint64_t kStepLimit = uint64_t(1) << 33;
/// Instructions that a warp runs before it is another's turn.
constexpr uint64_t kTurn = 20000;

Block::Block(Grid &grid, std::array<uint32_t, 3> id, Cluster &cluster,
             unsigned rank)
    : grid(grid), program(*grid.function.program), id(id), cluster(cluster),
      rank(rank), threads(grid.launch.block[0] * grid.launch.block[1] *
                          grid.launch.block[2]),
      shared(grid.sharedBytes, char(0xff)),
      local(program.localBytes * threads, char(0xff)),
      shadow(grid.sharedBytes / program.granule + 1), copies(threads),
      stores(threads), live(threads) {
  unsigned count = (threads + kLanes - 1) / kLanes;
  warps.reserve(count);
  for (unsigned index = 0; index < count; ++index)
    warps.emplace_back(*this, index);
}

bool Block::runTurn() {
  bool ran = false;
  for (Warp &warp : warps) {
    if (!warp.canRun())
      continue;
    ran = true;
    uint64_t before = warp.steps;
    warp.run(kTurn);
    if (!fault.empty())
      return ran;
    steps += warp.steps - before;
  }
  if (steps > kStepLimit)
    fault = "kernel " + program.name + ": a block has run " +
            std::to_string(steps) + " instructions of warps and hasn't ended";
  return ran;
}

void Block::reportDeadlock() {
  std::set<std::string> where;
  for (Warp &warp : warps)
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      LaneState state = warp.state[lane];
      if (state == LaneState::Ended)
        continue;
      bool passed = state == LaneState::AtBarrier;
      const Instruction &at = program.code[warp.lanePc[lane] - passed];
      where.insert("line " + std::to_string(at.line) + " (" +
                   program.opcodes[at.opcode] + ", such as thread " +
                   std::to_string(warp.thread(lane)) + " of warp " +
                   std::to_string(warp.index) + ")");
      if (where.size() > 3)
        break;
    }
  fault = "kernel " + program.name + ", block (" + std::to_string(id[0]) +
          ", " + std::to_string(id[1]) + ", " + std::to_string(id[2]) +
          "): deadlock: " + std::to_string(live) +
          " threads wait for what never comes, at";
  const char *between = " ";
  for (const std::string &at : where) {
    fault += between + at;
    between = ", ";
  }
}

// Readers of a word: a thread, several of one warp, or several.
constexpr int16_t kSeveral = -1000, kAnotherBlock = -1001;
static int16_t severalOf(unsigned warp) { return int16_t(-2 - int(warp)); }
static int warpOf(int16_t who) {
  return who >= 0 ? who / int(kLanes) : who == kSeveral ? -1 : -2 - who;
}

bool Block::touch(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes,
                  Touch kind) {
  if (bytes == 0)
    return true;
  auto me = int16_t(warp.thread(lane));
  auto warpEpoch = uint16_t(warp.epoch);
  // Barriers of a warp order its own lanes.
  auto ordered = [&](int16_t who, uint16_t when) {
    return who == me || (warpOf(who) == int(warp.index) && when != warpEpoch);
  };
  auto say = [&](uint32_t unit, int16_t who, const char *did) {
    warp.fault(lane, "race on byte " + std::to_string(unit * program.granule) +
                         " of shared memory: thread " + std::to_string(me) +
                         (kind == Touch::Read ? " reads" : " writes") +
                         " what " +
                         (who >= 0 ? "thread " + std::to_string(who)
                          : who == kAnotherBlock
                              ? std::string("another block of the cluster")
                              : std::string("several threads")) +
                         did + " since the last barrier");
    return false;
  };
  uint32_t last = (offset + bytes - 1) / program.granule;
  for (uint32_t unit = offset / program.granule; unit <= last; ++unit) {
    Shadow &seen = shadow[unit];
    if (seen.pending) {
      warp.fault(lane, std::string(kind == Touch::Read ? "reads" : "writes") +
                           " byte " + std::to_string(unit * program.granule) +
                           " of shared memory, which an unfinished async copy "
                           "will write");
      return false;
    }
    if (seen.reading && kind != Touch::Read)
      return mayOverwrite(warp, lane, offset, bytes);
    if (!program.checksRaces)
      continue;
    if (kind != Touch::Read && seen.outsideEpoch == clusterEpoch)
      return say(unit, kAnotherBlock, " read");
    bool bothAtomic = kind == Touch::Atomic && seen.atomic;
    if (seen.writeEpoch == epoch && !bothAtomic &&
        !ordered(seen.writer, seen.writeWarpEpoch))
      return say(unit, seen.writer, " wrote");
    bool otherRead = seen.readEpoch == epoch && seen.reader != me;
    if (kind == Touch::Read) {
      int16_t who = me;
      if (otherRead)
        who = warpOf(seen.reader) == int(warp.index) ? severalOf(warp.index)
                                                     : kSeveral;
      seen.reader = who;
      seen.readEpoch = epoch;
      seen.readWarpEpoch = warpEpoch;
      continue;
    }
    if (otherRead && !ordered(seen.reader, seen.readWarpEpoch))
      return say(unit, seen.reader, " read");
    bool others = bothAtomic && seen.writeEpoch == epoch && seen.writer != me;
    seen.writer = others ? kSeveral : me;
    seen.writeEpoch = epoch;
    seen.writeWarpEpoch = warpEpoch;
    seen.atomic = kind == Touch::Atomic;
  }
  return true;
}

void Block::markPending(uint32_t offset, unsigned bytes, int by) {
  if (bytes == 0)
    return;
  uint32_t last = (offset + bytes - 1) / program.granule;
  for (uint32_t unit = offset / program.granule; unit <= last; ++unit)
    shadow[unit].pending = uint16_t(shadow[unit].pending + by);
}

void Block::markReading(const Pieces &pieces, int by) {
  for (auto [offset, bytes] : pieces) {
    uint32_t last = (offset + bytes - 1) / program.granule;
    for (uint32_t unit = offset / program.granule; unit <= last; ++unit)
      shadow[unit].reading = uint16_t(shadow[unit].reading + by);
  }
}

bool Block::mayOverwrite(Warp &warp, unsigned lane, uint32_t offset,
                         unsigned bytes) {
  uint32_t last = (offset + bytes - 1) / program.granule;
  for (uint32_t unit = offset / program.granule; unit <= last; ++unit) {
    const Shadow &seen = shadow[unit];
    if (!seen.reading && !seen.pending)
      continue;
    warp.fault(lane, "writes byte " + std::to_string(unit * program.granule) +
                         " of shared memory, which an unfinished " +
                         (seen.reading ? "bulk store or wgmma reads"
                                       : "async copy will write"));
    return false;
  }
  return true;
}

void Block::arrive(Warp &warp, unsigned number, uint32_t expected, bool waits,
                   uint32_t trueLanes) {
  Barrier &barrier = barriers[number];
  if (expected)
    barrier.expected = expected;
  barrier.arrived += unsigned(__builtin_popcount(warp.mask));
  barrier.count += unsigned(__builtin_popcount(trueLanes & warp.mask));
  if (waits)
    warp.stop(LaneState::AtBarrier, number, true);
  releaseBarriers();
}

// Writes what bar.red tells its lanes: flag 1 is popc, 2 and, 3 or.
static void tell(Warp &warp, unsigned lane, const Barrier &barrier) {
  const Instruction &at = warp.program.code[warp.lanePc[lane] - 1];
  if (at.flag == 1)
    warp.row(at.d)[lane] = barrier.count;
  else if (at.flag == 2)
    warp.setPredicate(at.p, lane, barrier.count == barrier.arrived);
  else if (at.flag == 3)
    warp.setPredicate(at.p, lane, barrier.count != 0);
}

void Block::releaseBarriers() {
  for (unsigned number = 0; number < barriers.size(); ++number) {
    Barrier &barrier = barriers[number];
    uint32_t expected = barrier.expected ? barrier.expected : live;
    if (barrier.arrived == 0 || barrier.arrived < expected)
      continue;
    for (Warp &warp : warps)
      for (unsigned lane = 0; lane < kLanes; ++lane)
        if (warp.state[lane] == LaneState::AtBarrier &&
            warp.waitsFor[lane] == number) {
          tell(warp, lane, barrier);
          warp.wake(lane);
        }
    barrier = Barrier();
    ++epoch;
  }
}

void Block::wakeMbarrier(uint64_t address) {
  for (Warp &warp : warps)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (warp.state[lane] == LaneState::AtMbarrier &&
          warp.waitsFor[lane] == address)
        warp.wake(lane);
}

void Block::advance(uint64_t address, Mbarrier &barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0)
    return;
  barrier.phase = !barrier.phase;
  barrier.pending = barrier.count;
  wakeMbarrier(address);
}

} // namespace sardonyx::fakecuda
