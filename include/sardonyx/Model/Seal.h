//===- Seal.h - Whether a file is whole -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shared library that was cut off or changed would take its process with it
// when it is loaded. Those of `sardonyx build` end in a seal, behind all that
// the system reads of them.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_SEAL_H
#define SARDONYX_MODEL_SEAL_H

#include "sardonyx/Model/Error.h"
#include <string>
#include <string_view>

namespace sardonyx {

/// The seal of a file that holds `bytes`.
std::string sealOf(std::string_view bytes);

/// What is wrong with a file that should end in its seal, if anything.
MaybeError checkSeal(std::string_view file, const std::string &path);

/// XXH3 of much data, on all cores.
uint64_t hashOfMuch(std::string_view bytes);

} // namespace sardonyx

#endif // SARDONYX_MODEL_SEAL_H
