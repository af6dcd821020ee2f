//===- Softmax.h - Softmax among operations on tensors ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_ATTENTION_SOFTMAX_H
#define SARDONYX_LIB_DISPATCH_ATTENTION_SOFTMAX_H

#include "Axes.h"

#include "llvm/ADT/SetVector.h"

namespace sardonyx::attention {

/// A tensor and the axes of its dimensions.
struct Position {
  mlir::Value tensor;
  Axes::Dims dims;
};

/// What is left of `value` without extensions and truncations of floats.
mlir::Value skipFloatCasts(mlir::Value value);

/// The operand of `op` of which `value`, in its body, is an element, maybe as
/// another float; null if it is something else.
mlir::OpOperand *findElement(mlir::linalg::GenericOp op, mlir::Value value);

/// Goes from `position` to what reshapes and transposes made it of; these are
/// added to `passed`.
void skipReshapes(Axes &axes, Position &position,
                  llvm::SetVector<mlir::Operation *> &passed);

/// What `position` is the softmax of, along the axis or axes `along`; the
/// operations that make it are added to `passed`. None if it is no softmax.
std::optional<Position> findSoftmax(Axes &axes, Position position,
                                    const Axes::List &along,
                                    llvm::SetVector<mlir::Operation *> &passed);

} // namespace sardonyx::attention

#endif // SARDONYX_LIB_DISPATCH_ATTENTION_SOFTMAX_H
