//===- PackedWeights.h - Weights as kernels read them -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `sdx_init` makes of a model's weights, as a file that can be mapped: a
// header with a checksum, a text that tells whose weights these are, the shapes
// of the tensors, and each tensor at a multiple of 64 bytes.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_CACHE_PACKEDWEIGHTS_H
#define SARDONYX_LIB_SESSION_CACHE_PACKEDWEIGHTS_H

#include "sardonyx/Model/FileMap.h"
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {

struct PackedTensor {
  const void *data = nullptr;
  uint32_t elementBytes = 1;
  std::vector<int64_t> sizes;

  /// Size of the data; the sizes are known to allow it.
  uint64_t bytes() const;
};

struct PackedWeights {
  std::vector<PackedTensor> tensors;
  /// Where the tensors lie.
  std::shared_ptr<FileMap> file;
};

/// The bytes of a file of `tensors`, in pieces that are to be written one after
/// the other. Those that are no tensor's lie in `memory`.
std::vector<std::string_view>
layOutWeights(const std::string &owner,
              const std::vector<PackedTensor> &tensors, std::string &memory);

/// The tensors in a file that layOutWeights() made for this owner, of these
/// elements; null where it is another one. `isTrusted`: nobody can have damaged
/// it, so that its data is not read.
std::shared_ptr<const PackedWeights>
readWeights(std::shared_ptr<FileMap> file, const std::string &owner,
            const std::vector<uint32_t> &elementBytes, bool isTrusted);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_CACHE_PACKEDWEIGHTS_H
