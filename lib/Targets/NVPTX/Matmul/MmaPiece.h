//===- MmaPiece.h - What a warp multiplies at a time ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_MMAPIECE_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_MMAPIECE_H

#include "Matmul/BlockTile.h"

namespace sardonyx::nv {

/// Rows and columns of a piece, the bytes along K that an instruction
/// multiplies, and the sums of a thread.
inline constexpr int64_t kMmaRows = 16, kMmaCols = 8, kMmaStepBytes = 32;
inline constexpr int64_t kMmaSums = 4;

/// Four 8x8 matrices of 16 bits, or what has as many bytes, from shared memory:
/// a register each. `address` is that of row lane mod 8 of matrix lane div 8.
llvm::SmallVector<mlir::Value> loadMatrices(mlir::ImplicitLocOpBuilder &b,
                                            mlir::Value address,
                                            bool transpose);

/// Adds the product of four registers and two (mma.sync) to the sums.
void multiplyPiece(mlir::ImplicitLocOpBuilder &b, const ProductTypes &types,
                   llvm::ArrayRef<mlir::Value> lhs,
                   llvm::ArrayRef<mlir::Value> rhs,
                   llvm::MutableArrayRef<mlir::Value> sums);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_MMAPIECE_H
