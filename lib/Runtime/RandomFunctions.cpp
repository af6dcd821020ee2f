//===- RandomFunctions.cpp - Random numbers -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seeds give the numbers that numpy.random.RandomState gives for them: those of
// MT19937 (M. Matsumoto, T. Nishimura, 1998), 53 bits of two draws each.
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include <algorithm>
#include <random>

using namespace sardonyx::runtime;

/// whether any number is wanted (all are 0 otherwise), whether there is a seed,
/// the seed -> f64 from [0, 1).
static void uniform(RuntimeCall &call) {
  bool isWanted = call.number() != 0, hasSeed = call.number() != 0;
  auto seed = static_cast<uint32_t>(call.number());
  auto out = call.tensor<double>();
  if (!isWanted) {
    std::fill(out.begin(), out.end(), 0.0);
    return;
  }
  std::mt19937 generator;
  if (hasSeed) {
    generator.seed(seed);
  } else {
    std::random_device device;
    std::seed_seq noise{device(), device(), device(), device()};
    generator.seed(noise);
  }
  for (double &number : out) {
    uint64_t high = generator() >> 5, low = generator() >> 6;
    number = static_cast<double>((high << 26) + low) / (int64_t(1) << 53);
  }
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_random_uniform, uniform)
