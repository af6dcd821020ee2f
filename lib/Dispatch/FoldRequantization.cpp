//===- FoldRequantization.cpp - Whole numbers as floats ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rounding.h"
#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXFOLDREQUANTIZATION
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// What a whole number from `lowest` to `highest` was rounded from, within
/// these bounds.
struct WholeNumber {
  Value bounded;
  double lowest, highest;
};

} // namespace

/// A number that QuantizeLinear rounds, of f32.
static std::optional<WholeNumber> findWholeNumber(Value value) {
  auto round = value.getDefiningOp<math::RoundEvenOp>();
  if (!round || !value.getType().isF32())
    return std::nullopt;
  std::optional<Bounded> number = Bounded::get(round.getOperand());
  if (!number || number->lowest != std::round(number->lowest) ||
      number->highest != std::round(number->highest))
    return std::nullopt;
  return WholeNumber{round.getOperand(), number->lowest, number->highest};
}

namespace {

/// An integer that is cut down to fewer bits: a whole number and a zero point.
struct ZeroedNumber {
  WholeNumber number;
  double zero;

  static std::optional<ZeroedNumber> find(arith::TruncIOp truncate) {
    Value integer = truncate.getIn();
    APInt zero(32, 0);
    if (auto add = integer.getDefiningOp<arith::AddIOp>()) {
      if (!matchPattern(add.getRhs(), m_ConstantInt(&zero)))
        return std::nullopt;
      integer = add.getLhs();
    }
    auto toInteger = integer.getDefiningOp<arith::FPToSIOp>();
    std::optional<WholeNumber> number =
        toInteger ? findWholeNumber(toInteger.getIn()) : std::nullopt;
    if (!number)
      return std::nullopt;
    return ZeroedNumber{*number, static_cast<double>(zero.getSExtValue())};
  }
};

} // namespace

/// Replaces what a conversion of a byte to a float gives, or that less its zero
/// point.
static void fold(Operation *toFloat) {
  Value byte = toFloat->getOperand(0);
  auto truncate = byte.getDefiningOp<arith::TruncIOp>();
  if (!truncate || !toFloat->getResult(0).getType().isF32())
    return;
  const unsigned width = byte.getType().getIntOrFloatBitWidth();
  constexpr unsigned kMostBits = 16;
  if (width > kMostBits)
    return;
  std::optional<ZeroedNumber> found = ZeroedNumber::find(truncate);
  if (!found)
    return;
  const auto [number, zero] = *found;
  const bool isUnsigned = isa<arith::UIToFPOp>(toFloat);
  const double least = isUnsigned ? 0 : -std::ldexp(1.0, width - 1);
  const double most = std::ldexp(1.0, isUnsigned ? width : width - 1) - 1;
  if (number.lowest + zero < least || number.highest + zero > most)
    return;
  ImplicitLocOpBuilder b(toFloat->getLoc(), toFloat);
  // A number whose fraction has no bits left is rounded to even, and so is what
  // is added to it. -0.0, which was never a byte, becomes 0.
  auto plus = [&, bounded = number.bounded](double term) -> Value {
    Value far = arith::ConstantOp::create(b, b.getF32FloatAttr(kNoFraction));
    Value less = arith::ConstantOp::create(
        b, b.getF32FloatAttr(kNoFraction - float(term)));
    Value sum = arith::AddFOp::create(b, bounded, far);
    return arith::SubFOp::create(b, sum, less);
  };
  Value same;
  for (Operation *user :
       llvm::make_early_inc_range(toFloat->getResult(0).getUsers())) {
    auto minus = dyn_cast<arith::SubFOp>(user);
    if (!minus || minus.getLhs() != toFloat->getResult(0) ||
        getNumber(minus.getRhs()) != zero)
      continue;
    if (!same)
      same = plus(0);
    minus.replaceAllUsesWith(same);
  }
  if (!toFloat->use_empty())
    toFloat->replaceAllUsesWith(ValueRange(plus(zero)));
}

/// Says of the conversion to a byte that it is one that saturates.
static void mark(arith::TruncIOp truncate) {
  if (!truncate.getType().isInteger(8) ||
      !truncate.getIn().getType().isInteger(32))
    return;
  std::optional<ZeroedNumber> found = ZeroedNumber::find(truncate);
  if (!found)
    return;
  const double lowest = found->number.lowest + found->zero,
               highest = found->number.highest + found->zero;
  Builder b(truncate.getContext());
  auto set = [&](bool isSigned) {
    truncate->setAttr(kSaturatingAttr,
                      TypeAttr::get(b.getIntegerType(8, isSigned)));
  };
  if (lowest == 0 && highest == UINT8_MAX)
    set(/*isSigned=*/false);
  else if (lowest == INT8_MIN && highest == INT8_MAX)
    set(/*isSigned=*/true);
}

namespace {

struct FoldRequantizationPass
    : sardonyx::impl::SDXFoldRequantizationBase<FoldRequantizationPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (isa<arith::UIToFPOp, arith::SIToFPOp>(op))
        fold(op);
    });
    getOperation().walk(mark);
    eraseDeadInBodies(getOperation());
  }
};

} // namespace
