//===- DriverGraphs.cpp - The fake CUDA driver: graphs --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/fakecuda/DriverState.h"
#include "tools/fakecuda/DriverWork.h"
#include <algorithm>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::fakecuda;

CUresult cuda::cuGraphCreate(CUgraph *graph, unsigned int flags) {
  DriverState &state = DriverState::get();
  return state.call("cuGraphCreate", Needs::Context, [&] {
    if (!graph || flags)
      return CUDA_ERROR_INVALID_VALUE;
    *graph = new CUgraph_st;
    state.graphs.insert(*graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuGraphDestroy(CUgraph graph) {
  DriverState &state = DriverState::get();
  return state.call("cuGraphDestroy", Needs::Context, [&] {
    if (!state.graphs.erase(graph))
      return CUDA_ERROR_INVALID_HANDLE;
    delete graph;
    return CUDA_SUCCESS;
  });
}

/// The number of a node of the graph, or that of its nodes.
static size_t findNode(const CUgraph_st &graph, CUgraphNode node) {
  auto found =
      std::find_if(graph.nodes.begin(), graph.nodes.end(),
                   [&](const auto &known) { return known.get() == node; });
  return static_cast<size_t>(found - graph.nodes.begin());
}

static CUresult addEdge(const CUgraph_st &graph, CUgraphNode from,
                        CUgraphNode_st &to) {
  size_t number = findNode(graph, from);
  if (number == graph.nodes.size() ||
      std::count(to.after.begin(), to.after.end(), number))
    return CUDA_ERROR_INVALID_VALUE;
  to.after.push_back(number);
  return CUDA_SUCCESS;
}

/// Adds a node that waits for others of the same graph, each named once.
static CUresult addNode(CUgraphNode *node, CUgraph graph,
                        const CUgraphNode *after, size_t count, GraphWork work,
                        bool isKernel, GraphWork early = {}) {
  auto added = std::make_unique<CUgraphNode_st>();
  for (size_t i = 0; i < count; ++i)
    if (CUresult code = addEdge(*graph, after[i], *added))
      return code;
  added->work = std::move(work);
  added->early = std::move(early);
  added->isKernel = isKernel;
  *node = added.get();
  graph->nodes.push_back(std::move(added));
  return CUDA_SUCCESS;
}

static CUresult makeLaunch(const char *name,
                           const CUDA_KERNEL_NODE_PARAMS &what, GraphWork &work,
                           bool isEarly = false) {
  if (!what.func)
    return DriverState::get().tell(CUDA_ERROR_NOT_SUPPORTED,
                                   std::string(name) + ": a CUkernel");
  LaunchSizes sizes = {{what.gridDimX, what.gridDimY, what.gridDimZ},
                       {what.blockDimX, what.blockDimY, what.blockDimZ},
                       what.sharedMemBytes,
                       isEarly};
  return makeLaunch(name, what.func, sizes, what.kernelParams, what.extra,
                    work);
}

CUresult cuda::cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph,
                                    const CUgraphNode *after, size_t count,
                                    const CUDA_KERNEL_NODE_PARAMS *what) {
  DriverState &state = DriverState::get();
  return state.call("cuGraphAddKernelNode", Needs::Context, [&] {
    if (!state.graphs.count(graph))
      return CUDA_ERROR_INVALID_HANDLE;
    const char *name = "cuGraphAddKernelNode";
    GraphWork work, early;
    if (CUresult code = ::makeLaunch(name, *what, work))
      return code;
    if (CUresult code = ::makeLaunch(name, *what, early, /*isEarly=*/true))
      return code;
    return addNode(node, graph, after, count, std::move(work),
                   /*isKernel=*/true, std::move(early));
  });
}

/// Edges as they are, and those by which a kernel may begin before another one
/// has ended.
CUresult cuda::cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from,
                                      const CUgraphNode *to,
                                      const CUgraphEdgeData *edges,
                                      size_t count) {
  DriverState &state = DriverState::get();
  return state.call("cuGraphAddDependencies", Needs::Context, [&] {
    if (!state.graphs.count(graph))
      return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < count; ++i) {
      const bool isEarly =
          edges && edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
          edges[i].from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
      if (findNode(*graph, to[i]) == graph->nodes.size())
        return CUDA_ERROR_INVALID_VALUE;
      if (CUresult code = addEdge(*graph, from[i], *to[i]))
        return code;
      if (isEarly && (!from[i]->isKernel || !to[i]->isKernel))
        return CUDA_ERROR_INVALID_VALUE;
      to[i]->isEarly |= isEarly;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph,
                                    const CUgraphNode *after, size_t count,
                                    const CUDA_MEMCPY3D *what,
                                    CUcontext context) {
  DriverState &state = DriverState::get();
  return state.call("cuGraphAddMemcpyNode", Needs::Context, [&] {
    const char *name = "cuGraphAddMemcpyNode";
    if (!state.graphs.count(graph))
      return CUDA_ERROR_INVALID_HANDLE;
    if (context != &state.context)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (what->Height != 1 || what->Depth != 1 || what->srcY || what->srcZ ||
        what->srcLOD || what->dstY || what->dstZ || what->dstLOD ||
        what->srcXInBytes || what->dstXInBytes || !what->WidthInBytes)
      return state.tell(CUDA_ERROR_NOT_SUPPORTED,
                        std::string(name) + ": not a copy of one row");
    size_t bytes = what->WidthInBytes;
    bool toHost = what->dstMemoryType == CU_MEMORYTYPE_HOST,
         fromHost = what->srcMemoryType == CU_MEMORYTYPE_HOST;
    if (CUresult code = toHost ? checkHost(name, what->dstHost)
                               : checkDevice(name, what->dstDevice, bytes))
      return code;
    if (CUresult code = fromHost ? checkHost(name, what->srcHost)
                                 : checkDevice(name, what->srcDevice, bytes))
      return code;
    CopyEnd to = {toHost ? what->dstHost
                         : reinterpret_cast<void *>(what->dstDevice),
                  !toHost};
    CopyEnd from = {fromHost ? const_cast<void *>(what->srcHost)
                             : reinterpret_cast<void *>(what->srcDevice),
                    !fromHost};
    return addNode(node, graph, after, count, makeCopy(to, from, bytes),
                   /*isKernel=*/false);
  });
}

CUresult cuda::cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph,
                                    const CUgraphNode *after, size_t count,
                                    const CUDA_MEMSET_NODE_PARAMS *what,
                                    CUcontext context) {
  DriverState &state = DriverState::get();
  return state.call("cuGraphAddMemsetNode", Needs::Context, [&] {
    const char *name = "cuGraphAddMemsetNode";
    if (!state.graphs.count(graph))
      return CUDA_ERROR_INVALID_HANDLE;
    if (context != &state.context)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (what->height != 1)
      return state.tell(CUDA_ERROR_NOT_SUPPORTED,
                        std::string(name) + ": not a fill of one row");
    size_t size = what->elementSize;
    if ((size != 1 && size != 2 && size != 4) || what->dst % size ||
        !what->width || what->width > SIZE_MAX / size)
      return CUDA_ERROR_INVALID_VALUE;
    if (CUresult code = checkDevice(name, what->dst, what->width * size))
      return code;
    return addNode(node, graph, after, count,
                   makeFill(what->dst, what->value, size, what->width),
                   /*isKernel=*/false);
  });
}

//===----------------------------------------------------------------------===//
// Running graphs
//===----------------------------------------------------------------------===//

CUresult cuda::cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                           unsigned long long flags) {
  DriverState &state = DriverState::get();
  return state.call("cuGraphInstantiateWithFlags", Needs::Context, [&] {
    if (!state.graphs.count(graph))
      return CUDA_ERROR_INVALID_HANDLE;
    if (flags)
      return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<CUgraphExec_st>();
    // Of the nodes that could run next, the one that was added last does, so
    // that an edge that was forgotten shows.
    size_t count = graph->nodes.size();
    std::vector<bool> isDone(count);
    while (made->entries.size() < count) {
      for (size_t i = count; i-- > 0;) {
        const CUgraphNode_st &node = *graph->nodes[i];
        if (isDone[i] || !std::all_of(node.after.begin(), node.after.end(),
                                      [&](size_t j) { return isDone[j]; }))
          continue;
        isDone[i] = true;
        made->entries.push_back({graph->nodes[i].get(), node.isKernel,
                                 node.isEarly,
                                 node.isEarly ? node.early : node.work});
        break;
      }
    }
    *exec = made.release();
    state.execs.insert(*exec);
    return CUDA_SUCCESS;
  });
}

CUresult
cuda::cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                     const CUDA_KERNEL_NODE_PARAMS *what) {
  DriverState &state = DriverState::get();
  return state.call("cuGraphExecKernelNodeSetParams", Needs::Context, [&] {
    if (!state.execs.count(exec))
      return CUDA_ERROR_INVALID_HANDLE;
    for (CUgraphExec_st::Entry &entry : exec->entries)
      if (entry.node == node && entry.isKernel)
        return ::makeLaunch("cuGraphExecKernelNodeSetParams", *what, entry.work,
                            entry.isEarly);
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuda::cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  DriverState &state = DriverState::get();
  return state.call("cuGraphLaunch", Needs::Context, [&] {
    CUstream stream = state.find(handle);
    if (!stream || !state.execs.count(exec))
      return CUDA_ERROR_INVALID_HANDLE;
    // With the arguments of now, whatever is set before it runs.
    for (const CUgraphExec_st::Entry &entry : exec->entries)
      state.push(stream, entry.work);
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuGraphExecDestroy(CUgraphExec exec) {
  DriverState &state = DriverState::get();
  return state.call("cuGraphExecDestroy", Needs::Context, [&] {
    if (!state.execs.erase(exec))
      return CUDA_ERROR_INVALID_HANDLE;
    delete exec;
    return CUDA_SUCCESS;
  });
}
