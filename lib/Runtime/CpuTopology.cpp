//===- CpuTopology.cpp - Which processors this process may use ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuTopology.h"
#include <algorithm>
#include <cstdio>
#include <sched.h>
#include <unistd.h>

using namespace sardonyx::runtime;

/// The lowest processor that shares a core with `cpu`.
static int firstSibling(int cpu) {
  char path[96];
  snprintf(path, sizeof(path),
           "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
  int first = cpu;
  if (FILE *file = fopen(path, "r")) {
    if (fscanf(file, "%d", &first) != 1)
      first = cpu;
    fclose(file);
  }
  return first;
}

static unsigned readQuota() {
  unsigned result = 0;
  if (FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r")) {
    long long quota = 0, period = 0;
    if (fscanf(file, "%lld %lld", &quota, &period) == 2 && quota > 0 &&
        period > 0)
      result = static_cast<unsigned>((quota + period - 1) / period);
    fclose(file);
  }
  return result;
}

/// Puts what follows the calling thread's processor first.
static void rotateAfter(std::vector<int> &cpus, int own) {
  auto after = std::upper_bound(cpus.begin(), cpus.end(), own);
  std::rotate(cpus.begin(), after, cpus.end());
}

CpuTopology sardonyx::runtime::readCpuTopology() {
  CpuTopology topology;
  // The mask of the process's first thread: the calling one may have been
  // pinned by somebody else's thread pool. Masks grow with the machine.
  std::vector<int> cpus;
  for (int capacity = 1024; capacity <= (1 << 18); capacity *= 4) {
    cpu_set_t *set = CPU_ALLOC(capacity);
    if (!set)
      break;
    size_t bytes = CPU_ALLOC_SIZE(capacity);
    bool ok = sched_getaffinity(getpid(), bytes, set) == 0;
    if (ok)
      for (int cpu = 0; cpu < capacity; ++cpu)
        if (CPU_ISSET_S(cpu, bytes, set))
          cpus.push_back(cpu);
    CPU_FREE(set);
    if (ok)
      break;
  }
  int own = sched_getcpu();
  if (cpus.empty())
    cpus.push_back(std::max(own, 0));

  std::vector<int> first, siblings, seen;
  for (int cpu : cpus) {
    int core = firstSibling(cpu);
    if (std::find(seen.begin(), seen.end(), core) == seen.end()) {
      seen.push_back(core);
      first.push_back(cpu);
    } else {
      siblings.push_back(cpu);
    }
  }
  rotateAfter(first, own);
  rotateAfter(siblings, own);
  topology.cores = static_cast<unsigned>(first.size());
  topology.cpus = std::move(first);
  topology.cpus.insert(topology.cpus.end(), siblings.begin(), siblings.end());
  topology.quota = readQuota();
  return topology;
}
