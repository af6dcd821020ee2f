//===- Grid.cpp - Launches a kernel ---------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"
#include <algorithm>
#include <cstdio>

namespace sardonyx::fakecuda {

Grid::Grid(const Function &function, const Launch &launch, Memory &memory)
    : function(function), launch(launch), parameters(launch.parameters),
      sharedBytes(function.staticSharedBytes + launch.dynamicSharedBytes),
      memory(memory), lock(memory.mutex) {}

char *Grid::resolve(uint64_t address, size_t bytes) {
  for (const Range &range : recent)
    if (address >= range.begin && address < range.end &&
        bytes <= range.end - address)
      return reinterpret_cast<char *>(address);
  auto it = memory.allocations.upper_bound(address);
  if (it == memory.allocations.begin())
    return nullptr;
  --it;
  uint64_t end = it->first + it->second.bytes;
  if (address >= end || bytes > end - address)
    return nullptr;
  recent[turn++ % recent.size()] = {it->first, end};
  return reinterpret_cast<char *>(address);
}

std::string Grid::describe(uint64_t address) const {
  char text[32];
  snprintf(text, sizeof text, "0x%llx",
           static_cast<unsigned long long>(address));
  auto after = memory.allocations.upper_bound(address);
  auto nearest = after;
  if (after != memory.allocations.begin()) {
    auto before = std::prev(after);
    uint64_t end = before->first + before->second.bytes;
    if (after == memory.allocations.end() || address < end ||
        address - end <= after->first - address)
      nearest = before;
  }
  if (nearest == memory.allocations.end())
    return std::string(text) + " (nothing is allocated)";
  return std::string(text) + " (byte " +
         std::to_string(int64_t(address - nearest->first)) +
         " of an allocation of " + std::to_string(nearest->second.bytes) +
         " bytes)";
}

std::string Grid::run() {
  auto [width, height, depth] = launch.grid;
  for (uint32_t z = 0; z < depth; ++z)
    for (uint32_t y = 0; y < height; ++y)
      for (uint32_t x = 0; x < width; x += function.clusterBlocks) {
        Cluster cluster(*this, {x, y, z}, function.clusterBlocks);
        if (std::string fault = cluster.run(); !fault.empty())
          return fault;
      }
  return "";
}

std::string launch(const Function &function, const Launch &launch,
                   Memory &memory) {
  std::string subject = "kernel " + function.name + ": ";
  uint64_t threads = 1;
  for (unsigned i = 0; i < 3; ++i) {
    if (launch.block[i] == 0 || launch.grid[i] == 0)
      return subject + "a launch of no threads";
    threads *= launch.block[i];
    if (threads > 1024)
      break;
  }
  if (threads > function.maxThreads)
    return subject + "a launch of more threads a block than its " +
           std::to_string(function.maxThreads);
  if (launch.grid[0] % function.clusterBlocks)
    return subject + "a launch of " + std::to_string(launch.grid[0]) +
           " blocks, which are no clusters of " +
           std::to_string(function.clusterBlocks);
  if (launch.parameters.size() != function.parameterBytes)
    return subject + "a launch with " +
           std::to_string(launch.parameters.size()) +
           " bytes of parameters, where it has " +
           std::to_string(function.parameterBytes);
  if (launch.dynamicSharedBytes > (size_t(1) << 20))
    return subject + "a launch with " +
           std::to_string(launch.dynamicSharedBytes) +
           " bytes of shared memory";
  return Grid(function, launch, memory).run();
}

} // namespace sardonyx::fakecuda
