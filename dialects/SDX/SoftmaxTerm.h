//===- SoftmaxTerm.h - Exponentials that may be flushed ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SDX_SOFTMAXTERM_H
#define SARDONYX_SDX_SOFTMAXTERM_H

#include "mlir/Dialect/Math/IR/Math.h"

namespace sardonyx::sdx {

/// Of a math.exp whose result is a term of a softmax, the largest of which is
/// 1, that nothing but a product reads: it may be 0 where it is smaller than
/// normal numbers. Scores that a mask of -100 leaves out become such numbers,
/// and processors take a hundred cycles to multiply by each.
inline constexpr llvm::StringLiteral kSoftmaxTermAttr = "sdx.softmax_term";

inline bool isSoftmaxTerm(mlir::math::ExpOp op) {
  return op->hasAttr(kSoftmaxTermAttr);
}

inline void markSoftmaxTerm(mlir::math::ExpOp op) {
  op->setAttr(kSoftmaxTermAttr, mlir::UnitAttr::get(op.getContext()));
}

} // namespace sardonyx::sdx

#endif // SARDONYX_SDX_SOFTMAXTERM_H
