//===- WorkQueue.cpp - Work that a GPU is given at once -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/WorkQueue.h"
#include "sardonyx-c/RuntimeABI.h"
#include <algorithm>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

/// Graphs that are kept, each for sizes and addresses of its own.
static constexpr size_t kMostKept = 8;
/// A single launch costs what a graph's does.
static constexpr size_t kLeastKernels = 2;

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

void WorkQueue::Work::clear() {
  items.clear();
  words.clear();
  kernelCount = 0;
}

uint64_t WorkQueue::Work::hash() const {
  uint64_t value = 0xcbf29ce484222325;
  auto mix = [&](uint64_t word) {
    value = (value ^ word) * 0x9e3779b97f4a7c15;
    value ^= value >> 29;
  };
  for (const Item &item : items) {
    mix(static_cast<uint64_t>(item.kind));
    if (item.kernel) {
      mix(reinterpret_cast<uintptr_t>(item.kernel.get()));
      for (int i = 0; i < 3; ++i)
        mix(static_cast<uint64_t>(item.size.grid[i]));
      continue;
    }
    mix(item.to);
    mix(item.from);
    mix(static_cast<uint64_t>(item.bytes));
  }
  for (int64_t word : words)
    mix(static_cast<uint64_t>(word));
  return value;
}

bool WorkQueue::Work::isLike(const Work &other) const {
  auto isLikeItem = [](const Item &a, const Item &b) {
    return a.kind == b.kind && a.to == b.to && a.from == b.from &&
           a.bytes == b.bytes && a.kernel == b.kernel;
  };
  return std::equal(items.begin(), items.end(), other.items.begin(),
                    other.items.end(), isLikeItem);
}

bool WorkQueue::Work::isSameLaunch(const Work &other, size_t item) const {
  const Item &a = items[item], &b = other.items[item];
  return a.size.grid == b.size.grid && a.size.block == b.size.block &&
         a.size.sharedBytes == b.size.sharedBytes &&
         a.wordCount == b.wordCount &&
         std::equal(words.begin() + a.firstWord,
                    words.begin() + a.firstWord + a.wordCount,
                    other.words.begin() + b.firstWord);
}

void WorkQueue::Work::findArguments(size_t number) {
  const Item &item = items[number];
  const size_t mapWords = item.mapCount * SDX_RT_MAP_WORDS;
  pointers.clear();
  for (size_t i = 0; i < item.mapCount; ++i)
    pointers.push_back(&words[item.firstWord + i * SDX_RT_MAP_WORDS]);
  for (size_t i = mapWords; i < item.wordCount; ++i)
    pointers.push_back(&words[item.firstWord + i]);
}

MaybeFailure WorkQueue::Work::makeMaps(Device &device, size_t number) {
  findArguments(number);
  const Item &item = items[number];
  maps.resize(item.mapCount);
  for (size_t i = 0; i < item.mapCount; ++i) {
    Result<TiledTensor> tensor =
        readTensor(&words[item.firstWord + i * SDX_RT_MAP_WORDS]);
    if (!tensor)
      return tensor.failure();
    Result<CUtensorMap> map = encode(device, *tensor);
    if (!map)
      return map.failure();
    maps[i] = *map;
    pointers[i] = &maps[i];
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Adding
//===----------------------------------------------------------------------===//

MaybeFailure WorkQueue::addKernel(std::shared_ptr<const Kernel> kernel,
                                  const LaunchSize &size, int64_t maps,
                                  int64_t count, const int64_t *arguments) {
  if (maps < 0 || maps > count / SDX_RT_MAP_WORDS)
    return Failure{FailureKind::InvalidArgument,
                   kernel->describeLaunch() + ": " + std::to_string(count) +
                       " words do not describe " + std::to_string(maps) +
                       " tensor maps"};
  Item item{Kind::Kernel};
  item.kernel = std::move(kernel);
  item.size = size;
  item.firstWord = work.words.size();
  item.wordCount = static_cast<size_t>(count);
  item.mapCount = static_cast<size_t>(maps);
  work.words.insert(work.words.end(), arguments, arguments + count);
  work.items.push_back(std::move(item));
  const Item &added = work.items.back();
  work.findArguments(work.items.size() - 1);
  MaybeFailure failure = added.kernel->checkLaunch(size, work.pointers);
  if (failure || size.isEmpty()) {
    work.words.resize(added.firstWord);
    work.items.pop_back();
    return failure;
  }
  ++work.kernelCount;
  return std::nullopt;
}

void WorkQueue::addCopy(Kind kind, uint64_t to, uint64_t from, int64_t bytes) {
  if (bytes > 0)
    work.items.push_back({kind, to, from, bytes});
}

void WorkQueue::addCopyToDevice(CUdeviceptr to, const void *from,
                                int64_t bytes) {
  addCopy(Kind::ToDevice, to, reinterpret_cast<uintptr_t>(from), bytes);
}

void WorkQueue::addCopyToHost(void *to, CUdeviceptr from, int64_t bytes) {
  addCopy(Kind::ToHost, reinterpret_cast<uintptr_t>(to), from, bytes);
}

void WorkQueue::addCopyOnDevice(CUdeviceptr to, CUdeviceptr from,
                                int64_t bytes) {
  addCopy(Kind::OnDevice, to, from, bytes);
}

void WorkQueue::addClear(CUdeviceptr to, int64_t bytes) {
  addCopy(Kind::Clear, to, 0, bytes);
}

//===----------------------------------------------------------------------===//
// Giving
//===----------------------------------------------------------------------===//

void WorkQueue::count(DeviceUse &use) const {
  for (const Item &item : work.items) {
    use.kernels += item.kind == Kind::Kernel;
    if (item.kind != Kind::ToDevice && item.kind != Kind::ToHost)
      continue;
    ++use.copies;
    use.copiedBytes += item.bytes;
  }
}

MaybeFailure WorkQueue::submit(Stream &stream, DeviceUse &use) {
  if (isEmpty())
    return std::nullopt;
  count(use);
  // Whoever waits for each launch wants to know which one failed.
  bool isGraph = mode == WorkMode::Graphs &&
                 work.kernelCount >= kLeastKernels &&
                 !device->waitsForLaunches();
  MaybeFailure failure =
      isGraph ? submitRepeated(stream, isGraph) : give(stream);
  use.submissions += isGraph ? 1 : static_cast<int64_t>(work.items.size());
  work.clear();
  return failure;
}

/// Gives the stream one thing after the other.
MaybeFailure WorkQueue::give(Stream &stream) {
  for (size_t i = 0; i < work.items.size(); ++i) {
    const Item &item = work.items[i];
    MaybeFailure failure;
    if (mode == WorkMode::Timed) {
      if ((failure = recordTime(stream)))
        return failure;
      timed.push_back({item.kernel, item.size});
    }
    switch (item.kind) {
    case Kind::Kernel:
      failure = work.makeMaps(*device, i);
      if (!failure)
        failure = item.kernel->launch(stream, item.size, work.pointers);
      break;
    case Kind::ToDevice:
      failure = stream.copyToDevice(
          item.to, reinterpret_cast<const void *>(item.from), item.bytes);
      break;
    case Kind::ToHost:
      failure = stream.copyToHost(reinterpret_cast<void *>(item.to), item.from,
                                  item.bytes);
      break;
    case Kind::OnDevice:
      failure = stream.copyOnDevice(item.to, item.from, item.bytes);
      break;
    case Kind::Clear:
      failure = stream.fillBytes(item.to, 0, item.bytes);
      break;
    }
    if (failure)
      return failure;
  }
  if (mode != WorkMode::Timed)
    return std::nullopt;
  MaybeFailure failure = recordTime(stream);
  timed.push_back({nullptr, {}}); // the time until somebody gives it more
  return failure;
}

/// Records the event that comes before what is timed next.
MaybeFailure WorkQueue::recordTime(Stream &stream) {
  if (timed.size() == events.size()) {
    Result<std::unique_ptr<Event>> event =
        Event::create(device, /*isTimed=*/true);
    if (!event)
      return event.failure();
    events.push_back(std::move(*event));
  }
  return stream.record(*events[timed.size()]);
}

Result<int64_t> WorkQueue::takeTimes(std::vector<DeviceLaunch> &launches) {
  auto between = [&](size_t from, size_t to) -> Result<int64_t> {
    Result<float> milliseconds = Event::elapsed(*events[from], *events[to]);
    if (!milliseconds)
      return milliseconds.failure();
    return static_cast<int64_t>(*milliseconds * 1e6f);
  };
  int64_t total = 0;
  for (size_t i = 0; i + 1 < timed.size(); ++i) {
    Result<int64_t> begin = between(0, i), end = between(0, i + 1);
    if (!begin || !end)
      return begin ? end.failure() : begin.failure();
    total = *end;
    const Timed &item = timed[i];
    if (!item.kernel)
      continue;
    DeviceLaunch launch;
    launch.kernel = item.kernel->names()->kernel;
    std::copy_n(item.size.grid.begin(), 3, launch.size.blocks);
    std::copy_n(item.size.block.begin(), 3, launch.size.threads);
    launch.size.sharedBytes = item.size.sharedBytes;
    launch.size.maps = 0;
    launch.begin = *begin;
    launch.end = *end;
    if (MaybeFailure failure = item.kernel->describe(item.size, launch))
      return *failure;
    launches.push_back(std::move(launch));
  }
  timed.clear();
  return total;
}

/// `isGraph`: whether it became a launch of a graph.
MaybeFailure WorkQueue::submitRepeated(Stream &stream, bool &isGraph) {
  ++clock;
  const uint64_t hash = work.hash();
  MaybeFailure failure;
  Known *known = find(hash);
  if (known && !known->graph && !known->isRefused)
    failure = build(*known);
  else if (!known && (known = findAlike()))
    failure = update(*known, hash);
  if (!known) {
    remember(hash);
    isGraph = false;
    return give(stream);
  }
  known->lastUse = clock;
  if (failure) {
    known->graph = nullptr;
    known->isRefused = true;
    if (failure->kind == FailureKind::DeviceLost)
      return failure;
  }
  isGraph = known->graph != nullptr;
  return isGraph ? known->graph->launch(stream) : give(stream);
}

WorkQueue::Known *WorkQueue::find(uint64_t hash) {
  for (const std::unique_ptr<Known> &known : kept) {
    if (known->hash != hash || !known->work.isLike(work))
      continue;
    bool isSame = true;
    for (size_t i = 0; i < work.items.size() && isSame; ++i)
      isSame = work.isSameLaunch(known->work, i);
    if (isSame)
      return known.get();
  }
  return nullptr;
}

/// A graph in which at most a quarter of all launches have to be changed.
WorkQueue::Known *WorkQueue::findAlike() {
  for (const std::unique_ptr<Known> &known : kept) {
    if (!known->graph || !known->work.isLike(work))
      continue;
    size_t different = 0;
    for (size_t i = 0; i < work.items.size(); ++i)
      different += !work.isSameLaunch(known->work, i);
    if (different * 4 <= work.kernelCount)
      return known.get();
  }
  return nullptr;
}

void WorkQueue::remember(uint64_t hash) {
  if (kept.size() == kMostKept)
    kept.erase(std::min_element(
        kept.begin(), kept.end(),
        [](const auto &a, const auto &b) { return a->lastUse < b->lastUse; }));
  auto known = std::make_unique<Known>();
  known->work = work;
  known->hash = hash;
  known->lastUse = clock;
  kept.push_back(std::move(known));
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

Result<Graph::Node> WorkQueue::addNode(Graph &graph, Work &work, size_t number,
                                       const std::vector<Graph::Node> &after) {
  const Item &item = work.items[number];
  switch (item.kind) {
  case Kind::Kernel:
    if (MaybeFailure failure = work.makeMaps(*device, number))
      return *failure;
    return graph.addKernel(item.kernel, item.size, work.pointers, after);
  case Kind::ToDevice:
    return graph.addCopyToDevice(
        item.to, reinterpret_cast<const void *>(item.from), item.bytes, after);
  case Kind::ToHost:
    return graph.addCopyToHost(reinterpret_cast<void *>(item.to), item.from,
                               item.bytes, after);
  case Kind::OnDevice:
    return graph.addCopyOnDevice(item.to, item.from, item.bytes, after);
  case Kind::Clear:
    break;
  }
  return graph.addFillBytes(item.to, 0, item.bytes, after);
}

/// Makes the graph, in which each thing waits for the one before: its node has
/// the number of the item.
MaybeFailure WorkQueue::build(Known &known) {
  Result<std::unique_ptr<Graph>> made = Graph::create(device);
  if (!made)
    return made.failure();
  std::unique_ptr<Graph> graph = std::move(*made);
  std::vector<Graph::Node> after;
  for (size_t i = 0; i < known.work.items.size(); ++i) {
    Result<Graph::Node> node = addNode(*graph, known.work, i, after);
    if (!node)
      return node.failure();
    after = {*node};
  }
  if (MaybeFailure failure = graph->instantiate())
    return failure;
  known.graph = std::move(graph);
  return std::nullopt;
}

/// Has the graph do what is to be done now.
MaybeFailure WorkQueue::update(Known &known, uint64_t hash) {
  for (size_t i = 0; i < work.items.size(); ++i) {
    if (work.isSameLaunch(known.work, i))
      continue;
    if (MaybeFailure failure = work.makeMaps(*device, i))
      return failure;
    if (MaybeFailure failure =
            known.graph->setKernel(i, work.items[i].size, work.pointers))
      return failure;
  }
  known.work = work;
  known.hash = hash;
  return std::nullopt;
}
