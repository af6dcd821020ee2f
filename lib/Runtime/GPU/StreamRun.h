//===- StreamRun.h - The part of a run that is a stream's -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_STREAMRUN_H
#define SARDONYX_LIB_RUNTIME_GPU_STREAMRUN_H

#include "lib/Runtime/GPU/LoadedKernels.h"
#include "lib/Runtime/GPU/Staging.h"
#include "lib/Runtime/GPU/WorkQueue.h"
#include "sardonyx/Runtime/DeviceRun.h"
#include <chrono>
#include <unordered_map>

namespace sardonyx {
namespace runtime {
namespace gpu {

/// A stream of its own, and memory that only work of this stream uses: what one
/// run has freed the next may have at once, while the device is still busy with
/// it. Work is gathered until somebody waits for it, so that what repeats is a
/// graph.
class StreamRun : public DeviceRun {
public:
  explicit StreamRun(std::shared_ptr<const LoadedKernels> code);
  ~StreamRun() override;

  void begin(RunContext &run) override;
  void end(RunContext &run) override;
  void *allocate(RunContext &run, int64_t bytes, const char *node) override;
  void release(void *memory) override;
  void *arena(RunContext &run, int64_t bytes) override;
  void *allocateResult(RunContext &run, int64_t bytes, const std::string &what,
                       bool isKept) override;
  std::shared_ptr<void> keep(void *result) override;
  void *failureRecord(RunContext &run) override;
  void joinCaller(RunContext &run) override;
  void copyToDevice(RunContext &run, void *target, const void *source,
                    int64_t bytes) override;
  void copyOnDevice(RunContext &run, void *target, const void *source,
                    int64_t bytes) override;
  void copyToHost(RunContext &run, void *target, const void *source,
                  int64_t bytes) override;
  void launch(RunContext &run, int64_t kernel, const DeviceLaunchSize &size,
              int64_t count, const int64_t *arguments) override;
  void wait(RunContext &run) override;
  int64_t finishStep(RunContext &run,
                     std::vector<DeviceLaunch> &launches) override;
  DeviceUse lastUse() const override { return use; }

private:
  using Blocks = std::unordered_map<void *, std::unique_ptr<DeviceMemory>>;
  /// Bytes that wait() brings to the host: from pinned memory, or where that is
  /// null from the device itself.
  struct Download {
    void *target;
    const char *pinned;
    cuda::CUdeviceptr source;
    int64_t bytes;
  };

  MaybeFailure prepare();
  bool submit(RunContext &run);
  std::unique_ptr<DeviceMemory> allocateBlock(RunContext &run, int64_t bytes,
                                              const char *node,
                                              const std::string &what);
  void joinDefaultStream(RunContext &run);
  bool allocateRecord(RunContext &run);
  MaybeFailure makeRoom(int64_t bytes);
  Result<bool> waitFor(RunContext &run, const Event &event);
  bool checkRecord(RunContext &run);
  MaybeFailure finishDownloads();

  const std::shared_ptr<const LoadedKernels> code;
  std::unique_ptr<Stream> stream;
  /// Recorded behind all work, and behind the caller's.
  std::unique_ptr<Event> done, joined;
  DevicePool pool;
  Blocks taken, results;
  std::unique_ptr<DeviceMemory> arenaMemory;
  bool isArenaTaken = false;
  Staging uploads;
  WorkQueue queue;

  /// The record of failures, on the device and as it was when it was last
  /// waited for; whether kernels may have written it since.
  std::unique_ptr<DeviceMemory> record;
  std::unique_ptr<PinnedMemory> recordCopy;
  bool isRecordStale = false;

  std::vector<Download> downloads;
  std::unique_ptr<PinnedMemory> downloadMemory;
  int64_t downloadUsed = 0, downloadWanted = 0;

  /// Whether the stream or the queue may have work to do, and whether that
  /// concerns memory of the caller's.
  bool isPending = false, concernsCaller = false;
  /// Whether the run has waited for the default stream.
  bool hasJoined = false;

  DeviceUse use;
  std::chrono::steady_clock::time_point began;
  std::chrono::steady_clock::duration waited;
};

/// The kernels of a model, each run of which has a stream.
class StreamCode : public DeviceCode {
public:
  explicit StreamCode(std::shared_ptr<const LoadedKernels> kernels)
      : kernels(std::move(kernels)) {}

  std::unique_ptr<DeviceRun> makeRun() override {
    return std::make_unique<StreamRun>(kernels);
  }
  int ordinal() const override { return kernels->device()->ordinal(); }
  void releaseMemory() override { kernels->results()->trimAll(); }

private:
  const std::shared_ptr<const LoadedKernels> kernels;
};

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_STREAMRUN_H
