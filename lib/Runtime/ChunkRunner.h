//===- ChunkRunner.h - Loops that can be ended ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_CHUNKRUNNER_H
#define SARDONYX_LIB_RUNTIME_CHUNKRUNNER_H

#include "sardonyx/Runtime/RunContext.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include <algorithm>

namespace sardonyx {
namespace runtime {

/// Units of a loop's grain that are run without a look at the clock. A unit is
/// planned to take some microseconds, but its cost can be far off.
inline constexpr int64_t kFirstUnits = 8;

/// No chunk has to be larger.
inline constexpr int64_t kMaxUnits = int64_t(1) << 58;

/// Runs chunks of a loop, so large that they take about a millisecond once
/// their speed is known: a run can be ended between any two. Nothing in it has
/// a destructor: a failure in a chunk leaves it by longjmp.
struct ChunkRunner {
  RunContext *context;
  ThreadPool::Body body;
  void *env;
  int64_t units = kFirstUnits;
  int64_t last = 0;

  /// How many units to take of `left`.
  int64_t unitsOf(int64_t left) const { return std::min(left, units); }

  void run(int64_t begin, int64_t end) {
    if (!context)
      return body(begin, end, env);
    if (context->failed())
      return;
    int64_t start = last ? last : sdx_rt_clock();
    body(begin, end, env);
    last = sdx_rt_clock();
    if (last - start < 500 * 1000)
      units = std::min(units * 2, kMaxUnits);
    else if (last - start > 2000 * 1000)
      units = std::max<int64_t>(1, units / 2);
    context->pollAt(last);
  }
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_CHUNKRUNNER_H
