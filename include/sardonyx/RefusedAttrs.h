//===- RefusedAttrs.h - What is noted on refused ops ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_REFUSEDATTRS_H
#define SARDONYX_REFUSEDATTRS_H

#include "llvm/ADT/StringRef.h"

namespace sardonyx {

/// On an op that has no lowering: why the last pattern refused it, a string.
/// (What notifyMatchFailure is told ends in debug builds of MLIR.)
inline constexpr llvm::StringLiteral kRefusedAttr = "sdx.refused";
/// On such an op, a unit: no sizes and values of inputs could help.
inline constexpr llvm::StringLiteral kRefusedForGoodAttr =
    "sdx.refused_for_good";

} // namespace sardonyx

#endif // SARDONYX_REFUSEDATTRS_H
