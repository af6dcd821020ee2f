//===- DeviceABI.cpp - What models call that run on a device --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thin, as RuntimeABI.cpp: each function finds the device of the calling
// thread's run, and leaves the run when that has failed.
//
//===----------------------------------------------------------------------===//

#include "sardonyx-c/RuntimeABI.h"
#include "sardonyx/Runtime/RunContext.h"

using sardonyx::runtime::DeviceLaunchSize;
using sardonyx::runtime::DeviceRun;
using sardonyx::runtime::RunContext;

/// The device of `run`; null, and the run has failed, where it has none.
static DeviceRun *deviceOf(RunContext *run) {
  if (!run)
    return nullptr;
  if (DeviceRun *device = run->device())
    return device;
  run->fail("the model's code is for a device, and the run has none");
  return nullptr;
}

/// Calls `use(run, device)` with the run of the calling thread and its device,
/// and leaves the run if it has failed.
template <typename F> static void useDevice(const F &use) {
  RunContext *run = RunContext::current();
  if (DeviceRun *device = deviceOf(run))
    use(*run, *device);
  if (run)
    run->leaveIfFailed();
}

void *sdx_rt_device_alloc(int64_t bytes, const char *node) {
  void *memory = nullptr;
  useDevice([&](RunContext &run, DeviceRun &device) {
    memory = device.allocate(run, bytes, node);
  });
  return memory;
}

void sdx_rt_device_free(void *memory) {
  RunContext *run = RunContext::current();
  if (run && run->device())
    run->device()->release(memory);
}

void *sdx_rt_device_arena(int64_t bytes) {
  void *memory = nullptr;
  useDevice([&](RunContext &run, DeviceRun &device) {
    memory = device.arena(run, bytes);
  });
  return memory;
}

void *sdx_rt_device_output(int64_t index, int64_t rank, const int64_t *sizes) {
  void *memory = nullptr;
  useDevice([&](RunContext &run, DeviceRun &) {
    memory = run.deviceOutput(index, rank, sizes);
  });
  return memory;
}

void *sdx_rt_device_failure() {
  void *record = nullptr;
  useDevice([&](RunContext &run, DeviceRun &device) {
    record = device.failureRecord(run);
  });
  return record;
}

void sdx_rt_device_copy(int64_t kind, void *target, const void *source,
                        int64_t bytes) {
  useDevice([&](RunContext &run, DeviceRun &device) {
    switch (kind) {
    case SDX_RT_TO_DEVICE:
      return device.copyToDevice(run, target, source, bytes);
    case SDX_RT_TO_HOST:
      device.copyToHost(run, target, source, bytes);
      if (!run.failed())
        device.wait(run);
      return;
    case SDX_RT_ON_DEVICE:
      return device.copyOnDevice(run, target, source, bytes);
    case SDX_RT_TO_HOST_LATER:
      return device.copyToHost(run, target, source, bytes);
    default:
      return run.fail("the model's code asks for a copy of the kind " +
                      std::to_string(kind) + ", which there is not");
    }
  });
}

void sdx_rt_launch(int64_t kernel, const int64_t *size, int64_t count,
                   const int64_t *args) {
  useDevice([&](RunContext &run, DeviceRun &device) {
    device.launch(run, kernel,
                  DeviceLaunchSize{{size[0], size[1], size[2]},
                                   {size[3], size[4], size[5]},
                                   size[6],
                                   size[7]},
                  count, args);
  });
}
