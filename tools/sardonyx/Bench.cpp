//===- Bench.cpp - sardonyx bench -----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>

using namespace sardonyx;
using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Operations of one run with inputs of these shapes; 0 if they can't be told.
static double countFlops(const BenchCommand &command, const Session &session,
                         const std::vector<Feed> &feeds) {
  std::map<std::string, int64_t> dims =
      parseDims("--fix", command.common.fixed);
  for (size_t i = 0; i < feeds.size(); ++i)
    for (size_t d = 0; d < session.inputs()[i].dims.size(); ++d)
      if (d < feeds[i].shape.size())
        dims[session.inputs()[i].dims[d].symbol] = feeds[i].shape[d];
  dims.erase("");
  ModelSource source;
  source.path = command.common.model;
  auto report = inspectModel(source, dims, sessionOptions(command.common));
  return report ? report->flops : 0;
}

int bench(const BenchCommand &command) {
  auto start = Clock::now();
  std::shared_ptr<Session> session = loadSession(command.common);
  double loadSeconds = secondsSince(start);
  std::vector<Feed> feeds = makeFeeds(*session, command.feeds);
  std::vector<TensorRef> refs = refsOf(feeds);
  auto once = [&] {
    auto begin = Clock::now();
    auto results = session->run(refs);
    double seconds = secondsSince(begin);
    if (!results)
      throw std::runtime_error(results.error().message());
    return seconds;
  };
  double first = once();
  for (unsigned i = 0; i < command.warmup; ++i)
    once();
  std::vector<double> times;
  start = Clock::now();
  while (times.size() < 3 || secondsSince(start) < command.seconds)
    times.push_back(once());
  double memory = peakMemory();
  double total = 0;
  for (double seconds : times)
    total += seconds;
  std::sort(times.begin(), times.end());
  auto percentile = [&](double p) {
    return times[static_cast<size_t>(std::ceil(p * times.size())) - 1];
  };

  printf("model      %s\n", command.common.model.c_str());
  for (const std::string &input : describeFeeds(*session, feeds))
    printf("input      %s\n", input.c_str());
  printf("threads    %u\n", session->report().threads);
  printf("load       %s%s\n", describeSeconds(loadSeconds).c_str(),
         session->report().fromCache ? " (from the cache)" : "");
  printf("first run  %s\n", describeSeconds(first).c_str());
  printf("runs       %zu\n", times.size());
  printf("latency    min %s  p50 %s  p90 %s  p99 %s  max %s  mean %s\n",
         describeSeconds(times.front()).c_str(),
         describeSeconds(percentile(0.5)).c_str(),
         describeSeconds(percentile(0.9)).c_str(),
         describeSeconds(percentile(0.99)).c_str(),
         describeSeconds(times.back()).c_str(),
         describeSeconds(total / times.size()).c_str());
  printf("memory     %s at its peak\n", describeBytes(memory).c_str());
  if (std::optional<DeviceUse> use = session->lastDeviceUse()) {
    printf("device     %lld kernels, %lld copies of %s, given in %lld pieces, "
           "%lld waits a run\n",
           static_cast<long long>(use->kernels),
           static_cast<long long>(use->copies),
           describeBytes(use->copiedBytes).c_str(),
           static_cast<long long>(use->submissions),
           static_cast<long long>(use->waits));
    printf("host       %s of a run, besides waiting\n",
           describeSeconds(use->hostSeconds).c_str());
    printf("on device  %s\n", describeBytes(use->memoryBytes).c_str());
  }
  if (double flops = countFlops(command, *session, feeds))
    printf("speed      %.1f GFLOP/s at the median (%.3f GFLOP a run)\n",
           flops / percentile(0.5) * 1e-9, flops * 1e-9);
  return 0;
}
