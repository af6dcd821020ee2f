//===- DevicePool.h - Device memory that is kept between runs ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_DEVICEPOOL_H
#define SARDONYX_LIB_RUNTIME_GPU_DEVICEPOOL_H

#include "lib/Runtime/GPU/Device.h"
#include "sardonyx/Runtime/ForkSafeMutex.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sardonyx {
namespace runtime {
namespace gpu {

/// Blocks of device memory that nobody uses, by their sizes, which are rounded
/// up by at most an eighth. It knows no stream: whoever takes a block must come
/// after all work on it. Thread-safe.
class DevicePool {
public:
  /// What is taken and kept counts against `budget`, if there is one.
  DevicePool(std::shared_ptr<Device> device,
             std::shared_ptr<MemoryBudget> budget);
  DevicePool(const DevicePool &) = delete;
  DevicePool &operator=(const DevicePool &) = delete;

  /// A block that is kept, of at least `bytes`, or null.
  std::unique_ptr<DeviceMemory> find(int64_t bytes);
  /// A new block of at least `bytes`; `what` is told where there is too little.
  Result<std::unique_ptr<DeviceMemory>> allocate(int64_t bytes,
                                                 const std::string &what);
  /// Keeps a block of any pool's.
  void give(std::unique_ptr<DeviceMemory> memory);

  /// Frees the blocks that were not used since the last `runs` calls.
  void trim(uint64_t runs = 16);
  /// Frees all.
  void trimAll();

private:
  struct Kept {
    std::unique_ptr<DeviceMemory> memory;
    uint64_t lastUse;
  };

  std::shared_ptr<Device> device;
  std::shared_ptr<MemoryBudget> budget;
  ForkSafeMutex mutex;
  /// By size and address, so that which block is found hangs on nothing but
  /// which ones there are.
  std::map<std::pair<int64_t, cuda::CUdeviceptr>, Kept> kept;
  uint64_t clock = 0;
};

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_DEVICEPOOL_H
