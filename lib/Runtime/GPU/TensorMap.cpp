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
  case SDX_RT_MAP_I32:
    type = CU_TENSOR_MAP_DATA_TYPE_INT32;
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
      !findSwizzle(form >> 16 & 0xff, tensor.swizzle) || form >> 25 ||
      rank < 1 || rank > 5)
    return Failure{FailureKind::InvalidArgument,
                   "the model's code describes a tensor in a form that is not "
                   "known"};
  tensor.address = static_cast<CUdeviceptr>(words[SDX_RT_MAP_ADDRESS]);
  for (int64_t i = 0; i < rank; ++i) {
    tensor.sizes.push_back(static_cast<uint64_t>(words[SDX_RT_MAP_SIZES + i]));
    if (i > 0)
      tensor.strides.push_back(
          static_cast<uint64_t>(words[SDX_RT_MAP_STRIDES + i - 1]));
  }
  tensor.isImage = form & SDX_RT_MAP_IMAGE;
  for (int64_t i = 0; i < (tensor.isImage ? 2 : rank); ++i)
    tensor.box.push_back(static_cast<uint32_t>(words[SDX_RT_MAP_BOX + i]));
  if (!tensor.isImage)
    return tensor;
  for (int64_t i = 0; i + 2 < rank; ++i) {
    tensor.lower.push_back(
        static_cast<int16_t>(words[SDX_RT_MAP_LOWER] >> 16 * i));
    tensor.upper.push_back(
        static_cast<int16_t>(words[SDX_RT_MAP_UPPER] >> 16 * i));
  }
  for (int64_t i = 0; i < rank; ++i)
    tensor.steps.push_back(
        static_cast<uint8_t>(words[SDX_RT_MAP_STEPS] >> 8 * i));
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
  std::vector<uint32_t> steps = tensor.steps;
  if (steps.empty())
    steps.assign(rank, 1);
  if (tensor.strides.size() != rank - 1 || steps.size() != rank ||
      tensor.box.size() != (tensor.isImage ? 2 : rank))
    return refuse("the strides or the box have another rank");
  if (tensor.isImage && (rank < 3 || tensor.lower.size() != rank - 2 ||
                         tensor.upper.size() != rank - 2))
    return refuse("the corners have another rank");
  CUtensorMap map = {};
  void *address = reinterpret_cast<void *>(tensor.address);
  auto encodeMap = [&](const Functions &f) {
    if (tensor.isImage)
      return f.cuTensorMapEncodeIm2col(
          &map, tensor.type, static_cast<uint32_t>(rank), address,
          tensor.sizes.data(), tensor.strides.data(), tensor.lower.data(),
          tensor.upper.data(), tensor.box[0], tensor.box[1], steps.data(),
          CU_TENSOR_MAP_INTERLEAVE_NONE, tensor.swizzle,
          CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return f.cuTensorMapEncodeTiled(
        &map, tensor.type, static_cast<uint32_t>(rank), address,
        tensor.sizes.data(), tensor.strides.data(), tensor.box.data(),
        steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, tensor.swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  if (MaybeFailure failure =
          device.call("cannot describe a tensor to the device", encodeMap))
    return *failure;
  return map;
}
