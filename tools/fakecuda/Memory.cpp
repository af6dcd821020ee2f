//===- Memory.cpp - Device memory that checks its bounds ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace sardonyx::fakecuda {

constexpr size_t kGuardBytes = 4096;
constexpr unsigned char kGuard = 0xcb, kPoison = 0xff;

Memory::~Memory() {
  for (auto &[address, allocation] : allocations)
    free(allocation.memory);
}

uint64_t Memory::allocate(size_t bytes, size_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 ||
      alignment > (size_t(1) << 30) || bytes > (size_t(1) << 46))
    return 0;
  size_t before = alignment > kGuardBytes ? alignment : kGuardBytes;
  size_t whole = before + bytes + kGuardBytes;
  void *memory = nullptr;
  if (posix_memalign(&memory, before, whole))
    return 0;
  char *begin = static_cast<char *>(memory) + before;
  memset(memory, kGuard, before);
  memset(begin, kPoison, bytes);
  memset(begin + bytes, kGuard, kGuardBytes);
  std::unique_lock lock(mutex);
  allocations[reinterpret_cast<uint64_t>(begin)] = {
      bytes, static_cast<char *>(memory), whole};
  allocated += bytes;
  return reinterpret_cast<uint64_t>(begin);
}

bool Memory::release(uint64_t address) {
  std::unique_lock lock(mutex);
  auto it = allocations.find(address);
  if (it == allocations.end())
    return false;
  memset(reinterpret_cast<void *>(address), kPoison, it->second.bytes);
  allocated -= it->second.bytes;
  free(it->second.memory);
  allocations.erase(it);
  return true;
}

void *Memory::resolve(uint64_t address, size_t bytes) const {
  uint64_t begin;
  size_t size;
  if (!find(address, begin, size) || bytes > size - (address - begin))
    return nullptr;
  return reinterpret_cast<void *>(address);
}

bool Memory::find(uint64_t address, uint64_t &begin, size_t &bytes) const {
  std::shared_lock lock(mutex);
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin())
    return false;
  --it;
  // The address of an empty allocation is its own, too.
  if (address - it->first >= it->second.bytes && address != it->first)
    return false;
  begin = it->first;
  bytes = it->second.bytes;
  return true;
}

size_t Memory::allocatedBytes() const {
  std::shared_lock lock(mutex);
  return allocated;
}

size_t Memory::countAllocations() const {
  std::shared_lock lock(mutex);
  return allocations.size();
}

std::string Memory::checkGuards() const {
  std::shared_lock lock(mutex);
  for (auto &[address, allocation] : allocations) {
    auto *bytes = reinterpret_cast<unsigned char *>(allocation.memory);
    auto *begin = reinterpret_cast<unsigned char *>(address);
    for (auto *at = bytes; at != bytes + allocation.memoryBytes; ++at) {
      if (at == begin)
        at += allocation.bytes;
      if (*at != kGuard)
        return "someone wrote beside the allocation of " +
               std::to_string(allocation.bytes) + " bytes, at byte " +
               std::to_string(at - begin) + " of it";
    }
  }
  return "";
}

} // namespace sardonyx::fakecuda
