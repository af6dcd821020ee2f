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
#include <atomic>
#include <csetjmp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sardonyx {
namespace runtime {

/// One result of a run.
struct OutputSlot {
  /// Set before the run.
  std::string name;
  int64_t elementBytes = 1;
  /// The caller's memory, when `callerMemory`, has exactly `expected` sizes.
  bool callerMemory = false;
  std::vector<int64_t> expected;

  /// Where the result is, and its shape, when the run has given it.
  void *data = nullptr;
  std::vector<int64_t> sizes;
  bool given = false;
};

/// What compiled code finds behind the functions of RuntimeABI.h: memory,
/// results, thread limit and the failure, if any. A context serves one run at a
/// time and is kept between runs for the sake of its memory.
class RunContext {
public:
  /// `threads`: how many the run may use. New results come from `outputPool`;
  /// they belong to whoever reads them from outputs() after the run.
  explicit RunContext(unsigned threads,
                      std::shared_ptr<BufferPool> outputPool = nullptr);
  ~RunContext();
  RunContext(const RunContext &) = delete;
  RunContext &operator=(const RunContext &) = delete;

  /// Runs an entry point of a compiled model. False if the run failed; the
  /// sentence is failure().
  bool run(sdx_entry_point entry, void **args);

  const std::string &failure() const { return failureMessage; }
  std::vector<OutputSlot> &outputs() { return outputSlots; }

  /// Gives results that nobody took back to the pool and forgets the rest.
  void dropOutputs();

  /// The run of the calling thread, or null.
  static RunContext *current();

  /// The ABI's other side. What gives memory gives null when the run has
  /// failed.
  void parallelFor(int64_t n, int64_t grain, sdx_rt_loop_body body, void *env);
  void *allocate(int64_t bytes);
  void release(void *memory);
  void *arena(int64_t bytes);
  void *output(int64_t index, int64_t rank, const int64_t *sizes);
  void fail(const char *message);
  /// Leaves the run by longjmp if it has failed and the calling thread may. The
  /// frames in between must have nothing to destroy.
  void leaveIfFailed();

  bool failed() const { return hasFailed.load(std::memory_order_relaxed); }
  unsigned threads() const { return threadLimit; }
  BufferPool &outputPool() { return *outputMemory; }

private:
  void setFailure(std::string message);

  unsigned threadLimit;
  std::shared_ptr<BufferPool> outputMemory;
  BufferPool pool;
  std::vector<OutputSlot> outputSlots;

  void *arenaMemory = nullptr;
  int64_t arenaBytes = 0;
  bool arenaTaken = false;

  std::atomic<bool> hasFailed{false};
  std::mutex failureMutex;
  std::string failureMessage;
  jmp_buf leave;
};

/// Sets the calling thread's current run for a scope.
class RunContextScope {
public:
  explicit RunContextScope(RunContext *context);
  ~RunContextScope();

private:
  RunContext *previous;
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_RUNCONTEXT_H
