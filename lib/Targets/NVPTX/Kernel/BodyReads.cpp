//===- BodyReads.cpp - Which elements a body reads ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/BodyReads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <limits>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

BodyReads::BodyReads(linalg::GenericOp op, std::optional<int64_t> last) {
  const unsigned rank = op.getNumLoops();
  for (unsigned loop = 0; loop < rank; ++loop)
    loops.push_back(last && loop + 1 == rank ? Index{std::nullopt, *last}
                                             : Index{loop, 0});
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!op.payloadUsesValueFromOperand(input) || op.isScalar(input))
      continue;
    Read &read = reads.emplace_back(
        Read{input->get(), op.getMatchingBlockArgument(input), {}, {}});
    for (AffineExpr expr : op.getMatchingIndexingMap(input).getResults()) {
      std::optional<Index> &index = read.index.emplace_back();
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        index = loops[dim.getPosition()];
      else if (auto number = dyn_cast<AffineConstantExpr>(expr))
        index = Index{std::nullopt, number.getValue()};
    }
  }
  visit(*op.getBody(), {});
  DenseSet<Value> used;
  for (Value yielded : op.getBody()->getTerminator()->getOperands())
    findUsed(yielded, used);
  llvm::erase_if(reads,
                 [&](const Read &read) { return !used.contains(read.value); });
}

/// Adds `value`, and what it hangs on.
void BodyReads::findUsed(Value value, DenseSet<Value> &used) const {
  if (!used.insert(value).second)
    return;
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  auto select = dyn_cast<arith::SelectOp>(op);
  auto which = dyn_cast<scf::IfOp>(op);
  std::optional<Index> condition;
  if (select || which)
    condition = lookup(op->getOperand(0));
  const bool isDecided = condition && condition->isNumber();
  if (select && isDecided)
    return findUsed(condition->offset ? select.getTrueValue()
                                      : select.getFalseValue(),
                    used);
  if (which) {
    const unsigned number = cast<OpResult>(value).getResultNumber();
    for (auto [isTaken, branch] : {std::pair(true, which.thenBlock()),
                                   std::pair(false, which.elseBlock())})
      if (!isDecided || isTaken == (condition->offset != 0))
        findUsed(branch->getTerminator()->getOperand(number), used);
  }
  for (Value operand : op->getOperands())
    findUsed(operand, used);
}

std::optional<BodyReads::Range> BodyReads::findRange(Value condition) const {
  auto found = conditions.find(condition);
  return found == conditions.end() ? std::nullopt
                                   : std::optional(found->second);
}

std::optional<BodyReads::Index> BodyReads::lookup(Value value) const {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  if (std::optional<int64_t> number = getConstantIntValue(value))
    return Index{std::nullopt, *number};
  return std::nullopt;
}

void BodyReads::visit(Block &block, ArrayRef<Range> ranges) {
  for (Operation &op : block.without_terminator()) {
    if (isa<scf::IfOp>(op)) {
      visitIf(&op, ranges);
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      Read &read = reads.emplace_back(
          Read{extract.getTensor(), extract, {}, llvm::to_vector(ranges)});
      for (Value index : extract.getIndices())
        read.index.push_back(lookup(index));
    } else if (op.getNumResults() == 1 && op.getNumRegions() == 0) {
      if (std::optional<Index> result = compute(&op))
        known[op.getResult(0)] = *result;
    }
  }
}

/// What an operation makes of numbers.
static std::optional<int64_t> fold(Operation *op, ArrayRef<int64_t> operands) {
  SmallVector<Attribute> attributes;
  for (auto [value, number] : llvm::zip_equal(op->getOperands(), operands))
    attributes.push_back(IntegerAttr::get(value.getType(), number));
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(attributes, results)) || results.size() != 1)
    return std::nullopt;
  if (auto operand = dyn_cast<Value>(results[0])) {
    auto place = llvm::find(op->getOperands(), operand);
    return place == op->operand_end()
               ? std::nullopt
               : std::optional(operands[place - op->operand_begin()]);
  }
  auto number = dyn_cast<IntegerAttr>(cast<Attribute>(results[0]));
  if (!number)
    return std::nullopt;
  return number.getType().isInteger(1) ? number.getValue().getZExtValue()
                                       : number.getValue().getSExtValue();
}

std::optional<BodyReads::Index> BodyReads::compute(Operation *op) {
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return loops[index.getDim()];
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    std::optional<Index> condition = lookup(select.getCondition());
    if (condition && condition->isNumber())
      return lookup(condition->offset ? select.getTrueValue()
                                      : select.getFalseValue());
    return std::nullopt;
  }
  if (!isPure(op) || !op->getResult(0).getType().isIntOrIndex() ||
      !llvm::all_of(op->getOperandTypes(),
                    [](Type type) { return type.isIntOrIndex(); }))
    return std::nullopt;
  SmallVector<Index> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Index> of = lookup(operand);
    if (!of)
      return std::nullopt;
    operands.push_back(*of);
  }
  if (llvm::all_of(operands, [](const Index &of) { return of.isNumber(); })) {
    SmallVector<int64_t> numbers;
    for (const Index &of : operands)
      numbers.push_back(of.offset);
    if (std::optional<int64_t> number = fold(op, numbers))
      return Index{std::nullopt, *number};
    return std::nullopt;
  }
  if (operands.size() != 2)
    return std::nullopt;
  const auto [left, right] = std::pair(operands[0], operands[1]);
  if (isa<arith::AddIOp>(op) && (left.isNumber() || right.isNumber()))
    return Index{left.isNumber() ? right.loop : left.loop,
                 left.offset + right.offset};
  if (isa<arith::SubIOp>(op) && right.isNumber())
    return Index{left.loop, left.offset - right.offset};
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare || left.isNumber() || !right.isNumber())
    return std::nullopt;
  // Below zero lie large numbers.
  const bool isUnsigned = compare.getPredicate() == arith::CmpIPredicate::ult;
  if (isUnsigned || compare.getPredicate() == arith::CmpIPredicate::slt)
    conditions[op->getResult(0)] = {
        *left.loop,
        isUnsigned ? -left.offset : std::numeric_limits<int64_t>::min(),
        right.offset - left.offset};
  return std::nullopt;
}

void BodyReads::visitIf(Operation *op, ArrayRef<Range> ranges) {
  auto which = cast<scf::IfOp>(op);
  std::optional<Index> condition = lookup(which.getCondition());
  if (condition && condition->isNumber()) {
    Block *taken = condition->offset ? which.thenBlock() : which.elseBlock();
    if (!taken)
      return;
    visit(*taken, ranges);
    for (auto [result, value] : llvm::zip_equal(
             which.getResults(), taken->getTerminator()->getOperands()))
      if (std::optional<Index> of = lookup(value))
        known[result] = *of;
    return;
  }
  SmallVector<Range> within(ranges);
  if (std::optional<Range> range = findRange(which.getCondition()))
    within.push_back(*range);
  visit(*which.thenBlock(), within);
  if (Block *otherwise = which.elseBlock())
    visit(*otherwise, ranges);
}
