//===- InlineLoop.cpp - Parallel loops on the calling thread --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkRunner.h"
#include <utility>

using namespace sardonyx::runtime;

static thread_local bool inLoop = false;

bool ThreadPool::insideLoop() { return inLoop; }
void ThreadPool::setInsideLoop(bool inside) { inLoop = inside; }

void ThreadPool::runInline(int64_t n, int64_t grain, Body body, void *env,
                           RunContext *context) {
  if (n <= 0)
    return;
  bool nested = std::exchange(inLoop, true);
  grain = std::max<int64_t>(1, grain);
  int64_t units = (n - 1) / grain + 1;
  if (!context || units <= kFirstUnits) {
    body(0, n, env);
  } else {
    ChunkRunner runner{context, body, env};
    for (int64_t begin = 0; begin < units && !context->failed();) {
      int64_t end = begin + runner.unitsOf(units - begin);
      runner.run(begin * grain, end == units ? n : end * grain);
      begin = end;
    }
  }
  inLoop = nested;
}
