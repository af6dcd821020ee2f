//===- StridedCopy.cpp - Copies between strided tensors -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx-c/RuntimeABI.h"
#include <cstring>

namespace {

/// One dimension of a copy; strides in bytes.
struct Dim {
  int64_t size, source, target;
};

constexpr int64_t kMaxRank = 64;

template <typename T>
void copyRow(const char *source, char *target, const Dim &dim) {
  for (int64_t i = 0; i < dim.size; ++i)
    memcpy(target + i * dim.target, source + i * dim.source, sizeof(T));
}

void copyInner(const char *source, char *target, const Dim &dim,
               int64_t bytes) {
  switch (bytes) {
  case 1:
    return copyRow<uint8_t>(source, target, dim);
  case 2:
    return copyRow<uint16_t>(source, target, dim);
  case 4:
    return copyRow<uint32_t>(source, target, dim);
  case 8:
    return copyRow<uint64_t>(source, target, dim);
  default:
    for (int64_t i = 0; i < dim.size; ++i)
      memcpy(target + i * dim.target, source + i * dim.source, bytes);
  }
}

} // namespace

void sdx_rt_copy(int64_t elementBytes, int64_t rank, const void *source,
                 void *target, const int64_t *layout) {
  if (rank > kMaxRank) {
    sdx_rt_check_failed("a copied tensor has more than 64 dimensions",
                        SDX_RT_UNSUPPORTED, 0, 0, 0, 0);
    return;
  }
  auto *data = static_cast<const char *>(source);
  auto *out = static_cast<char *>(target);
  const int64_t *from = layout + rank, *to = from + rank;

  // Drop dimensions of size 1 and merge those that are contiguous in both.
  Dim dims[kMaxRank];
  int64_t count = 0;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t size = layout[i];
    if (size <= 0)
      return;
    if (size == 1)
      continue;
    Dim dim{size, from[i] * elementBytes, to[i] * elementBytes};
    if (count && dims[count - 1].source == dim.source * size &&
        dims[count - 1].target == dim.target * size) {
      dims[count - 1] = {dims[count - 1].size * size, dim.source, dim.target};
      continue;
    }
    dims[count++] = dim;
  }
  // What is contiguous innermost is one block.
  int64_t block = elementBytes;
  if (count && dims[count - 1].source == elementBytes &&
      dims[count - 1].target == elementBytes)
    block = dims[--count].size * elementBytes;
  if (count == 0) {
    memmove(out, data, block);
    return;
  }

  const Dim inner = dims[--count];
  int64_t index[kMaxRank] = {};
  for (;;) {
    copyInner(data, out, inner, block);
    int64_t d = count - 1;
    for (; d >= 0; --d) {
      data += dims[d].source;
      out += dims[d].target;
      if (++index[d] < dims[d].size)
        break;
      data -= dims[d].source * dims[d].size;
      out -= dims[d].target * dims[d].size;
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}
