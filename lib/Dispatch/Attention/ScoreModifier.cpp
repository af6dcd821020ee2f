//===- ScoreModifier.cpp - The body of attention in a kernel --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreModifier.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::attention;

using namespace sardonyx;

/// The factor between `score` and `from`, if that is all there is.
static std::optional<double> findFactor(Value score, Value from) {
  double factor = 1;
  while (score != from) {
    Operation *op = score.getDefiningOp();
    APFloat number(1.0f);
    if (!isa_and_nonnull<arith::MulFOp, arith::DivFOp>(op) ||
        !matchPattern(op->getOperand(1), m_ConstantFloat(&number)) ||
        number.isNegative() || !number.isNormal())
      return std::nullopt;
    const double value = number.convertToDouble();
    factor = isa<arith::MulFOp>(op) ? factor * value : factor / value;
    score = op->getOperand(0);
    if (!score.hasOneUse())
      return std::nullopt;
  }
  return factor;
}

Value attention::skipConversions(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp, arith::IndexCastOp,
             arith::ExtSIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool attention::isMinusInfinity(Value value) {
  APFloat number(0.0f);
  return matchPattern(skipConversions(value), m_ConstantFloat(&number)) &&
         number.isInfinity() && number.isNegative();
}

ScoreModifier::ScoreModifier(sdx::AttentionOp op)
    : op(op), base(op.getModified()) {
  findBound(op.getModified());
  // Whatever is -inf stays so.
  unsigned selects = 0;
  for (auto select = base.getDefiningOp<arith::SelectOp>();
       select && base.hasOneUse();
       select = base.getDefiningOp<arith::SelectOp>(), ++selects) {
    if (isMinusInfinity(select.getTrueValue()))
      base = select.getFalseValue();
    else if (isMinusInfinity(select.getFalseValue()))
      base = select.getTrueValue();
    else
      break;
  }
  std::optional<double> found = findFactor(base, op.getScore());
  // Nothing else may look at it.
  if (!found || !base.hasOneUse())
    base = op.getScore();
  else
    factor = *found;
  isOnlyBound = found && boundingLoop && selects == 1;
}

Value attention::cloneFromBody(ImplicitLocOpBuilder &b, sdx::AttentionOp op,
                               Value value, IRMapping &mapping) {
  // What its operands are made of, the first ones first.
  SmallVector<Operation *> needed;
  auto collect = [&](auto &&self, Value value) -> void {
    Operation *def = value.getDefiningOp();
    if (!def || mapping.contains(value) ||
        def->getParentRegion() != &op.getBody() ||
        llvm::is_contained(needed, def))
      return;
    for (Value operand : def->getOperands())
      self(self, operand);
    needed.push_back(def);
  };
  collect(collect, value);
  for (Operation *inner : needed)
    b.clone(*inner, mapping);
  return mapping.lookupOrDefault(value);
}

double ScoreModifier::takeFactor() {
  const double taken = factor;
  if (base != op.getScore()) {
    base.replaceAllUsesWith(op.getScore());
    for (Operation &inner :
         llvm::make_early_inc_range(llvm::reverse(op.getBody().front())))
      if (isOpTriviallyDead(&inner))
        inner.erase();
  }
  base = op.getScore();
  factor = 1;
  return taken;
}

Value ScoreModifier::evaluate(ImplicitLocOpBuilder &b, Value score,
                              ArrayRef<Value> elements, ValueRange indices) {
  IRMapping mapping;
  mapping.map(base, score);
  for (auto [argument, index] : llvm::zip_equal(op.getIndices(), indices))
    mapping.map(argument, index);
  for (auto [argument, element] : llvm::zip_equal(op.getElements(), elements))
    if (element)
      mapping.map(argument, element);
  return cloneFromBody(b, op, op.getModified(), mapping);
}

Value attention::findTruth(Value number) {
  if (auto extend = number.getDefiningOp<arith::ExtUIOp>())
    return extend.getIn().getType().isInteger(1) ? extend.getIn() : Value();
  auto select = number.getDefiningOp<arith::SelectOp>();
  return select && matchPattern(select.getFalseValue(), m_Zero()) &&
                 matchPattern(select.getTrueValue(), m_NonZero())
             ? select.getCondition()
             : Value();
}

/// Looks for -inf past a bound, which what is added to leaves -inf.
bool ScoreModifier::findBound(Value score) {
  Operation *op = skipConversions(score).getDefiningOp();
  if (isa_and_nonnull<arith::AddFOp>(op))
    return findBound(op->getOperand(0)) || findBound(op->getOperand(1));
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  if (!select)
    return false;
  bool whereTrue = isMinusInfinity(select.getTrueValue());
  if (!whereTrue && !isMinusInfinity(select.getFalseValue()))
    return false;
  Value condition = select.getCondition();
  // A truth value that was a byte in between.
  while (auto compare = condition.getDefiningOp<arith::CmpIOp>()) {
    Value truth = matchPattern(compare.getRhs(), m_Zero())
                      ? findTruth(compare.getLhs())
                      : Value();
    if (!truth)
      return findBoundIn(compare, whereTrue);
    if (compare.getPredicate() == arith::CmpIPredicate::eq)
      whereTrue = !whereTrue;
    else if (compare.getPredicate() != arith::CmpIPredicate::ne)
      return false;
    condition = truth;
  }
  return false;
}

/// Whether a comparison is `last < key`, or, if not `whereTrue`, the opposite.
bool ScoreModifier::findBoundIn(arith::CmpIOp compare, bool whereTrue) {
  using Predicate = arith::CmpIPredicate;
  Value lhs = compare.getLhs(), rhs = compare.getRhs();
  Predicate predicate = compare.getPredicate();
  if (!whereTrue)
    predicate = arith::invertPredicate(predicate);
  if (predicate == Predicate::sgt) {
    std::swap(lhs, rhs);
    predicate = Predicate::slt;
  }
  Value key = op.getIndices()[op.getKeyLoop()];
  if (predicate != Predicate::slt || skipConversions(rhs) != key)
    return false;
  if (!growsWithLoop(lhs))
    return false;
  lastKey = lhs;
  return true;
}

/// Whether `number` is the index of a loop plus what is the same everywhere.
bool ScoreModifier::growsWithLoop(Value number) {
  number = skipConversions(number);
  if (auto add = number.getDefiningOp<arith::AddIOp>()) {
    auto isSame = [&](Value value) {
      value = skipConversions(value);
      return matchPattern(value, m_Constant()) ||
             value.getParentRegion() != &op.getBody();
    };
    if (isSame(add.getRhs()))
      return growsWithLoop(add.getLhs());
    return isSame(add.getLhs()) && growsWithLoop(add.getRhs());
  }
  for (auto [loop, index] : llvm::enumerate(op.getIndices().drop_back()))
    if (index == number) {
      boundingLoop = loop;
      return true;
    }
  return false;
}

Value ScoreModifier::findLastKey(ImplicitLocOpBuilder &b, Value index) {
  IRMapping mapping;
  mapping.map(op.getIndices()[*boundingLoop], index);
  Value last = cloneFromBody(b, op, lastKey, mapping);
  if (last.getType().isIndex())
    return last;
  return arith::IndexCastOp::create(b, b.getIndexType(), last);
}
