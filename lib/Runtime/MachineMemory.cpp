//===- MachineMemory.cpp - How much memory there is -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/MemoryBudget.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>

using namespace sardonyx::runtime;

/// The number in a file of a control group; the largest there is where it has
/// none ("max").
static int64_t readLimit(const std::string &path) {
  long long limit = 0;
  bool found = false;
  if (FILE *file = fopen(path.c_str(), "re")) {
    found = fscanf(file, "%lld", &limit) == 1 && limit > 0;
    fclose(file);
  }
  return found ? limit : INT64_MAX;
}

/// The least limit of the group at `path` below `root` and those around it.
static int64_t readLimits(const std::string &root, std::string path,
                          const std::string &name) {
  int64_t limit = readLimit(root + "/" + name);
  while (path.size() > 1) {
    limit = std::min(limit, readLimit(root + path + "/" + name));
    path.resize(path.rfind('/'));
  }
  return limit;
}

/// Groups of both versions; a container sees its own as the root.
static int64_t controlGroupLimit() {
  int64_t limit = INT64_MAX;
  FILE *file = fopen("/proc/self/cgroup", "re");
  if (!file)
    return limit;
  char line[4096];
  while (fgets(line, sizeof(line), file)) {
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : nullptr;
    if (!path || path[1] != '/')
      continue;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (controllers[1] == '\0')
      limit = std::min(limit, readLimits("/sys/fs/cgroup", path, "memory.max"));
    else if (strstr(controllers, "memory"))
      limit = std::min(limit, readLimits("/sys/fs/cgroup/memory", path,
                                         "memory.limit_in_bytes"));
  }
  fclose(file);
  return limit;
}

int64_t sardonyx::runtime::machineMemory() {
  int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  int64_t physical = pages > 0 && page > 0 ? pages * page : INT64_MAX;
  return std::min(physical, controlGroupLimit());
}
