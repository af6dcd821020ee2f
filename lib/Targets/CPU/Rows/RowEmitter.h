//===- RowEmitter.h - Loops over vectors for a group ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ROWEMITTER_H
#define SARDONYX_LIB_TARGETS_CPU_ROWEMITTER_H

#include "Rows/ReductionGroup.h"

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace sardonyx::cpu {

/// Emits the loops of `group`, whose dimensions have been collapsed and which
/// `choice` fits, at the builder's insertion point.
///
/// One dimension of the group lies along the vectors' lanes. If it is a
/// dimension of the row, each reduction has several vector accumulators and
/// ends in a horizontal step; otherwise each lane is a row of its own. All
/// other parallel dimensions form one `scf.parallel`.
void emitRowGroup(mlir::OpBuilder &b, ReductionGroup &group,
                  RowsPlanAttr choice);

/// Emits loops for `op` on memrefs and erases it. Fails, having changed
/// nothing, when the operation is not of a form that it knows.
llvm::LogicalResult emitRowLoops(mlir::RewriterBase &rewriter,
                                 mlir::linalg::LinalgOp op, TargetAttr target);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ROWEMITTER_H
