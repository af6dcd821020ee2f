//===- Recompose.h - Patterns that raise chains to operators ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_RECOMPOSE_H
#define SARDONYX_LIB_TRANSFORMS_RECOMPOSE_H

#include "dialects/ONNX/ONNX.h"
#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace sardonyx {

void populateRecomposeActivationPatterns(mlir::RewritePatternSet &patterns);
void populateRecomposeNormalizationPatterns(mlir::RewritePatternSet &patterns);
void populateRecomposeQuantizedPatterns(mlir::RewritePatternSet &patterns);

/// The value of a floating-point constant of one element that, combined with
/// `other`, leaves the shape of `other` as it is.
std::optional<double> getScalarFor(mlir::Value constant, mlir::Value other);

/// Whether `constant` is `wanted`, rounded to its own type, give or take the
/// last bit.
bool isScalarFor(mlir::Value constant, mlir::Value other, double wanted);

/// If one operand of the commutative `op` is the scalar `wanted`, the other
/// one.
mlir::Value matchWithScalar(mlir::Operation *op, double wanted);

/// The factors of a tree of Mul whose inner products have no other use. Div by
/// a scalar counts as a factor of its reciprocal. Scalars are multiplied into
/// `scalar`; the others are appended.
void collectFactors(mlir::Value product, double &scalar,
                    llvm::SmallVectorImpl<mlir::Value> &factors);

/// Whether two numbers are the same in the precision of `type`.
bool isSameScalar(mlir::Type type, double value, double wanted);

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_RECOMPOSE_H
