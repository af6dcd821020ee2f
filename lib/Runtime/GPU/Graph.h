//===- Graph.h - Work that a GPU repeats ------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_GRAPH_H
#define SARDONYX_LIB_RUNTIME_GPU_GRAPH_H

#include "lib/Runtime/GPU/Module.h"

namespace sardonyx {
namespace runtime {
namespace gpu {

/// Launches, copies and fills, with an order between them, which are given to
/// the driver once and launched many times. Not thread-safe.
class Graph {
public:
  /// A number for what was added, from 0.
  using Node = size_t;

  static Result<std::unique_ptr<Graph>> create(std::shared_ptr<Device> device);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  /// Each node waits for those of `after` only. The graph keeps kernels, and
  /// copies what arguments point at. A kernel that waits itself may begin while
  /// others before it run.
  Result<Node> addKernel(std::shared_ptr<const Kernel> kernel,
                         const LaunchSize &size, const Arguments &arguments,
                         const std::vector<Node> &after);
  /// Host memory is read and written when the graph runs.
  Result<Node> addCopyToDevice(cuda::CUdeviceptr to, const void *from,
                               int64_t bytes, const std::vector<Node> &after);
  Result<Node> addCopyToHost(void *to, cuda::CUdeviceptr from, int64_t bytes,
                             const std::vector<Node> &after);
  Result<Node> addCopyOnDevice(cuda::CUdeviceptr to, cuda::CUdeviceptr from,
                               int64_t bytes, const std::vector<Node> &after);
  Result<Node> addFillBytes(cuda::CUdeviceptr to, uint8_t value, int64_t bytes,
                            const std::vector<Node> &after);

  /// Makes what can be launched of the nodes. None is added after that.
  MaybeFailure instantiate();

  /// The arguments and the size of a kernel's node in the next launches. Those
  /// that were launched before keep theirs.
  MaybeFailure setKernel(Node node, const LaunchSize &size,
                         const Arguments &arguments);

  MaybeFailure launch(Stream &stream);

private:
  struct Entry {
    cuda::CUgraphNode handle;
    /// Null for what is no kernel.
    std::shared_ptr<const Kernel> kernel;
  };

  Graph() = default;
  MaybeFailure checkAdding(const std::vector<Node> &after) const;
  bool areKernels(const std::vector<Node> &some) const;
  template <typename F>
  Result<Node> add(const std::string &what, const std::vector<Node> &after,
                   std::shared_ptr<const Kernel> kernel, const F &function);
  /// `copy` says what to read and write.
  Result<Node> addCopy(cuda::CUDA_MEMCPY3D copy, int64_t bytes,
                       const std::vector<Node> &after);

  std::shared_ptr<Device> device;
  std::vector<Entry> nodes;
  LaunchedKernels kernels;
  cuda::CUgraph graph = nullptr;
  cuda::CUgraphExec exec = nullptr;
};

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_GRAPH_H
