//===- BufferPool.cpp - Memory that is kept between runs ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/BufferPool.h"
#include "sardonyx/Runtime/AlignedMemory.h"

using namespace sardonyx::runtime;

/// The class of blocks that are not kept.
static constexpr unsigned kUnclassed = ~0u;
/// A block may be used for what is of so many classes less than its own, so
/// that runs of other sizes use what those before them left.
static constexpr unsigned kClassesThatDo = 4;

struct alignas(kMemoryAlignment) BufferPool::Header {
  Header *next, *previous;
  int64_t bytes; // of the block, this header included
  uint64_t lastUsed;
  unsigned sizeClass;
};

/// Four classes to each doubling, from 256 bytes on: at most a fifth is wasted.
static unsigned sizeClassOf(uint64_t bytes, uint64_t &classBytes) {
  unsigned log = bytes <= 256 ? 8 : 63 - __builtin_clzll(bytes - 1);
  uint64_t base = uint64_t(1) << log, step = base / 4;
  uint64_t quarter = bytes <= base ? 0 : (bytes - base + step - 1) / step;
  classBytes = base + quarter * step;
  return (log - 8) * 4 + static_cast<unsigned>(quarter);
}

BufferPool::BufferPool(std::shared_ptr<MemoryBudget> budget, Sizes sizes)
    : budget(std::move(budget)), sizes(sizes) {}

BufferPool::~BufferPool() {
  releaseAll();
  trimAll();
}

/// Gives the memory of a block that is in no list to the system.
void BufferPool::freeBlock(Header *block) {
  if (budget)
    budget->give(block->bytes);
  held -= block->bytes;
  freeAligned(block, block->bytes);
}

void BufferPool::freeBlocks(Header *list) {
  while (list) {
    Header *next = list->next;
    freeBlock(list);
    list = next;
  }
}

/// A new block, in no list yet; null where there is no memory for it.
BufferPool::Header *BufferPool::makeBlock(int64_t bytes, uint64_t classBytes,
                                          unsigned sizeClass) {
  const uint64_t exactBytes = bytes + sizeof(Header);
  if (sizes == Sizes::Exact) {
    classBytes = exactBytes;
    sizeClass = kUnclassed;
  }
  // A block of its class's size can be used again; one of just the size that is
  // asked for may still fit into the budget.
  if (budget && !budget->take(classBytes)) {
    classBytes = exactBytes;
    sizeClass = kUnclassed;
    if (!budget->take(classBytes))
      return nullptr;
  }
  auto *block = static_cast<Header *>(allocateAligned(classBytes));
  if (!block) {
    if (budget)
      budget->give(classBytes);
    return nullptr;
  }
  block->bytes = static_cast<int64_t>(classBytes);
  block->sizeClass = sizeClass;
  held += block->bytes;
  return block;
}

/// Puts a block among those that are out.
void *BufferPool::hand(Header *block) {
  block->lastUsed = clock;
  block->previous = nullptr;
  block->next = out;
  if (out)
    out->previous = block;
  out = block;
  ++outCount;
  return block + 1;
}

void *BufferPool::allocate(int64_t bytes) {
  if (bytes < 0 || bytes > (int64_t(1) << 46))
    return nullptr;
  uint64_t classBytes;
  unsigned sizeClass =
      sizeClassOf(static_cast<uint64_t>(bytes) + sizeof(Header), classBytes);
  {
    std::lock_guard<ForkSafeMutex> lock(mutex);
    if (freeLists.size() < sizeClass + kClassesThatDo)
      freeLists.resize(sizeClass + kClassesThatDo);
    for (unsigned other = 0; other < kClassesThatDo; ++other)
      if (Header *&list = freeLists[sizeClass + other]) {
        Header *block = list;
        list = block->next;
        return hand(block);
      }
  }
  // Without the lock: the system takes its time.
  Header *block = makeBlock(bytes, classBytes, sizeClass);
  if (!block)
    return nullptr;
  std::lock_guard<ForkSafeMutex> lock(mutex);
  return hand(block);
}

/// Puts a block that is no longer out where allocate() finds it again, or where
/// it has no class, into `dead`.
void BufferPool::keep(Header *block, Header *&dead) {
  Header *&list =
      block->sizeClass == kUnclassed ? dead : freeLists[block->sizeClass];
  block->next = list;
  list = block;
}

void BufferPool::release(void *memory) {
  if (!memory)
    return;
  Header *block = static_cast<Header *>(memory) - 1, *dead = nullptr;
  {
    std::lock_guard<ForkSafeMutex> lock(mutex);
    (block->previous ? block->previous->next : out) = block->next;
    if (block->next)
      block->next->previous = block->previous;
    --outCount;
    keep(block, dead);
  }
  freeBlocks(dead);
}

void BufferPool::releaseAll() {
  Header *dead = nullptr;
  {
    std::lock_guard<ForkSafeMutex> lock(mutex);
    while (Header *block = out) {
      out = block->next;
      keep(block, dead);
    }
    outCount = 0;
  }
  freeBlocks(dead);
}

void BufferPool::trim(uint64_t runs) {
  Header *dead = nullptr;
  {
    std::lock_guard<ForkSafeMutex> lock(mutex);
    if (++clock % runs != 0)
      return;
    for (Header *&list : freeLists)
      for (Header **link = &list; *link;) {
        Header *block = *link;
        if (block->lastUsed + runs >= clock) {
          link = &block->next;
          continue;
        }
        *link = block->next;
        block->next = dead;
        dead = block;
      }
  }
  freeBlocks(dead);
}

void BufferPool::trimAll() {
  std::vector<Header *> lists;
  {
    std::lock_guard<ForkSafeMutex> lock(mutex);
    lists.swap(freeLists);
    freeLists.resize(lists.size());
  }
  const int64_t before = held;
  for (Header *list : lists)
    freeBlocks(list);
  // Not for little: malloc looks at all that it has.
  constexpr int64_t kMuch = int64_t(1) << 20;
  if (before - held >= kMuch)
    returnFreeMemory();
}

int64_t BufferPool::blocksOut() const {
  std::lock_guard<ForkSafeMutex> lock(mutex);
  return outCount;
}
