//===- TensorMap.h - Tensors for copies by hardware -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_TENSORMAP_H
#define SARDONYX_LIB_RUNTIME_GPU_TENSORMAP_H

#include "lib/Runtime/GPU/Device.h"
#include <vector>

namespace sardonyx {
namespace runtime {
namespace gpu {

/// A tensor on the device, and the box of it that one copy by TMA brings to
/// shared memory. The innermost dimension comes first.
struct TiledTensor {
  cuda::CUtensorMapDataType type = cuda::CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  cuda::CUdeviceptr address = 0;
  /// Elements of each dimension, 1 to 5.
  std::vector<uint64_t> sizes;
  /// Bytes from one element to the next, of each dimension but the first.
  std::vector<uint64_t> strides;
  /// Elements of the box; of an image the channels and how many pixels.
  std::vector<uint32_t> box;
  /// An image [N,(D),(H),W,C]: copies are of pixels that follow each other, in
  /// `steps`, in the bounding box that begins at `lower` and ends at `upper`
  /// from the image's size on, and that lie by the copy's offsets further.
  bool isImage = false;
  std::vector<int> lower, upper;
  /// Of each dimension; empty: 1.
  std::vector<uint32_t> steps;
  /// How the rows of the box lie in shared memory.
  cuda::CUtensorMapSwizzle swizzle = cuda::CU_TENSOR_MAP_SWIZZLE_NONE;
};

/// The tensor that SDX_RT_MAP_WORDS words describe (RuntimeABI.h).
Result<TiledTensor> readTensor(const int64_t *words);

/// What a kernel takes as an argument for the tensor. Elements outside of the
/// tensor are zero in the copy. Devices before 9.0 have no such copies.
Result<cuda::CUtensorMap> encode(Device &device, const TiledTensor &tensor);

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_TENSORMAP_H
