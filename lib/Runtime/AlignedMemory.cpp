//===- AlignedMemory.cpp - Memory straight from the system ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is large has pages of its own. Among malloc's it would keep those pages
// from the system that lie before it: the blocks of runs of ever other sizes
// left holes of a hundred megabytes.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/AlignedMemory.h"
#include <atomic>
#include <cstdlib>
#ifdef __linux__
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

// Sanitizers watch what malloc gives.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SARDONYX_IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||     \
    __has_feature(thread_sanitizer)
#define SARDONYX_IS_WATCHED 1
#endif
#endif

using namespace sardonyx::runtime;

static std::atomic<uint64_t> allocations{0};

uint64_t sardonyx::runtime::countAllocations() { return allocations; }

static size_t alignTo(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

#if defined(__linux__) && !defined(SARDONYX_IS_WATCHED)
static constexpr size_t kPage = size_t(4) << 10, kHugePage = size_t(2) << 20;

static bool hasOwnPages(size_t bytes) { return bytes >= size_t(256) << 10; }

static bool hasHugePages(size_t bytes) { return bytes >= 2 * kHugePage; }

static size_t sizeOfPages(size_t bytes) { return alignTo(bytes, kPage); }

static void *allocatePages(size_t bytes) {
  size_t size = sizeOfPages(bytes);
  size_t spare = hasHugePages(bytes) ? kHugePage : 0;
  void *mapped = mmap(nullptr, size + spare, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  if (!spare)
    return mapped;
  auto *start = static_cast<char *>(mapped);
  size_t before = alignTo(reinterpret_cast<uintptr_t>(start), kHugePage) -
                  reinterpret_cast<uintptr_t>(start);
  if (before)
    (void)munmap(start, before);
  if (before < spare)
    (void)munmap(start + before + size, spare - before);
  // The last bytes would take another huge page.
  (void)madvise(start + before, size / kHugePage * kHugePage, MADV_HUGEPAGE);
  return start + before;
}

static void freePages(void *memory, size_t bytes) {
  (void)munmap(memory, sizeOfPages(bytes));
}

void sardonyx::runtime::forgetContents(const void *memory, size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t from = alignTo(begin, page),
                  to = (begin + bytes) / page * page;
  if (from < to)
    (void)madvise(reinterpret_cast<void *>(from), to - from, MADV_DONTNEED);
}
#else
static bool hasOwnPages(size_t) { return false; }
static void *allocatePages(size_t) { return nullptr; }
static void freePages(void *, size_t) {}
void sardonyx::runtime::forgetContents(const void *, size_t) {}
#endif

void *sardonyx::runtime::allocateFreeable(size_t bytes) {
  ++allocations;
  if (bytes > SIZE_MAX / 2)
    return nullptr;
  return aligned_alloc(kMemoryAlignment, bytes
                                             ? alignTo(bytes, kMemoryAlignment)
                                             : kMemoryAlignment);
}

void *sardonyx::runtime::allocateAligned(size_t bytes) {
  if (!hasOwnPages(bytes) || bytes > SIZE_MAX / 2)
    return allocateFreeable(bytes);
  ++allocations;
  return allocatePages(bytes);
}

void sardonyx::runtime::freeAligned(void *memory, size_t bytes) {
  if (memory && hasOwnPages(bytes))
    freePages(memory, bytes);
  else
    free(memory);
}

void sardonyx::runtime::returnFreeMemory() {
#ifdef __GLIBC__
  (void)malloc_trim(0);
#endif
}
