//===- PeakFlops.cpp - What this machine could do -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/PeakFlops.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <sched.h>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// Enough accumulators to hide the latency of every machine known, few enough
/// to stay in registers.
constexpr int kAccumulators = 12;
constexpr int kSteps = 20000;

/// One burst of multiply-adds on vectors of `Width` floats; returns their sum
/// so that none is optimised away.
#define SARDONYX_BURST(NAME, TARGET, WIDTH)                                    \
  TARGET float NAME() {                                                        \
    typedef float Vector __attribute__((vector_size(4 * WIDTH)));              \
    Vector acc[kAccumulators], x, y;                                           \
    for (int i = 0; i < WIDTH; ++i) {                                          \
      x[i] = 1.0f - 1e-6f * i;                                                 \
      y[i] = 1e-7f * i;                                                        \
    }                                                                          \
    for (Vector &a : acc)                                                      \
      a = x;                                                                   \
    for (int step = 0; step < kSteps; ++step) {                                \
      _Pragma("clang loop unroll(full)") for (int i = 0; i < kAccumulators;    \
                                              ++i) acc[i] =                    \
          __builtin_elementwise_fma(acc[i], x, y);                             \
    }                                                                          \
    float sum = 0;                                                             \
    for (Vector &a : acc)                                                      \
      sum += a[0];                                                             \
    return sum;                                                                \
  }

#if defined(__x86_64__)
SARDONYX_BURST(burst512, __attribute__((target("avx512f"))), 16)
SARDONYX_BURST(burst256, __attribute__((target("avx2,fma"))), 8)
#endif
SARDONYX_BURST(burst128, , 4)
#undef SARDONYX_BURST

struct Kernel {
  float (*burst)();
  int width;
};

Kernel choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return {burst512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {burst256, 8};
#endif
  return {burst128, 4};
}

/// The best rate seen within a quarter of a second: a shared machine takes the
/// core away now and then.
double measureOne(Kernel kernel) {
  volatile float sink = 0;
  double best = 0;
  Clock::time_point end = Clock::now() + std::chrono::milliseconds(250);
  while (Clock::now() < end) {
    Clock::time_point start = Clock::now();
    sink = sink + kernel.burst();
    std::chrono::duration<double> took = Clock::now() - start;
    best = std::max(best, 2.0 * kernel.width * kAccumulators * kSteps /
                              took.count() / 1e9);
  }
  return best;
}

/// The best rate of reading `words` once.
double measureReading(const std::vector<uint64_t> &words) {
  volatile uint64_t sink = 0;
  double best = 0;
  Clock::time_point end = Clock::now() + std::chrono::milliseconds(250);
  while (Clock::now() < end) {
    Clock::time_point start = Clock::now();
    // Several streams: one alone does not keep enough lines on their way.
    constexpr size_t kStreams = 4;
    const size_t length = words.size() / kStreams;
    uint64_t sums[kStreams] = {};
    for (size_t i = 0; i < length; ++i)
      for (size_t stream = 0; stream < kStreams; ++stream)
        sums[stream] += words[stream * length + i];
    std::chrono::duration<double> took = Clock::now() - start;
    sink = sink + sums[0] + sums[1] + sums[2] + sums[3];
    best = std::max(best, 8.0 * kStreams * length / took.count() / 1e9);
  }
  return best;
}

/// The sum of what `measure` gives for each of `threads` threads at a time.
double sumOverThreads(unsigned threads,
                      const std::function<double()> &measure) {
  std::vector<double> rates(threads);
  std::vector<std::thread> workers;
  for (double &rate : rates)
    workers.emplace_back([&] { rate = measure(); });
  double sum = 0;
  for (unsigned i = 0; i < threads; ++i) {
    workers[i].join();
    sum += rates[i];
  }
  return sum;
}

/// 0 is one for each core of the process, which is also the most.
unsigned clampThreads(unsigned threads) {
  cpu_set_t set;
  unsigned most = sched_getaffinity(0, sizeof(set), &set) == 0
                      ? std::max(1, CPU_COUNT(&set))
                      : std::max(1u, std::thread::hardware_concurrency());
  return threads ? std::min(threads, most) : most;
}

} // namespace

double sardonyx::measurePeakGflops(unsigned threads) {
  Kernel kernel = choose();
  return sumOverThreads(clampThreads(threads),
                        [kernel] { return measureOne(kernel); });
}

double sardonyx::measureMemoryBandwidth(unsigned threads) {
  threads = clampThreads(threads);
  constexpr size_t kBytes = size_t(256) << 20;
  const size_t words = kBytes / 8 / threads;
  return sumOverThreads(threads, [words] {
    return measureReading(std::vector<uint64_t>(words, 1));
  });
}
