//===- VectorOps.h - Operations on vectors and on memory --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_VECTOROPS_H
#define SARDONYX_LIB_TARGETS_CPU_VECTOROPS_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::cpu {

/// The integer `value` as a `type`, or in all lanes of one.
mlir::Value emitSplat(mlir::ImplicitLocOpBuilder &b, mlir::Type type,
                      int64_t value);

/// The same of an f32.
mlir::Value emitFloatSplat(mlir::ImplicitLocOpBuilder &b, mlir::Type type,
                           float value);

/// The larger magnitudes of `largest`, as bits, which order them with
/// infinities and NaN on top, and of `value`, of f32.
mlir::Value emitLarger(mlir::ImplicitLocOpBuilder &b, mlir::Value largest,
                       mlir::Value value);

/// Asks for the line of `memref` at `indices`, which may be past its end; into
/// the L1 cache, or, with locality 2, into L2.
void emitFetch(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
               mlir::ValueRange indices, int64_t locality = 3);

/// `index` in all lanes of a vector of i32.
mlir::Value emitSplat32(mlir::ImplicitLocOpBuilder &b, mlir::Value index,
                        int64_t width);

/// The lanes i < width with 0 <= start + step * i < size.
mlir::Value emitInside(mlir::ImplicitLocOpBuilder &b, mlir::Value start,
                       int64_t width, mlir::Value size, int64_t step = 1);

/// `mask` if 0 <= index < size, no lane otherwise.
mlir::Value emitRowMask(mlir::ImplicitLocOpBuilder &b, mlir::Value mask,
                        mlir::Value index, mlir::Value size);

/// What lanes hold that are not read: zero, or one for integers, which some
/// body may divide by.
mlir::Value emitPadding(mlir::ImplicitLocOpBuilder &b, mlir::VectorType type);

/// A vector of `width` elements at `indices`; lanes that `mask` turns off are
/// not read and hold `emitPadding`.
mlir::Value emitLoad(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                     mlir::ValueRange indices, int64_t width,
                     mlir::Value mask = nullptr);

/// The `count` elements at `indices` and after it, and zeros up to 32 bits, as
/// an i32.
mlir::Value emitLoadGroup(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                          llvm::ArrayRef<mlir::Value> indices, int64_t count);

/// The same of the elements before `end` in the last dimension.
mlir::Value emitLoadGroupBefore(mlir::ImplicitLocOpBuilder &b,
                                mlir::Value memref,
                                llvm::ArrayRef<mlir::Value> indices,
                                mlir::Value end);

/// Stores `vector` at `indices`, only lanes of `mask` if there is one.
void emitStore(mlir::ImplicitLocOpBuilder &b, mlir::Value vector,
               mlir::Value memref, mlir::ValueRange indices,
               mlir::Value mask = nullptr);

/// A mask of the first `count` of `width` lanes; null if `count` is known to
/// cover all.
mlir::Value emitTailMask(mlir::ImplicitLocOpBuilder &b, mlir::Value count,
                         int64_t width);

/// The lanes 0, step, 2 * step, ... of a vector of i32.
mlir::Value emitLanes(mlir::ImplicitLocOpBuilder &b, int64_t width,
                      int64_t step);

/// Lanes first, first + step, ... of two vectors after one another.
mlir::Value emitPick(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                     mlir::Value y, int64_t first, int64_t step, int64_t count);

/// Vectors of the same length, one after the other; their number is a power of
/// two.
mlir::Value emitConcatenation(mlir::ImplicitLocOpBuilder &b,
                              llvm::SmallVector<mlir::Value> parts);

/// Transposes squares of `rows.size()`, a power of two, in registers, of which
/// each vector has one or several: result[i][s + j] = rows[j][s + i].
llvm::SmallVector<mlir::Value> emitTranspose(mlir::ImplicitLocOpBuilder &b,
                                             llvm::ArrayRef<mlir::Value> rows);

/// Memory of `type`, with `sizes` for its open dimensions, that begins with a
/// line of the cache.
mlir::Value emitBuffer(mlir::ImplicitLocOpBuilder &b, mlir::MemRefType type,
                       mlir::ValueRange sizes = {});

/// `memref` (of identity layout) with dimensions from `first` on collapsed.
mlir::Value emitCollapse(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                         int64_t first);

/// Lanes [first, first + count) of `vector`.
mlir::Value extractLanes(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value vector, int64_t first, int64_t count);

/// What `emit` gives for `operands`, vectors of one length and of elements of
/// 32 bits, each cut into registers of at most `registerBits`; it has the type
/// of the last operand. Null where they fill no register, of 128 bits or more.
mlir::Value
emitByRegisters(mlir::OpBuilder &b, mlir::Location loc, unsigned registerBits,
                mlir::ValueRange operands,
                llvm::function_ref<mlir::Value(mlir::ValueRange)> emit);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_VECTOROPS_H
