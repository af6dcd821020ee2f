//===- DequantizedWeights.h - Weights of a few bits -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constants of 2, 4 or 8 bits that are dequantised and then multiplied by:
// products read them packed, so that they are never numbers in memory.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CONTRACTION_DEQUANTIZEDWEIGHTS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CONTRACTION_DEQUANTIZEDWEIGHTS_H

#include "Support/TensorBuilder.h"

#include "mlir/Transforms/DialectConversion.h"

namespace sardonyx {

/// The parts of an sdx.dequant_matmul.
struct DequantizedWeights {
  /// [N,blocks,bytes of a block], [N,blocks], and zero points or null.
  mlir::Value bytes, scales, zeroPoints;
  /// The values of K, of which a block has `block`, of `bits` bits each.
  int64_t k = 0, bits = 0, block = 0;
  /// The type of floats; null for integers.
  mlir::Type element;
  /// One number that all scales are multiplied by; null for 1.
  mlir::Value factor;
};

/// `lhs` [...,K] times the weights: [...,N] of f32. Null where it has not as
/// many columns as they have rows. `rounded`: the type that rows may be rounded
/// to, or null.
mlir::Value multiplyByDequantized(TensorBuilder &b, mlir::Value lhs,
                                  const DequantizedWeights &weights,
                                  mlir::Type rounded = {});

/// The weights that `rhs`, the original right-hand side [K,N] of a product of
/// `lhs`, or (`transposed`) [N,K], is dequantised from.
std::optional<DequantizedWeights>
findDequantizedWeights(TensorBuilder &b,
                       mlir::ConversionPatternRewriter &rewriter,
                       mlir::Value lhs, mlir::Value rhs, bool transposed);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CONTRACTION_DEQUANTIZEDWEIGHTS_H
