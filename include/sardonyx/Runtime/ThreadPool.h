//===- ThreadPool.h - The process's worker threads --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_THREADPOOL_H
#define SARDONYX_RUNTIME_THREADPOOL_H

#include <cstdint>

namespace sardonyx {
namespace runtime {

class RunContext;

/// One pool of pinned threads for the whole process.
///
/// A loop's caller claims idle workers, hands each a share of the iterations
/// and works on its own share; whoever is done takes from the shares of the
/// others. A worker that has not begun when all iterations are taken is let off
/// again, so that a sleeping or displaced worker never holds up a loop, and two
/// callers at a time share the workers there are. Workers without work spin for
/// some tens of microseconds and then sleep.
class ThreadPool {
public:
  using Body = void (*)(int64_t begin, int64_t end, void *env);

  /// More never work on one loop.
  static constexpr unsigned kMaxThreads = 128;

  /// The pool of this process. It starts no thread before a loop asks for it.
  static ThreadPool &global();

  /// Threads that a loop uses at most, its caller included: the processors of
  /// the process's affinity mask.
  unsigned maxThreads() const;

  /// Threads that a session uses by default: physical cores within the affinity
  /// mask, and no more than the container's share of processor time.
  unsigned defaultThreads() const;

  /// Runs `body` over [0, n) on at most `threads` threads, all with as many
  /// iterations at first, in chunks of at least half of `grain` (but the last).
  /// Workers see `context` as their current run, which is polled between
  /// chunks; chunks are as many as that takes to end a run within milliseconds.
  void parallelFor(int64_t n, int64_t grain, Body body, void *env,
                   unsigned threads, RunContext *context);

  /// The same on the calling thread alone, without the pool.
  static void runInline(int64_t n, int64_t grain, Body body, void *env,
                        RunContext *context);

  /// Whether the calling thread is inside a loop's body.
  static bool insideLoop();
  /// For whoever leaves one by longjmp.
  static void setInsideLoop(bool inside);

private:
  struct Impl;
  ThreadPool();
  Impl *impl;
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_THREADPOOL_H
