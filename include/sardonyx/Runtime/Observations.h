//===- Observations.h - What runs see of tensors ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each thread of a run adds what it sees of a tensor to numbers of its own,
// whose size hangs on the kinds of observations and on channels, but not on how
// much is seen. They are put together when somebody asks.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_OBSERVATIONS_H
#define SARDONYX_RUNTIME_OBSERVATIONS_H

#include "sardonyx/Runtime/Mutex.h"
#include "sardonyx/Runtime/Observation.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sardonyx {
namespace runtime {

/// Rows of numbers, `stride` apart.
struct ObservedRows {
  const void *data;
  int64_t rows, stride, count;
};

/// What the threads of one run at a time see.
class Observations {
public:
  /// `sites`: how many tensors are observed. `threads`: how many a run has.
  Observations(size_t sites, unsigned threads);
  ~Observations();

  /// Held while a run adds, and while somebody reads.
  Mutex &mutex() { return runMutex; }

  /// Adds numbers to what thread `share` sees of a tensor; `what` as for
  /// sdx_rt_observe, of kinds that need no place.
  void add(int64_t site, int64_t what, unsigned share, ObservedRows rows);
  /// Says how many channels or columns a tensor has, before they are added.
  /// False where it had another number before.
  bool setWidth(int64_t site, int64_t width);
  /// Adds numbers of `channels` channels, of which `inner` numbers each follow
  /// each other, `outer` times.
  void addChannels(int64_t site, int64_t type, unsigned share, const void *data,
                   int64_t outer, int64_t channels, int64_t inner);
  /// Adds a matrix of so many elements.
  void addGram(int64_t site, int64_t type, unsigned share, const void *data,
               int64_t count);

  /// Adds what was seen to `all`, one for each site, and begins anew.
  void moveTo(std::vector<Observation> &all);
  /// The sites of which NaN or an infinite number was seen.
  std::vector<size_t> findNonFinite();

private:
  struct Slot;
  Slot &slotOf(int64_t site, unsigned share);

  Mutex runMutex;
  size_t sites;
  unsigned threads;
  /// Of each site; 0 before there is one.
  std::vector<int64_t> widths;
  /// By site, and within it by thread; null until one sees it.
  std::vector<std::unique_ptr<Slot>> slots;
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_OBSERVATIONS_H
