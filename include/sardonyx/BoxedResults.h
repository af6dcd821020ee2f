//===- BoxedResults.h - Results whose rank only a run knows -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_BOXEDRESULTS_H
#define SARDONYX_BOXEDRESULTS_H

#include "llvm/ADT/StringRef.h"

namespace sardonyx {

/// On a module: the numbers of the model's results whose ranks only a run
/// knows. The program gives a sequence of the one tensor for each.
inline constexpr llvm::StringLiteral kBoxedResultsAttr = "sdx.boxed_results";

} // namespace sardonyx

#endif // SARDONYX_BOXEDRESULTS_H
