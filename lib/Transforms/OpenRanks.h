//===- OpenRanks.h - Values whose rank a condition decides ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code is made for ranks that are known. Where the branches of an If yield
// tensors of different ranks, what reads them is put into both branches, until
// the branches agree.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_OPENRANKS_H
#define SARDONYX_LIB_TRANSFORMS_OPENRANKS_H

#include "dialects/ONNX/ONNX.h"

namespace sardonyx {

/// Whether the rank of `value` is not known but follows from which branches are
/// taken: an If yields tensors of known ranks in them.
bool isDecidedByBranch(mlir::Value value);

/// What a branch of `op` gives result `index`; null if it has another form.
mlir::Value getYielded(onnx::IfOp op, unsigned branch, unsigned index);

class OpenRanks {
public:
  /// Infers the types in a block from an op on; an op may be replaced.
  using Infer =
      llvm::function_ref<void(onnx::IfOp, unsigned branch, mlir::Operation *)>;

  /// If `op` reads what `isDecidedByBranch` in its own block, puts it into the
  /// branches of that If, with all that it needs of what comes after the If.
  /// Returns the If that has taken it, whose results have no types yet, or
  /// null. What it replaces goes to `dead` and is to be destroyed later.
  onnx::IfOp pull(mlir::Operation *op, Infer infer,
                  llvm::SmallVectorImpl<mlir::Operation *> &dead);

private:
  /// So many operations are copied at most.
  static constexpr unsigned kMaxCopies = 10000;
  unsigned copies = 0;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_OPENRANKS_H
