//===- MemoryBudget.h - How much memory runs may take -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_MEMORYBUDGET_H
#define SARDONYX_RUNTIME_MEMORYBUDGET_H

#include <atomic>
#include <cstdint>

namespace sardonyx {
namespace runtime {

/// Bytes that the pools and arenas of a session hold, and how many they may.
/// Thread-safe.
class MemoryBudget {
public:
  explicit MemoryBudget(int64_t limit) : most(limit) {}

  /// Counts `bytes` more, or gives false where that would pass the limit.
  bool take(int64_t bytes) {
    int64_t before = held.load(std::memory_order_relaxed);
    do {
      if (bytes > most - before)
        return false;
    } while (!held.compare_exchange_weak(before, before + bytes,
                                         std::memory_order_relaxed));
    return true;
  }
  void give(int64_t bytes) { held.fetch_sub(bytes, std::memory_order_relaxed); }

  int64_t limit() const { return most; }
  int64_t bytesHeld() const { return held.load(std::memory_order_relaxed); }
  int64_t left() const { return most - bytesHeld(); }

private:
  const int64_t most;
  std::atomic<int64_t> held{0};
};

/// What this machine has: its physical memory or the limit of the process's
/// control group, whichever is less.
int64_t machineMemory();

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_MEMORYBUDGET_H
