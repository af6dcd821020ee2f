//===- Rounding.h - How floats become whole numbers -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_ROUNDING_H
#define SARDONYX_LIB_DISPATCH_ROUNDING_H

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <optional>

namespace sardonyx {

/// 1.5 * 2^23: the last bit of an f32 of this size is 1, so that a number of
/// less than 2^22 that is added to it is rounded to a whole one, halves to
/// even.
inline constexpr float kNoFraction = 12582912;

/// The number that a value is, if it is a constant.
std::optional<double> getNumber(mlir::Value value);

/// On an `arith.trunci` to a byte, the type of it (ui8 or si8): before it was
/// rounded and a zero point added, the number was bounded so that it becomes
/// the nearest integer of this type.
inline constexpr llvm::StringLiteral kSaturatingAttr = "sdx.saturating";

/// A number within constant bounds, as QuantizeLinear has it before it rounds:
/// `value`, or `lowest` if it is less or NaN, or `highest` if it is more.
struct Bounded {
  mlir::Value value;
  double lowest, highest;
  mlir::arith::SelectOp lower;

  static std::optional<Bounded> get(mlir::Value bounded);

  /// Bounds `other` instead.
  void replaceValue(mlir::Value other);
};

} // namespace sardonyx

#endif // SARDONYX_LIB_DISPATCH_ROUNDING_H
