//===- AttentionMatch.h - Attention among operations on tensors -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes backwards from the product of probabilities and values: through the
// softmax, what is done to scores, and the product of queries and keys, to
// tensors that lie in memory. What repeats, transposes, reshapes or scales them
// is told by the maps and the body instead.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_ATTENTION_ATTENTIONMATCH_H
#define SARDONYX_LIB_DISPATCH_ATTENTION_ATTENTIONMATCH_H

#include "ScoreBody.h"

namespace sardonyx::attention {

/// An operand of a product, and what it was multiplied by.
struct Operand {
  Position position;
  double factor = 1;
};

/// What operands may be made of where they are read: f32 of bytes and of
/// shorter floats, f32 of shorter floats, or nothing else.
enum class Widening { Bytes, Floats, None };

/// Attention whose second product is a given one.
class AttentionMatch {
public:
  explicit AttentionMatch(sdx::MatmulOp second) : second(second) {}

  bool match() {
    return findProbabilities() && findScores() && findOperands() &&
           isUsedHereOnly();
  }
  /// Puts one operation in its place; false, and nothing has changed, where
  /// that cannot be built.
  bool replace();
  /// Of a product that stays: has terms of the softmax before it be 0 where
  /// they are smaller than normal numbers, if nothing else reads that. Of a new
  /// match.
  void flushTerms();

private:
  using Dims = Axes::Dims;

  bool findProbabilities();
  bool skipRowSelect(Position &position);
  bool findScores();
  mlir::Type findRoundedType();
  bool hasKernel(bool areBytes = false);
  bool findOperands();
  bool isUsedHereOnly();
  Operand findOperand(Position from, const Axes::List &last, Widening widening);
  bool findScaled(Operand &operand, Widening widening);
  bool canSeparate();
  Position findResult();
  void orderAxes();
  mlir::Value sizeOf(mlir::OpBuilder &b, Axes::Axis axis);
  mlir::AffineMap mapOf(const Dims &dims);
  mlir::Value applyRowSelects(mlir::OpBuilder &b, mlir::Value result,
                              const Dims &dims);
  sdx::AttentionOp build(mlir::OpBuilder &b, mlir::Value init,
                         const Dims &resultDims);

  sdx::MatmulOp second, first;
  Axes axes;
  Axes::List batch, rows, keys, depth, columns;
  Position scores;
  ScoreBody body{axes};
  llvm::SetVector<mlir::Operation *> passed;
  /// Operations that set whole rows of probabilities to 0, the last one first,
  /// with the axes of their loops.
  llvm::SmallVector<std::pair<mlir::linalg::GenericOp, Dims>> rowSelects;
  Operand query, key, value;
  /// All axes, those of keys, depth and columns last; and tensors' dimensions
  /// that have their sizes.
  Axes::List order;
  llvm::SmallVector<std::pair<mlir::Value, Dims>> separated;
};

} // namespace sardonyx::attention

#endif // SARDONYX_LIB_DISPATCH_ATTENTION_ATTENTIONMATCH_H
