//===- PlainOperands.h - Packed operands by loops over scalars --*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the layouts of #cpu.packing and #cpu.filters mean, an element at a time:
// the descriptions of cpu.packed_matmul, cpu.pack_rhs and cpu.pack_conv_weights
// as loop nests. Nothing here is shared with the code that is fast.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_LOOPS_PLAINOPERANDS_H
#define SARDONYX_LIB_TARGETS_CPU_LOOPS_PLAINOPERANDS_H

#include "dialects/CPU/CPU.h"
#include "dialects/CPU/Winograd.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::cpu {

/// What computes an element from its indices.
using EmitElement = llvm::function_ref<mlir::Value(
    mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<mlir::Value> at)>;

/// The tensor `init` with each element as `emit` computes it.
mlir::Value emitElements(mlir::ImplicitLocOpBuilder &b, mlir::Value init,
                         EmitElement emit);

/// The element of `tensor` at `indices`.
mlir::Value emitElement(mlir::ImplicitLocOpBuilder &b, mlir::Value tensor,
                        mlir::ValueRange indices);

/// That of `values` whose number `index` is, in f64.
mlir::Value emitChoice(mlir::ImplicitLocOpBuilder &b,
                       llvm::ArrayRef<double> values, mlir::Value index);

/// The right-hand side of a product, [N,K] or [B,N,K], of what it multiplies
/// by: scaled integers are f32.
mlir::Value unpackRhs(mlir::ImplicitLocOpBuilder &b, PackedMatmulOp op);

/// The filters of a convolution, [OC,C/G,k...] of f32.
mlir::Value unpackFilters(mlir::ImplicitLocOpBuilder &b, ConvOp op);

/// What convolutions and poolings with channels last compute, as loop
/// nests.
mlir::Value decomposeNarrow(mlir::ImplicitLocOpBuilder &b, NarrowConvOp op);
mlir::Value decomposeNarrow(mlir::ImplicitLocOpBuilder &b,
                            DepthwiseNarrowConvOp op);
mlir::Value decomposeNarrow(mlir::ImplicitLocOpBuilder &b,
                            ChannelsLastMaxPoolOp op);

/// The results of the packings.
mlir::Value packRhs(mlir::ImplicitLocOpBuilder &b, PackRhsOp op);
mlir::Value packFilters(mlir::ImplicitLocOpBuilder &b, PackConvWeightsOp op);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_LOOPS_PLAINOPERANDS_H
