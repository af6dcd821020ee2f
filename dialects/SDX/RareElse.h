//===- RareElse.h - Branches that are hardly taken --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_SDX_RAREELSE_H
#define SARDONYX_DIALECTS_SDX_RAREELSE_H

#include "llvm/ADT/StringRef.h"

namespace sardonyx::sdx {

/// On an `scf.if` whose else branch hardly any iteration takes.
inline constexpr llvm::StringLiteral kRareElseAttr = "sdx.rare_else";

} // namespace sardonyx::sdx

#endif // SARDONYX_DIALECTS_SDX_RAREELSE_H
