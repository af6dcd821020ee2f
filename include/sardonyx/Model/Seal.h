//===- Seal.h - Whether a file is whole -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shared library that was cut off or changed would take its process with it
// when it is loaded. Those of `sardonyx build` end in a seal, behind all that
// the system reads of them. Weights, which are nearly all of a file, have a
// hash of their own there, so that they need not be read before they are used.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_SEAL_H
#define SARDONYX_MODEL_SEAL_H

#include "sardonyx/Model/Error.h"
#include <optional>
#include <string>
#include <string_view>

namespace sardonyx {

/// The seal of a file that holds `bytes`, of which those from `weightsOffset`
/// on are weights.
std::string sealOf(std::string_view bytes, uint64_t weightsOffset = 0,
                   uint64_t weightsBytes = 0);

/// The hash of the weights of a file that ends in its seal, if it has any, or
/// what is wrong with the rest of it.
Expected<std::optional<uint64_t>> checkSeal(std::string_view file,
                                            const std::string &path);

/// XXH3 of much data, on some threads; 0: on all cores.
uint64_t hashOfMuch(std::string_view bytes, unsigned threads = 0);

} // namespace sardonyx

#endif // SARDONYX_MODEL_SEAL_H
