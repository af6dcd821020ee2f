//===- TaskLoops.h - What loops over tasks compute --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop over tasks (scf.forall) is a program on elements, which tells how
// something is computed by one thread a task. Where a target may have another
// way, an attribute of the loop tells what it computes: such a target makes
// code of that, and all others of the loop.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_SDX_TASKLOOPS_H
#define SARDONYX_DIALECTS_SDX_TASKLOOPS_H

#include "llvm/ADT/StringRef.h"

namespace sardonyx::sdx {

/// The loop computes running sums along dimension 1 of the only tensor [A,N,B]
/// that it reads elements of, in the type of its result, which is of the same
/// sizes. A string of words: "product" instead of sums; "exclusive": an element
/// does not count for its own place; "reverse": from the end on.
inline constexpr llvm::StringLiteral kScanAttr = "sdx.scan";

/// The loop has the best elements of each row of the only tensor [R,N] that it
/// reads elements of: its results are these, [R,K], the best first, and their
/// indices in the row. Of equals the lower index is first, NaN is more than all
/// else. A string of words: "smallest" instead of largest; "unsigned" integers.
inline constexpr llvm::StringLiteral kTopKAttr = "sdx.top_k";

} // namespace sardonyx::sdx

#endif // SARDONYX_DIALECTS_SDX_TASKLOOPS_H
