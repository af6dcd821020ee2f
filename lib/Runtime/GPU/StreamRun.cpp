//===- StreamRun.cpp - The part of a run that is a stream's ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/StreamRun.h"
#include "sardonyx/Runtime/RunContext.h"
#include <algorithm>
#include <cstring>
#include <ctime>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime;
using namespace sardonyx::runtime::gpu;

/// Pieces of pinned memory have at most so many bytes. What is larger comes
/// from the device in one copy, which the driver takes apart itself.
static constexpr int64_t kMostPinned = int64_t(4) << 20;
static constexpr int64_t kLeastPinned = int64_t(64) << 10;
/// Words of a failure record.
static constexpr int64_t kRecordWords = 6;

static void *pointer(CUdeviceptr address) {
  return reinterpret_cast<void *>(address);
}
static CUdeviceptr address(const void *pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

/// Whether there is no failure; otherwise the run has it.
static bool check(RunContext &run, const MaybeFailure &failure) {
  if (failure)
    run.fail(failure->sentence);
  return !failure;
}

StreamRun::StreamRun(std::shared_ptr<const LoadedKernels> given)
    : code(std::move(given)), pool(code->device(), code->memoryBudget()),
      uploads(code->device(), kMostPinned),
      queue(code->device(), code->workMode()) {}

StreamRun::~StreamRun() {
  // What the device is still busy with is not freed under its hands.
  if (stream && isPending)
    (void)stream->synchronize();
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

MaybeFailure StreamRun::prepare() {
  if (!stream) {
    Result<std::unique_ptr<Stream>> made = code->makeStream();
    if (!made)
      return made.failure();
    stream = std::move(*made);
  }
  for (auto *event : {&done, &joined}) {
    if (*event)
      continue;
    Result<std::unique_ptr<Event>> made = Event::create(code->device());
    if (!made)
      return made.failure();
    *event = std::move(*made);
  }
  return std::nullopt;
}

void StreamRun::begin(RunContext &run) {
  use = {};
  began = std::chrono::steady_clock::now();
  waited = {};
  isArenaTaken = false;
  isRecordStale = false;
  concernsCaller = false;
  hasJoined = false;
  if (!check(run, prepare()) || !code->hasMessages() || !allocateRecord(run))
    return;
  isPending = true;
  queue.addClear(record->address(), 8 * kRecordWords);
}

void StreamRun::end(RunContext &run) {
  queue.drop();
  downloads.clear();
  downloadUsed = 0;
  // The caller may do with his memory what he likes from now on.
  if (isPending && concernsCaller && !stream->synchronize())
    isPending = false;
  concernsCaller = false;
  for (auto &[start, memory] : taken)
    pool.give(std::move(memory));
  for (auto &[start, memory] : results)
    pool.give(std::move(memory));
  taken.clear();
  results.clear();
  pool.trim();
  code->results()->trim();
  use.memoryBytes = code->memoryBudget()->bytesHeld();
  use.hostSeconds = std::chrono::duration<double>(
                        std::chrono::steady_clock::now() - began - waited)
                        .count();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::unique_ptr<DeviceMemory>
StreamRun::allocateBlock(RunContext &run, int64_t bytes, const char *node,
                         const std::string &what) {
  Result<std::unique_ptr<DeviceMemory>> memory = pool.allocate(bytes, what);
  if (!memory && memory.failure().kind == FailureKind::OutOfMemory) {
    // The driver waits for work that uses what is freed.
    if (!submit(run))
      return nullptr;
    pool.trimAll();
    code->results()->trimAll();
    run.reclaimMemory();
    memory = pool.allocate(bytes, what);
  }
  if (memory)
    return std::move(*memory);
  run.fail((node && *node ? std::string(node) + ": " : std::string()) +
           memory.failure().sentence);
  return nullptr;
}

void *StreamRun::allocate(RunContext &run, int64_t bytes, const char *node) {
  std::unique_ptr<DeviceMemory> memory = pool.find(bytes);
  if (!memory)
    memory = allocateBlock(run, bytes, node, "an intermediate value");
  if (!memory)
    return nullptr;
  void *start = pointer(memory->address());
  taken[start] = std::move(memory);
  return start;
}

void StreamRun::release(void *memory) {
  auto found = taken.find(memory);
  if (found == taken.end())
    return;
  pool.give(std::move(found->second));
  taken.erase(found);
}

void *StreamRun::arena(RunContext &run, int64_t bytes) {
  // Only the first request of a run is the plan's.
  if (isArenaTaken || bytes < 0)
    return allocate(run, bytes, nullptr);
  isArenaTaken = true;
  if (!arenaMemory || arenaMemory->size() < bytes) {
    arenaMemory = nullptr;
    arenaMemory = allocateBlock(run, bytes, nullptr, "its intermediate values");
  }
  return arenaMemory ? pointer(arenaMemory->address()) : nullptr;
}

void *StreamRun::allocateResult(RunContext &run, int64_t bytes,
                                const std::string &what, bool isKept) {
  // Blocks that callers get come back elsewhere: were they taken from the pool,
  // it would run dry.
  std::unique_ptr<DeviceMemory> memory =
      isKept ? code->results()->find(bytes) : pool.find(bytes);
  if (memory && isKept)
    joinDefaultStream(run);
  if (!memory)
    memory = allocateBlock(run, bytes, nullptr, what);
  if (!memory)
    return nullptr;
  void *start = pointer(memory->address());
  results[start] = std::move(memory);
  return start;
}

std::shared_ptr<void> StreamRun::keep(void *result) {
  auto found = results.find(result);
  if (found == results.end())
    return nullptr;
  DeviceMemory *memory = found->second.release();
  results.erase(found);
  return std::shared_ptr<void>(
      result, [memory, kept = code->results()](void *) {
        kept->give(std::unique_ptr<DeviceMemory>(memory));
      });
}

bool StreamRun::allocateRecord(RunContext &run) {
  if (!record)
    record =
        allocateBlock(run, kRecordWords * 8, nullptr, "the record of failures");
  if (!record || recordCopy)
    return record != nullptr;
  Result<std::unique_ptr<PinnedMemory>> copy =
      PinnedMemory::allocate(code->device(), kRecordWords * 8);
  if (copy)
    recordCopy = std::move(*copy);
  else
    run.fail(copy.failure().sentence);
  return recordCopy != nullptr;
}

void *StreamRun::failureRecord(RunContext &run) {
  if (record || allocateRecord(run))
    return pointer(record->address());
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

void StreamRun::joinCaller(RunContext &run) {
  concernsCaller = true;
  joinDefaultStream(run);
}

/// What comes next comes after all that the process's default stream has been
/// given.
void StreamRun::joinDefaultStream(RunContext &run) {
  if (hasJoined)
    return;
  hasJoined = true;
  std::unique_ptr<Stream> others = Stream::borrow(code->device(), nullptr);
  if (check(run, others->record(*joined)))
    check(run, stream->wait(*joined));
}

/// Gives the stream what there is to do.
bool StreamRun::submit(RunContext &run) {
  return check(run, queue.submit(*stream, use));
}

void StreamRun::copyToDevice(RunContext &run, void *target, const void *source,
                             int64_t bytes) {
  isPending = true;
  if (const void *held = uploads.hold(source, bytes))
    return queue.addCopyToDevice(address(target), held, bytes);
  if (!submit(run))
    return;
  ++use.copies;
  ++use.submissions;
  use.copiedBytes += bytes;
  check(run,
        uploads.copy(*stream, address(target), source, bytes,
                     [&](const Event &event) { return waitFor(run, event); }));
}

void StreamRun::copyOnDevice(RunContext &, void *target, const void *source,
                             int64_t bytes) {
  isPending = true;
  queue.addCopyOnDevice(address(target), address(source), bytes);
}

/// Makes the pinned memory for downloads larger, which nothing may use.
MaybeFailure StreamRun::makeRoom(int64_t bytes) {
  int64_t size = kLeastPinned;
  while (size < bytes)
    size *= 2;
  downloadMemory = nullptr;
  Result<std::unique_ptr<PinnedMemory>> memory =
      PinnedMemory::allocate(code->device(), size);
  if (!memory)
    return memory.failure();
  downloadMemory = std::move(*memory);
  return std::nullopt;
}

void StreamRun::copyToHost(RunContext &run, void *target, const void *source,
                           int64_t bytes) {
  if (bytes == 0)
    return;
  const int64_t rounded = (bytes + 63) / 64 * 64;
  downloadWanted += rounded;
  if (!downloadMemory && rounded <= kMostPinned)
    if (!check(run, makeRoom(rounded)))
      return;
  const bool fits =
      downloadMemory && downloadUsed + rounded <= downloadMemory->size();
  char *pinned =
      fits ? static_cast<char *>(downloadMemory->data()) + downloadUsed
           : nullptr;
  downloads.push_back({target, pinned, address(source), bytes});
  if (!fits)
    return;
  downloadUsed += rounded;
  isPending = true;
  queue.addCopyToHost(pinned, address(source), bytes);
}

void StreamRun::launch(RunContext &run, int64_t number,
                       const DeviceLaunchSize &size, int64_t count,
                       const int64_t *arguments) {
  std::shared_ptr<const Kernel> kernel = code->kernel(number);
  if (!kernel)
    return run.fail("the model's code starts a kernel " +
                    std::to_string(number) + ", which there is not");
  LaunchSize launch;
  std::copy_n(size.blocks, 3, launch.grid.begin());
  std::copy_n(size.threads, 3, launch.block.begin());
  launch.sharedBytes = size.sharedBytes;
  isPending = true;
  isRecordStale = code->hasMessages();
  check(run, queue.addKernel(std::move(kernel), launch, size.maps, count,
                             arguments));
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

/// Whether an event is done; false: the run has ended before.
Result<bool> StreamRun::waitFor(RunContext &run, const Event &event) {
  // A run of a millisecond is not to wait for this thread to be woken.
  constexpr unsigned kBusyQueries = 2000;
  constexpr timespec kPause = {0, 30 * 1000};
  ++use.waits;
  const auto start = std::chrono::steady_clock::now();
  Result<bool> isDone = event.isDone();
  for (unsigned queries = 0; isDone && !*isDone; ++queries) {
    if (!run.pollWhileWaiting())
      break;
    if (queries >= kBusyQueries)
      nanosleep(&kPause, nullptr);
    isDone = event.isDone();
  }
  waited += std::chrono::steady_clock::now() - start;
  return isDone;
}

/// Whether no check has failed that was waited for.
bool StreamRun::checkRecord(RunContext &run) {
  auto *words = static_cast<const int64_t *>(recordCopy->data());
  if (words[0] == 0)
    return true;
  if (const CheckMessage *message = code->message(words[1]))
    run.fail(message->text.c_str(), message->kind, words + 2);
  else
    run.fail("a check of a kernel failed with the message " +
             std::to_string(words[1]) + ", which there is not");
  return false;
}

MaybeFailure StreamRun::finishDownloads() {
  bool isDirect = false;
  for (const Download &download : downloads) {
    if (download.pinned) {
      memcpy(download.target, download.pinned,
             static_cast<size_t>(download.bytes));
      continue;
    }
    isDirect = true;
    ++use.copies;
    ++use.submissions;
    use.copiedBytes += download.bytes;
    if (MaybeFailure failure = stream->copyToHost(
            download.target, download.source, download.bytes))
      return failure;
  }
  if (isDirect) {
    const auto start = std::chrono::steady_clock::now();
    if (MaybeFailure failure = stream->synchronize())
      return failure;
    ++use.waits;
    waited += std::chrono::steady_clock::now() - start;
  }
  downloads.clear();
  downloadUsed = 0;
  const int64_t wanted = std::min(downloadWanted, kMostPinned);
  downloadWanted = 0;
  if (downloadMemory && downloadMemory->size() < wanted)
    return makeRoom(wanted);
  return std::nullopt;
}

void StreamRun::wait(RunContext &run) {
  if (!isPending && downloads.empty())
    return;
  const bool readsRecord = isRecordStale && record;
  if (readsRecord)
    queue.addCopyToHost(recordCopy->data(), record->address(),
                        8 * kRecordWords);
  if (!submit(run) || !check(run, stream->record(*done)))
    return;
  Result<bool> isDone = waitFor(run, *done);
  if (!isDone) {
    run.fail(isDone.failure().sentence);
    return;
  }
  if (!*isDone)
    return;
  code->device()->noteEnd(stream->handle());
  isPending = false;
  if (!check(run, uploads.forgetCopies()))
    return;
  if (readsRecord) {
    isRecordStale = false;
    if (!checkRecord(run))
      return;
  }
  check(run, finishDownloads());
}

int64_t StreamRun::finishStep(RunContext &run,
                              std::vector<DeviceLaunch> &launches) {
  wait(run);
  if (run.failed())
    return 0;
  Result<int64_t> nanoseconds = queue.takeTimes(launches);
  if (nanoseconds)
    return *nanoseconds;
  run.fail(nanoseconds.failure().sentence);
  return 0;
}
