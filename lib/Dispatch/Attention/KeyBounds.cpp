//===- KeyBounds.cpp - Keys that a body excludes by their numbers ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeyBounds.h"
#include "ScoreModifier.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::attention;

KeyBounds::KeyBounds(sdx::AttentionOp op)
    : op(op), ceiling(-std::numeric_limits<double>::infinity()),
      needed(op.getExtras().size()) {
  isExact = visitScore(op.getModified(), /*isSum=*/false);
}

/// The constant float that `value` is.
static std::optional<double> findNumber(Value value) {
  APFloat number(0.0f);
  if (!matchPattern(skipConversions(value), m_ConstantFloat(&number)) ||
      number.isNaN())
    return std::nullopt;
  return number.convertToDouble();
}

/// Looks for low scores under conditions; whether the rest is the score itself.
/// What is added to others is low only if they do not matter beside it.
bool KeyBounds::visitScore(Value score, bool isSum) {
  Operation *def = skipConversions(score).getDefiningOp();
  if (isa_and_nonnull<arith::AddFOp>(def)) {
    visitScore(def->getOperand(0), /*isSum=*/true);
    visitScore(def->getOperand(1), /*isSum=*/true);
    return false;
  }
  auto select = dyn_cast_or_null<arith::SelectOp>(def);
  if (!select)
    return score == op.getScore();
  constexpr double kLow = -1e3, kLowInSums = -1e38, kOthersInSums = 1e38;
  auto isLow = [&](Value value) {
    std::optional<double> number = findNumber(value);
    return number && *number < (isSum ? kLowInSums : kLow);
  };
  for (bool whereTrue : {true, false}) {
    Value low = whereTrue ? select.getTrueValue() : select.getFalseValue();
    Value rest = whereTrue ? select.getFalseValue() : select.getTrueValue();
    if (!isLow(low))
      continue;
    const size_t before = firsts.size() + ends.size();
    const bool isAll = visitCondition(select.getCondition(), whereTrue);
    const bool isRest = visitScore(rest, isSum);
    // A key that the rest excludes may have the score of this condition.
    if (firsts.size() + ends.size() > before)
      ceiling =
          std::max(ceiling, *findNumber(low) + (isSum ? kOthersInSums : 0));
    return isRest && isAll;
  }
  return false;
}

/// Looks for bounds in a condition that, where it is `excludes`, excludes a
/// key; whether it has nothing else.
bool KeyBounds::visitCondition(Value condition, bool excludes) {
  if (auto compare = condition.getDefiningOp<arith::CmpIOp>()) {
    // A truth value that was a byte in between.
    Value truth = matchPattern(compare.getRhs(), m_Zero())
                      ? findTruth(compare.getLhs())
                      : Value();
    if (truth && compare.getPredicate() == arith::CmpIPredicate::ne)
      return visitCondition(truth, excludes);
    if (truth && compare.getPredicate() == arith::CmpIPredicate::eq)
      return visitCondition(truth, !excludes);
    return visitCompare(compare, excludes);
  }
  Operation *def = condition.getDefiningOp();
  if (isa_and_nonnull<arith::XOrIOp>(def) &&
      matchPattern(def->getOperand(1), m_One()))
    return visitCondition(def->getOperand(0), !excludes);
  // One of two is enough.
  if ((isa_and_nonnull<arith::OrIOp>(def) && excludes) ||
      (isa_and_nonnull<arith::AndIOp>(def) && !excludes)) {
    const bool isLeft = visitCondition(def->getOperand(0), excludes);
    return visitCondition(def->getOperand(1), excludes) && isLeft;
  }
  return false;
}

/// The number of the key that `value` is, plus what is given.
static std::optional<int64_t> findOffsetOfKey(Value value, Value key) {
  value = skipConversions(value);
  if (value == key)
    return 0;
  auto sum = value.getDefiningOp<arith::AddIOp>();
  APInt number;
  if (!sum || !matchPattern(sum.getRhs(), m_ConstantInt(&number)) ||
      skipConversions(sum.getLhs()) != key)
    return std::nullopt;
  return number.getSExtValue();
}

bool KeyBounds::visitCompare(arith::CmpIOp compare, bool excludes) {
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = compare.getPredicate();
  Value keySide = compare.getLhs(), bound = compare.getRhs();
  Value key = op.getIndices()[op.getKeyLoop()];
  std::optional<int64_t> offset = findOffsetOfKey(keySide, key);
  if (!offset) {
    std::swap(keySide, bound);
    offset = findOffsetOfKey(keySide, key);
    predicate = predicate == Predicate::slt   ? Predicate::sgt
                : predicate == Predicate::sgt ? Predicate::slt
                : predicate == Predicate::sle ? Predicate::sge
                : predicate == Predicate::sge ? Predicate::sle
                                              : predicate;
  }
  if (!excludes)
    predicate = arith::invertPredicate(predicate);
  if (!offset || !isOfQuery(bound))
    return false;
  switch (predicate) {
  case Predicate::sgt:
    ends.push_back({bound, 1 - *offset});
    return true;
  case Predicate::sge:
    ends.push_back({bound, -*offset});
    return true;
  case Predicate::slt:
    firsts.push_back({bound, -*offset});
    return true;
  case Predicate::sle:
    firsts.push_back({bound, 1 - *offset});
    return true;
  default:
    return false;
  }
}

/// Whether `value` is the same for all keys of a query.
bool KeyBounds::isOfQuery(Value value) {
  llvm::SmallBitVector extras(needed.size());
  auto visit = [&](auto &&self, Value value) -> bool {
    if (value.getParentRegion() != &op.getBody())
      return true;
    if (Operation *def = value.getDefiningOp())
      return def->getNumRegions() == 0 &&
             llvm::all_of(def->getOperands(),
                          [&](Value v) { return self(self, v); });
    const unsigned number = cast<BlockArgument>(value).getArgNumber();
    if (number == 0 || value == op.getIndices()[op.getKeyLoop()])
      return false;
    if (number > extras.size())
      return true;
    extras.set(number - 1);
    return !op.getMap(2 + number).isFunctionOfDim(op.getKeyLoop());
  };
  if (!visit(visit, value))
    return false;
  needed |= extras;
  return true;
}

Value KeyBounds::emit(ImplicitLocOpBuilder &b, ArrayRef<Bound> bounds,
                      bool isEnd, ArrayRef<Value> elements,
                      ValueRange indices) {
  IRMapping mapping;
  for (auto [argument, index] :
       llvm::zip_equal(op.getIndices().drop_back(), indices))
    mapping.map(argument, index);
  for (auto [argument, element] : llvm::zip_equal(op.getElements(), elements))
    if (element)
      mapping.map(argument, element);
  Value result;
  for (const Bound &bound : bounds) {
    Value number = cloneFromBody(b, op, bound.number, mapping);
    if (!number.getType().isIndex())
      number = arith::IndexCastOp::create(b, b.getIndexType(), number);
    number = b.createOrFold<arith::AddIOp>(
        number, arith::ConstantIndexOp::create(b, bound.offset));
    if (!result)
      result = number;
    else if (isEnd)
      result = arith::MinSIOp::create(b, result, number);
    else
      result = arith::MaxSIOp::create(b, result, number);
  }
  return result;
}
