//===- PeakFlops.cpp - What this machine could do -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/PeakFlops.h"

#include <algorithm>
#include <chrono>
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

} // namespace

double sardonyx::measurePeakGflops(unsigned threads) {
  cpu_set_t set;
  unsigned most = sched_getaffinity(0, sizeof(set), &set) == 0
                      ? std::max(1, CPU_COUNT(&set))
                      : std::max(1u, std::thread::hardware_concurrency());
  threads = threads ? std::min(threads, most) : most;
  Kernel kernel = choose();
  std::vector<double> rates(threads);
  std::vector<std::thread> workers;
  for (double &rate : rates)
    workers.emplace_back([&rate, kernel] { rate = measureOne(kernel); });
  double sum = 0;
  for (unsigned i = 0; i < threads; ++i) {
    workers[i].join();
    sum += rates[i];
  }
  return sum;
}
