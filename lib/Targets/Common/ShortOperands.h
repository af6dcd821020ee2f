//===- ShortOperands.h - Numbers of 16 bits in f32 --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_COMMON_SHORTOPERANDS_H
#define SARDONYX_LIB_TARGETS_COMMON_SHORTOPERANDS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace sardonyx {

/// The tensor of f16 or bf16 that `tensor` is in f32, or null.
mlir::Value findWidenedSource(mlir::Value tensor);

/// Whether an operation, which may be null, gives its operand in another shape
/// or order.
bool isMovement(mlir::Operation *op);

/// Has `op` take both operands, which are f32 of the same 16-bit floats, as
/// these, in whatever shape or order they are given; whether it does. With
/// `element` only those are taken so.
bool narrowOperands(mlir::Operation *op, mlir::OpOperand &lhs,
                    mlir::OpOperand &rhs, mlir::Type element = {});
/// The same of one operand.
bool narrowOperand(mlir::Operation *op, mlir::OpOperand &operand);

/// Rounds operands of f32 to 16 bits, where they are made.
class OperandRounder {
public:
  /// To `element`, f16 or bf16.
  explicit OperandRounder(mlir::Type element) : element(element) {}

  /// Whether `tensor` is rounded where it is made, for all who use it, so that
  /// it costs nothing.
  static bool isMadeHere(mlir::Value tensor);

  /// `operand`, a tensor, is f32 of a rounded one afterwards.
  void round(mlir::OpOperand &operand);

private:
  mlir::Value makeRounded(mlir::Value value);

  const mlir::Type element;
  llvm::DenseMap<mlir::Value, mlir::Value> rounded;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_TARGETS_COMMON_SHORTOPERANDS_H
