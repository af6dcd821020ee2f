//===- KernelBody.h - The tensors of a kernel and their memory --*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_COMMON_KERNELBODY_H
#define SARDONYX_LIB_TARGETS_COMMON_KERNELBODY_H

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx {

/// The body of a kernel function on tensors.
class KernelBody {
public:
  struct Output {
    mlir::Value tensor;
    mlir::Value memref;
  };

  explicit KernelBody(mlir::func::FuncOp func);

  /// The memref that holds `tensor`, or null if the kernel computes it. Casts
  /// and reshapes of an argument are views of its memory.
  mlir::Value getBuffer(mlir::Value tensor);
  /// Whether `getBuffer` would find one. Builds nothing.
  static bool hasBuffer(mlir::Value tensor);

  /// What the kernel leaves in memory. Casts are looked through.
  llvm::ArrayRef<Output> getOutputs() const { return outputs; }

  /// What it sees of its values besides.
  llvm::ArrayRef<sdx::ObserveOp> getObservations() const {
    return observations;
  }

  /// Makes sizes of tensors sizes of memrefs, so that they outlive the tensors.
  mlir::LogicalResult replaceDims();

  /// Erases all operations on tensors; nothing may use them any more.
  void eraseTensors();

  /// Puts what `emit` builds in the place of all that the kernel computes.
  mlir::LogicalResult
  replaceWith(llvm::function_ref<void(mlir::ImplicitLocOpBuilder &)> emit);

private:
  mlir::func::FuncOp func;
  llvm::SmallVector<Output> outputs;
  llvm::SmallVector<sdx::ObserveOp> observations;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
};

/// Looks through tensor.cast.
mlir::Value skipCasts(mlir::Value tensor);

} // namespace sardonyx

#endif // SARDONYX_LIB_TARGETS_COMMON_KERNELBODY_H
