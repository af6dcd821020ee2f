//===- RuntimeABI.cpp - What compiled models call -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thin: each function finds the calling thread's run. A failure must leave from
// here, where no frame below holds anything to destroy.
//
//===----------------------------------------------------------------------===//

#include "sardonyx-c/RuntimeABI.h"
#include "sardonyx/Runtime/AlignedMemory.h"
#include "sardonyx/Runtime/RunContext.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>

using sardonyx::runtime::RunContext;
using sardonyx::runtime::ThreadPool;

void sdx_rt_parallel_for(int64_t n, int64_t grain, sdx_rt_loop_body body,
                         void *env) {
  RunContext *run = RunContext::current();
  if (!run)
    return ThreadPool::runInline(n, grain, body, env, nullptr);
  run->parallelFor(n, grain, body, env);
  run->poll();
  run->leaveIfFailed();
}

int64_t sdx_rt_threads() {
  RunContext *run = RunContext::current();
  return run ? run->threads() : 1;
}

void sdx_rt_poll(int64_t trip, const char *loop) {
  RunContext::pollAndLeave(trip, loop);
}

void *sdx_rt_alloc(int64_t bytes) { return sdx_rt_alloc_for(bytes, nullptr); }

void *sdx_rt_alloc_for(int64_t bytes, const char *node) {
  RunContext *run = RunContext::current();
  if (!run)
    return sardonyx::runtime::allocateFreeable(bytes < 0 ? 0 : bytes);
  void *memory = run->allocate(bytes, node);
  if (!memory)
    run->leaveIfFailed();
  return memory;
}

void *sdx_rt_scratch(int64_t bytes) {
  RunContext *run = RunContext::current();
  if (!run)
    return sdx_rt_alloc(bytes);
  void *memory = run->allocateScratch(bytes);
  if (!memory)
    run->leaveIfFailed();
  return memory;
}

void sdx_rt_free(void *memory) {
  if (RunContext *run = RunContext::current())
    run->release(memory);
  else
    free(memory);
}

void *sdx_rt_arena(int64_t bytes) {
  RunContext *run = RunContext::current();
  if (!run)
    return nullptr;
  void *memory = run->arena(bytes);
  if (!memory)
    run->leaveIfFailed();
  return memory;
}

void *sdx_rt_output(int64_t index, int64_t rank, const int64_t *sizes) {
  RunContext *run = RunContext::current();
  if (!run)
    return nullptr;
  void *memory = run->output(index, rank, sizes);
  if (!memory)
    run->leaveIfFailed();
  return memory;
}

void sdx_rt_check_failed(const char *message, int64_t kind, int64_t value0,
                         int64_t value1, int64_t value2, int64_t value3) {
  if (RunContext *run = RunContext::current()) {
    const int64_t values[] = {value0, value1, value2, value3};
    run->fail(message, kind, values);
    run->leaveIfFailed();
    return;
  }
  // Compiled code that was called outside any run has nowhere to go.
  fprintf(stderr, "sardonyx: %s\n", message);
  abort();
}

void sdx_rt_check(int64_t ok, const char *message, int64_t kind, int64_t value0,
                  int64_t value1, int64_t value2, int64_t value3) {
  if (!ok)
    sdx_rt_check_failed(message, kind, value0, value1, value2, value3);
}

int64_t sdx_rt_clock() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch())
      .count();
}

void sdx_rt_record(int64_t site, int64_t begin, int64_t flops, int64_t bytes) {
  RunContext *run = RunContext::current();
  if (!run)
    return;
  run->recordStep(site, begin, flops, bytes);
  run->leaveIfFailed();
}
