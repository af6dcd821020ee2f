//===- RunContext.cpp - The state of one run ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/RunContext.h"
#include "sardonyx/Runtime/AlignedMemory.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include <algorithm>
#include <cstdio>
#include <utility>

using namespace sardonyx::runtime;

/// How often a run asks whether it was interrupted.
static constexpr int64_t kQuestionInterval = 20 * 1000 * 1000;
/// How many polls look at the clock once.
static constexpr unsigned kPollsOfAClock = 8;
static constexpr int64_t kNever = INT64_MAX;

namespace {
/// What a thread knows of its run, in one piece: in a shared library it takes a
/// call to find.
struct ThreadState {
  RunContext *run = nullptr;
  /// Which of that run's threads it is.
  unsigned share = 0;
  /// Where a failure leaves to; null where it must return.
  jmp_buf *leavePoint = nullptr;
  /// Whether it is the one that runs the host program.
  bool runsHost = false;
  /// How often it has polled while the clock mattered.
  unsigned polls = 0;
};
} // namespace
static thread_local ThreadState thisThread;

RunContext *RunContext::current() { return thisThread.run; }
unsigned RunContext::share() { return thisThread.share; }

RunContextScope::RunContextScope(RunContext *context, unsigned share)
    : previous(thisThread.run), previousShare(thisThread.share) {
  thisThread.run = context;
  thisThread.share = share;
}

RunContextScope::~RunContextScope() {
  thisThread.run = previous;
  thisThread.share = previousShare;
}

RunContext::RunContext(unsigned threads, std::shared_ptr<BufferPool> outputPool,
                       std::shared_ptr<MemoryBudget> budget,
                       ReclaimMemory reclaim)
    : threadLimit(std::max(1u, threads)), outputMemory(std::move(outputPool)),
      budget(std::move(budget)), reclaim(std::move(reclaim)),
      pool(this->budget), values(pool, this->budget),
      scratch(std::min(threadLimit, ThreadPool::kMaxThreads)) {
  if (!outputMemory)
    outputMemory = std::make_shared<BufferPool>(this->budget);
  if (this->budget)
    stringTable.setLimit(this->budget->limit());
}

RunContext::~RunContext() {
  dropOutputs();
  freeArena();
}

void RunContext::releaseOutput(OutputSlot &slot) {
  if (slot.data && !slot.isOnDevice && slot.data != slot.callerMemory)
    outputMemory->release(slot.data);
  slot.data = nullptr;
  slot.owner = nullptr;
  slot.isOnDevice = false;
}

void RunContext::dropOutputs() {
  for (OutputSlot &slot : outputSlots)
    releaseOutput(slot);
  outputSlots.clear();
}

//===----------------------------------------------------------------------===//
// Running and failing
//===----------------------------------------------------------------------===//

void RunContext::callLeavably(void (*call)(void *), void *env) {
  jmp_buf here;
  jmp_buf *outer = thisThread.leavePoint;
  bool nested = ThreadPool::insideLoop();
  thisThread.leavePoint = &here;
  // A failed check jumps back here. It leaves frames of compiled code and of
  // the thread pool's loops only, which have nothing to destroy.
  if (_setjmp(here) == 0)
    call(env);
  thisThread.leavePoint = outer;
  ThreadPool::setInsideLoop(nested);
}

void RunContext::recordStep(int64_t site, int64_t begin, int64_t flops,
                            int64_t bytes) {
  int64_t onDevice = 0;
  launchesOfStep.clear();
  if (deviceRun)
    onDevice = deviceRun->finishStep(*this, launchesOfStep);
  if (recordedSteps.size() >= kMaxSteps)
    return;
  const int64_t end = onDevice ? begin + onDevice : sdx_rt_clock();
  recordedSteps.push_back({site, begin, end, flops, bytes});
  for (const DeviceLaunch &launch : launchesOfStep)
    if (recordedLaunches.size() < kMaxSteps)
      recordedLaunches.push_back({site, begin, launch});
}

bool RunContext::run(sdx_entry_point entry, void **args, const RunLimits &given,
                     const DeviceSteps &steps) {
  if (seen)
    seen->mutex().lock();
  hasFailed.store(false, std::memory_order_relaxed);
  failureMessage.clear();
  kindOfFailure = SDX_RT_FAILED;
  arenaTaken = false;
  recordedSteps.clear();
  recordedLaunches.clear();
  limits = &given;
  startClock(given.seconds);
  poll(); // it may have been ended before it began
  // What is asked whether to interrupt a run may run something itself.
  bool nested = std::exchange(thisThread.runsHost, true);
  if (deviceRun && !failed()) {
    deviceRun->begin(*this);
    if (!failed() && steps.placeInputs)
      steps.placeInputs();
  }
  if (!failed()) {
    RunContextScope scope(this);
    struct Call {
      sdx_entry_point entry;
      void **args;
    } call{entry, args};
    callLeavably(
        [](void *env) {
          auto *call = static_cast<Call *>(env);
          call->entry(call->args);
        },
        &call);
  }
  if (deviceRun)
    settleOutputs();
  thisThread.runsHost = nested;
  limits = nullptr;
  values.endRun();
  for (ScratchMemory &memory : scratch)
    memory.forget();
  if (seen)
    seen->mutex().unlock();
  return !failed();
}

void RunContext::setFailure(std::string message, int64_t kind) {
  std::lock_guard<Mutex> lock(failureMutex);
  if (failed())
    return; // the first failure is the one to report
  failureMessage = std::move(message);
  kindOfFailure = kind;
  hasFailed.store(true, std::memory_order_release);
}

/// `message` with the values in the places of {0} to {3}.
static std::string formatMessage(const char *message, const int64_t *values) {
  std::string text;
  for (const char *c = message; *c; ++c) {
    if (c[0] == '{' && c[1] >= '0' && c[1] <= '3' && c[2] == '}') {
      text += std::to_string(values[c[1] - '0']);
      c += 2;
    } else {
      text += *c;
    }
  }
  return text;
}

void RunContext::fail(const char *message, int64_t kind,
                      const int64_t *values) {
  setFailure(formatMessage(message, values), kind);
}

void RunContext::leaveIfFailed() {
  if (failed() && thisThread.run == this && thisThread.leavePoint)
    _longjmp(*thisThread.leavePoint, 1);
}

/// Nanoseconds; a clock that is some milliseconds coarse and costs next to
/// nothing to read.
static int64_t coarseClock() {
#ifdef CLOCK_MONOTONIC_COARSE
  constexpr clockid_t kClock = CLOCK_MONOTONIC_COARSE;
#else
  const clockid_t kClock = CLOCK_MONOTONIC;
#endif
  timespec now;
  clock_gettime(kClock, &now);
  return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

void RunContext::startClock(double seconds) {
  clockMatters = seconds > 0 || limits->interrupted;
  if (!clockMatters)
    return;
  int64_t now = coarseClock();
  // A century is as good as for ever.
  deadline = seconds > 0 && seconds < 3e9
                 ? now + static_cast<int64_t>(seconds * 1e9)
                 : kNever;
  nextQuestion = limits->interrupted ? now + kQuestionInterval : kNever;
}

bool RunContext::pollWhileWaiting() {
  if (pollFlags() && clockMatters)
    pollAt(coarseClock());
  return !failed();
}

/// Whether the run goes on.
bool RunContext::pollFlags() {
  if (failed() || !limits)
    return false;
  if (limits->terminate && limits->terminate->load(std::memory_order_relaxed)) {
    setFailure("the run was terminated");
    return false;
  }
  return true;
}

void RunContext::pollAt(int64_t now) {
  if (!pollFlags() || !clockMatters)
    return;
  if (now >= deadline) {
    char text[96];
    snprintf(text, sizeof(text), "the run took longer than its limit of %g s",
             limits->seconds);
    return setFailure(text);
  }
  // Only the host's thread reads and writes it.
  if (thisThread.runsHost && now >= nextQuestion) {
    if (limits->interrupted())
      return setFailure("the run was interrupted");
    nextQuestion = coarseClock() + kQuestionInterval;
  }
}

/// Whether something may want the run ended. Nearly always nothing does, and
/// between any two polls there may be some nanoseconds only, so the clock is
/// not looked at each time. What takes longer is a parallel loop, which knows
/// the time.
inline bool RunContext::hasToLook(int64_t trip, unsigned &polls) const {
  if (failed())
    return true;
  if (!limits)
    return false;
  const std::atomic<bool> *terminate = limits->terminate;
  return (terminate && terminate->load(std::memory_order_relaxed)) ||
         (limits->trips > 0 && trip > limits->trips) ||
         (clockMatters && ++polls % kPollsOfAClock == 0);
}

void RunContext::look(int64_t trip, const char *loop) {
  if (!pollFlags())
    return;
  if (limits->trips > 0 && trip > limits->trips)
    return setFailure((loop && *loop ? std::string(loop) + ": the loop"
                                     : std::string("a loop")) +
                      " takes more than the " + std::to_string(limits->trips) +
                      " trips that one may take");
  if (clockMatters)
    pollAt(coarseClock());
}

void RunContext::poll(int64_t trip, const char *loop) {
  if (hasToLook(trip, thisThread.polls))
    look(trip, loop);
}

void RunContext::pollAndLeave(int64_t trip, const char *loop) {
  ThreadState &thread = thisThread;
  RunContext *run = thread.run;
  if (!run || !run->hasToLook(trip, thread.polls))
    return;
  run->look(trip, loop);
  run->leaveIfFailed();
}

void RunContext::parallelFor(int64_t n, int64_t grain, sdx_rt_loop_body body,
                             void *env) {
  if (threadLimit == 1)
    ThreadPool::runInline(n, grain, body, env, this);
  else
    ThreadPool::global().parallelFor(n, grain, body, env, threadLimit, this);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void RunContext::setOutOfMemory(const std::string &what, int64_t bytes,
                                const char *node) {
  std::string text = node ? std::string(node) + ": " : "";
  text += "out of memory: the run needs " + std::to_string(bytes) +
          " bytes for " + what;
  if (budget && budget->left() < bytes)
    text += ", and of the memory limit of " + std::to_string(budget->limit()) +
            " bytes " + std::to_string(std::max<int64_t>(0, budget->left())) +
            " are left";
  setFailure(std::move(text));
}

void *RunContext::tryTwice(const std::function<void *()> &allocate) {
  if (void *memory = allocate())
    return memory;
  values.trimAll();
  outputMemory->trimAll();
  if (reclaim)
    reclaim();
  return allocate();
}

void *RunContext::allocate(int64_t bytes, const char *node) {
  void *memory = values.allocate(bytes);
  if (!memory && bytes >= 0)
    memory = tryTwice([&] { return values.allocate(bytes); });
  if (!memory)
    setOutOfMemory("an intermediate value", bytes, node);
  return memory;
}

void *RunContext::allocateScratch(int64_t bytes) {
  void *memory = thisThread.share < scratch.size()
                     ? scratch[thisThread.share].take(bytes, pool)
                     : nullptr;
  return memory ? memory : allocate(bytes);
}

std::shared_ptr<void>
RunContext::allocateShared(int64_t bytes, const char *node, const char *what) {
  void *memory = tryTwice([&] { return outputMemory->allocate(bytes); });
  if (!memory) {
    setOutOfMemory(what, bytes, node);
    return nullptr;
  }
  return std::shared_ptr<void>(
      memory, [pool = outputMemory](void *data) { pool->release(data); });
}

bool RunContext::reserve(int64_t bytes, const char *node, const char *what) {
  auto take = [&]() -> void * {
    return !budget || budget->take(bytes) ? this : nullptr;
  };
  if (tryTwice(take))
    return true;
  setOutOfMemory(what, bytes, node);
  return false;
}

void RunContext::unreserve(int64_t bytes) {
  if (budget)
    budget->give(bytes);
}

void RunContext::clearHandles() {
  stringTable.clear();
  listTable.clear();
}

void RunContext::release(void *memory) {
  if (thisThread.share >= scratch.size() ||
      !scratch[thisThread.share].giveBack(memory))
    values.release(memory);
}

void RunContext::freeArena() {
  freeAligned(arenaMemory, arenaBytes);
  if (budget)
    budget->give(arenaBytes);
  arenaMemory = nullptr;
  arenaBytes = 0;
}

void *RunContext::allocateArena(int64_t bytes) {
  if (budget && !budget->take(bytes))
    return nullptr;
  void *memory = allocateAligned(bytes);
  if (!memory && budget)
    budget->give(bytes);
  return memory;
}

void *RunContext::arena(int64_t bytes) {
  // Only the first request of a run is the plan's.
  if (arenaTaken)
    return allocate(bytes);
  arenaTaken = true;
  if (bytes > arenaBytes || bytes < 0) {
    freeArena();
    if (bytes >= 0)
      arenaMemory = tryTwice([&] { return allocateArena(bytes); });
    if (!arenaMemory) {
      setOutOfMemory("its intermediate values", bytes);
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

OutputSlot *RunContext::beginOutput(int64_t index, int64_t rank,
                                    const int64_t *sizes, int64_t &bytes) {
  auto refuse = [&](std::string message,
                    int64_t kind = SDX_RT_FAILED) -> OutputSlot * {
    setFailure(std::move(message), kind);
    return nullptr;
  };
  if (index < 0 || index >= static_cast<int64_t>(outputSlots.size()))
    return refuse("the compiled model gives a result " + std::to_string(index) +
                  " that it does not declare");
  OutputSlot &slot = outputSlots[index];
  bytes = slot.elementBytes;
  bool overflow = false;
  for (int64_t i = 0; i < rank; ++i)
    overflow |= sizes[i] < 0 || __builtin_mul_overflow(bytes, sizes[i], &bytes);
  if (overflow)
    return refuse("output '" + slot.name +
                  "' would have the impossible shape " +
                  shapeText(sizes, rank));
  if (slot.callerMemory &&
      !std::equal(sizes, sizes + rank, slot.expected.begin(),
                  slot.expected.end()))
    return refuse("output '" + slot.name + "': the caller's memory has shape " +
                      shapeText(slot.expected.data(), slot.expected.size()) +
                      ", the model gives " + shapeText(sizes, rank),
                  SDX_RT_INVALID_ARGUMENT);
  releaseOutput(slot); // given once more, say in a loop: the last one counts
  return &slot;
}

void RunContext::endOutput(OutputSlot &slot, int64_t rank,
                           const int64_t *sizes) {
  slot.sizes.assign(sizes, sizes + rank);
  slot.given = true;
}

void RunContext::setResultOutOfMemory(const OutputSlot &slot, int64_t rank,
                                      const int64_t *sizes, int64_t bytes) {
  setOutOfMemory(
      "output '" + slot.name + "' of shape " + shapeText(sizes, rank), bytes);
}

void *RunContext::output(int64_t index, int64_t rank, const int64_t *sizes) {
  int64_t bytes = 0;
  OutputSlot *slot = beginOutput(index, rank, sizes, bytes);
  if (!slot)
    return nullptr;
  if (slot->callerMemory && !slot->copied && !slot->wantedOnDevice)
    slot->data = slot->callerMemory;
  else
    slot->data = tryTwice([&] { return outputMemory->allocate(bytes); });
  if (!slot->data) {
    setResultOutOfMemory(*slot, rank, sizes, bytes);
    return nullptr;
  }
  endOutput(*slot, rank, sizes);
  return slot->data;
}
