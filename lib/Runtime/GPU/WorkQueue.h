//===- WorkQueue.h - Work that a GPU is given at once -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_WORKQUEUE_H
#define SARDONYX_LIB_RUNTIME_GPU_WORKQUEUE_H

#include "lib/Runtime/GPU/Graph.h"
#include "lib/Runtime/GPU/TensorMap.h"
#include "sardonyx/Runtime/DeviceRun.h"
#include <memory>
#include <vector>

namespace sardonyx {
namespace runtime {
namespace gpu {

/// How work is given to a device.
enum class WorkMode {
  /// One thing after the other.
  Plain,
  /// What repeats as a graph.
  Graphs,
  /// One thing after the other, each timed.
  Timed,
};

/// Launches, copies and fills in the order in which the device does them, which
/// are given to it together. What is given for the second time becomes a graph,
/// which costs a single call from then on: a few graphs are kept, those that
/// were used last. Memory must live until the work is done. Not thread-safe.
class WorkQueue {
public:
  WorkQueue(std::shared_ptr<Device> device, WorkMode mode)
      : device(std::move(device)), mode(mode) {}

  /// The first of the `count` words at `arguments` describe tensor maps, `maps`
  /// of them; each of the others holds an argument in its low bytes. They are
  /// copied; no blocks are no work.
  MaybeFailure addKernel(std::shared_ptr<const Kernel> kernel,
                         const LaunchSize &size, int64_t maps, int64_t count,
                         const int64_t *arguments);
  /// The host memory is pinned. No bytes are no work.
  void addCopyToDevice(cuda::CUdeviceptr to, const void *from, int64_t bytes);
  void addCopyToHost(void *to, cuda::CUdeviceptr from, int64_t bytes);
  void addCopyOnDevice(cuda::CUdeviceptr to, cuda::CUdeviceptr from,
                       int64_t bytes);
  /// Zero bytes.
  void addClear(cuda::CUdeviceptr to, int64_t bytes);

  bool isEmpty() const { return work.items.empty(); }
  /// Gives the stream all that was added since the last time, and counts it.
  MaybeFailure submit(Stream &stream, DeviceUse &use);
  /// Forgets what was added since then.
  void drop() {
    work.clear();
    timed.clear();
  }

  /// Where work is timed, the nanoseconds that all of it has taken since the
  /// last time, and its launches. It is done.
  Result<int64_t> takeTimes(std::vector<DeviceLaunch> &launches);

private:
  enum class Kind { Kernel, ToDevice, ToHost, OnDevice, Clear };
  struct Item {
    Kind kind;
    /// Of others than kernels.
    uint64_t to = 0, from = 0;
    int64_t bytes = 0;
    /// Of kernels; `firstWord` is where the arguments are among all words.
    std::shared_ptr<const Kernel> kernel = nullptr;
    LaunchSize size = {};
    size_t firstWord = 0, wordCount = 0, mapCount = 0;
  };
  struct Work {
    std::vector<Item> items;
    std::vector<int64_t> words;
    size_t kernelCount = 0;
    Arguments pointers;
    /// Of the launch whose arguments were asked for last.
    std::vector<cuda::CUtensorMap> maps;

    void clear();
    uint64_t hash() const;
    /// Whether launches may differ in their sizes and arguments, nothing else.
    bool isLike(const Work &other) const;
    bool isSameLaunch(const Work &other, size_t item) const;
    /// What `pointers` of a launch point at until the next call: words, and
    /// maps that are made of them where the launch is about to be given to the
    /// device.
    void findArguments(size_t item);
    MaybeFailure makeMaps(Device &device, size_t item);
  };
  /// Work that was given before.
  struct Known {
    Work work;
    uint64_t hash = 0, lastUse = 0;
    /// Null: it was given once, or the driver makes no graph of it.
    std::unique_ptr<Graph> graph;
    bool isRefused = false;
  };

  /// Something that the stream was given between two events.
  struct Timed {
    /// Null for what is no kernel.
    std::shared_ptr<const Kernel> kernel;
    LaunchSize size;
  };

  MaybeFailure recordTime(Stream &stream);
  void addCopy(Kind kind, uint64_t to, uint64_t from, int64_t bytes);
  void count(DeviceUse &use) const;
  MaybeFailure give(Stream &stream);
  MaybeFailure submitRepeated(Stream &stream, bool &isGraph);
  Known *find(uint64_t hash);
  Known *findAlike();
  void remember(uint64_t hash);
  MaybeFailure build(Known &known);
  Result<Graph::Node> addNode(Graph &graph, Work &work, size_t item,
                              const std::vector<Graph::Node> &after);
  MaybeFailure update(Known &known, uint64_t hash);

  const std::shared_ptr<Device> device;
  const WorkMode mode;
  Work work;
  std::vector<std::unique_ptr<Known>> kept;
  uint64_t clock = 0;
  /// Each thing that was timed has the event of its number before it, and the
  /// next one behind it; nothing is one of them where nothing is timed.
  std::vector<Timed> timed;
  std::vector<std::unique_ptr<Event>> events;
};

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_WORKQUEUE_H
