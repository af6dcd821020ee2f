//===- RunMemory.h - Memory for values of open sizes ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes that only a run knows have no plan of the compiler's. Their large
// values lie in one piece of memory, each at the lowest place that is free: it
// is no larger than what a run has at a time needs, and the next value is where
// the caches still have the last ones. How large it must be the first run
// tells, whose values come from a pool.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_RUNMEMORY_H
#define SARDONYX_RUNTIME_RUNMEMORY_H

#include "sardonyx/Runtime/BufferPool.h"

namespace sardonyx {
namespace runtime {

/// Thread-safe but for endRun().
class RunMemory {
public:
  /// Values of fewer bytes do not matter here; the pool has them.
  static constexpr int64_t kLeastBytes = int64_t(64) << 10;

  /// What there is no place for comes from `pool`; what there is counts against
  /// `budget`, if there is one.
  RunMemory(BufferPool &pool, std::shared_ptr<MemoryBudget> budget);
  ~RunMemory();
  RunMemory(const RunMemory &) = delete;
  RunMemory &operator=(const RunMemory &) = delete;

  /// At least `bytes` of memory; null as of the pool.
  void *allocate(int64_t bytes);

  /// Takes back what allocate() gave; null is ignored.
  void release(void *memory);

  /// Takes back everything, the pool's blocks too, and makes room for as much
  /// as the run had at a time, or gives back what no run has needed of late.
  void endRun();

  /// Gives the system what no value lies in, the pool's blocks too.
  void trimAll();

  /// Bytes of the one piece.
  int64_t bytesHeld() const { return size; }

private:
  /// Where a value lies, or would if there were room.
  struct Place {
    int64_t begin, end;
    void *memory;
  };
  int64_t findPlace(int64_t bytes) const;
  bool isInside(const void *memory) const;
  void resize(int64_t bytes);

  BufferPool &pool;
  std::shared_ptr<MemoryBudget> budget;
  ForkSafeMutex mutex;
  std::vector<Place> places; // that are taken, in order
  char *base = nullptr;
  int64_t size = 0;
  /// The end of the last place that this run, and one of late, has taken.
  int64_t most = 0, mostOfLate = 0;
  unsigned runs = 0;
  /// Values of this run that came from the pool.
  unsigned strays = 0;
  /// There was no memory for the piece; it is asked for again in a while.
  bool isRefused = false;
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_RUNMEMORY_H
