//===- DriverState.h - What the fake CUDA driver holds ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The handles of the driver API are pointers to the structures here. One lock
// guards all of them, and is held while kernels run. Nothing runs before
// somebody waits for it: a stream is a queue, so that what was forgotten to
// wait for shows.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_DRIVERSTATE_H
#define SARDONYX_TOOLS_FAKECUDA_DRIVERSTATE_H

#include "lib/Runtime/GPU/CUDATypes.h"
#include "tools/fakecuda/Interpreter.h"
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace sardonyx {
namespace cuda {

// Defined in Driver*.cpp, hidden in the library: cuGetProcAddress_v2 gives
// their addresses.
#define SARDONYX_CUDA_FUNCTION(name, parameters) CUresult name parameters;
#include "lib/Runtime/GPU/CUDAFunctions.def"

struct CUctx_st {};

struct CUmod_st {
  std::unique_ptr<fakecuda::Module> module;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

/// Where the compiler of PTX writes what is wrong; null: nowhere.
struct CompilerLog {
  char *buffer = nullptr;
  size_t bytes = 0;
};

/// What a linker has been given, and has made of it.
struct CUlinkState_st {
  std::string text, cubin;
  CompilerLog log;
};

struct CUfunc_st {
  const fakecuda::Function *function;
  /// Bytes that a launch may have beside what the kernel declares.
  size_t dynamicSharedBytes;
};

/// One record of an event in a stream.
struct EventRecord {
  CUstream stream;
  bool isDone = false;
  std::chrono::steady_clock::time_point time;
};

struct CUevent_st {
  bool isTimed;
  /// The last record, or null. Streams that wait for it keep it.
  std::shared_ptr<EventRecord> record;
};

/// What a stream does next: it waits for a record, or it runs something.
struct Operation {
  std::shared_ptr<EventRecord> awaited;
  std::function<void()> run;
};

struct CUstream_st {
  std::deque<Operation> queue;
};

/// What a node of a graph does, with copies of what it was given.
using GraphWork = std::function<void()>;

struct CUgraphNode_st {
  GraphWork work;
  /// The same of a launch that may begin before what it waits for has ended,
  /// and whether it may.
  GraphWork early;
  bool isEarly = false;
  /// Whether the work is a launch.
  bool isKernel;
  /// Numbers of nodes of the same graph.
  std::vector<size_t> after;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
  struct Entry {
    CUgraphNode node;
    bool isKernel, isEarly;
    GraphWork work;
  };
  /// In the order in which they run.
  std::vector<Entry> entries;
};

} // namespace cuda

namespace fakecuda {

/// What a call takes for granted.
enum class Needs { Nothing, Initialization, Device, Context };

/// The state of the one device, and of the driver.
class DriverState {
public:
  static DriverState &get();

  /// The environment, read once.
  struct Settings {
    /// SARDONYX_FAKECUDA_SM: the compute capability, 90 of 9.0.
    int sm = 90;
    /// SARDONYX_FAKECUDA_MEMORY: bytes of device memory.
    size_t memoryBytes = size_t(4) << 30;
    /// SARDONYX_FAKECUDA_VERSION: what the driver says it is.
    int version = 12000;
    /// SARDONYX_FAKECUDA_DEVICES: 0 or 1.
    int devices = 1;
    /// A sentence where a variable makes no sense.
    std::string mistake;
  };
  const Settings &settings() const { return knownSettings; }

  /// Runs `body`, unless the environment says that this call of `name` fails
  /// (SARDONYX_FAKECUDA_FAIL), or something that it needs is missing.
  template <typename F>
  cuda::CUresult call(const char *name, Needs needs, const F &body) {
    std::lock_guard<std::mutex> lock(mutex);
    if (cuda::CUresult code = begin(name, needs))
      return code;
    return body();
  }

  /// Tells a fault on stderr and keeps it. Returns the code.
  cuda::CUresult tell(cuda::CUresult code, const std::string &sentence);
  /// The same, and all calls fail with the code from then on.
  void lose(cuda::CUresult code, const std::string &sentence);
  bool isLost() const { return lossCode != cuda::CUDA_SUCCESS; }
  cuda::CUresult loss() const { return lossCode; }
  std::string lastFault();

  /// Adds to a stream's queue.
  void push(cuda::CUstream stream, std::function<void()> run);
  /// Does the next operation of a stream, and what it waits for.
  void advance(cuda::CUstream stream);
  /// Does all of a stream.
  cuda::CUresult drain(cuda::CUstream stream);
  /// Does all of all streams, the newest first.
  cuda::CUresult drainAll();
  /// The queue of a handle: the default stream has one, too. Null if there is
  /// no such stream.
  cuda::CUstream find(cuda::CUstream stream);

  bool isInitialized = false;
  cuda::CUctx_st context;
  int retained = 0;
  Memory memory;
  /// Memory of cuMemHostAlloc: start and bytes.
  std::map<char *, size_t> pinned;

  // What exists, so that handles of nothing are refused.
  std::set<cuda::CUmodule> modules;
  std::set<cuda::CUlinkState> links;
  std::set<cuda::CUevent> events;
  std::vector<std::unique_ptr<cuda::CUstream_st>> streams;
  std::set<cuda::CUgraph> graphs;
  std::set<cuda::CUgraphExec> execs;

  /// Whether a module that is loaded has it.
  bool isLoaded(cuda::CUfunction function) const;
  /// Whether all bytes lie in one piece of pinned memory.
  bool isPinned(const void *data, size_t bytes) const;

private:
  DriverState();
  cuda::CUresult begin(const char *name, Needs needs);
  void readFailures(const std::string &text);

  struct InjectedFailure {
    std::string name;
    int countdown;
    cuda::CUresult code;
  };

  std::mutex mutex;
  Settings knownSettings;
  std::vector<InjectedFailure> failures;
  cuda::CUstream_st defaultStream;
  cuda::CUresult lossCode = cuda::CUDA_SUCCESS;

  std::mutex faultMutex;
  std::string fault;
};

/// The contexts that a thread has pushed.
std::vector<cuda::CUcontext> &currentContexts();

/// Bytes of shared memory that a multiprocessor of this compute capability has.
int sharedBytesOfMultiprocessor(int sm);

} // namespace fakecuda
} // namespace sardonyx

#endif // SARDONYX_TOOLS_FAKECUDA_DRIVERSTATE_H
