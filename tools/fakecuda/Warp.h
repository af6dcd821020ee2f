//===- Warp.h - What runs: warps of a block of a grid --------- -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_WARP_H
#define SARDONYX_TOOLS_FAKECUDA_WARP_H

#include "Interpreter.h"
#include "Program.h"
#include <deque>
#include <functional>
#include <mutex>

namespace sardonyx::fakecuda {

class Block;
class Cluster;
class Grid;
struct Mbarrier;

/// What a lane waits for at the barrier of a cluster; those of a block have
/// numbers below.
constexpr unsigned kClusterBarrier = 16;

/// An address of shared::cluster that mapa makes has the number of a block,
/// plus one, in these bits and above; 0 there is the block's own memory.
constexpr unsigned kRankShift = 24;

/// Where bytes of shared memory begin, and how many there are.
using Pieces = std::vector<std::pair<uint32_t, unsigned>>;

enum class LaneState : uint8_t {
  Runs,
  AtBarrier,
  AtMbarrier,
  AtCollective,
  Ended
};

/// 32 threads that run in lock step where they stand at one instruction. The
/// lanes at the lowest program counter run next, so that branches meet again.
class Warp {
public:
  Warp(Block &block, unsigned index);

  /// Runs until no lane can go on, or for `steps` instructions.
  void run(uint64_t steps);
  bool canRun() const;
  unsigned countLive() const;

  uint64_t *row(uint32_t index) { return rows.data() + size_t(index) * kLanes; }
  uint64_t get(uint32_t index, unsigned lane) { return row(index)[lane]; }
  bool predicate(uint32_t index, unsigned lane) const {
    return predicates[index] >> lane & 1;
  }
  void setPredicate(uint32_t index, unsigned lane, bool value) {
    predicates[index] = (predicates[index] & ~(1u << lane)) | uint32_t(value)
                                                                  << lane;
  }
  unsigned thread(unsigned lane) const { return index * kLanes + lane; }

  /// Ends the launch with a sentence on what a lane did.
  void fault(unsigned lane, const std::string &what);
  /// Where [address, address + bytes) of a space lies, or null after a fault.
  char *access(Space space, unsigned lane, uint64_t address, size_t bytes,
               bool writes);
  /// The block number `rank` of the cluster, whose memory the lane uses; null
  /// after a fault.
  Block *reach(unsigned lane, uint32_t rank);
  /// The same of an address of shared::cluster, which becomes one of the
  /// block's memory.
  Block *reachAt(unsigned lane, uint64_t &address);
  /// The mbarrier at an address of a block's shared memory; null after a fault.
  Mbarrier *findMbarrier(unsigned lane, Block &of, uint64_t address);
  /// Whether the lane has waited for what comes before the launch.
  bool mayTouchDevice(unsigned lane, bool writes);
  /// The space of a generic address; makes the address one of that space.
  static Space find(Space space, uint64_t &address);

  void branch(uint32_t target);
  /// The lanes of `mask` stop at this instruction, or after it if `passed`.
  void stop(LaneState state, uint64_t what, bool passed);
  void wake(unsigned lane);
  void endLanes();
  /// True when all of `members` that live stand at this instruction: they are
  /// in `mask` then. False when they have to wait for others.
  bool gather(uint32_t members);

  Block &block;
  const Program &program;
  unsigned index;
  uint32_t mask = 0; ///< The lanes that the present instruction runs for.
  uint32_t pc = 0, next = 0;
  uint32_t epoch = 1; ///< Counts barriers of the warp alone.
  /// The lanes that may touch device memory.
  uint32_t hasWaited = 0;
  uint64_t steps = 0;
  std::vector<uint32_t> predicates;
  std::array<LaneState, kLanes> state;
  std::array<uint64_t, kLanes> waitsFor = {};
  std::array<uint32_t, kLanes> lanePc = {};
  /// What products by wgmma read that are in no group, and in each group that
  /// the warp hasn't waited for.
  Pieces openReads;
  std::deque<Pieces> readGroups;

private:
  void regroup();
  void fillRows();
  uint64_t special(Special kind, unsigned lane) const;

  std::vector<uint64_t> rows;
  uint32_t group = 0;   ///< Lanes that stand at pc and run.
  uint32_t otherPc = 0; ///< The lowest of the other lanes that can run.
};

enum class Touch { Read, Write, Atomic };

/// Who touched a word of shared memory last.
struct Shadow {
  uint32_t writeEpoch = 0, readEpoch = 0;
  uint16_t writeWarpEpoch = 0, readWarpEpoch = 0;
  int16_t writer = 0, reader = 0;
  uint16_t pending = 0; ///< Unfinished copies that will write here.
  uint16_t reading = 0; ///< Unfinished stores in bulk and wgmma that read here.
  /// Block::clusterEpoch when another block of the cluster read it last.
  uint32_t outsideEpoch = 0;
  bool atomic = false;
};

struct Barrier {
  uint32_t arrived = 0, expected = 0;
  uint32_t count = 0; ///< Threads that came with a true predicate.
};

struct Mbarrier {
  uint32_t count = 0;
  int64_t pending = 0, bytes = 0;
  bool phase = false;
  uint32_t madeIn = 0; ///< Block::clusterEpoch when it was made.
  std::vector<std::function<bool()>> copies; ///< Land when it is waited for.
};

struct AsyncCopy {
  uint32_t to = 0;
  const char *from = nullptr;
  unsigned bytes = 0, sourceBytes = 0;
};

struct ThreadCopies {
  std::vector<AsyncCopy> open;
  std::deque<std::vector<AsyncCopy>> groups;
};

/// A store by cp.async.bulk that its thread hasn't waited for.
struct BulkStore {
  Pieces pieces; ///< What it reads.
  std::function<void()> land;
};

struct ThreadStores {
  std::vector<BulkStore> open;
  std::deque<std::vector<BulkStore>> groups;
};

/// One block with its shared memory.
class Block {
public:
  Block(Grid &grid, std::array<uint32_t, 3> id, Cluster &cluster,
        unsigned rank);

  /// Gives each warp its turn; `fault` tells whether one may not go on. Returns
  /// whether any could run.
  bool runTurn();
  void reportDeadlock();
  bool touch(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes,
             Touch kind);
  /// Whether the block may end with these lanes of a warp; a fault if copies
  /// may still write its memory, or other blocks use it.
  bool mayEnd(Warp &warp);
  /// The same as `touch` of a warp of another block of the cluster, which
  /// reads.
  bool touchFromOutside(Warp &reader, unsigned lane, uint32_t offset,
                        unsigned bytes);
  void markPending(uint32_t offset, unsigned bytes, int by);
  void markReading(const Pieces &pieces, int by);
  /// Whether no unfinished copy writes or reads there; a fault if one does.
  bool mayOverwrite(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes);
  /// The lanes of warp.mask come to a barrier; `expected` 0 means all.
  void arrive(Warp &warp, unsigned barrier, uint32_t expected, bool waits,
              uint32_t trueLanes);
  void releaseBarriers();
  void wakeMbarrier(uint64_t address);
  /// Checks whether the phase of an mbarrier is over.
  void advance(uint64_t address, Mbarrier &barrier);

  Grid &grid;
  const Program &program;
  std::array<uint32_t, 3> id;
  Cluster &cluster;
  unsigned rank; ///< In the cluster.
  unsigned threads;
  std::vector<char> shared, local;
  std::vector<Shadow> shadow;
  std::vector<Warp> warps;
  std::array<Barrier, kClusterBarrier> barriers;
  std::map<uint64_t, Mbarrier> mbarriers;
  std::vector<ThreadCopies> copies;
  std::vector<ThreadStores> stores;
  uint32_t epoch = 1;
  uint32_t clusterEpoch = 1; ///< `epoch` after the last barrier of the cluster.
  /// `clusterEpoch` when another block of the cluster used the memory last.
  uint32_t usedIn = 0;
  unsigned live = 0;
  uint64_t steps = 0;
  std::string fault;
};

/// Blocks that run at the same time and read each other's shared memory.
class Cluster {
public:
  Cluster(Grid &grid, std::array<uint32_t, 3> first, unsigned size);

  /// Runs all blocks to their end, or returns what keeps one from it.
  std::string run();
  /// The lanes of warp.mask wait at the barrier of the cluster.
  void arrive(Warp &warp);
  void release();

  std::vector<std::unique_ptr<Block>> blocks;

private:
  unsigned arrived = 0; ///< Threads at the barrier.
};

/// Loads elements of so many bytes of any block's shared memory.
Handler findClusterLoad(size_t bytes, bool isSigned);

/// A launch.
class Grid {
public:
  Grid(const Function &function, const Launch &launch, Memory &memory);

  std::string run();
  char *resolve(uint64_t address, size_t bytes);
  /// Says which allocation is near an address.
  std::string describe(uint64_t address) const;

  const Function &function;
  const Launch &launch;
  std::vector<char> parameters;
  size_t sharedBytes;

private:
  struct Range {
    uint64_t begin = 1, end = 0;
  };

  Memory &memory;
  std::shared_lock<std::shared_mutex> lock;
  std::array<Range, 4> recent;
  unsigned turn = 0;
};

/// Calls `body(lane)` for each lane of a mask.
template <class Body> inline void forLanes(uint32_t mask, Body &&body) {
  for (; mask; mask &= mask - 1)
    body(unsigned(__builtin_ctz(mask)));
}

} // namespace sardonyx::fakecuda

#endif // SARDONYX_TOOLS_FAKECUDA_WARP_H
