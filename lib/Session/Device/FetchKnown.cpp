//===- FetchKnown.cpp - Values on a GPU that decide on code ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Device/FetchKnown.h"
#include "lib/Session/Variants/KnownValues.h"

using namespace sardonyx;
using namespace sardonyx::runtime::gpu;

MaybeError sardonyx::fetchKnown(const ModelDevice &device,
                                std::vector<TensorRef> &inputs,
                                std::deque<std::string> &memory) {
  std::unique_ptr<Stream> stream = Stream::borrow(device.get(), nullptr);
  for (TensorRef &tensor : inputs) {
    const int64_t count = countOfKnown(tensor);
    if (tensor.device == kHost || count < 0)
      continue;
    std::string &copy = memory.emplace_back();
    copy.resize(static_cast<size_t>(count * byteSizeOf(tensor.type)));
    MaybeFailure failure = stream->copyToHost(
        copy.data(), reinterpret_cast<cuda::CUdeviceptr>(tensor.data),
        static_cast<int64_t>(copy.size()));
    if (!failure)
      failure = stream->synchronize();
    if (failure)
      return toError(*failure);
    // An empty one has no data either way.
    tensor.data = copy.data();
    tensor.device = kHost;
  }
  return std::nullopt;
}
