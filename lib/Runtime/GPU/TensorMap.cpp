//===- TensorMap.cpp - Tensors for copies by hardware ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/TensorMap.h"

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

Result<CUtensorMap> runtime::gpu::encode(Device &device,
                                         const TiledTensor &tensor) {
  auto refuse = [](const std::string &why) {
    return Failure{FailureKind::InvalidArgument,
                   "cannot describe a tensor to the device: " + why};
  };
  if (device.facts().sm < 90)
    return refuse("compute capability 9.0 is needed");
  size_t rank = tensor.sizes.size();
  if (rank < 1 || rank > 5)
    return refuse("it has " + std::to_string(rank) +
                  " dimensions, 1 to 5 are possible");
  // The driver reads as many numbers as there are dimensions.
  if (tensor.strides.size() != rank - 1 || tensor.box.size() != rank)
    return refuse("the strides or the box have another rank");
  CUtensorMap map = {};
  std::vector<uint32_t> steps(rank, 1);
  if (MaybeFailure failure = device.call(
          "cannot describe a tensor to the device", [&](const Functions &f) {
            return f.cuTensorMapEncodeTiled(
                &map, tensor.type, static_cast<uint32_t>(rank),
                reinterpret_cast<void *>(tensor.address), tensor.sizes.data(),
                tensor.strides.data(), tensor.box.data(), steps.data(),
                CU_TENSOR_MAP_INTERLEAVE_NONE, tensor.swizzle,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
          }))
    return *failure;
  return map;
}
