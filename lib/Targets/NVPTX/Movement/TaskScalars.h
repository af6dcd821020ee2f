//===- TaskScalars.h - Numbers of tasks, computed by threads ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MOVEMENT_TASKSCALARS_H
#define SARDONYX_LIB_TARGETS_NVPTX_MOVEMENT_TASKSCALARS_H

#include "Common/KernelBody.h"
#include "Kernel/Block.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace sardonyx::nv {

/// What a task of a loop (scf.forall) computes and reads beside the tensor that
/// it writes, computed anew by each thread that has a share of the task.
class TaskScalars {
public:
  explicit TaskScalars(KernelBody &body) : body(body) {}

  /// Whether `op` computes numbers, checks, reads an element of a buffer, or is
  /// a view of one.
  static bool isPossible(mlir::Operation &op);
  /// Whether `tensor` is a buffer or, by slices, a part of one.
  static bool isOfBuffer(mlir::Value tensor);

  /// Has `buffer` hold `tensor`, which is no argument of the kernel.
  void setBuffer(mlir::Value tensor, mlir::Value buffer) {
    known[tensor] = buffer;
  }

  /// Computes what `op` does where `mapping` has what it uses. Views are
  /// nothing.
  void clone(mlir::ImplicitLocOpBuilder &b, mlir::Operation &op,
             mlir::IRMapping &mapping);

  struct Place {
    mlir::Value buffer;
    llvm::SmallVector<mlir::Value> index;
  };
  /// Where element `index` of a buffer, or of a part of one, lies.
  Place find(mlir::ImplicitLocOpBuilder &b, const mlir::IRMapping &mapping,
             mlir::Value tensor, llvm::ArrayRef<mlir::Value> index);

  /// The size of the buffer's dimension that `dim` of `tensor` is (a part of).
  mlir::Value sizeOfWhole(mlir::ImplicitLocOpBuilder &b, mlir::Value tensor,
                          int64_t dim);

  /// Where element `index` of a slice lies in what it is a slice of.
  template <typename SliceT>
  static llvm::SmallVector<mlir::Value>
  placeOf(mlir::ImplicitLocOpBuilder &b, SliceT slice,
          const mlir::IRMapping &mapping, llvm::ArrayRef<mlir::Value> index) {
    return placeOf(b, slice.getMixedOffsets(), slice.getMixedStrides(),
                   slice.getDroppedDims(), mapping, index);
  }

private:
  static llvm::SmallVector<mlir::Value>
  placeOf(mlir::ImplicitLocOpBuilder &b,
          llvm::ArrayRef<mlir::OpFoldResult> offsets,
          llvm::ArrayRef<mlir::OpFoldResult> strides,
          const llvm::SmallBitVector &dropped, const mlir::IRMapping &mapping,
          llvm::ArrayRef<mlir::Value> index);

  KernelBody &body;
  llvm::DenseMap<mlir::Value, mlir::Value> known;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MOVEMENT_TASKSCALARS_H
