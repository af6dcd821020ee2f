//===- DeviceRun.h - The part of a run that is a device's -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the functions of RuntimeABI.h for devices find behind a run. Runs know
// no driver: whoever loads a model with kernels on a device brings an
// implementation. All that a run has the device do goes through this interface.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_DEVICERUN_H
#define SARDONYX_RUNTIME_DEVICERUN_H

#include "sardonyx/Runtime/DeviceUse.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sardonyx {
namespace runtime {

class RunContext;

/// What the addresses of device memory that kernels read and write are
/// multiples of: they access 16 bytes at a time.
inline constexpr uintptr_t kDeviceAlignment = 16;

/// How many blocks a launch has and of how many threads, the bytes of shared
/// memory beside what the kernel declares, and how many of its parameters are
/// tensor maps (sdx_rt_launch).
struct DeviceLaunchSize {
  int64_t blocks[3], threads[3], sharedBytes, maps;
};

/// A launch of a kernel in a run that is profiled.
struct DeviceLaunch {
  std::string kernel;
  DeviceLaunchSize size;
  /// Nanoseconds since the device began with the step.
  int64_t begin, end;
  /// Registers of a thread, and the bytes of shared memory that the kernel
  /// declares.
  int64_t registers, declaredSharedBytes;
  /// Of the warps that a multiprocessor can have at a time, the part that it
  /// has of this kernel.
  double occupancy;
};

/// The device of one run at a time, and what is kept of it for the next. What a
/// run has it do is done in order, later than the functions return, unless they
/// say otherwise. What cannot be done fails the run; memory is null then. Bytes
/// of device memory are at multiples of 256.
class DeviceRun {
public:
  virtual ~DeviceRun() = default;

  virtual void begin(RunContext &run) = 0;
  /// Ends a run. Where it failed, what the device still has to do may go on
  /// behind it, unless it concerns memory of the caller's.
  virtual void end(RunContext &run) = 0;

  /// Memory until the end of the run, or until it is released. `node`, which
  /// may be null, names what computes it.
  virtual void *allocate(RunContext &run, int64_t bytes, const char *node) = 0;
  virtual void release(void *memory) = 0;
  /// Memory that the next run finds again.
  virtual void *arena(RunContext &run, int64_t bytes) = 0;
  /// Memory of a result, "output 'y' of shape [3]". With `isKept`, keep() gives
  /// it to the caller when the run has succeeded.
  virtual void *allocateResult(RunContext &run, int64_t bytes,
                               const std::string &what, bool isKept) = 0;
  virtual std::shared_ptr<void> keep(void *result) = 0;
  /// Words that are 0 when the run begins, which a failing check writes.
  virtual void *failureRecord(RunContext &run) = 0;

  /// Memory of the caller's takes part in the run, and its last writer is done
  /// when the process's default stream is.
  virtual void joinCaller(RunContext &run) = 0;

  /// The source may change when the function returns.
  virtual void copyToDevice(RunContext &run, void *target, const void *source,
                            int64_t bytes) = 0;
  virtual void copyOnDevice(RunContext &run, void *target, const void *source,
                            int64_t bytes) = 0;
  /// The bytes are there after the next wait().
  virtual void copyToHost(RunContext &run, void *target, const void *source,
                          int64_t bytes) = 0;

  /// Starts the kernel of this number. `arguments` are as for sdx_rt_launch.
  virtual void launch(RunContext &run, int64_t kernel,
                      const DeviceLaunchSize &size, int64_t count,
                      const int64_t *arguments) = 0;

  /// Waits until all is done, unless something ends the run before. Fails it
  /// where a check of a kernel has failed.
  virtual void wait(RunContext &run) = 0;
  /// The same, for the nanoseconds that the device took for what it was given
  /// since the last wait, and, where the run is profiled, the launches.
  virtual int64_t finishStep(RunContext &run,
                             std::vector<DeviceLaunch> &launches) = 0;
  /// Of the run that has ended last.
  virtual DeviceUse lastUse() const = 0;
};

/// The kernels of a model on a device. Thread-safe.
class DeviceCode {
public:
  virtual ~DeviceCode() = default;

  /// What one run at a time needs.
  virtual std::unique_ptr<DeviceRun> makeRun() = 0;
  /// The number of the device as its driver counts.
  virtual int ordinal() const = 0;
  /// Frees memory that is kept for results.
  virtual void releaseMemory() = 0;
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_DEVICERUN_H
