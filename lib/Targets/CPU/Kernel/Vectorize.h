//===- Vectorize.h - Linalg bodies on vectors -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Clones the scalar body of a linalg operation on vectors. Values that are the
// same for all lanes stay scalars as long as they can.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_VECTORIZE_H
#define SARDONYX_LIB_TARGETS_CPU_VECTORIZE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallBitVector.h"

namespace sardonyx::cpu {

/// Whether every operation of `body` computes lane by lane, so that
/// `emitVectorBody` can clone it.
bool isVectorizableBody(mlir::Block &body);

/// Whether `body` may trap on operands that no lane of the original program
/// had: integer division. Such a body must not run on masked-off lanes.
bool mayTrapOnPadding(mlir::Block &body);

/// Bits of the widest type that `body` touches; index counts as 64.
unsigned getWidestBits(mlir::Block &body);

/// Emits what is no arithmetic: a `tensor.extract` or an `sdx.check` of a body,
/// given its operands; returns the result, if there is one.
using SpecialOp = llvm::function_ref<mlir::Value(mlir::Operation *,
                                                 llvm::ArrayRef<mlir::Value>)>;

/// Clones `body` (without its terminator) with `args` for its block arguments
/// and returns the values that it yields. An argument is a scalar or a vector
/// of `shape`; so is each result: it is a scalar when it depends on scalars
/// only. An empty `shape` clones the body on scalars. `index` gives the value
/// of `linalg.index`, a scalar or a vector of index; it may be null when the
/// body has none. An argument in `reciprocal` is given as 1 / value; it must be
/// used as a divisor only (see `isDivisorOnly`). An argument in `numbers` is
/// never NaN, which makes the larger or smaller of it and another value
/// (maxnumf and minnumf) one comparison. A product that a body adds onto an
/// accumulator becomes one multiply-add with it.
llvm::SmallVector<mlir::Value>
emitVectorBody(mlir::OpBuilder &b, mlir::Location loc, mlir::Block &body,
               llvm::ArrayRef<int64_t> shape, mlir::ValueRange args,
               llvm::function_ref<mlir::Value(int64_t)> index = nullptr,
               const llvm::SmallBitVector &reciprocal = {},
               const llvm::SmallBitVector &numbers = {},
               SpecialOp special = nullptr);

/// The values `wanted` of `body` on vectors in the same way, with no more than
/// they need.
llvm::SmallVector<mlir::Value>
emitVectorValues(mlir::OpBuilder &b, mlir::Location loc, mlir::Block &body,
                 llvm::ArrayRef<int64_t> shape, mlir::ValueRange args,
                 mlir::ValueRange wanted);

/// `value` where it is larger than `other` (or smaller, if not `larger`), and
/// `other` where it isn't, or where they don't compare: maxnumf or minnumf
/// where `other` is not NaN, and an instruction on x86.
mlir::Value emitBetter(mlir::OpBuilder &b, mlir::Location loc, bool larger,
                       mlir::Value value, mlir::Value other);

/// The larger of two vectors of f32; NaN if one of them is.
mlir::Value emitMaximum(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                        mlir::Value y);

/// Whether `arg` is used as the divisor of floating-point divisions only.
bool isDivisorOnly(mlir::BlockArgument arg);

/// `value` broadcast to a vector of `shape` unless it is one already or
/// `shape` is empty.
mlir::Value broadcastTo(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value value, llvm::ArrayRef<int64_t> shape);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_VECTORIZE_H
