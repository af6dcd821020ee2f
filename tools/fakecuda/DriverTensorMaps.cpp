//===- DriverTensorMaps.cpp - The fake CUDA driver: tensor maps -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/fakecuda/DriverState.h"
#include <cstring>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::fakecuda;

/// Bytes of an element, or 0 for a type that is not known.
static uint64_t elementBytes(CUtensorMapDataType type) {
  switch (type) {
  case CU_TENSOR_MAP_DATA_TYPE_UINT8:
    return 1;
  case CU_TENSOR_MAP_DATA_TYPE_UINT16:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
  case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
    return 2;
  case CU_TENSOR_MAP_DATA_TYPE_UINT32:
  case CU_TENSOR_MAP_DATA_TYPE_INT32:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
  case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
  case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
    return 4;
  case CU_TENSOR_MAP_DATA_TYPE_UINT64:
  case CU_TENSOR_MAP_DATA_TYPE_INT64:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
    return 8;
  }
  return 0;
}

static bool isFloat(CUtensorMapDataType type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

/// The rules of cuTensorMapEncodeTiled's documentation for tensors that are not
/// interleaved. Returns which one is broken, or an empty sentence.
static std::string checkShape(uint64_t bytes, cuuint32_t rank,
                              const cuuint64_t *sizes,
                              const cuuint64_t *strides, const cuuint32_t *box,
                              const cuuint32_t *steps,
                              CUtensorMapSwizzle swizzle) {
  for (cuuint32_t i = 0; i < rank; ++i) {
    std::string where = " in dimension " + std::to_string(i);
    if (!sizes[i] || sizes[i] > uint64_t(1) << 32)
      return "a size of " + std::to_string(sizes[i]) + where;
    if (!box[i] || box[i] > 256)
      return "a box of " + std::to_string(box[i]) + where;
    if (!steps[i] || steps[i] > 8)
      return "a step of " + std::to_string(steps[i]) + where;
    if (i && (strides[i - 1] % 16 || strides[i - 1] >= uint64_t(1) << 40))
      return "a stride of " + std::to_string(strides[i - 1]) + " bytes" + where;
  }
  uint64_t row = box[0] * bytes;
  if (row % 16)
    return "rows of " + std::to_string(row) + " bytes in the box";
  uint64_t most = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE
                      ? UINT64_MAX
                      : uint64_t(16) << static_cast<int>(swizzle);
  if (row > most)
    return "rows of " + std::to_string(row) +
           " bytes in the box, swizzled by " + std::to_string(most);
  return "";
}

CUresult cuda::cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
    const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
    const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
    CUtensorMapFloatOOBfill fill) {
  DriverState &state = DriverState::get();
  return state.call("cuTensorMapEncodeTiled", Needs::Context, [&] {
    auto refuse = [&](CUresult code, const std::string &why) {
      return state.tell(code, "cuTensorMapEncodeTiled: " + why);
    };
    if (state.settings().sm < 90)
      return refuse(CUDA_ERROR_NOT_SUPPORTED, "the device has no TMA");
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
      return refuse(CUDA_ERROR_NOT_SUPPORTED, "an interleaved tensor");
    uint64_t bytes = elementBytes(type);
    bool fillsNaN = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
    if (!bytes || rank < 1 || rank > 5 ||
        swizzle < CU_TENSOR_MAP_SWIZZLE_NONE ||
        swizzle > CU_TENSOR_MAP_SWIZZLE_128B || (fillsNaN && !isFloat(type)))
      return refuse(CUDA_ERROR_INVALID_VALUE, "a type, rank, swizzle or fill");
    if (reinterpret_cast<uint64_t>(map) % 64 ||
        reinterpret_cast<uint64_t>(address) % 16)
      return refuse(CUDA_ERROR_INVALID_VALUE, "an address is not aligned");
    std::string why =
        checkShape(bytes, rank, sizes, strides, box, steps, swizzle);
    if (!why.empty())
      return refuse(CUDA_ERROR_INVALID_VALUE, why);
    TensorMap made;
    made.type = static_cast<uint8_t>(type);
    made.rank = static_cast<uint8_t>(rank);
    made.swizzle = static_cast<uint8_t>(swizzle);
    made.fill = fillsNaN;
    made.address = reinterpret_cast<uint64_t>(address);
    for (cuuint32_t i = 0; i < rank; ++i) {
      // A size of 2^32 has no place: no memory here is as large.
      if (sizes[i] > UINT32_MAX)
        return refuse(CUDA_ERROR_NOT_SUPPORTED, "a size of 2^32");
      made.sizes[i] = static_cast<uint32_t>(sizes[i]);
      made.box[i] = static_cast<uint16_t>(box[i]);
      made.elementStrides[i] = static_cast<uint8_t>(steps[i]);
      if (i)
        made.strides[i - 1] = strides[i - 1];
    }
    static_assert(sizeof(TensorMap) == sizeof(CUtensorMap), "");
    memcpy(map, &made, sizeof(made));
    return CUDA_SUCCESS;
  });
}
