//===- ScoreModifier.h - The body of attention in a kernel ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_SCOREMODIFIER_H
#define SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_SCOREMODIFIER_H

#include "dialects/NV/NV.h"

#include "Common/KernelBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace sardonyx::nv {

/// What the body of an operation does to scores.
class ScoreModifier {
public:
  ScoreModifier(AttentionOp op, KernelBody &body);

  /// A positive factor of scores that `evaluate` leaves out.
  double getFactor() const { return factor; }
  /// Whether the body is nothing but that factor.
  bool isFactor() { return op.getModified() == base; }

  /// Whether it is nothing but that factor and the bound of keys.
  bool isBound() { return isOnlyBound; }

  /// The score that `score` becomes at these indices of all loops but the last
  /// two, divided by the factor.
  mlir::Value evaluate(mlir::ImplicitLocOpBuilder &b, mlir::Value score,
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
  mlir::Value cloneInto(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                        mlir::IRMapping &mapping);

  AttentionOp op;
  KernelBody &body;
  /// What the score stands for, in the body: the score times the factor.
  mlir::Value base;
  double factor = 1;
  bool isOnlyBound = false;
  std::optional<unsigned> boundingLoop;
  mlir::Value lastKey; // in the body
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_SCOREMODIFIER_H
