//===- Module.h - Kernels on a GPU ------------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_MODULE_H
#define SARDONYX_LIB_RUNTIME_GPU_MODULE_H

#include "lib/Runtime/GPU/Stream.h"
#include "sardonyx/Runtime/DeviceRun.h"
#include <array>
#include <string_view>
#include <vector>

namespace sardonyx {
namespace runtime {
namespace gpu {

class Module;

/// How many blocks a launch has, of how many threads, and the bytes of shared
/// memory of each beside what the kernel declares.
struct LaunchSize {
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  int64_t sharedBytes = 0;

  bool isEmpty() const { return !grid[0] || !grid[1] || !grid[2]; }
};

/// A pointer to each argument of a kernel. The launch copies what they point
/// at, of the sizes that the kernel declares.
using Arguments = std::vector<void *>;

/// What a caller knows of a kernel before it is loaded.
struct KernelDescription {
  std::string name;
  /// The node that it computes, "node 'x' (Conv)", for errors; may be empty.
  std::string node;
  /// Number of arguments.
  size_t arguments = 0;
  /// The most that a launch will ask for (LaunchSize).
  int64_t sharedBytes = 0;
  /// It waits for what comes before it itself (griddepcontrol.wait), before it
  /// touches memory: it may begin earlier.
  bool waits = false;
};

/// A kernel of a module, which it keeps loaded.
class Kernel {
public:
  /// Adds a launch to a stream. No blocks are no work.
  MaybeFailure launch(Stream &stream, const LaunchSize &size,
                      const Arguments &arguments) const;

  /// Why the driver would refuse these, or nothing.
  MaybeFailure checkLaunch(const LaunchSize &size,
                           const Arguments &arguments) const;
  /// Fills in the registers, the shared memory and the occupancy of a launch.
  MaybeFailure describe(const LaunchSize &size, DeviceLaunch &launch) const;
  /// "cannot launch kernel K (node 'x' (Conv))".
  std::string describeLaunch() const;

  cuda::CUfunction handle() const { return function; }
  /// Whether it may begin before a kernel that comes before it has ended.
  bool mayBeginEarly() const { return waits; }
  const std::shared_ptr<const KernelNames> &names() const { return known; }

private:
  friend class Module;
  Kernel() = default;

  std::shared_ptr<const Module> module;
  cuda::CUfunction function = nullptr;
  std::shared_ptr<const KernelNames> known;
  size_t argumentCount = 0;
  bool waits = false;
  int64_t mostThreads = 0, mostSharedBytes = 0, declaredSharedBytes = 0;
};

/// Code and constants on a device.
class Module : public std::enable_shared_from_this<Module> {
public:
  /// `image` is a cubin or the text of PTX, which the driver compiles. `name`
  /// is told in errors, with what the driver's compiler says.
  static Result<std::shared_ptr<Module>> load(std::shared_ptr<Device> device,
                                              std::string_view image,
                                              const std::string &name);
  /// The cubin that the driver makes of the text of PTX, as load() would.
  static Result<std::string> compile(const std::shared_ptr<Device> &device,
                                     const std::string &text,
                                     const std::string &name);
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  Result<std::shared_ptr<const Kernel>>
  find(const KernelDescription &description) const;

  struct Global {
    cuda::CUdeviceptr address = 0;
    int64_t bytes = 0;
  };
  Result<Global> findGlobal(const std::string &global) const;
  /// Whether there is one.
  bool has(const std::string &global) const;

  const std::shared_ptr<Device> &device() const { return owner; }

private:
  Module() = default;

  std::shared_ptr<Device> owner;
  std::string name;
  cuda::CUmodule module = nullptr;
};

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_MODULE_H
