//===- Device.h - A GPU and its memory --------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that lies on a device keeps it alive. A device is used through its
// primary context, which other libraries of the process share, so that their
// pointers are ours; it is the thread's current one only during a call.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_DEVICE_H
#define SARDONYX_LIB_RUNTIME_GPU_DEVICE_H

#include "lib/Runtime/GPU/Driver.h"
#include "sardonyx/Runtime/MemoryBudget.h"
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace sardonyx {
namespace runtime {
namespace gpu {

/// What plans and sessions want to know of a device.
struct DeviceFacts {
  std::string name;
  /// The compute capability: 90 of 9.0.
  int sm = 0;
  int multiprocessors = 0;
  /// That are there at a time.
  int threadsPerMultiprocessor = 0;
  /// At the clocks that the driver tells: operations a second of f32, of f16
  /// with sums in f32 by the tensor cores, and bytes a second of memory.
  double peakFlops = 0, peakTensorFlops = 0, peakBytes = 0;
  /// Bytes of shared memory that one block may have when a kernel asks for
  /// more than the usual 48 KB.
  int64_t sharedBytesPerBlock = 0;
  int64_t l2Bytes = 0;
  int64_t memoryBytes = 0;
};

/// The least compute capability that kernels are made for.
constexpr int kLeastSM = 80;

/// What is told of a kernel when something is wrong with it: its name and that
/// of the node that it computes, "node 'x' (Conv)".
struct KernelNames {
  std::string kernel, node;
};

/// Kernels that a stream was given one after the other.
struct LaunchedKernels {
  std::shared_ptr<const KernelNames> first, last;
  int64_t count = 0;

  void add(const LaunchedKernels &next);
};

/// A GPU. Thread-safe.
class Device : public std::enable_shared_from_this<Device> {
public:
  /// The device of this number as the driver counts them, from 0. Whoever asks
  /// gets the same one while somebody has it, and its loss once it was lost.
  static Result<std::shared_ptr<Device>> open(int ordinal = 0);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const DeviceFacts &facts() const { return knownFacts; }
  int ordinal() const { return number; }

  /// Bytes that nobody on the machine holds.
  Result<int64_t> freeBytes();
  /// Whether an address is one of device memory, whoever allocated it.
  Result<bool> holds(cuda::CUdeviceptr address);

  /// The sentence of a device that was lost, else an empty one.
  std::string lossSentence() const;

  // For what lies on the device.

  cuda::CUcontext primaryContext() const { return context; }
  /// Calls `function(functions)`, which returns a CUresult, in the device's
  /// context. A failure's sentence begins with `what`, as in "cannot copy".
  template <typename F> MaybeFailure call(const char *what, const F &function) {
    cuda::CUresult code = attempt(function);
    if (code == cuda::CUDA_SUCCESS)
      return std::nullopt;
    return check(what, code);
  }
  /// The same, but leaves the code to the caller, who passes it to check()
  /// unless it is what was expected. It is the lost device's own if that is
  /// lost.
  template <typename F> cuda::CUresult attempt(const F &function) {
    if (cuda::CUresult code = codeOfLoss())
      return code;
    return callInContext(function);
  }
  /// For destructors: calls also what is lost, and ignores what it returns.
  template <typename F> void release(const F &function) {
    callInContext(function);
  }
  /// `current` is what is being launched, if a launch is.
  MaybeFailure check(const std::string &what, cuda::CUresult code,
                     const LaunchedKernels *current = nullptr);

  /// What `stream` is busy with, for the sentence of a loss.
  void noteLaunch(cuda::CUstream stream, const LaunchedKernels &kernels);
  void noteEnd(cuda::CUstream stream);
  /// Whether each launch is waited for, so that a loss has one kernel:
  /// SARDONYX_DEBUG. Of a graph it cannot be told in which kernel.
  bool waitsForLaunches() const { return isWaiting; }

private:
  Device(const Driver &driver, int number, cuda::CUdevice device);

  template <typename F> cuda::CUresult callInContext(const F &function) {
    const cuda::Functions &functions = driver.functions();
    cuda::CUresult code = functions.cuCtxPushCurrent(context);
    if (code != cuda::CUDA_SUCCESS)
      return code;
    code = function(functions);
    cuda::CUcontext popped = nullptr;
    functions.cuCtxPopCurrent(&popped);
    return code;
  }
  static Result<std::shared_ptr<Device>> create(int ordinal);
  cuda::CUresult readFacts();
  cuda::CUresult codeOfLoss() const;
  void lose(cuda::CUresult code, const LaunchedKernels *current);

  const Driver &driver;
  const int number;
  const cuda::CUdevice device;
  cuda::CUcontext context = nullptr;
  DeviceFacts knownFacts;
  bool isWaiting = false;
  /// The process that opened the device.
  const int process;

  mutable std::mutex mutex;
  std::map<cuda::CUstream, LaunchedKernels> launched;
  cuda::CUresult lossCode = cuda::CUDA_SUCCESS;
  std::string loss;
};

/// Memory on a device. `budget` counts it as long as it is held.
class DeviceMemory {
public:
  /// `what` is told where there is too little: "weights". No bytes have no
  /// address.
  static Result<std::unique_ptr<DeviceMemory>>
  allocate(std::shared_ptr<Device> device, int64_t bytes,
           std::shared_ptr<MemoryBudget> budget, const std::string &what);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  cuda::CUdeviceptr address() const { return start; }
  int64_t size() const { return bytes; }

private:
  DeviceMemory() = default;

  std::shared_ptr<Device> device;
  std::shared_ptr<MemoryBudget> budget;
  cuda::CUdeviceptr start = 0;
  int64_t bytes = 0;
};

/// Memory of the host that stays where it is, so that copies to and from the
/// device need no copy in between and do not wait.
class PinnedMemory {
public:
  static Result<std::unique_ptr<PinnedMemory>>
  allocate(std::shared_ptr<Device> device, int64_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory &) = delete;
  PinnedMemory &operator=(const PinnedMemory &) = delete;

  void *data() const { return start; }
  int64_t size() const { return bytes; }

private:
  PinnedMemory() = default;

  std::shared_ptr<Device> device;
  void *start = nullptr;
  int64_t bytes = 0;
};

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_DEVICE_H
