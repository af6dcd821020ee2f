//===- Products.h - Matrix products on tensors ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CONTRACTION_PRODUCTS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CONTRACTION_PRODUCTS_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// [M,K] x [K,N] or [B,M,K] x [B,K,N] by linalg.matmul or linalg.batch_matmul,
/// accumulated in the accumulator type of the elements; no checks.
mlir::Value multiplyMatrices(TensorBuilder &b, mlir::Value lhs,
                             mlir::Value rhs);

/// numpy.matmul on converted tensors: 1-D operands, broadcast batch dimensions.
/// Calls `multiply` for matrices whenever the batches can share one right-hand
/// side and for a single batch dimension otherwise. Fails when static sizes
/// disagree.
mlir::FailureOr<mlir::Value>
createMatMul(TensorBuilder &b, mlir::Value lhs, mlir::Value rhs,
             llvm::function_ref<mlir::Value(TensorBuilder &b, mlir::Value lhs,
                                            mlir::Value rhs)>
                 multiply = multiplyMatrices);

/// [M,K] x [K,N], no checks.
mlir::Value createMatMul2D(TensorBuilder &b, mlir::Value lhs, mlir::Value rhs);

/// An operand of a product in the type in which products are made: bf16, which
/// processors multiply, is left, f16 becomes f32.
mlir::Value convertFactor(TensorBuilder &b, mlir::Value operand);

/// The type to accumulate in: f32 for f16 and bf16, else the type itself.
mlir::Type getAccumulatorType(mlir::Type elementType);

/// Whether a tensor is sure to have one element.
bool isSingleElement(mlir::Value tensor);

/// The integers of 8 and 16 bits to which quantisation may go.
bool isQuantizedInteger(mlir::Type type);

/// Rounds the computed float `scaled` half to even, adds `zeroPoint` (a
/// computed integer of `onnxType`; may be null) and saturates to `onnxType`.
/// For those of quantisation what is rounded is within bounds that are whole
/// numbers, so that one instruction does it; NaN gives the lowest.
mlir::Value requantize(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value scaled, mlir::Value zeroPoint,
                       mlir::Type onnxType);

/// lhs * rhs / result in f32, by which sums of products become integers of the
/// scale `result`: floats, of which at most `rhs` has more than one element.
mlir::FailureOr<mlir::Value> createRequantizationScale(TensorBuilder &b,
                                                       TypedTensor lhs,
                                                       TypedTensor rhs,
                                                       TypedTensor result);

/// A computed float as a computed scalar of `onnxType`. What lies outside of a
/// narrow integer type becomes its nearest value.
mlir::Value saturateScalar(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value value, mlir::Type onnxType);

/// The differences `value - zeroPoint`, numpy-broadcast, of `type` (i32 or
/// f32); `zeroPoint.value` may be null.
mlir::FailureOr<mlir::Value> subtractZeroPoint(TensorBuilder &b,
                                               TypedTensor value,
                                               TypedTensor zeroPoint,
                                               mlir::Type type);

/// Whether both are of 8-bit integers.
bool areBytes(TypedTensor lhs, TypedTensor rhs);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CONTRACTION_PRODUCTS_H
