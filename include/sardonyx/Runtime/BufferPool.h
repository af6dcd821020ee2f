//===- BufferPool.h - Memory that is kept between runs ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_BUFFERPOOL_H
#define SARDONYX_RUNTIME_BUFFERPOOL_H

#include "sardonyx/Runtime/ForkSafeMutex.h"
#include "sardonyx/Runtime/MemoryBudget.h"
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sardonyx {
namespace runtime {

/// Blocks aligned to 64 bytes, kept in lists by size class when released.
/// Thread-safe.
class BufferPool {
public:
  /// How large blocks are.
  enum class Sizes {
    /// Those of a class, so that others of about the size can use them again.
    Classes,
    /// As large as is asked for; the system gets what is released.
    Exact,
  };

  /// What the pool holds counts against `budget`, if there is one.
  explicit BufferPool(std::shared_ptr<MemoryBudget> budget = nullptr,
                      Sizes sizes = Sizes::Classes);
  ~BufferPool();
  BufferPool(const BufferPool &) = delete;
  BufferPool &operator=(const BufferPool &) = delete;

  /// At least `bytes` of memory, or null when there is none (or bytes < 0) or
  /// the budget doesn't allow it.
  void *allocate(int64_t bytes);

  /// Takes back what allocate() gave; null is ignored.
  void release(void *memory);

  /// Takes back everything that is still out.
  void releaseAll();

  /// Gives the system the blocks that were not used since the last `runs` calls
  /// of this function.
  void trim(uint64_t runs = 16);

  /// Gives the system all blocks that are not out.
  void trimAll();

  /// Bytes in use and kept, and blocks that are out.
  int64_t bytesHeld() const { return held; }
  int64_t blocksOut() const;

private:
  struct Header;
  Header *makeBlock(int64_t bytes, uint64_t classBytes, unsigned sizeClass);
  void *hand(Header *block);
  void freeBlock(Header *block);
  void freeBlocks(Header *list);
  void keep(Header *block, Header *&dead);

  std::shared_ptr<MemoryBudget> budget;
  const Sizes sizes;
  mutable ForkSafeMutex mutex;
  std::vector<Header *> freeLists; // by size class, singly linked
  Header *out = nullptr;           // doubly linked
  std::atomic<int64_t> held{0};
  int64_t outCount = 0;
  uint64_t clock = 0;
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_BUFFERPOOL_H
