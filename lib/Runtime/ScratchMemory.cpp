//===- ScratchMemory.cpp - What kernels compute in ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/ScratchMemory.h"
#include <algorithm>

using namespace sardonyx::runtime;

void *ScratchMemory::take(int64_t bytes, BufferPool &pool) {
  if (bytes < 0)
    return nullptr; // a size that is no number of bytes
  for (Block &block : blocks) {
    if (block.isOut)
      continue;
    if (!block.memory || block.bytes < bytes) {
      pool.release(block.memory);
      block.bytes = std::max(bytes, block.mostBefore);
      block.memory = pool.allocate(block.bytes);
      if (!block.memory && block.bytes > bytes) {
        block.bytes = bytes;
        block.memory = pool.allocate(bytes);
      }
      if (!block.memory)
        return nullptr;
    }
    block.most = std::max(block.most, bytes);
    block.isOut = true;
    return block.memory;
  }
  return pool.allocate(bytes);
}

bool ScratchMemory::giveBack(void *memory) {
  for (Block &block : blocks)
    if (memory && block.memory == memory) {
      block.isOut = false;
      return true;
    }
  return false;
}

void ScratchMemory::forget() {
  for (Block &block : blocks) {
    Block next;
    next.mostBefore = block.most;
    block = next;
  }
}
