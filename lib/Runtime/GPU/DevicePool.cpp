//===- DevicePool.cpp - Device memory that is kept between runs -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/DevicePool.h"
#include <algorithm>

using namespace sardonyx::runtime;
using namespace sardonyx::runtime::gpu;

/// The size of the block that `bytes` get: eight sizes between a power of two
/// and the next.
static int64_t sizeOfBlock(int64_t bytes) {
  constexpr int64_t kLeast = 256, kMost = INT64_MAX / 4;
  if (bytes <= kLeast)
    return bytes < 0 ? bytes : kLeast;
  if (bytes > kMost)
    return bytes;
  int64_t power = kLeast;
  while (power <= bytes / 2)
    power *= 2;
  const int64_t step = std::max(kLeast, power / 8);
  return (bytes + step - 1) / step * step;
}

DevicePool::DevicePool(std::shared_ptr<Device> device,
                       std::shared_ptr<MemoryBudget> budget)
    : device(std::move(device)), budget(std::move(budget)) {}

std::unique_ptr<DeviceMemory> DevicePool::find(int64_t bytes) {
  std::lock_guard<ForkSafeMutex> lock(mutex);
  const int64_t size = sizeOfBlock(bytes);
  auto found = kept.lower_bound({size, 0});
  if (found == kept.end() || found->first.first != size)
    return nullptr;
  std::unique_ptr<DeviceMemory> memory = std::move(found->second.memory);
  kept.erase(found);
  return memory;
}

Result<std::unique_ptr<DeviceMemory>>
DevicePool::allocate(int64_t bytes, const std::string &what) {
  return DeviceMemory::allocate(device, sizeOfBlock(bytes), budget, what);
}

void DevicePool::give(std::unique_ptr<DeviceMemory> memory) {
  std::lock_guard<ForkSafeMutex> lock(mutex);
  const std::pair place(memory->size(), memory->address());
  kept.emplace(place, Kept{std::move(memory), clock});
}

void DevicePool::trim(uint64_t runs) {
  std::vector<Kept> old; // freed without the lock
  std::lock_guard<ForkSafeMutex> lock(mutex);
  ++clock;
  for (auto it = kept.begin(); it != kept.end();) {
    if (it->second.lastUse + runs >= clock) {
      ++it;
      continue;
    }
    old.push_back(std::move(it->second));
    it = kept.erase(it);
  }
}

void DevicePool::trimAll() {
  decltype(kept) all; // freed without the lock
  std::lock_guard<ForkSafeMutex> lock(mutex);
  all.swap(kept);
}
