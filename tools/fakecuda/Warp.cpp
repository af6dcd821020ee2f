//===- Warp.cpp - Runs the lanes of a warp --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"
#include <algorithm>

namespace sardonyx::fakecuda {

Warp::Warp(Block &block, unsigned index)
    : block(block), program(block.program), index(index),
      hasWaited(block.grid.launch.isDependent ? 0 : ~0u),
      predicates(program.predicates), rows(size_t(program.rows) * kLanes) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    bool lives = thread(lane) < block.threads;
    state[lane] = lives ? LaneState::Runs : LaneState::Ended;
    group |= uint32_t(lives) << lane;
  }
  otherPc = kNone;
  fillRows();
}

void Warp::fillRows() {
  for (auto [where, value] : program.constants)
    std::fill_n(row(where), kLanes, value);
  for (auto [where, kind] : program.specials)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      row(where)[lane] = special(kind, lane);
}

uint64_t Warp::special(Special kind, unsigned lane) const {
  const Launch &launch = block.grid.launch;
  unsigned id = thread(lane);
  auto size = launch.block;
  size_t sharedBytes = block.grid.sharedBytes;
  switch (kind) {
  case Special::TidX:
    return id % size[0];
  case Special::TidY:
    return id / size[0] % size[1];
  case Special::TidZ:
    return id / size[0] / size[1];
  case Special::NtidX:
  case Special::NtidY:
  case Special::NtidZ:
    return size[unsigned(kind) - unsigned(Special::NtidX)];
  case Special::CtaidX:
  case Special::CtaidY:
  case Special::CtaidZ:
    return block.id[unsigned(kind) - unsigned(Special::CtaidX)];
  case Special::NctaidX:
  case Special::NctaidY:
  case Special::NctaidZ:
    return launch.grid[unsigned(kind) - unsigned(Special::NctaidX)];
  case Special::LaneId:
    return lane;
  case Special::WarpId:
    return index;
  case Special::NWarpId:
    return (block.threads + kLanes - 1) / kLanes;
  case Special::LaneMaskEq:
    return 1u << lane;
  case Special::LaneMaskLe:
    return uint32_t((uint64_t(2) << lane) - 1);
  case Special::LaneMaskLt:
    return (1u << lane) - 1;
  case Special::LaneMaskGe:
    return ~0u << lane;
  case Special::LaneMaskGt:
    return uint32_t(~uint64_t(0) << (lane + 1));
  case Special::DynamicShared:
    return launch.dynamicSharedBytes;
  case Special::TotalShared:
    return sharedBytes;
  case Special::ClusterId:
    return block.id[0] / block.grid.function.clusterBlocks;
  case Special::NClusterId:
    return launch.grid[0] / block.grid.function.clusterBlocks;
  case Special::ClusterRank:
    return block.rank;
  case Special::ClusterSize:
    return block.grid.function.clusterBlocks;
  case Special::Zero:
    return 0;
  case Special::One:
    return 1;
  }
  return 0;
}

bool Warp::canRun() const {
  return std::find(state.begin(), state.end(), LaneState::Runs) != state.end();
}

unsigned Warp::countLive() const {
  return kLanes -
         unsigned(std::count(state.begin(), state.end(), LaneState::Ended));
}

void Warp::regroup() {
  forLanes(group, [&](unsigned lane) { lanePc[lane] = pc; });
  uint32_t lowest = kNone;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (state[lane] == LaneState::Runs)
      lowest = std::min(lowest, lanePc[lane]);
  group = 0;
  otherPc = kNone;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (state[lane] != LaneState::Runs)
      continue;
    if (lanePc[lane] == lowest)
      group |= 1u << lane;
    else
      otherPc = std::min(otherPc, lanePc[lane]);
  }
  pc = lowest;
}

void Warp::run(uint64_t limit) {
  const Instruction *code = program.code.data();
  regroup();
  while (group && limit--) {
    const Instruction &instruction = code[pc];
    mask = group;
    if (instruction.guard != kNone)
      mask &= instruction.guardNegated ? ~predicates[instruction.guard]
                                       : predicates[instruction.guard];
    next = pc + 1;
    ++steps;
    if (mask) {
      instruction.run(*this, instruction);
      if (!block.fault.empty())
        return;
    }
    pc = next;
    if (!group || pc >= otherPc)
      regroup();
  }
}

void Warp::branch(uint32_t target) {
  if (mask == group) {
    next = target;
    return;
  }
  forLanes(mask, [&](unsigned lane) { lanePc[lane] = target; });
  group &= ~mask;
  otherPc = std::min(otherPc, target);
}

void Warp::stop(LaneState reason, uint64_t what, bool passed) {
  forLanes(mask, [&](unsigned lane) {
    state[lane] = reason;
    waitsFor[lane] = what;
    lanePc[lane] = passed ? pc + 1 : pc;
  });
  group &= ~mask;
}

void Warp::wake(unsigned lane) {
  state[lane] = LaneState::Runs;
  otherPc = 0;
}

bool Warp::mayTouchDevice(unsigned lane, bool writes) {
  if (hasWaited >> lane & 1)
    return true;
  fault(lane, std::string(writes ? "writes " : "reads ") +
                  "device memory before griddepcontrol.wait, in a launch that "
                  "may begin before the one before it has ended");
  return false;
}

void Warp::endLanes() {
  if (uint32_t early = mask & ~hasWaited)
    return fault(unsigned(__builtin_ctz(early)),
                 "ends without griddepcontrol.wait, in a launch that may begin "
                 "before the one before it has ended");
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (mask >> lane & 1) {
      const ThreadStores &stores = block.stores[thread(lane)];
      if (!stores.open.empty() || !stores.groups.empty())
        return fault(lane, "ends while its bulk stores may still read shared "
                           "memory");
    }
  if (!block.mayEnd(*this))
    return;
  stop(LaneState::Ended, 0, true);
  block.live -= unsigned(__builtin_popcount(mask));
  block.releaseBarriers();
  block.cluster.release();
  // Lanes that wait for these at a collective instruction look again.
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (state[lane] == LaneState::AtCollective)
      wake(lane);
}

bool Warp::gather(uint32_t members) {
  uint32_t here = mask, missing = members;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (state[lane] == LaneState::Ended)
      missing &= ~(1u << lane);
    if (state[lane] == LaneState::AtCollective && lanePc[lane] == pc)
      here |= 1u << lane;
  }
  if (missing & ~here) {
    stop(LaneState::AtCollective, missing & ~here, false);
    return false;
  }
  forLanes(here & ~mask, [&](unsigned lane) {
    state[lane] = LaneState::Runs;
    group |= 1u << lane;
  });
  mask = here;
  return true;
}

void Warp::fault(unsigned lane, const std::string &what) {
  if (!block.fault.empty())
    return;
  auto three = [](auto x, auto y, auto z) {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " +
           std::to_string(z) + ")";
  };
  const Instruction &instruction = program.code[pc];
  block.fault =
      "kernel " + program.name + ", block " +
      three(block.id[0], block.id[1], block.id[2]) + ", thread " +
      three(special(Special::TidX, lane), special(Special::TidY, lane),
            special(Special::TidZ, lane)) +
      ", line " + std::to_string(instruction.line) + ", " +
      program.opcodes[instruction.opcode] + ": " + what;
}

Space Warp::find(Space space, uint64_t &address) {
  static const uint64_t kWindows[] = {0, 0, kSharedWindow, kLocalWindow,
                                      kParamWindow};
  if (space == Space::Generic) {
    uint64_t window = address >> 56;
    if (window < 1 || window > 3)
      return Space::Global;
    space = Space(window + 1);
  }
  // Explicit spaces take their own addresses and generic ones alike.
  if (uint64_t window = kWindows[unsigned(space)]; address >= window)
    address -= window;
  return space;
}

char *Warp::access(Space space, unsigned lane, uint64_t address, size_t bytes,
                   bool writes) {
  space = find(space, address);
  auto say = [&](const std::string &what) {
    fault(lane, std::string(writes ? "writes " : "reads ") +
                    std::to_string(bytes) + " bytes " + what);
    return nullptr;
  };
  auto inBytes = [&](std::vector<char> &memory, size_t begin, size_t size,
                     const char *name) -> char * {
    if (address > size || bytes > size - address)
      return say("at byte " + std::to_string(int64_t(address)) + " of " +
                 std::to_string(size) + " bytes of " + name);
    return memory.data() + begin + address;
  };
  char *found = nullptr;
  if (space == Space::Shared)
    found = inBytes(block.shared, 0, block.shared.size(), "shared memory");
  else if (space == Space::Local)
    found = inBytes(block.local, size_t(thread(lane)) * program.localBytes,
                    program.localBytes, "local memory");
  else if (space == Space::Param)
    found = inBytes(block.grid.parameters, 0, block.grid.parameters.size(),
                    "parameters");
  else if (!mayTouchDevice(lane, writes))
    return nullptr;
  else if (!(found = block.grid.resolve(address, bytes)))
    return say("at an address out of bounds, " + block.grid.describe(address));
  if (!found)
    return nullptr;
  if ((bytes & (bytes - 1)) == 0 && address % bytes != 0)
    return say("at an address that isn't aligned to them, " +
               (space == Space::Global
                    ? block.grid.describe(address)
                    : "byte " + std::to_string(address) + " of its space"));
  if (writes && space == Space::Param)
    return say("of the parameters, which are constant");
  return found;
}

} // namespace sardonyx::fakecuda
