//===- FailingBranches.h - Branches that cannot be computed -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A branch of an If that breaks a rule is no fault of a model that never takes
// it. It becomes a check that fails the run with what is wrong, and values of
// the other branch's types.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_FAILINGBRANCHES_H
#define SARDONYX_LIB_TRANSFORMS_FAILINGBRANCHES_H

#include "dialects/ONNX/ONNX.h"

namespace sardonyx {

/// Whether a branch fails the run.
bool isFailing(mlir::Block &branch);

/// Makes a branch fail with `message`, which is about the node at `loc`. Its
/// operations go to `dead`, to be destroyed later, and it yields nothing until
/// `completeFailing`.
void makeFailing(mlir::Block &branch, mlir::Location loc,
                 llvm::StringRef message,
                 llvm::SmallVectorImpl<mlir::Operation *> &dead);

/// Gives branches of `op` that fail values of the types that the other branch
/// yields. Fails without a word where there are none to be had.
llvm::LogicalResult
completeFailing(onnx::IfOp op, llvm::SmallVectorImpl<mlir::Operation *> &dead);

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_FAILINGBRANCHES_H
