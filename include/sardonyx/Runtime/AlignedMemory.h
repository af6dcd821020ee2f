//===- AlignedMemory.h - Memory straight from the system --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_ALIGNEDMEMORY_H
#define SARDONYX_RUNTIME_ALIGNEDMEMORY_H

#include <cstddef>
#include <cstdint>

namespace sardonyx {
namespace runtime {

inline constexpr size_t kMemoryAlignment = 64;

/// Memory aligned to `kMemoryAlignment`, with huge pages where it is large;
/// null when there is none.
void *allocateAligned(size_t bytes);
/// Gives back what allocateAligned() gave for so many bytes. What is large is
/// the system's at once.
void freeAligned(void *memory, size_t bytes);
/// The same, but always malloc's: free() takes it back, without its size.
void *allocateFreeable(size_t bytes);
/// How often this process has called these two.
uint64_t countAllocations();
/// Gives the system what was freed, which malloc keeps for later.
void returnFreeMemory();
/// Gives the system the pages that lie in `memory` as a whole, which stays
/// allocated; what they held is lost.
void forgetContents(const void *memory, size_t bytes);

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_ALIGNEDMEMORY_H
