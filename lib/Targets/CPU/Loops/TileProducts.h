//===- TileProducts.h - Products with tiles in registers --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_TILEPRODUCTS_H
#define SARDONYX_LIB_TARGETS_CPU_TILEPRODUCTS_H

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace sardonyx::cpu {

/// Whether `op`, on tensors or buffers, is a matrix product that no packed
/// kernel computes, as those of f64 are, and has rows enough for tiles.
bool isTiledProduct(mlir::linalg::LinalgOp op);

/// Makes loops of such a product on buffers: tiles of sums stay in registers,
/// and the right-hand side is copied to panels of neighbouring columns. Fails,
/// without a change, where `op` is none.
llvm::LogicalResult emitTiledProduct(mlir::RewriterBase &rewriter,
                                     mlir::linalg::LinalgOp op,
                                     TargetAttr target);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_TILEPRODUCTS_H
