//===- RowLoop.h - Programs that run once for each row ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs for what a linalg operation cannot say, because data decide which
// elements are read or written, or because an element of a result depends on
// those before it: sorting, scatters, running sums. Each is a loop over tasks
// that do not depend on each other, and becomes a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_ROWLOOP_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_ROWLOOP_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

using Values = llvm::SmallVector<mlir::Value>;

/// The part of a tensor that a task writes, without the `dropped` dimensions,
/// which have size 1.
struct Part {
  Sizes offsets, sizes;
  llvm::SmallVector<int64_t> dropped;
};

/// Runs `body` for each position of a grid of `counts`. The tasks run in any
/// order, in parallel. Task `task` gets the part of each of `results` that
/// `partOf` names, and returns it changed; what no part covers stays. A part
/// must not be the whole tensor (see runOnce). The body must not build linalg
/// operations.
Values
forEachTask(TensorBuilder &b, llvm::ArrayRef<mlir::OpFoldResult> counts,
            mlir::ValueRange results,
            llvm::function_ref<Part(TensorBuilder &, mlir::ValueRange task,
                                    unsigned result)>
                partOf,
            llvm::function_ref<Values(TensorBuilder &, mlir::ValueRange task,
                                      mlir::ValueRange parts)>
                body);

/// Runs `body` for each row of `results`, which are tensors of as many rows
/// along their first dimension: it gets their rows and returns them changed.
Values forEachRow(TensorBuilder &b, mlir::ValueRange results,
                  llvm::function_ref<Values(TensorBuilder &, mlir::Value row,
                                            mlir::ValueRange rows)>
                      body);

/// Runs `body` as one task that gets all of `results` and returns them changed.
Values runOnce(
    TensorBuilder &b, mlir::ValueRange results,
    llvm::function_ref<Values(TensorBuilder &, mlir::ValueRange results)> body);

/// The numbers below an extent, in ranges of a multiple of `least` numbers (but
/// for the last one): as many as keep all threads busy where each of `rows`
/// rows is cut so.
class Ranges {
public:
  Ranges(TensorBuilder &b, mlir::OpFoldResult extent, int64_t least,
         mlir::OpFoldResult rows);
  Ranges(TensorBuilder &b, mlir::OpFoldResult extent, int64_t least)
      : Ranges(b, extent, least, b.size(1)) {}

  mlir::OpFoldResult count() const { return number; }
  /// The first number of range `index`, and how many there are in it.
  mlir::Value begin(TensorBuilder &b, mlir::Value index) const;
  mlir::OpFoldResult size(TensorBuilder &b, mlir::Value begin) const;

private:
  mlir::OpFoldResult extent, number, width;
};

/// `tensor` with a first dimension of size 1.
mlir::Value asOneRow(TensorBuilder &b, mlir::Value tensor);
/// The only row of `tensor`.
mlir::Value onlyRow(TensorBuilder &b, mlir::Value tensor);

/// scf.for from `from` to `to`.
Values loop(TensorBuilder &b, mlir::Value from, mlir::Value to,
            mlir::ValueRange state,
            llvm::function_ref<Values(TensorBuilder &, mlir::Value i,
                                      mlir::ValueRange state)>
                body);

/// A nest of loops over the positions of a grid of `counts`, row by row. Where
/// the inner loops are short or there are none, the outermost loop is cut in
/// two, so that a run can be ended in it (sdx-poll-host-loops).
Values nest(TensorBuilder &b, llvm::ArrayRef<mlir::OpFoldResult> counts,
            mlir::ValueRange state,
            llvm::function_ref<Values(TensorBuilder &, mlir::ValueRange at,
                                      mlir::ValueRange state)>
                body);

/// scf.if whose branches return as many values as `otherwise` has, which are
/// the results where the condition does not hold.
Values when(TensorBuilder &b, mlir::Value condition, mlir::ValueRange otherwise,
            llvm::function_ref<Values(TensorBuilder &)> then);

/// Whether `test` (i1) holds for an index in [from, to); it is not asked after
/// the first for which it does.
mlir::Value holdsForAny(
    TensorBuilder &b, mlir::Value from, mlir::Value to,
    llvm::function_ref<mlir::Value(TensorBuilder &, mlir::Value i)> test);

/// The same, and before it the index after the first for which it does; where
/// there is none, anything.
Values
findFirst(TensorBuilder &b, mlir::Value from, mlir::Value to,
          llvm::function_ref<mlir::Value(TensorBuilder &, mlir::Value i)> test);

/// `tensor` with `value` at a place.
mlir::Value put(TensorBuilder &b, mlir::Value value, mlir::Value tensor,
                mlir::ValueRange at);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_ROWLOOP_H
