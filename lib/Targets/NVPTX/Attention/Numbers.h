//===- Numbers.h - Numbers of a softmax -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_NUMBERS_H
#define SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_NUMBERS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::nv {

mlir::Value floatConstant(mlir::ImplicitLocOpBuilder &b, float value);
mlir::Value minusInfinity(mlir::ImplicitLocOpBuilder &b);

/// 2 to the power of `x`, to 2 units in the last place; 0 of -inf.
mlir::Value exp2(mlir::ImplicitLocOpBuilder &b, mlir::Value x);

/// What differences are taken from: `largest`, unless there was no score but
/// -inf, which has the exponential 0.
mlir::Value finiteBase(mlir::ImplicitLocOpBuilder &b, mlir::Value largest);

/// The larger of two numbers, one that is no number aside: an instruction.
mlir::Value larger(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y);

/// The sum, or the largest, of `values`.
mlir::Value reduce(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange values,
                   bool isSum);

/// `value` times `factor`, which is 1 divided by the sum of exponentials. Sums
/// of no values are 0, also where a softmax has no numbers.
mlir::Value normalize(mlir::ImplicitLocOpBuilder &b, mlir::Value keys,
                      mlir::Value value, mlir::Value factor);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_NUMBERS_H
