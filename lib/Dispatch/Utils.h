//===- Utils.h - What the dispatch passes share -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_UTILS_H
#define SARDONYX_LIB_DISPATCH_UTILS_H

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

namespace sardonyx {

/// True for functions that run on the host: defined, and no kernel.
bool isHostFunction(mlir::func::FuncOp func);

/// True for an operation that belongs in a kernel: linalg operations but
/// linalg.fill, the dense sdx operations and scf.forall, on tensors.
bool isComputeOp(mlir::Operation *op);

/// Whether an operand is a tensor that its operation, one that belongs in a
/// kernel, writes a result over.
bool isDestination(mlir::OpOperand &operand);
/// What such an operation writes a result over.
mlir::Value getDestination(mlir::OpResult result);

/// True for a value that is zero of floating-point or integer type everywhere.
bool isZeroFilled(mlir::Value tensor);

/// `tensor` with its dimensions in the order of `permutation`.
mlir::Value createTranspose(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value tensor,
                            llvm::ArrayRef<int64_t> permutation);

/// Zeros of `type`.
mlir::Value createZeros(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes,
                        mlir::Type type);

/// For a reshape that drops dimensions of size 1: each other one with those
/// that follow it, the first with those before it as well.
llvm::SmallVector<mlir::ReassociationIndices>
groupWithDropped(const llvm::SmallBitVector &dropped);

/// True if the results of `map` are distinct dimensions in increasing order,
/// or the constant 0.
bool isOrderedProjection(mlir::AffineMap map);

/// An all-parallel linalg.generic on tensors, one element in, one out: no
/// captured tensor is read in its body.
bool isElementwiseGeneric(mlir::Operation *op);

/// Whether `value` is reduced along a dimension, maybe in another shape.
bool isReduced(mlir::Value value);

/// The uses of a tensor, of a view of it or of what it is itself another type
/// or shape of, that may write into its memory.
llvm::SmallVector<mlir::OpOperand *> findWriters(mlir::Value tensor);

/// Applies `patterns` until nothing changes. A long chain of operations may
/// take many rounds; what the last one leaves is right, only not as simple.
void rewriteGreedily(mlir::Operation *op,
                     const mlir::FrozenRewritePatternSet &patterns);

/// Leaves no memory space in the types of buffers in `root`.
void dropMemorySpaces(mlir::Operation *root);

/// Leaves one of each kind of operations that compute the same.
void mergeEqual(mlir::Operation *root);

/// Erases what nothing uses in the bodies of linalg.generic operations.
void eraseDeadInBodies(mlir::Operation *root);

/// The values defined outside of `op` that its regions use.
llvm::SetVector<mlir::Value> capturedValues(mlir::Operation *op);

/// Patterns that turn a linalg.generic that only permutes into a
/// linalg.transpose.
void populateGenericToTransposePatterns(mlir::RewritePatternSet &patterns);

/// True for a constant, or a view or transpose of one, or one of other floats:
/// packing it costs nothing in a run.
bool isWeight(mlir::Value tensor);

/// Whether `value` is read once, however often it is asked for its sizes.
bool isReadOnce(mlir::Value value);

/// What a dense operation of the sdx dialect on tensors computes, by linalg
/// operations; null for operations of other dialects.
mlir::Value decomposeToLinalg(mlir::OpBuilder &b, sdx::DenseOpInterface op);

/// Number `at` of those of `bits` bits that lie packed in the bytes of a
/// tensor's last dimension, the lowest bits first, as i32; the other indices
/// are `indices`.
mlir::Value extractBits(mlir::ImplicitLocOpBuilder &b, mlir::Value bytes,
                        llvm::SmallVector<mlir::Value> indices, mlir::Value at,
                        int64_t bits);

/// The float whose code is in the lowest bits of `code`, an i32 or a vector of
/// them, as f32: of f4E2M1FN, f8E4M3FN (whose NaN is taken for 480), f8E5M2 or
/// f16.
mlir::Value decodeSmallFloat(mlir::ImplicitLocOpBuilder &b, mlir::Value code,
                             mlir::FloatType type);

/// A number as f32; an integer is one that extractBits() gives, never negative.
mlir::Value convertToF32(mlir::ImplicitLocOpBuilder &b, mlir::Value number);

/// Moves each packing and transpose in `root` to where what it copies has been
/// computed, if nothing else reads that.
void copyEarly(mlir::Operation *root);

/// A pattern that folds an operation on tensors without elements.
void populateFoldEmptyPatterns(mlir::RewritePatternSet &patterns);

/// Patterns that leave transposes of as few dimensions as possible.
void populateSimplifyTransposesPatterns(mlir::RewritePatternSet &patterns);

} // namespace sardonyx

#endif // SARDONYX_LIB_DISPATCH_UTILS_H
