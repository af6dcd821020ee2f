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

/// On an scf.while in a loop over tasks: it asks whether a test, which changes
/// nothing, holds for one of the indices from its first operand on. Its state
/// is the index, which grows by 1, and whether one has been found; the first
/// block ends where one has, or with the index at a limit, the left-hand side's
/// in a comparison (slt). Several may be tested at a time.
inline constexpr llvm::StringLiteral kAnyAttr = "sdx.any";

} // namespace sardonyx::sdx

#endif // SARDONYX_DIALECTS_SDX_TASKLOOPS_H
