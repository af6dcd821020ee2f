//===- NarrowProduct.h - Sums of products of narrow numbers -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CODEGEN_CPU_NARROWPRODUCT_H
#define SARDONYX_LIB_CODEGEN_CPU_NARROWPRODUCT_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringRef.h"

namespace sardonyx::cpu {

/// What a processor has for sums of products of bytes.
enum class ByteProduct {
  /// Nothing: products of 32-bit integers.
  Generic,
  /// Products of 16-bit integers, added in pairs: `vpmaddwd`.
  Pairs,
  /// Four products of bytes, added onto 32 bits: `vpdpbusd`.
  Quads,
  /// The same, and registers of 16 rows of 64 bytes for what fills them:
  /// `tdpbusd`.
  Tiles
};

/// "generic", "pairs", "quads" or "tiles".
std::optional<ByteProduct> parseByteProduct(llvm::StringRef name);

/// accumulator[i] + sum_j lhs[4 * i + j] * rhs[4 * i + j] for j in 0..3, exact
/// modulo 2^32. All are vectors of i32 of one length; `lhs` stands for four
/// unsigned bytes in each lane, `rhs` for four signed ones. Registers have
/// `vectorBits`.
mlir::Value emitByteProduct(mlir::ImplicitLocOpBuilder &b, ByteProduct kind,
                            unsigned vectorBits, mlir::Value lhs,
                            mlir::Value rhs, mlir::Value accumulator);

/// What a processor has for sums of products of bf16.
enum class Bf16Product {
  /// Nothing: multiply-adds of f32.
  Generic,
  /// Two products, added onto f32: `vdpbf16ps`.
  Pairs,
  /// The same, and registers of 16 rows of 32 values: `tdpbf16ps`.
  Tiles
};

/// "generic", "pairs" or "tiles".
std::optional<Bf16Product> parseBf16Product(llvm::StringRef name);

/// accumulator[i] + sum_j lhs[2 * i + j] * rhs[2 * i + j] for j in 0..1, where
/// `lhs` and `rhs`, vectors of i32, stand for two bf16 in each lane and the
/// accumulator is of f32. The instructions take subnormal numbers as zero.
mlir::Value emitBf16Product(mlir::ImplicitLocOpBuilder &b, Bf16Product kind,
                            unsigned vectorBits, mlir::Value lhs,
                            mlir::Value rhs, mlir::Value accumulator);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_CODEGEN_CPU_NARROWPRODUCT_H
