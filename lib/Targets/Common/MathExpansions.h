//===- MathExpansions.h - Math functions as arithmetic ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Math functions of f32, scalars or vectors, as range reductions and
// polynomials.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_COMMON_MATHEXPANSIONS_H
#define SARDONYX_TARGETS_COMMON_MATHEXPANSIONS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

#include <functional>

namespace sardonyx {

/// Arithmetic on values of one type, scalar or vector, of f32.
struct MathLanes {
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type type;

  mlir::Type withElement(mlir::Type element);
  mlir::Value constant(double value);
  mlir::Value integer(int32_t value);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value x,
                      mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  /// `x`, or `most` where it is larger. A NaN is not, and passes through.
  mlir::Value atMost(mlir::Value x, double most);
  mlir::Value atLeast(mlir::Value x, double least);
  /// The polynomial in t of these coefficients, the highest first. As many of
  /// them as `power` = t^count says, of which their number is a multiple, make
  /// a polynomial that waits for no other, and those are coefficients of one in
  /// `power`. Nested all the way each multiply-add would wait for the one
  /// before, and no processor sees far enough ahead to do other vectors
  /// meanwhile.
  mlir::Value polynomial(mlir::Value t, mlir::Value power, size_t count,
                         llvm::ArrayRef<double> coefficients);

private:
  mlir::Value splat(mlir::Type type, mlir::TypedAttr attr);
};

/// Emits value * 2^exponent for whole exponents of any size by instructions
/// that do it, or gives null. Lanes that are not kept are 0, without the time
/// that a number below normal ones takes; a null `isKept` keeps all.
using MathScale =
    std::function<mlir::Value(MathLanes lanes, mlir::Value value,
                              mlir::Value exponent, mlir::Value isKept)>;

/// Simplifies what several functions make together in `op`, before they are
/// expanded.
void prepareMath(mlir::Operation *op, const MathScale &scale);

/// Patterns that expand exp, expm1, log, log1p, tanh, erf, asin, acos, atan,
/// rsqrt and others of f32; of f16 and bf16 through f32. `scale` may be empty.
void populateMathExpansions(mlir::RewritePatternSet &patterns,
                            const MathScale &scale);

} // namespace sardonyx

#endif // SARDONYX_TARGETS_COMMON_MATHEXPANSIONS_H
