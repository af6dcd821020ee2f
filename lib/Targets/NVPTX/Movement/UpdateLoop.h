//===- UpdateLoop.h - Loops that update elements or pieces ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MOVEMENT_UPDATELOOP_H
#define SARDONYX_LIB_TARGETS_NVPTX_MOVEMENT_UPDATELOOP_H

#include "Common/KernelBody.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <optional>

namespace sardonyx::nv {

/// A write to what a task has of the result, in a nest of loops.
struct Update {
  /// From the outermost on.
  llvm::SmallVector<mlir::scf::ForOp> loops;
  /// A tensor.insert, or a tensor.insert_slice of a part of a buffer.
  mlir::Operation *op;
  /// The element that was there, where the new one is made of it: by one
  /// operation that may take such updates in any order. May be null.
  mlir::tensor::ExtractOp old;

  bool isPiece() const { return mlir::isa<mlir::tensor::InsertSliceOp>(op); }
  /// The operation in `block`, the task's or a loop's, that it is or is in.
  mlir::Operation *findIn(mlir::Block *block) const {
    return block->findAncestorOpInBlock(*op);
  }
  /// Where it is in the task's part: of a piece the place of its first element.
  llvm::SmallVector<mlir::OpFoldResult> getOffsets() const;
  /// The part's dimensions that a piece has more than one element of.
  llvm::SmallBitVector getPieceDims() const;
  /// Whether `op` is, or hangs on, the element that was there.
  bool isMadeOfOld(mlir::Operation &op) const;
  /// Whether another iteration of `loop`, the others' being the same, certainly
  /// updates another place: an index is its variable.
  bool isDistinguishedBy(mlir::scf::ForOp loop) const;
};

/// A kernel that is one loop over tasks, each of which updates a part of what
/// the result starts from.
struct UpdateLoop {
  mlir::scf::ForallOp op;
  /// What a task has of the result.
  mlir::tensor::ExtractSliceOp part;
  llvm::SmallVector<Update> updates;
  /// What the result starts from: a buffer, which may be the result's own, or a
  /// number everywhere; both are null where it does not matter.
  mlir::Value start;
  mlir::linalg::FillOp fill;

  static std::optional<UpdateLoop> find(mlir::func::FuncOp func,
                                        const KernelBody &body);
  /// Writes to `target` what the result starts from.
  void emitStart(mlir::ImplicitLocOpBuilder &b, KernelBody &body,
                 mlir::Value target) const;
};

/// What `loop`, in `region`, turns at most, as far as it is known before
/// `region`: (limit - from) / step times, or limit / step times where there is
/// no `from`, and no more than `other` / step times, if it is there.
struct TripBound {
  mlir::Value limit, from;
  /// Whether it turns as often.
  bool isExact;
  mlir::Value other;

  static std::optional<TripBound> find(mlir::scf::ForOp loop,
                                       mlir::Region &region);
};

/// A number that `value` is certainly not more than, and that can be computed
/// before `region`; null where there is none.
mlir::Value findLimit(mlir::Value value, mlir::Region &region);

/// Whether `number` divides `size`, wherever it is computed.
bool divides(int64_t number, mlir::OpFoldResult size);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MOVEMENT_UPDATELOOP_H
