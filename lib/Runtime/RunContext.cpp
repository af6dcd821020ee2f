//===- RunContext.cpp - The state of one run ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/RunContext.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include <algorithm>

using namespace sardonyx::runtime;

static thread_local RunContext *currentRun = nullptr;

RunContext *RunContext::current() { return currentRun; }

RunContextScope::RunContextScope(RunContext *context) : previous(currentRun) {
  currentRun = context;
}

RunContextScope::~RunContextScope() { currentRun = previous; }

RunContext::RunContext(unsigned threads, std::shared_ptr<BufferPool> outputPool)
    : threadLimit(std::max(1u, threads)), outputMemory(std::move(outputPool)) {
  if (!outputMemory)
    outputMemory = std::make_shared<BufferPool>();
}

RunContext::~RunContext() {
  dropOutputs();
  freeAligned(arenaMemory);
}

void RunContext::dropOutputs() {
  for (OutputSlot &slot : outputSlots)
    if (slot.data && !slot.callerMemory)
      outputMemory->release(slot.data);
  outputSlots.clear();
}

bool RunContext::run(sdx_entry_point entry, void **args) {
  hasFailed.store(false, std::memory_order_relaxed);
  failureMessage.clear();
  arenaTaken = false;
  {
    RunContextScope scope(this);
    // A failed check jumps back here. It leaves frames of compiled code only,
    // which have nothing to destroy.
    if (_setjmp(leave) == 0)
      entry(args);
  }
  pool.releaseAll();
  pool.trim();
  return !failed();
}

void RunContext::setFailure(std::string message) {
  std::lock_guard<std::mutex> lock(failureMutex);
  if (failed())
    return; // the first failure is the one to report
  failureMessage = std::move(message);
  hasFailed.store(true, std::memory_order_release);
}

void RunContext::fail(const char *message) {
  setFailure(message ? message : "the run failed");
}

void RunContext::leaveIfFailed() {
  // Inside a loop's body other threads may still be at work on this run's
  // memory; the loop's caller leaves when they are done.
  if (failed() && currentRun == this && !ThreadPool::insideLoop())
    _longjmp(leave, 1);
}

void RunContext::parallelFor(int64_t n, int64_t grain, sdx_rt_loop_body body,
                             void *env) {
  if (threadLimit == 1)
    ThreadPool::runInline(n, body, env);
  else
    ThreadPool::global().parallelFor(n, grain, body, env, threadLimit, this);
}

void *RunContext::allocate(int64_t bytes) {
  void *memory = pool.allocate(bytes);
  if (memory)
    return memory;
  setFailure("out of memory: an intermediate result takes " +
             std::to_string(bytes) + " bytes");
  return nullptr;
}

void RunContext::release(void *memory) { pool.release(memory); }

void *RunContext::arena(int64_t bytes) {
  // Only the first request of a run is the plan's.
  if (arenaTaken)
    return allocate(bytes);
  arenaTaken = true;
  if (bytes > arenaBytes || bytes < 0) {
    freeAligned(arenaMemory);
    arenaBytes = 0;
    arenaMemory = bytes < 0 ? nullptr : allocateAligned(bytes);
    if (!arenaMemory) {
      setFailure("out of memory: the intermediate results take " +
                 std::to_string(bytes) + " bytes");
      return nullptr;
    }
    arenaBytes = bytes;
  }
  return arenaMemory ? arenaMemory : allocate(0);
}

static std::string shapeText(const int64_t *sizes, int64_t rank) {
  std::string text = "[";
  for (int64_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

void *RunContext::output(int64_t index, int64_t rank, const int64_t *sizes) {
  auto refuse = [&](std::string message) -> void * {
    setFailure(std::move(message));
    return nullptr;
  };
  if (index < 0 || index >= static_cast<int64_t>(outputSlots.size()))
    return refuse("the compiled model gives a result " + std::to_string(index) +
                  " that it does not declare");
  OutputSlot &slot = outputSlots[index];
  int64_t bytes = slot.elementBytes;
  bool overflow = false;
  for (int64_t i = 0; i < rank; ++i)
    overflow |= sizes[i] < 0 || __builtin_mul_overflow(bytes, sizes[i], &bytes);
  if (overflow)
    return refuse("output '" + slot.name +
                  "' would have the impossible shape " +
                  shapeText(sizes, rank));

  std::vector<int64_t> shape(sizes, sizes + rank);
  if (slot.callerMemory) {
    if (shape != slot.expected)
      return refuse("output '" + slot.name +
                    "': the caller's memory has shape " +
                    shapeText(slot.expected.data(), slot.expected.size()) +
                    ", the model gives " + shapeText(sizes, rank));
  } else {
    if (slot.given) // given once more, say in a loop: the last one counts
      outputMemory->release(slot.data);
    slot.data = outputMemory->allocate(bytes);
    if (!slot.data)
      return refuse("out of memory: output '" + slot.name + "' of shape " +
                    shapeText(sizes, rank) + " takes " + std::to_string(bytes) +
                    " bytes");
  }
  slot.sizes = std::move(shape);
  slot.given = true;
  return slot.data;
}
