//===- ScratchMemory.h - What kernels compute in ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_SCRATCHMEMORY_H
#define SARDONYX_RUNTIME_SCRATCHMEMORY_H

#include "sardonyx/Runtime/AlignedMemory.h"
#include "sardonyx/Runtime/BufferPool.h"

namespace sardonyx {
namespace runtime {

/// Memory that one thread of a run takes and gives back kernel after kernel,
/// from the run's pool: always the same, which is then in the thread's caches.
/// Blocks of many sizes would be in none by the time that they are used again.
class alignas(kMemoryAlignment) ScratchMemory {
public:
  /// At least `bytes`, or null where the pool has none.
  void *take(int64_t bytes, BufferPool &pool);

  /// Whether `memory` is of here; it is then free for take() again.
  bool giveBack(void *memory);

  /// For when the pool has taken all back, at the end of a run: the next one
  /// begins with blocks as large as this one needed.
  void forget();

private:
  /// Of the blocks that are out at a time the first has always the same memory,
  /// the second, and so on.
  struct Block {
    void *memory = nullptr;
    int64_t bytes = 0;
    /// The most that was asked for in this run, and in the one before.
    int64_t most = 0, mostBefore = 0;
    bool isOut = false;
  };
  /// More at a time are the pool's.
  static constexpr unsigned kMaxBlocks = 4;
  Block blocks[kMaxBlocks];
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_SCRATCHMEMORY_H
