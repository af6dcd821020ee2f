//===- Buffers.h - What the passes on the host program share ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_HOST_BUFFERS_H
#define SARDONYX_LIB_HOST_BUFFERS_H

#include "lib/Dispatch/Utils.h"

namespace sardonyx {

/// A buffer of its own for what `value` may hold, in the same memory space.
mlir::Value allocateLike(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value value);

/// Kernels take memrefs of identity layout: gives each operand of a call that
/// has another one a contiguous copy, unless `isFine`.
void makeOperandsContiguous(mlir::func::FuncOp func,
                            llvm::function_ref<bool(mlir::OpOperand &)> isFine);

/// True for a contiguous piece of a buffer of static size that the function
/// allocates: once the buffer has a place, the piece has one, too. On a device
/// it begins at a multiple of 16 bytes.
bool isViewOfPlannable(mlir::Value value);

/// True for a contiguous piece of any buffer that is an operand of a kernel,
/// where kernels read the memory of the host: the call passes its address. Not
/// in @init.
bool isPassedByAddress(mlir::OpOperand &operand);

/// The allocation that `value` is a view of; null if there is none or a step
/// on the way is no view of static strides.
mlir::memref::AllocOp findViewedAllocation(mlir::Value value);

/// Makes a slice and a reshape of each slice within `root` that drops some of
/// its dimensions of size 1 but not all, so that buffers have them, too.
void reshapeReducedSlices(mlir::Operation *root);

/// Gives each tensor that is put together of slices its buffer, and makes the
/// slices there or copies them there.
void assembleSlices(mlir::func::FuncOp func);

/// Has copies of what a device has computed to the host stand in a row where
/// nothing is done on the device between them.
void gatherDownloads(mlir::func::FuncOp func);

/// Makes each loop and branch own what it yields, so that it can be freed when
/// the next iteration has replaced it, or after its last use.
void freeYielded(mlir::func::FuncOp func);

} // namespace sardonyx

#endif // SARDONYX_LIB_HOST_BUFFERS_H
