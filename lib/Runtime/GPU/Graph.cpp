//===- Graph.cpp - Work that a GPU repeats --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/Graph.h"

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

Result<std::unique_ptr<Graph>> Graph::create(std::shared_ptr<Device> device) {
  std::unique_ptr<Graph> graph(new Graph);
  graph->device = device;
  if (MaybeFailure failure =
          device->call("cannot create a graph", [&](const Functions &f) {
            return f.cuGraphCreate(&graph->graph, /*flags=*/0);
          })) {
    graph->graph = nullptr;
    return *failure;
  }
  return graph;
}

Graph::~Graph() {
  device->release([&](const Functions &f) {
    if (exec)
      f.cuGraphExecDestroy(exec);
    return graph ? f.cuGraphDestroy(graph) : CUDA_SUCCESS;
  });
}

static Failure invalid(const std::string &sentence) {
  return {FailureKind::InvalidArgument, sentence};
}

MaybeFailure Graph::checkAdding(const std::vector<Node> &after) const {
  if (exec)
    return invalid("cannot add to a graph that was instantiated");
  for (Node node : after)
    if (node >= nodes.size())
      return invalid("a node of a graph waits for node " +
                     std::to_string(node) + ", it has " +
                     std::to_string(nodes.size()));
  return std::nullopt;
}

template <typename F>
Result<Graph::Node>
Graph::add(const std::string &what, const std::vector<Node> &after,
           std::shared_ptr<const Kernel> kernel, const F &function) {
  if (MaybeFailure failure = checkAdding(after))
    return *failure;
  std::vector<CUgraphNode> handles;
  for (Node node : after)
    handles.push_back(nodes[node].handle);
  CUgraphNode handle = nullptr;
  CUresult code = device->attempt([&](const Functions &f) {
    return function(f, &handle, handles.data(), handles.size());
  });
  if (MaybeFailure failure = device->check(what, code))
    return *failure;
  nodes.push_back({handle, std::move(kernel)});
  return nodes.size() - 1;
}

static CUDA_KERNEL_NODE_PARAMS describe(const Kernel &kernel,
                                        const LaunchSize &size,
                                        const Arguments &arguments) {
  CUDA_KERNEL_NODE_PARAMS what = {};
  what.func = kernel.handle();
  what.gridDimX = static_cast<unsigned>(size.grid[0]);
  what.gridDimY = static_cast<unsigned>(size.grid[1]);
  what.gridDimZ = static_cast<unsigned>(size.grid[2]);
  what.blockDimX = static_cast<unsigned>(size.block[0]);
  what.blockDimY = static_cast<unsigned>(size.block[1]);
  what.blockDimZ = static_cast<unsigned>(size.block[2]);
  what.sharedMemBytes = static_cast<unsigned>(size.sharedBytes);
  what.kernelParams = const_cast<void **>(arguments.data());
  return what;
}

/// Whether there are such nodes, all of them launches.
bool Graph::areKernels(const std::vector<Node> &some) const {
  bool all = !some.empty();
  for (Node node : some)
    all &= node < nodes.size() && nodes[node].kernel;
  return all;
}

/// Why a node of a graph cannot have these, or nothing.
static MaybeFailure checkNode(const Kernel &kernel, const LaunchSize &size,
                              const Arguments &arguments) {
  if (MaybeFailure failure = kernel.checkLaunch(size, arguments))
    return failure;
  if (size.isEmpty())
    return invalid(kernel.describeLaunch() +
                   ": no blocks, a node of a graph has some");
  return std::nullopt;
}

Result<Graph::Node> Graph::addKernel(std::shared_ptr<const Kernel> kernel,
                                     const LaunchSize &size,
                                     const Arguments &arguments,
                                     const std::vector<Node> &after) {
  if (MaybeFailure failure = checkNode(*kernel, size, arguments))
    return *failure;
  CUDA_KERNEL_NODE_PARAMS what = describe(*kernel, size, arguments);
  const bool isEarly = kernel->mayBeginEarly() && areKernels(after);
  Result<Node> node =
      add(kernel->describeLaunch(), after, kernel,
          [&](const Functions &f, CUgraphNode *handle, const CUgraphNode *after,
              size_t count) {
            if (!isEarly || !f.cuGraphAddDependencies)
              return f.cuGraphAddKernelNode(handle, graph, after, count, &what);
            CUresult code =
                f.cuGraphAddKernelNode(handle, graph, nullptr, 0, &what);
            std::vector<CUgraphNode> to(count, *handle);
            CUgraphEdgeData edge = {};
            edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
            edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
            std::vector<CUgraphEdgeData> edges(count, edge);
            if (code != CUDA_SUCCESS)
              return code;
            return f.cuGraphAddDependencies(graph, after, to.data(),
                                            edges.data(), count);
          });
  if (node)
    kernels.add({kernel->names(), kernel->names(), 1});
  return node;
}

/// A copy within the device.
static CUDA_MEMCPY3D describeCopy() {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  return copy;
}

Result<Graph::Node> Graph::addCopy(CUDA_MEMCPY3D copy, int64_t bytes,
                                   const std::vector<Node> &after) {
  if (bytes <= 0)
    return invalid("cannot add a copy of " + std::to_string(bytes) +
                   " bytes to a graph");
  copy.WidthInBytes = static_cast<size_t>(bytes);
  copy.Height = copy.Depth = 1;
  return add("cannot add a copy to a graph", after, nullptr,
             [&](const Functions &f, CUgraphNode *handle,
                 const CUgraphNode *after, size_t count) {
               return f.cuGraphAddMemcpyNode(handle, graph, after, count, &copy,
                                             device->primaryContext());
             });
}

Result<Graph::Node> Graph::addCopyToDevice(CUdeviceptr to, const void *from,
                                           int64_t bytes,
                                           const std::vector<Node> &after) {
  CUDA_MEMCPY3D copy = describeCopy();
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  copy.dstDevice = to;
  return addCopy(copy, bytes, after);
}

Result<Graph::Node> Graph::addCopyToHost(void *to, CUdeviceptr from,
                                         int64_t bytes,
                                         const std::vector<Node> &after) {
  CUDA_MEMCPY3D copy = describeCopy();
  copy.srcDevice = from;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = to;
  return addCopy(copy, bytes, after);
}

Result<Graph::Node> Graph::addCopyOnDevice(CUdeviceptr to, CUdeviceptr from,
                                           int64_t bytes,
                                           const std::vector<Node> &after) {
  CUDA_MEMCPY3D copy = describeCopy();
  copy.srcDevice = from;
  copy.dstDevice = to;
  return addCopy(copy, bytes, after);
}

Result<Graph::Node> Graph::addFillBytes(CUdeviceptr to, uint8_t value,
                                        int64_t bytes,
                                        const std::vector<Node> &after) {
  if (bytes <= 0)
    return invalid("cannot add a fill of " + std::to_string(bytes) +
                   " bytes to a graph");
  CUDA_MEMSET_NODE_PARAMS what = {};
  what.dst = to;
  what.value = value;
  what.elementSize = 1;
  what.width = static_cast<size_t>(bytes);
  what.height = 1;
  return add("cannot add a fill to a graph", after, nullptr,
             [&](const Functions &f, CUgraphNode *handle,
                 const CUgraphNode *after, size_t count) {
               return f.cuGraphAddMemsetNode(handle, graph, after, count, &what,
                                             device->primaryContext());
             });
}

MaybeFailure Graph::instantiate() {
  if (exec)
    return invalid("a graph was instantiated before");
  MaybeFailure failure =
      device->call("cannot instantiate a graph", [&](const Functions &f) {
        return f.cuGraphInstantiateWithFlags(&exec, graph, /*flags=*/0);
      });
  if (failure)
    exec = nullptr;
  return failure;
}

MaybeFailure Graph::setKernel(Node node, const LaunchSize &size,
                              const Arguments &arguments) {
  if (!exec || node >= nodes.size() || !nodes[node].kernel)
    return invalid("node " + std::to_string(node) +
                   " of a graph is no kernel that can be launched");
  const Kernel &kernel = *nodes[node].kernel;
  if (MaybeFailure failure = checkNode(kernel, size, arguments))
    return failure;
  CUDA_KERNEL_NODE_PARAMS what = describe(kernel, size, arguments);
  return device->call("cannot change a kernel of a graph",
                      [&](const Functions &f) {
                        return f.cuGraphExecKernelNodeSetParams(
                            exec, nodes[node].handle, &what);
                      });
}

MaybeFailure Graph::launch(Stream &stream) {
  if (!exec)
    return invalid("a graph is launched that was not instantiated");
  CUresult code = device->attempt([&](const Functions &f) {
    return f.cuGraphLaunch(exec, stream.handle());
  });
  if (code != CUDA_SUCCESS)
    return device->check("cannot launch a graph", code, &kernels);
  device->noteLaunch(stream.handle(), kernels);
  if (device->waitsForLaunches())
    return stream.synchronize();
  return std::nullopt;
}
