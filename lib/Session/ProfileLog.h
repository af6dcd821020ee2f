//===- ProfileLog.h - What a session's runs record --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_PROFILELOG_H
#define SARDONYX_LIB_SESSION_PROFILELOG_H

#include "sardonyx/Model/Profile.h"
#include "sardonyx/Runtime/ForkSafeMutex.h"
#include "sardonyx/Runtime/RunContext.h"

#include <map>
#include <thread>
#include <vector>

namespace sardonyx {

/// Collects the records of runs, of any number of threads at a time.
class ProfileLog {
public:
  /// Adds a run of code that has so many `sites`.
  void add(int64_t begin, int64_t end,
           const std::vector<runtime::StepRecord> &steps,
           const std::vector<runtime::LaunchRecord> &launches, size_t sites);
  /// Moves all runs to the end of `profile`, with the code's sites.
  void moveTo(Profile &profile, const std::vector<ProfileSite> &sites);

private:
  runtime::ForkSafeMutex mutex;
  std::vector<ProfileRun> runs;
  size_t events = 0, droppedRuns = 0;
  std::map<std::thread::id, size_t> threads;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_PROFILELOG_H
