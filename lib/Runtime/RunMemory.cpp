//===- RunMemory.cpp - Memory for values of open sizes --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/RunMemory.h"
#include "sardonyx/Runtime/AlignedMemory.h"
#include <algorithm>

using namespace sardonyx::runtime;

/// Memory that none of so many runs has needed goes back to the system.
static constexpr unsigned kRunsOfLate = 16;

RunMemory::RunMemory(BufferPool &pool, std::shared_ptr<MemoryBudget> budget)
    : pool(pool), budget(std::move(budget)) {}

RunMemory::~RunMemory() { resize(0); }

/// The lowest place where `bytes` are free.
int64_t RunMemory::findPlace(int64_t bytes) const {
  int64_t begin = 0;
  for (const Place &place : places) {
    if (place.begin - begin >= bytes)
      break;
    begin = place.end;
  }
  return begin;
}

bool RunMemory::isInside(const void *memory) const {
  auto *bytes = static_cast<const char *>(memory);
  return base && bytes >= base && bytes < base + size;
}

void *RunMemory::allocate(int64_t bytes) {
  if (bytes < kLeastBytes || bytes > (int64_t(1) << 46))
    return pool.allocate(bytes);
  constexpr int64_t kUnit = kMemoryAlignment;
  const int64_t rounded = (bytes + kUnit - 1) / kUnit * kUnit;
  std::lock_guard<ForkSafeMutex> lock(mutex);
  const int64_t begin = findPlace(rounded), end = begin + rounded;
  const bool fits = end <= size;
  void *memory = fits ? base + begin : pool.allocate(bytes);
  if (!memory)
    return nullptr;
  auto after = std::find_if(places.begin(), places.end(),
                            [&](const Place &p) { return p.begin >= end; });
  places.insert(after, {begin, end, memory});
  most = std::max(most, end);
  strays += !fits;
  return memory;
}

void RunMemory::release(void *memory) {
  if (!memory)
    return;
  std::lock_guard<ForkSafeMutex> lock(mutex);
  const bool inside = isInside(memory);
  if (inside || strays) {
    auto found =
        std::find_if(places.begin(), places.end(),
                     [&](const Place &p) { return p.memory == memory; });
    if (found != places.end())
      places.erase(found);
  }
  if (!inside)
    pool.release(memory);
}

void RunMemory::endRun() {
  pool.releaseAll();
  places.clear();
  mostOfLate = std::max(mostOfLate, most);
  if (strays && !isRefused) {
    // Its blocks are as much as what there will be instead.
    pool.trimAll();
    // A little more needs no new memory, and pages that nobody has written to
    // cost nothing.
    resize(budget ? most : most + most / 4);
  } else {
    pool.trim();
  }
  if (++runs % kRunsOfLate == 0) {
    if (mostOfLate <= size / 2)
      resize(mostOfLate);
    mostOfLate = 0;
    isRefused = false;
  }
  most = 0;
  strays = 0;
}

void RunMemory::trimAll() {
  pool.trimAll();
  std::lock_guard<ForkSafeMutex> lock(mutex);
  if (std::none_of(places.begin(), places.end(),
                   [&](const Place &p) { return isInside(p.memory); }))
    resize(0);
}

void RunMemory::resize(int64_t bytes) {
  if (base) {
    freeAligned(base, size);
    if (budget)
      budget->give(size);
  }
  base = nullptr;
  size = 0;
  if (bytes == 0)
    return;
  isRefused = budget && !budget->take(bytes);
  if (isRefused)
    return;
  base = static_cast<char *>(allocateAligned(bytes));
  isRefused = !base;
  if (base)
    size = bytes;
  else if (budget)
    budget->give(bytes);
}
