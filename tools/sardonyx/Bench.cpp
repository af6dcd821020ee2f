//===- Bench.cpp - sardonyx bench -----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Json.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <thread>

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

namespace {
/// What was measured of some runs.
struct Measured {
  std::vector<double> seconds; // of each run, sorted
  double wall = 0;             // from the first run to the end of the last

  double percentile(double p) const {
    const double rank = std::ceil(p * static_cast<double>(seconds.size()));
    return seconds[static_cast<size_t>(rank) - 1];
  }
  double mean() const {
    return std::accumulate(seconds.begin(), seconds.end(), 0.0) /
           static_cast<double>(seconds.size());
  }
  double perSecond() const {
    return static_cast<double>(seconds.size()) / wall;
  }
};
} // namespace

/// Seconds of a run; throws where it fails.
static double runOnce(Session &session, const std::vector<TensorRef> &refs) {
  auto begin = Clock::now();
  auto results = session.run(refs);
  double seconds = secondsSince(begin);
  if (!results)
    throw std::runtime_error(results.error().message());
  return seconds;
}

/// Runs from as many threads as were asked for, until the time is over and each
/// has run three times.
static Measured measure(const BenchCommand &command, Session &session,
                        const std::vector<TensorRef> &refs) {
  Measured result;
  std::vector<std::vector<double>> times(command.concurrency);
  std::vector<std::exception_ptr> failures(command.concurrency);
  const auto start = Clock::now();
  auto work = [&](unsigned number) {
    try {
      while (times[number].size() < 3 || secondsSince(start) < command.seconds)
        times[number].push_back(runOnce(session, refs));
    } catch (...) {
      failures[number] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < command.concurrency; ++i)
    threads.emplace_back(work, i);
  work(0);
  for (std::thread &thread : threads)
    thread.join();
  result.wall = secondsSince(start);
  for (const std::exception_ptr &failure : failures)
    if (failure)
      std::rethrow_exception(failure);
  for (const std::vector<double> &some : times)
    result.seconds.insert(result.seconds.end(), some.begin(), some.end());
  std::sort(result.seconds.begin(), result.seconds.end());
  return result;
}

namespace {
struct BenchResult {
  double loadSeconds, firstSeconds, flops, memoryBytes;
  Measured runs;
};
} // namespace

static void printJson(const BenchCommand &command, const Session &session,
                      const std::vector<Feed> &feeds,
                      const BenchResult &result) {
  const Measured &runs = result.runs;
  JsonReport json("bench");
  json.add("model", command.common.model);
  json.addFeeds(session, feeds);
  json.add("threads", static_cast<int64_t>(session.report().threads));
  json.add("concurrency", static_cast<int64_t>(command.concurrency));
  json.add("load_seconds", result.loadSeconds);
  json.add("from_cache", session.report().fromCache);
  json.add("first_run_seconds", result.firstSeconds);
  json.add("runs", static_cast<int64_t>(runs.seconds.size()));
  json.add("runs_per_second", runs.perSecond());
  json.nested("latency_seconds", [&] {
    json.add("min", runs.seconds.front());
    json.add("p50", runs.percentile(0.5));
    json.add("p90", runs.percentile(0.9));
    json.add("p99", runs.percentile(0.99));
    json.add("max", runs.seconds.back());
    json.add("mean", runs.mean());
  });
  json.add("peak_memory_bytes", result.memoryBytes);
  json.add("flops", result.flops);
}

static void print(const BenchCommand &command, const Session &session,
                  const std::vector<Feed> &feeds, const BenchResult &result) {
  const Measured &runs = result.runs;
  printf("model      %s\n", command.common.model.c_str());
  for (const std::string &input : describeFeeds(session, feeds))
    printf("input      %s\n", input.c_str());
  printf("threads    %u\n", session.report().threads);
  printf("load       %s%s\n", describeSeconds(result.loadSeconds).c_str(),
         session.report().fromCache ? " (from the cache)" : "");
  printf("first run  %s\n", describeSeconds(result.firstSeconds).c_str());
  printf("runs       %zu\n", runs.seconds.size());
  printf("latency    min %s  p50 %s  p90 %s  p99 %s  max %s  mean %s\n",
         describeSeconds(runs.seconds.front()).c_str(),
         describeSeconds(runs.percentile(0.5)).c_str(),
         describeSeconds(runs.percentile(0.9)).c_str(),
         describeSeconds(runs.percentile(0.99)).c_str(),
         describeSeconds(runs.seconds.back()).c_str(),
         describeSeconds(runs.mean()).c_str());
  if (command.concurrency > 1)
    printf("at a time  %u runs, %.1f a second in all\n", command.concurrency,
           runs.perSecond());
  printf("memory     %s at its peak\n",
         describeBytes(result.memoryBytes).c_str());
  if (std::optional<DeviceUse> use = session.lastDeviceUse()) {
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
  if (result.flops)
    printf("speed      %.1f GFLOP/s at the median (%.3f GFLOP a run)\n",
           result.flops / runs.percentile(0.5) * 1e-9, result.flops * 1e-9);
}

int bench(const BenchCommand &command) {
  const auto start = Clock::now();
  std::shared_ptr<Session> session = loadSession(command.common);
  BenchResult result;
  result.loadSeconds = secondsSince(start);
  std::vector<Feed> feeds = makeFeeds(*session, command.feeds);
  std::vector<TensorRef> refs = refsOf(feeds);
  result.firstSeconds = runOnce(*session, refs);
  for (unsigned i = 0; i < command.warmup; ++i)
    runOnce(*session, refs);
  result.runs = measure(command, *session, refs);
  result.memoryBytes = peakMemory();
  result.flops = countFlops(command, *session, feeds);
  if (command.json)
    printJson(command, *session, feeds, result);
  else
    print(command, *session, feeds, result);
  return 0;
}
