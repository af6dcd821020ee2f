//===- ScoreModifier.h - What a body does to scores -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_ATTENTION_SCOREMODIFIER_H
#define SARDONYX_LIB_DISPATCH_ATTENTION_SCOREMODIFIER_H

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace sardonyx::attention {

/// `value` without conversions of floats and of integers.
mlir::Value skipConversions(mlir::Value value);

/// Whether `value` is the constant -inf.
bool isMinusInfinity(mlir::Value value);

/// The condition under which an integer that stands for a truth value is not 0;
/// null where it is another integer.
mlir::Value findTruth(mlir::Value number);

/// Clones what `value` in the body of `op` hangs on, but for what is mapped.
mlir::Value cloneFromBody(mlir::ImplicitLocOpBuilder &b, sdx::AttentionOp op,
                          mlir::Value value, mlir::IRMapping &mapping);

/// What the body of an operation does to scores.
class ScoreModifier {
public:
  explicit ScoreModifier(sdx::AttentionOp op);

  /// A positive factor of scores that `evaluate` leaves out.
  double getFactor() const { return factor; }
  /// Takes that factor out of the body.
  double takeFactor();
  /// Whether the body is nothing but that factor.
  bool isFactor() { return op.getModified() == base; }

  /// Whether it is nothing but that factor and the bound of keys.
  bool isBound() { return isOnlyBound; }

  /// The score that `score` becomes with these elements of the extras (null
  /// where the body needs none) and indices, divided by the factor.
  mlir::Value evaluate(mlir::ImplicitLocOpBuilder &b, mlir::Value score,
                       llvm::ArrayRef<mlir::Value> elements,
                       mlir::ValueRange indices);

  /// The loop that bounds keys: those after a number that grows with its index
  /// have a score of -inf. None if there is no such bound.
  std::optional<unsigned> getBoundingLoop() const { return boundingLoop; }
  /// The last key for `index` of that loop; may be negative.
  mlir::Value findLastKey(mlir::ImplicitLocOpBuilder &b, mlir::Value index);

private:
  bool findBound(mlir::Value score);
  bool findBoundIn(mlir::arith::CmpIOp compare, bool whereTrue);
  bool growsWithLoop(mlir::Value number);

  sdx::AttentionOp op;
  /// What the score stands for, in the body: the score times the factor.
  mlir::Value base;
  double factor = 1;
  bool isOnlyBound = false;
  std::optional<unsigned> boundingLoop;
  mlir::Value lastKey; // in the body
};

} // namespace sardonyx::attention

#endif // SARDONYX_LIB_DISPATCH_ATTENTION_SCOREMODIFIER_H
