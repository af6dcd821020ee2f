//===- RunContext.h - The state of one run ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_RUNCONTEXT_H
#define SARDONYX_RUNTIME_RUNCONTEXT_H

#include "sardonyx-c/RuntimeABI.h"
#include "sardonyx/Runtime/BufferPool.h"
#include "sardonyx/Runtime/DeviceRun.h"
#include "sardonyx/Runtime/ListTable.h"
#include "sardonyx/Runtime/Mutex.h"
#include "sardonyx/Runtime/Observations.h"
#include "sardonyx/Runtime/RunMemory.h"
#include "sardonyx/Runtime/ScratchMemory.h"
#include "sardonyx/Runtime/StringTable.h"
#include <atomic>
#include <csetjmp>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sardonyx {
namespace runtime {

/// One result of a run.
struct OutputSlot {
  /// Set before the run.
  std::string name;
  int64_t elementBytes = 1;
  /// The caller's memory, if there is some, has exactly `expected` sizes.
  void *callerMemory = nullptr;
  std::vector<int64_t> expected;
  /// The caller's memory is also an input's: it is left alone until the run
  /// is over and has its inputs behind it.
  bool copied = false;
  /// The caller wants the result on the device, where his memory lies, if there
  /// is some.
  bool wantedOnDevice = false;

  /// Where the result is, and its shape, when the run has given it.
  void *data = nullptr;
  std::vector<int64_t> sizes;
  bool given = false;
  /// Whether `data` is device memory. Until the run is over the device has it,
  /// then `owner`, unless it is the caller's.
  bool isOnDevice = false;
  std::shared_ptr<void> owner;
};

/// What can end a run before it is done.
struct RunLimits {
  /// Ends it as soon as this is true. Any thread and any signal handler may set
  /// it.
  const std::atomic<bool> *terminate = nullptr;
  /// Seconds that the run may take; 0: as long as it likes.
  double seconds = 0;
  /// Trips that any one Loop may take; 0: any number.
  int64_t trips = 0;
  /// Asked on the thread that runs, every some milliseconds; true ends the run.
  std::function<bool()> interrupted;
};

/// A step of the host program, as code compiled for profiling records it.
struct StepRecord {
  int64_t site;
  /// Nanoseconds of sdx_rt_clock.
  int64_t begin, end;
  int64_t flops, bytes;
};

/// A launch that a step has made on a device.
struct LaunchRecord {
  int64_t site;
  /// Of sdx_rt_clock, when the step began.
  int64_t stepBegin;
  DeviceLaunch launch;
};

class RuntimeCall;

/// The operators of a model that its session calls.
class CustomNodes {
public:
  virtual ~CustomNodes() = default;
  /// Computes the node of this number. The rest of the call's words are
  /// whether results lie in given memory, the inputs that are there, and then
  /// the results, or a list for a handle of each.
  virtual void compute(int64_t node, RuntimeCall &call) = 0;
};

/// What a run with a device does besides calling the entry point.
struct DeviceSteps {
  /// Before the entry point is called, which it is not where this fails the
  /// run: inputs take their places.
  std::function<void()> placeInputs;
};

/// Memory that a run can do without, for when it gets tight.
using ReclaimMemory = std::function<void()>;

/// What compiled code finds behind the functions of RuntimeABI.h: memory,
/// results, thread limit and the failure, if any. A context serves one run at a
/// time and is kept between runs for the sake of its memory.
class RunContext {
public:
  /// `threads`: how many the run may use. New results come from `outputPool`;
  /// they belong to whoever reads them from outputs() after the run. All that
  /// the context allocates counts against `budget`; `reclaim` is called before
  /// an allocation fails.
  explicit RunContext(unsigned threads,
                      std::shared_ptr<BufferPool> outputPool = nullptr,
                      std::shared_ptr<MemoryBudget> budget = nullptr,
                      ReclaimMemory reclaim = nullptr);
  ~RunContext();
  RunContext(const RunContext &) = delete;
  RunContext &operator=(const RunContext &) = delete;

  /// Runs an entry point of a compiled model. False if the run failed; the
  /// sentence is failure().
  bool run(sdx_entry_point entry, void **args, const RunLimits &limits = {},
           const DeviceSteps &steps = {});

  /// Before the first run. Null, the default: runs have no device.
  void setDevice(std::unique_ptr<DeviceRun> given);
  DeviceRun *device() const { return deviceRun.get(); }

  const std::string &failure() const { return failureMessage; }
  /// SDX_RT_FAILED or another kind of RuntimeABI.h.
  int64_t failureKind() const { return kindOfFailure; }
  std::vector<OutputSlot> &outputs() { return outputSlots; }
  /// What the run has recorded: its first steps, kMaxSteps at most.
  const std::vector<StepRecord> &steps() const { return recordedSteps; }
  static constexpr size_t kMaxSteps = 1000000;
  /// The launches of these steps.
  const std::vector<LaunchRecord> &launches() const { return recordedLaunches; }

  /// What the handles of the run stand for, until clearHandles(): results are
  /// read after the run.
  StringTable &strings() { return stringTable; }
  ListTable &lists() { return listTable; }
  void clearHandles();

  /// What runs see of tensors goes to `given`, null for code that observes
  /// none.
  void setObservations(std::shared_ptr<Observations> given) {
    seen = std::move(given);
  }
  Observations *observations() const { return seen.get(); }
  /// Which of the run's threads the calling one is.
  static unsigned share();

  /// Must outlive the context; null for a model that has none.
  void setCustomNodes(CustomNodes *nodes) { custom = nodes; }
  CustomNodes *customNodes() const { return custom; }

  /// Gives results that nobody took back to the pool and forgets the rest.
  void dropOutputs();
  /// The same for a single one, whose slot stays.
  void releaseOutput(OutputSlot &slot);

  /// The run of the calling thread, or null.
  static RunContext *current();

  /// The ABI's other side. What gives memory gives null when the run has
  /// failed.
  void parallelFor(int64_t n, int64_t grain, sdx_rt_loop_body body, void *env);
  /// `node`, which may be null, says what for.
  void *allocate(int64_t bytes, const char *node = nullptr);
  /// The same for a kernel, which frees it on the thread that asks.
  void *allocateScratch(int64_t bytes);
  void release(void *memory);
  /// The same for what may outlive the run: memory of results.
  std::shared_ptr<void> allocateShared(int64_t bytes, const char *node,
                                       const char *what);
  /// Counts memory that a library will allocate, until it is given back; false
  /// when the run has failed for the lack of it.
  bool reserve(int64_t bytes, const char *node, const char *what);
  void unreserve(int64_t bytes);
  void *arena(int64_t bytes);
  void *output(int64_t index, int64_t rank, const int64_t *sizes);
  /// The same on the device, which the run must have.
  void *deviceOutput(int64_t index, int64_t rank, const int64_t *sizes);
  /// {0} to {3} in `message` stand for the four `values`.
  void fail(const char *message, int64_t kind, const int64_t *values);
  void fail(std::string sentence) { setFailure(std::move(sentence)); }
  /// Fails the run if something wants it ended. `trip`: how often the loop
  /// `loop`, whose name may be null, has begun.
  void poll(int64_t trip = 0, const char *loop = nullptr);
  /// The same for the calling thread's run, if it has one, which it leaves
  /// where that has failed.
  static void pollAndLeave(int64_t trip, const char *loop);
  /// The same for whoever has just looked at the clock, nanoseconds of
  /// CLOCK_MONOTONIC.
  void pollAt(int64_t now);
  /// The same for whoever waits for something else. Whether the run goes on.
  bool pollWhileWaiting();
  /// Frees memory that other runs keep.
  void reclaimMemory() {
    if (reclaim)
      reclaim();
  }
  /// Ends a step that began at `begin`: with what it has started on a device,
  /// whose time is the step's then. Only on the thread that runs.
  void recordStep(int64_t site, int64_t begin, int64_t flops, int64_t bytes);
  /// Leaves the innermost LeavePoint of the calling thread by longjmp if the
  /// run has failed. The frames in between must have nothing to destroy.
  void leaveIfFailed();

  /// Calls `call`, which may call compiled code, up to its end or to a failure
  /// of the calling thread's run.
  static void callLeavably(void (*call)(void *), void *env);

  bool failed() const { return hasFailed.load(std::memory_order_relaxed); }
  unsigned threads() const { return threadLimit; }
  BufferPool &outputPool() { return *outputMemory; }

private:
  void setFailure(std::string message, int64_t kind = SDX_RT_FAILED);
  void setOutOfMemory(const std::string &what, int64_t bytes,
                      const char *node = nullptr);
  /// What `allocate` gives; when it gives null, once more with less memory
  /// held.
  void *tryTwice(const std::function<void *()> &allocate);
  void *allocateArena(int64_t bytes);
  void freeArena();
  /// The result's place and its bytes; null, and the run has failed, where
  /// there can be no such result.
  OutputSlot *beginOutput(int64_t index, int64_t rank, const int64_t *sizes,
                          int64_t &bytes);
  void endOutput(OutputSlot &slot, int64_t rank, const int64_t *sizes);
  void setResultOutOfMemory(const OutputSlot &slot, int64_t rank,
                            const int64_t *sizes, int64_t bytes);
  void settleOutputs();
  void settleOutput(OutputSlot &slot);
  void startClock(double seconds);
  bool pollFlags();
  bool hasToLook(int64_t trip, unsigned &polls) const;
  void look(int64_t trip, const char *loop);

  unsigned threadLimit;
  std::shared_ptr<BufferPool> outputMemory;
  std::shared_ptr<MemoryBudget> budget;
  ReclaimMemory reclaim;
  BufferPool pool;
  RunMemory values;
  /// Of each thread, by its share of a loop.
  std::vector<ScratchMemory> scratch;
  std::vector<OutputSlot> outputSlots;
  std::vector<StepRecord> recordedSteps;
  std::vector<LaunchRecord> recordedLaunches;
  std::vector<DeviceLaunch> launchesOfStep;
  StringTable stringTable;
  ListTable listTable;
  CustomNodes *custom = nullptr;
  std::unique_ptr<DeviceRun> deviceRun;
  std::shared_ptr<Observations> seen;

  void *arenaMemory = nullptr;
  int64_t arenaBytes = 0;
  bool arenaTaken = false;

  const RunLimits *limits = nullptr;
  /// Whether polls look at the clock, until when the run may take, and when to
  /// ask next whether it was interrupted.
  bool clockMatters = false;
  int64_t deadline = 0, nextQuestion = 0; // nanoseconds

  std::atomic<bool> hasFailed{false};
  Mutex failureMutex;
  std::string failureMessage;
  int64_t kindOfFailure = SDX_RT_FAILED;
};

/// Sets the calling thread's current run for a scope, and which of the run's
/// threads it is: its share of a loop, 0 for the one that runs the host
/// program.
class RunContextScope {
public:
  explicit RunContextScope(RunContext *context, unsigned share = 0);
  ~RunContextScope();

private:
  RunContext *previous;
  unsigned previousShare;
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_RUNCONTEXT_H
