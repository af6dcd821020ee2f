//===- ObservationFunctions.cpp - Tensors that are seen as a whole --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include "sardonyx-c/RuntimeABI.h"
#include <algorithm>

using namespace sardonyx::runtime;

namespace {

/// Numbers that are worth a thread's while.
constexpr int64_t kPart = 16384;

struct SeenTensor {
  Observations &observations;
  int64_t site, what, type;
  const char *data;
  int64_t bytes; // of a number
  /// How the tensor is cut, channels and numbers of one that follow each other.
  int64_t count = 0, channels = 1, inner = 1;
};

void seeNumbers(int64_t begin, int64_t end, void *env) {
  auto &tensor = *static_cast<SeenTensor *>(env);
  const int64_t first = begin * kPart;
  const int64_t last = std::min(end * kPart, tensor.count);
  tensor.observations.add(
      tensor.site, tensor.what, RunContext::share(),
      {tensor.data + first * tensor.bytes, 1, 0, last - first});
}

void seeChannels(int64_t begin, int64_t end, void *env) {
  auto &tensor = *static_cast<SeenTensor *>(env);
  const int64_t size = tensor.channels * tensor.inner;
  tensor.observations.addChannels(tensor.site, tensor.type, RunContext::share(),
                                  tensor.data + begin * size * tensor.bytes,
                                  end - begin, tensor.channels, tensor.inner);
}

} // namespace

void sdx_rt_observe(int64_t site, int64_t what, const void *data, int64_t rows,
                    int64_t stride, int64_t count) {
  RunContext *run = RunContext::current();
  if (run && run->observations())
    run->observations()->add(site, what, RunContext::share(),
                             {data, rows, stride, count});
}

/// The site, what is to be seen and the numbers' type (as for sdx_rt_observe),
/// the channels' axis, and the tensor.
static void observe(RuntimeCall &call) {
  RunContext &run = call.context();
  const int64_t site = call.number(), what = call.number();
  const int64_t axis = call.number();
  auto tensor = call.tensor<char>();
  Observations *observations = run.observations();
  const int64_t count = tensor.count();
  if (!observations || !count)
    return;
  constexpr int kTypeBits = 8;
  const int64_t type = what >> kTypeBits;
  SeenTensor seen{
      *observations, site,
      what,          type,
      tensor.data,   type == SDX_RT_F64 ? 8 : type == SDX_RT_F32 ? 4 : 2};
  seen.count = count;
  if (what & (ObserveRange | ObserveMoments | ObserveBits))
    run.parallelFor((count + kPart - 1) / kPart, 1, seeNumbers, &seen);
  if (what & ObserveChannels) {
    seen.channels = tensor.sizes[axis];
    for (int64_t d = axis + 1; d < tensor.rank; ++d)
      seen.inner *= tensor.sizes[d];
    if (!observations->setWidth(site, seen.channels))
      return call.fail("an observed tensor has " +
                       std::to_string(seen.channels) +
                       " channels, and had another number of them before");
    const int64_t size = seen.channels * seen.inner;
    run.parallelFor(count / size, std::max<int64_t>(1, kPart / size),
                    seeChannels, &seen);
  }
  if (what & ObserveGram) {
    if (!observations->setWidth(site, tensor.sizes[0]))
      return call.fail("an observed tensor has " +
                       std::to_string(tensor.sizes[0]) +
                       " columns, and had another number of them before");
    observations->addGram(site, type, RunContext::share(), tensor.data, count);
  }
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_observe_tensor, observe)
