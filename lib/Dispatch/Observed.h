//===- Observed.h - What nobody's result hangs on ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_OBSERVED_H
#define SARDONYX_LIB_DISPATCH_OBSERVED_H

#include "dialects/SDX/SDX.h"

namespace sardonyx {

/// Of the terminator of a body: what it computes is only observed.
inline constexpr llvm::StringLiteral kObservedAttr = "sdx.observed";

/// Whether `op` sees a value for nobody's result, or computes what is only
/// seen: what an operation is made part of is decided as if there were no such
/// readers.
inline bool isObservation(mlir::Operation *op) {
  if (sdx::isObservation(op))
    return true;
  return op->getNumRegions() == 1 && op->getRegion(0).hasOneBlock() &&
         op->getRegion(0).front().mightHaveTerminator() &&
         op->getRegion(0).front().getTerminator()->hasAttr(kObservedAttr);
}

} // namespace sardonyx

#endif // SARDONYX_LIB_DISPATCH_OBSERVED_H
