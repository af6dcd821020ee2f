//===- OpenLoops.h - Loops whose values change their rank -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value that a Loop carries may have another rank in each iteration. It is
// carried in a sequence then, with its rank beside it, and taken out of there
// by an If on the rank, whose branches know it (OpenRanks.h).
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_OPENLOOPS_H
#define SARDONYX_LIB_TRANSFORMS_OPENLOOPS_H

#include "dialects/ONNX/ONNX.h"

namespace sardonyx {

/// If values that `op` carries have a few ranks, carries those in sequences.
/// `infer` makes the types in the body precise for those of its arguments.
/// Returns the first of the operations that stand for the loop then, none of
/// which has types yet, or null. What it replaces goes to `dead`.
mlir::Operation *
carryInSequences(onnx::LoopOp op,
                 llvm::function_ref<llvm::LogicalResult()> infer,
                 llvm::SmallVectorImpl<mlir::Operation *> &dead);

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_OPENLOOPS_H
