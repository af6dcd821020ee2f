//===- BufferPool.cpp - Memory that is kept between runs ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/BufferPool.h"
#include <cstdlib>
#include <sys/mman.h>

using namespace sardonyx::runtime;

static constexpr size_t kAlignment = 64;
static constexpr size_t kHugePage = size_t(2) << 20;

struct alignas(kAlignment) BufferPool::Header {
  Header *next, *previous;
  int64_t bytes; // of the block, this header included
  uint64_t lastUsed;
  unsigned sizeClass;
};

void *sardonyx::runtime::allocateAligned(size_t bytes) {
  bool large = bytes >= 2 * kHugePage;
  size_t alignment = large ? kHugePage : kAlignment;
  if (bytes > SIZE_MAX / 2)
    return nullptr;
  size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void *memory = aligned_alloc(alignment, rounded ? rounded : alignment);
#ifdef MADV_HUGEPAGE
  if (memory && large)
    (void)madvise(memory, rounded, MADV_HUGEPAGE);
#endif
  return memory;
}

void sardonyx::runtime::freeAligned(void *memory) { free(memory); }

/// Four classes to each doubling, from 256 bytes on: at most a fifth is wasted.
static unsigned sizeClassOf(uint64_t bytes, uint64_t &classBytes) {
  unsigned log = bytes <= 256 ? 8 : 63 - __builtin_clzll(bytes - 1);
  uint64_t base = uint64_t(1) << log, step = base / 4;
  uint64_t quarter = bytes <= base ? 0 : (bytes - base + step - 1) / step;
  classBytes = base + quarter * step;
  return (log - 8) * 4 + static_cast<unsigned>(quarter);
}

BufferPool::~BufferPool() {
  releaseAll();
  for (Header *list : freeLists)
    while (list) {
      Header *next = list->next;
      freeBlock(list);
      list = next;
    }
}

void BufferPool::freeBlock(Header *block) {
  held -= block->bytes;
  freeAligned(block);
}

void *BufferPool::allocate(int64_t bytes) {
  if (bytes < 0 || bytes > (int64_t(1) << 46))
    return nullptr;
  uint64_t classBytes;
  unsigned sizeClass =
      sizeClassOf(static_cast<uint64_t>(bytes) + sizeof(Header), classBytes);
  std::lock_guard<std::mutex> lock(mutex);
  if (freeLists.size() <= sizeClass)
    freeLists.resize(sizeClass + 1);
  Header *block = freeLists[sizeClass];
  if (block) {
    freeLists[sizeClass] = block->next;
  } else {
    block = static_cast<Header *>(allocateAligned(classBytes));
    if (!block)
      return nullptr;
    block->bytes = static_cast<int64_t>(classBytes);
    block->sizeClass = sizeClass;
    held += block->bytes;
  }
  block->lastUsed = clock;
  block->previous = nullptr;
  block->next = out;
  if (out)
    out->previous = block;
  out = block;
  ++outCount;
  return block + 1;
}

void BufferPool::release(void *memory) {
  if (!memory)
    return;
  Header *block = static_cast<Header *>(memory) - 1;
  std::lock_guard<std::mutex> lock(mutex);
  (block->previous ? block->previous->next : out) = block->next;
  if (block->next)
    block->next->previous = block->previous;
  --outCount;
  block->next = freeLists[block->sizeClass];
  freeLists[block->sizeClass] = block;
}

void BufferPool::releaseAll() {
  std::lock_guard<std::mutex> lock(mutex);
  while (Header *block = out) {
    out = block->next;
    block->next = freeLists[block->sizeClass];
    freeLists[block->sizeClass] = block;
  }
  outCount = 0;
}

void BufferPool::trim(uint64_t runs) {
  std::lock_guard<std::mutex> lock(mutex);
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
      freeBlock(block);
    }
}

int64_t BufferPool::bytesHeld() const {
  std::lock_guard<std::mutex> lock(mutex);
  return held;
}

int64_t BufferPool::blocksOut() const {
  std::lock_guard<std::mutex> lock(mutex);
  return outCount;
}
