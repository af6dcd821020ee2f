//===- ByteProduct.h - Sums of products of 8-bit integers -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CODEGEN_CPU_BYTEPRODUCT_H
#define SARDONYX_LIB_CODEGEN_CPU_BYTEPRODUCT_H

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

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_CODEGEN_CPU_BYTEPRODUCT_H
