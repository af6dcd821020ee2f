//===- KernelBuffers.h - Kernels on tensors to kernels on buffers -*- C++ -*-=//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first steps of code generators that take any kernel: tensors become
// buffers, and tasks iterations of parallel loops.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_COMMON_KERNELBUFFERS_H
#define SARDONYX_TARGETS_COMMON_KERNELBUFFERS_H

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sardonyx {

/// Whether `func` computes on tensors.
bool usesTensors(mlir::func::FuncOp func);

/// Bufferises the body of a kernel, whose temporaries `allocate` makes, in
/// memory space `space` (null: the host's).
mlir::LogicalResult bufferizeKernel(
    mlir::func::FuncOp func, mlir::Attribute space,
    mlir::bufferization::BufferizationOptions::AllocationFn allocate);

/// Makes parallel loops of loops over tasks (scf.forall) that have been
/// bufferised: what they carry is written in place, which shows once views of
/// one place are one value.
mlir::LogicalResult lowerTaskLoops(mlir::func::FuncOp func);

/// Whether `value`, or a view of it, leaves its block through the terminator.
bool escapesBlock(mlir::Value value, mlir::Block *block);

/// Frees each temporary at the end of the block that makes it.
void insertDeallocs(mlir::func::FuncOp func);

} // namespace sardonyx

#endif // SARDONYX_TARGETS_COMMON_KERNELBUFFERS_H
