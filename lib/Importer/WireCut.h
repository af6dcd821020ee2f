//===- WireCut.h - A model without its weights' bytes -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Protobuf copies every `bytes` field that it parses. To leave the weights
// where they are, the serialized model is scanned first: large raw_data fields
// are left out and their place in the file is noted.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_WIRECUT_H
#define SARDONYX_LIB_IMPORTER_WIRECUT_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sardonyx::importer {

struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
};

/// Key of the external_data entry that says where the raw_data of a tensor lie;
/// its value is the index of the range.
inline constexpr llvm::StringLiteral kCutKey = "sdx.cut";

/// Returns a serialized ModelProto equal to `model` but for raw_data fields of
/// more than `keep` bytes, which are left out. Their ranges, and those of
/// smaller ones that are worth referring to, are appended to `cuts`.
/// Throws ImportError if `model` is not in protobuf's wire format.
std::string cutRawData(llvm::StringRef model, uint64_t keep,
                       std::vector<ByteRange> &cuts);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_WIRECUT_H
