//===- Bufferize.h - The steps of the host's bufferization ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What BufferizeHost.cpp does to a host function before and after the memory of
// its tensors is chosen.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_HOST_BUFFERIZE_H
#define SARDONYX_LIB_HOST_BUFFERIZE_H

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace sardonyx {

/// The type of the memory of a tensor.
inline mlir::MemRefType bufferOf(mlir::RankedTensorType type) {
  return mlir::MemRefType::get(type.getShape(), type.getElementType());
}

//===----------------------------------------------------------------------===//
// HoistHost.cpp
//===----------------------------------------------------------------------===//

/// Moves the computation of a scalar, or of an empty tensor, to where its
/// operands are known, and theirs. `moved` keeps what is in place already:
/// shape arithmetic shares a lot.
void hoistCheap(mlir::Value value,
                llvm::SmallPtrSetImpl<mlir::Operation *> &moved);

/// Puts each slice into its place as soon as it is known: the next one may then
/// be made in its place.
void hoistInsertions(mlir::func::FuncOp func);

/// Moves checks, and what they need, before everything else in their block: on
/// tensors the order of other ops means nothing and may be any, but no copy or
/// kernel may run on sizes that a check refuses. Those that only compute with
/// sizes go first. Each check stands before what only later ones need: it may
/// be what allows to read that.
void hoistChecks(mlir::Block &block);

//===----------------------------------------------------------------------===//
// HostResults.cpp
//===----------------------------------------------------------------------===//

/// Writes the results of a host function to output buffers.
llvm::LogicalResult writeResults(mlir::func::FuncOp func);

/// The output buffer that `buffer` is all of, in whatever shape; else null.
sdx::OutputBufferOp wholeOutput(mlir::Value buffer);

/// Copies results to their buffers in an order in which no copy overwrites what
/// a later one reads: what two results are made of may lie in the buffer of one
/// of them, where the other result was then made.
void orderResultCopies(mlir::func::FuncOp func);

//===----------------------------------------------------------------------===//
// ReadBroadcasts.cpp
//===----------------------------------------------------------------------===//

/// Has kernels read broadcast operands where they are, which the program has
/// made whole for them in case that is needed.
void readBroadcasts(mlir::ModuleOp module);

//===----------------------------------------------------------------------===//
// YieldInPlace.cpp
//===----------------------------------------------------------------------===//

/// What a loop yields goes into the memory of its iteration argument, so that
/// no iteration allocates. Sizes that may change from one iteration to the
/// next are left to new memory, and so are arguments that a value of the next
/// iteration may be a view of: they are still needed when that is there.
void yieldInPlace(mlir::func::FuncOp func);

/// Takes back what yieldInPlace did.
void undoYieldInPlace(mlir::func::FuncOp func);

} // namespace sardonyx

#endif // SARDONYX_LIB_HOST_BUFFERIZE_H
