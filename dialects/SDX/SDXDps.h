//===- SDXDps.h - What sdx ops in destination style share -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_SDX_SDXDPS_H
#define SARDONYX_DIALECTS_SDX_SDXDPS_H

#include "dialects/SDX/SDX.h"

namespace sardonyx::sdx {

using Effects = llvm::SmallVectorImpl<mlir::MemoryEffects::EffectInstance>;

/// Buffers among the inputs are read, buffers among the outs are written (and
/// read if the operation accumulates). On tensors there is no effect.
void getDpsEffects(mlir::DestinationStyleOpInterface op, bool accumulates,
                   Effects &effects);

/// The shape of each result is that of its init.
llvm::LogicalResult reifyFromInits(mlir::DestinationStyleOpInterface op,
                                   mlir::OpBuilder &b,
                                   mlir::ReifiedRankedShapedTypeDims &shapes);

/// The operation has one result for each tensor among its outs, of its type,
/// and does not mix tensors and memrefs.
llvm::LogicalResult verifyDps(mlir::Operation *op, mlir::OperandRange inits,
                              mlir::TypeRange results);

} // namespace sardonyx::sdx

#endif // SARDONYX_DIALECTS_SDX_SDXDPS_H
