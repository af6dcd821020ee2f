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

namespace {
/// What both functions are given alike.
struct Given {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void *address;
  const cuuint64_t *sizes, *strides;
  const cuuint32_t *steps;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapFloatOOBfill fill;
};
} // namespace

/// The rules of cuda.h for tensors that are not interleaved. Returns which one
/// is broken, or an empty sentence. `row`: the bytes of a row of the box.
static std::string checkTensor(const Given &given, uint64_t row) {
  for (cuuint32_t i = 0; i < given.rank; ++i) {
    std::string where = " in dimension " + std::to_string(i);
    if (!given.sizes[i] || given.sizes[i] > uint64_t(1) << 32)
      return "a size of " + std::to_string(given.sizes[i]) + where;
    if (!given.steps[i] || given.steps[i] > 8)
      return "a step of " + std::to_string(given.steps[i]) + where;
    if (i && (given.strides[i - 1] % 16 || given.strides[i - 1] >= uint64_t(1)
                                                                       << 40))
      return "a stride of " + std::to_string(given.strides[i - 1]) + " bytes" +
             where;
  }
  if (row % 16)
    return "rows of " + std::to_string(row) + " bytes in the box";
  uint64_t most = given.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE
                      ? UINT64_MAX
                      : uint64_t(16) << static_cast<int>(given.swizzle);
  if (row > most)
    return "rows of " + std::to_string(row) +
           " bytes in the box, swizzled by " + std::to_string(most);
  return "";
}

static std::string checkBox(cuuint32_t rank, const cuuint32_t *box) {
  for (cuuint32_t i = 0; i < rank; ++i)
    if (!box[i] || box[i] > 256)
      return "a box of " + std::to_string(box[i]) + " in dimension " +
             std::to_string(i);
  return "";
}

/// The bounding box of an image; its corners have fewer bits the more there
/// are.
static std::string checkPixels(const Given &given, const int *lower,
                               const int *upper, cuuint32_t channels,
                               cuuint32_t pixels) {
  const int dims = int(given.rank) - 2;
  const int most = dims == 1 ? 32767 : dims == 2 ? 127 : 15;
  for (int i = 0; i < dims; ++i) {
    for (int corner : {lower[i], upper[i]})
      if (corner > most || corner < -most - 1)
        return "a corner at " + std::to_string(corner);
    if (int64_t(given.sizes[i + 1]) + upper[i] <= lower[i])
      return "a bounding box without pixels";
  }
  if (!channels || channels > 256 || !pixels || pixels > 1024)
    return std::to_string(pixels) + " pixels of " + std::to_string(channels) +
           " channels";
  return "";
}

/// What both kinds of maps have, or the code of the refusal.
static CUresult begin(DriverState &state, const std::string &name,
                      CUtensorMap *map, const Given &given, TensorMap &made) {
  auto refuse = [&](CUresult code, const std::string &why) {
    return state.tell(code, name + ": " + why);
  };
  if (state.settings().sm < 90)
    return refuse(CUDA_ERROR_NOT_SUPPORTED, "the device has no TMA");
  if (given.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
    return refuse(CUDA_ERROR_NOT_SUPPORTED, "an interleaved tensor");
  bool fillsNaN =
      given.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  if (!elementBytes(given.type) || given.rank < 1 || given.rank > 5 ||
      given.swizzle < CU_TENSOR_MAP_SWIZZLE_NONE ||
      given.swizzle > CU_TENSOR_MAP_SWIZZLE_128B ||
      (fillsNaN && !isFloat(given.type)))
    return refuse(CUDA_ERROR_INVALID_VALUE, "a type, rank, swizzle or fill");
  if (reinterpret_cast<uint64_t>(map) % 64 ||
      reinterpret_cast<uint64_t>(given.address) % 16)
    return refuse(CUDA_ERROR_INVALID_VALUE, "an address is not aligned");
  made.type = static_cast<uint8_t>(given.type);
  made.rank = static_cast<uint8_t>(given.rank);
  made.swizzle = static_cast<uint8_t>(given.swizzle);
  made.fill = fillsNaN;
  made.address = reinterpret_cast<uint64_t>(given.address);
  for (cuuint32_t i = 0; i < given.rank; ++i) {
    // A size of 2^32 has no place: no memory here is as large.
    if (given.sizes[i] > UINT32_MAX)
      return refuse(CUDA_ERROR_NOT_SUPPORTED, "a size of 2^32");
    made.sizes[i] = static_cast<uint32_t>(given.sizes[i]);
    made.elementStrides[i] = static_cast<uint8_t>(given.steps[i]);
    if (i)
      made.strides[i - 1] = given.strides[i - 1];
  }
  return CUDA_SUCCESS;
}

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap), "");

/// Writes a map. `finish` fills in what is of its kind, or tells why it can't.
template <typename F>
static CUresult encode(const std::string &name, CUtensorMap *map,
                       const Given &given, F finish) {
  DriverState &state = DriverState::get();
  return state.call(name.c_str(), Needs::Context, [&] {
    TensorMap made;
    CUresult code = begin(state, name, map, given, made);
    if (code != CUDA_SUCCESS)
      return code;
    std::string why = finish(made);
    if (!why.empty())
      return state.tell(CUDA_ERROR_INVALID_VALUE, name + ": " + why);
    memcpy(map, &made, sizeof(made));
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
    const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
    const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
    CUtensorMapFloatOOBfill fill) {
  const Given given = {type,  rank,       address, sizes, strides,
                       steps, interleave, swizzle, fill};
  return encode("cuTensorMapEncodeTiled", map, given, [&](TensorMap &made) {
    std::string why = checkBox(rank, box);
    if (why.empty())
      why = checkTensor(given, box[0] * elementBytes(type));
    if (why.empty())
      for (cuuint32_t i = 0; i < rank; ++i)
        made.box[i] = static_cast<uint16_t>(box[i]);
    return why;
  });
}

CUresult cuda::cuTensorMapEncodeIm2col(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
    const cuuint64_t *sizes, const cuuint64_t *strides, const int *lower,
    const int *upper, cuuint32_t channels, cuuint32_t pixels,
    const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
    CUtensorMapFloatOOBfill fill) {
  const Given given = {type,  rank,       address, sizes, strides,
                       steps, interleave, swizzle, fill};
  return encode("cuTensorMapEncodeIm2col", map, given, [&](TensorMap &made) {
    std::string why = rank < 3 ? "a tensor that is no image" : "";
    if (why.empty())
      why = checkPixels(given, lower, upper, channels, pixels);
    if (why.empty())
      why = checkTensor(given, channels * elementBytes(type));
    if (!why.empty())
      return why;
    made.isIm2col = 1;
    made.box = {static_cast<uint16_t>(channels), static_cast<uint16_t>(pixels)};
    for (cuuint32_t i = 0; i + 2 < rank; ++i) {
      made.lower[i] = static_cast<int16_t>(lower[i]);
      made.upper[i] = static_cast<int16_t>(upper[i]);
    }
    return why;
  });
}
