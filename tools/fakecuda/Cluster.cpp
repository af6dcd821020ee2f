//===- Cluster.cpp - Blocks that share their memory -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

Cluster::Cluster(Grid &grid, std::array<uint32_t, 3> first, unsigned size) {
  for (unsigned rank = 0; rank < size; ++rank)
    blocks.push_back(std::make_unique<Block>(
        grid, std::array{first[0] + rank, first[1], first[2]}, *this, rank));
}

std::string Cluster::run() {
  for (;;) {
    bool ran = false;
    Block *waiting = nullptr;
    for (const auto &block : blocks) {
      if (block->live == 0)
        continue;
      ran |= block->runTurn();
      if (block->live && !waiting)
        waiting = block.get();
      if (!block->fault.empty())
        return block->fault;
    }
    if (!waiting)
      return "";
    if (!ran) {
      waiting->reportDeadlock();
      return waiting->fault;
    }
  }
}

void Cluster::arrive(Warp &warp) {
  arrived += unsigned(__builtin_popcount(warp.mask));
  warp.stop(LaneState::AtBarrier, kClusterBarrier, true);
  release();
}

void Cluster::release() {
  unsigned live = 0;
  for (const auto &block : blocks)
    live += block->live;
  if (arrived == 0 || arrived < live)
    return;
  arrived = 0;
  for (const auto &block : blocks) {
    block->clusterEpoch = ++block->epoch;
    for (Warp &warp : block->warps)
      for (unsigned lane = 0; lane < kLanes; ++lane)
        if (warp.state[lane] == LaneState::AtBarrier &&
            warp.waitsFor[lane] == kClusterBarrier)
          warp.wake(lane);
  }
}

bool Block::touchFromOutside(Warp &reader, unsigned lane, uint32_t offset,
                             unsigned bytes) {
  if (bytes == 0)
    return true;
  uint32_t last = (offset + bytes - 1) / program.granule;
  for (uint32_t unit = offset / program.granule; unit <= last; ++unit) {
    Shadow &seen = shadow[unit];
    std::string where = "byte " + std::to_string(unit * program.granule) +
                        " of the shared memory of block " +
                        std::to_string(rank) + " of the cluster";
    if (seen.pending) {
      reader.fault(lane, "reads " + where +
                             ", which an unfinished async copy will write");
      return false;
    }
    if (!program.checksRaces)
      continue;
    if (seen.writeEpoch >= clusterEpoch) {
      reader.fault(lane, "race on " + where +
                             ": it was written since the last barrier of the "
                             "cluster");
      return false;
    }
    seen.outsideEpoch = clusterEpoch;
  }
  return true;
}

Block *Warp::reach(unsigned lane, uint32_t rank) {
  const auto &blocks = block.cluster.blocks;
  if (rank >= blocks.size()) {
    fault(lane, "there is no block " + std::to_string(rank) +
                    " in a cluster of " + std::to_string(blocks.size()));
    return nullptr;
  }
  Block &found = *blocks[rank];
  if (&found == &block)
    return &found;
  if (found.live == 0) {
    fault(lane, "uses the shared memory of block " + std::to_string(rank) +
                    " of the cluster, which has ended");
    return nullptr;
  }
  found.usedIn = found.clusterEpoch;
  return &found;
}

Block *Warp::reachAt(unsigned lane, uint64_t &address) {
  uint32_t number = uint32_t(address) >> kRankShift;
  address &= (1u << kRankShift) - 1;
  return number == 0 ? &block : reach(lane, number - 1);
}

bool Block::mayEnd(Warp &warp) {
  auto first = unsigned(__builtin_ctz(warp.mask));
  if (live > unsigned(__builtin_popcount(warp.mask)))
    return true;
  if (usedIn == clusterEpoch) {
    warp.fault(first, "ends without a barrier of the cluster since another "
                      "block has used its shared memory");
    return false;
  }
  for (const auto &[address, barrier] : mbarriers)
    if (!barrier.copies.empty()) {
      warp.fault(first, "ends before copies to its shared memory have landed");
      return false;
    }
  return true;
}

static void runMap(Warp &warp, const Instruction &instruction) {
  const uint64_t *a = warp.row(instruction.a), *b = warp.row(instruction.b);
  size_t size = warp.block.cluster.blocks.size();
  forLanes(warp.mask, [&](unsigned lane) {
    auto rank = uint32_t(b[lane]);
    if (rank >= size)
      return warp.fault(lane, "there is no block " + std::to_string(rank) +
                                  " in a cluster of " + std::to_string(size));
    uint64_t offset = uint32_t(a[lane]) & ((1u << kRankShift) - 1);
    warp.row(instruction.d)[lane] = offset | uint64_t(rank + 1) << kRankShift;
  });
}

template <class T>
static void runLoad(Warp &warp, const Instruction &instruction) {
  const uint32_t *parts = &warp.program.operands[instruction.first];
  const uint64_t *addresses = warp.row(instruction.a);
  unsigned bytes = unsigned(sizeof(T)) * instruction.count;
  for (uint32_t left = warp.mask; left; left &= left - 1) {
    auto lane = unsigned(__builtin_ctz(left));
    uint64_t address = addresses[lane] + uint64_t(instruction.offset);
    Block *block = warp.reachAt(lane, address);
    auto offset = uint32_t(address);
    // All blocks have as much.
    if (!block ||
        !warp.access(Space::Shared, lane, offset, bytes, /*writes=*/false))
      return;
    bool isOrdered =
        block == &warp.block
            ? block->touch(warp, lane, offset, instruction.used, Touch::Read)
            : block->touchFromOutside(warp, lane, offset, instruction.used);
    if (!isOrdered)
      return;
    for (unsigned i = 0; i < instruction.count; ++i) {
      T value;
      memcpy(&value, block->shared.data() + offset + i * sizeof(T), sizeof(T));
      warp.row(parts[i])[lane] = uint64_t(
          std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>(value));
    }
  }
}

Handler findClusterLoad(size_t bytes, bool isSigned) {
  switch (bytes) {
  case 1:
    return isSigned ? runLoad<int8_t> : runLoad<uint8_t>;
  case 2:
    return isSigned ? runLoad<int16_t> : runLoad<uint16_t>;
  case 4:
    return isSigned ? runLoad<int32_t> : runLoad<uint32_t>;
  case 8:
    return runLoad<uint64_t>;
  }
  return nullptr;
}

static void runNothing(Warp &, const Instruction &) {}

static void runWait(Warp &warp, const Instruction &) {
  warp.block.cluster.arrive(warp);
}

/// A thread that arrives is counted when it waits.
bool decodeCluster(Decoder &decoder) {
  const std::string &name = decoder.base();
  if (name == "mapa" && decoder.has("shared::cluster")) {
    setOperands(decoder, runMap);
    return true;
  }
  if (name != "barrier" || !decoder.has("cluster"))
    return false;
  decoder.instruction.run = decoder.has("wait") ? runWait : runNothing;
  return true;
}

} // namespace sardonyx::fakecuda
