//===- CpuTopology.h - Which processors this process may use ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_CPUTOPOLOGY_H
#define SARDONYX_RUNTIME_CPUTOPOLOGY_H

#include <vector>

namespace sardonyx {
namespace runtime {

struct CpuTopology {
  /// The processors of the process's affinity mask: first one of each core,
  /// then their siblings; each part begins after the calling thread's own, so
  /// that processes with few threads each do not pile up on the same ones.
  std::vector<int> cpus;
  /// How many of them are the first of their core.
  unsigned cores = 1;
  /// What the container's quota of processor time comes to (rounded up); 0 when
  /// there is none.
  unsigned quota = 0;
};

CpuTopology readCpuTopology();

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_CPUTOPOLOGY_H
