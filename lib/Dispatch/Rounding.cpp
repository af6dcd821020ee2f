//===- Rounding.cpp - How floats become whole numbers ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rounding.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sardonyx;

std::optional<double> sardonyx::getNumber(Value value) {
  APFloat number(0.0f);
  if (!matchPattern(value, m_ConstantFloat(&number)))
    return std::nullopt;
  return number.convertToDouble();
}

namespace {

/// The larger, or the smaller, of a number and a constant, which is taken for
/// NaN, too.
struct Bound {
  arith::SelectOp select;
  Value value;
  double limit;

  static std::optional<Bound> get(Value bounded, bool isLower) {
    auto select = bounded.getDefiningOp<arith::SelectOp>();
    auto less = select ? select.getCondition().getDefiningOp<arith::CmpFOp>()
                       : arith::CmpFOp();
    if (!less || less.getPredicate() != arith::CmpFPredicate::OLT)
      return std::nullopt;
    Value number = select.getTrueValue(), limit = select.getFalseValue();
    std::optional<double> constant = getNumber(limit);
    if (less.getLhs() != (isLower ? limit : number) ||
        less.getRhs() != (isLower ? number : limit) || !constant)
      return std::nullopt;
    return Bound{select, number, *constant};
  }
};

} // namespace

std::optional<Bounded> Bounded::get(Value bounded) {
  std::optional<Bound> upper = Bound::get(bounded, /*isLower=*/false);
  std::optional<Bound> lower =
      upper ? Bound::get(upper->value, /*isLower=*/true) : std::nullopt;
  if (!lower)
    return std::nullopt;
  return Bounded{lower->value, lower->limit, upper->limit, lower->select};
}

void Bounded::replaceValue(Value other) {
  lower.getCondition().getDefiningOp<arith::CmpFOp>().getRhsMutable().assign(
      other);
  lower.getTrueValueMutable().assign(other);
  value = other;
}
