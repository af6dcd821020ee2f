//===- ShortNumbers.h - f32 in 21 or 24 bits -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How sdx.pack_rhs keeps numbers in three bytes, or three of them ("a triple")
// in eight, and how products get them back.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CODEGEN_CPU_SHORTNUMBERS_H
#define SARDONYX_LIB_CODEGEN_CPU_SHORTNUMBERS_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::cpu {

/// Numbers of 24 and of 21 bits are read as 2^8 and 2^11 times themselves.
inline constexpr int kThreeByteShift = 8, kTripleShift = 11;

/// A panel of numbers in memory.
struct ShortPanel {
  mlir::Value memory, number;
  /// Its columns, and how many of them a register holds.
  int64_t width, lanes;
};

/// Packs [k, width] `numbers`, that many times larger than `scales` say, in
/// three bytes each.
void packThreeBytes(mlir::ImplicitLocOpBuilder &b, mlir::Value numbers,
                    mlir::Value scales, mlir::Value k, const ShortPanel &to);

/// The same as triples; there is memory for [3 * ceil(k / 3), width] numbers.
void packTriples(mlir::ImplicitLocOpBuilder &b, mlir::Value numbers,
                 mlir::Value scales, mlir::Value k, const ShortPanel &to);

/// 2^kThreeByteShift times the integers of a panel at one value of k, as f32.
mlir::Value emitThreeByteNumbers(mlir::ImplicitLocOpBuilder &b,
                                 const ShortPanel &panel, mlir::Value k);

/// 2^kTripleShift times those at the values of k of triples number `triple`.
llvm::SmallVector<mlir::Value> emitTriples(mlir::ImplicitLocOpBuilder &b,
                                           const ShortPanel &panel,
                                           mlir::Value triple);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_CODEGEN_CPU_SHORTNUMBERS_H
