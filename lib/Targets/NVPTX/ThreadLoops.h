//===- ThreadLoops.h - Linalg operations as loops of threads ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_NVPTX_THREADLOOPS_H
#define SARDONYX_TARGETS_NVPTX_THREADLOOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace sardonyx::nv {

/// Puts loops in the place of an operation on buffers: a parallel loop over its
/// parallel dimensions (one iteration where it has none), in which those over
/// the others are sequential and what they sum up is a value. In a parallel
/// loop all of them are sequential.
mlir::LogicalResult emitThreadLoops(mlir::IRRewriter &rewriter,
                                    mlir::linalg::LinalgOp op);

/// Makes loops of one iteration of what reads or writes the device's memory
/// beside the parallel loops of `func`, and of what follows from what is read.
mlir::LogicalResult wrapDeviceScalars(mlir::func::FuncOp func);

/// Gives the temporaries that iterations of parallel loops allocate a place of
/// their own: a variable (memref.alloca) where they are small, and a piece of a
/// buffer that is allocated before the loop.
mlir::LogicalResult placeThreadMemory(mlir::func::FuncOp func);

/// Gives each iteration of a loop on buffers to a warp where it searches
/// (dialects/SDX/TaskLoops.h, sdx.any): its threads test an index each.
void shareTests(mlir::scf::ParallelOp loop);

/// Has the iterations of a loop follow each other.
void makeSequential(mlir::scf::ParallelOp loop);

/// Names what a parallel loop computes, where nothing is said yet.
void nameStep(mlir::scf::ParallelOp loop, llvm::StringRef name);

} // namespace sardonyx::nv

#endif // SARDONYX_TARGETS_NVPTX_THREADLOOPS_H
