//===- MmaFragment.h - Scores where tensor cores put them -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp has 16 queries; a thread has of each eight keys, or columns, two
// neighbours of two queries, eight apart. mma.sync and wgmma have their sums
// there, and their left-hand sides: scores that become factors stay.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_MMAFRAGMENT_H
#define SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_MMAFRAGMENT_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::nv {

/// The first query of the warp of `thread`, and the two of the thread itself.
mlir::Value warpRow(mlir::ImplicitLocOpBuilder &b, mlir::Value thread);
llvm::SmallVector<mlir::Value> mmaRows(mlir::ImplicitLocOpBuilder &b,
                                       mlir::Value thread);
/// The thread's keys, or columns, of so many.
llvm::SmallVector<mlir::Value> mmaPairs(mlir::ImplicitLocOpBuilder &b,
                                        mlir::Value thread, int64_t size);

/// What a thread has of pieces of eight, two of one row and two of the other
/// each, row by row, and back.
llvm::SmallVector<mlir::Value> byRows(mlir::ValueRange pieces);
llvm::SmallVector<mlir::Value> byPieces(mlir::ValueRange rows);

/// Pieces of sums as registers of the left-hand sides of `type` of products, 16
/// elements deep each.
llvm::SmallVector<mlir::Value> packPieces(mlir::ImplicitLocOpBuilder &b,
                                          mlir::ValueRange pieces,
                                          mlir::Type type);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_MMAFRAGMENT_H
