//===- TensorMap.cpp - Tensors for copies by hardware ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/TensorMap.h"
#include "sardonyx-c/RuntimeABI.h"

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

static bool findType(int64_t word, CUtensorMapDataType &type) {
  switch (word) {
  case SDX_RT_MAP_U8:
    type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
    return true;
  case SDX_RT_MAP_F16:
    type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    return true;
  case SDX_RT_MAP_BF16:
    type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    return true;
  case SDX_RT_MAP_F32:
    type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    return true;
  case SDX_RT_MAP_TF32:
    type = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    return true;
  default:
    return false;
  }
}

static bool findSwizzle(int64_t bytes, CUtensorMapSwizzle &swizzle) {
  switch (bytes) {
  case 0:
    swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    return true;
  case 32:
    swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
    return true;
  case 64:
    swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
    return true;
  case 128:
    swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    return true;
  default:
    return false;
  }
}

Result<TiledTensor> runtime::gpu::readTensor(const int64_t *words) {
  TiledTensor tensor;
  const int64_t form = words[SDX_RT_MAP_FORM], rank = form >> 8 & 0xff;
  if (!findType(form & 0xff, tensor.type) ||
      !findSwizzle(form >> 16, tensor.swizzle) || rank < 1 || rank > 5)
    return Failure{FailureKind::InvalidArgument,
                   "the model's code describes a tensor in a form that is not "
                   "known"};
  tensor.address = static_cast<CUdeviceptr>(words[SDX_RT_MAP_ADDRESS]);
  for (int64_t i = 0; i < rank; ++i) {
    tensor.sizes.push_back(static_cast<uint64_t>(words[SDX_RT_MAP_SIZES + i]));
    tensor.box.push_back(static_cast<uint32_t>(words[SDX_RT_MAP_BOX + i]));
    if (i > 0)
      tensor.strides.push_back(
          static_cast<uint64_t>(words[SDX_RT_MAP_STRIDES + i - 1]));
  }
  return tensor;
}

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
