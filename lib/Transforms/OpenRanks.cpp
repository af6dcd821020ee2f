//===- OpenRanks.cpp - Values whose rank a condition decides --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpenRanks.h"
#include "FailingBranches.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sardonyx;

Value sardonyx::getYielded(onnx::IfOp op, unsigned branch, unsigned index) {
  Region &region = op->getRegion(branch);
  auto yield = region.hasOneBlock()
                   ? dyn_cast<onnx::YieldOp>(region.front().getTerminator())
                   : onnx::YieldOp();
  return yield && index < yield.getNumOperands() ? yield.getOperand(index)
                                                 : Value();
}

bool sardonyx::isDecidedByBranch(Value value) {
  auto conditional = value.getDefiningOp<onnx::IfOp>();
  if (!conditional || !isa<UnrankedTensorType>(value.getType()))
    return false;
  for (unsigned branch : {0, 1}) {
    Value yielded = getYielded(conditional, branch,
                               cast<OpResult>(value).getResultNumber());
    if (!yielded || (!isa<RankedTensorType>(yielded.getType()) &&
                     !isDecidedByBranch(yielded)))
      return false;
  }
  return true;
}

/// Calls `body` for what `op` and the operations in it read of the block that
/// `op` stands in.
static void forEachRead(Operation *op, function_ref<void(Value)> body) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (operand.getParentBlock() == op->getBlock())
        body(operand);
  });
}

/// The last If in the block from which `op` reads a value of open rank.
static onnx::IfOp findDeciding(Operation *op) {
  onnx::IfOp found;
  forEachRead(op, [&](Value value) {
    if (!isDecidedByBranch(value))
      return;
    auto conditional = cast<onnx::IfOp>(value.getDefiningOp());
    if (!found || found->isBeforeInBlock(conditional))
      found = conditional;
  });
  return found;
}

/// The operations between `from` and `op` that `op` needs, in order: those that
/// read results of `from`, and the others, which could stand before it.
static void collectNeeded(Operation *from, Operation *op,
                          SmallVectorImpl<Operation *> &dependent,
                          SmallVectorImpl<Operation *> &others) {
  SetVector<Operation *> needed;
  SmallVector<Operation *> work = {op};
  while (!work.empty())
    forEachRead(work.pop_back_val(), [&](Value value) {
      Operation *maker = value.getDefiningOp();
      if (maker && from->isBeforeInBlock(maker) && needed.insert(maker))
        work.push_back(maker);
    });
  SmallVector<Operation *> sorted(needed.begin(), needed.end());
  llvm::sort(sorted,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  DenseSet<Operation *> depends = {from};
  for (Operation *each : sorted) {
    bool isDependent = false;
    forEachRead(each, [&](Value value) {
      isDependent |= depends.contains(value.getDefiningOp());
    });
    if (isDependent)
      depends.insert(each);
    (isDependent ? dependent : others).push_back(each);
  }
  dependent.push_back(op);
}

/// Copies `ops` to the end of a branch, which yields their results, too.
/// Returns the first copy; null in a branch that fails, where nothing is
/// computed.
static Operation *copyInto(onnx::IfOp conditional, unsigned branch,
                           ArrayRef<Operation *> ops) {
  Block &block = conditional->getRegion(branch).front();
  if (isFailing(block))
    return nullptr;
  Operation *yield = block.getTerminator(), *first = nullptr;
  OpBuilder builder(yield);
  IRMapping mapping;
  for (auto [result, value] :
       llvm::zip_equal(conditional->getResults(), yield->getOperands()))
    mapping.map(result, value);
  SmallVector<Value> yielded(yield->getOperands());
  for (Operation *op : ops) {
    Operation *copy = builder.clone(*op, mapping);
    first = first ? first : copy;
    // What is declared of a result is declared for all branches.
    for (OpResult result : copy->getResults())
      result.setType(onnx::eraseShapes(result.getType()));
    llvm::append_range(yielded, copy->getResults());
  }
  yield->setOperands(yielded);
  return first;
}

/// The If with what its branches yield by now, of which nobody needs those that
/// are not used.
static onnx::IfOp rebuild(onnx::IfOp conditional, ArrayRef<Operation *> moved) {
  SmallVector<Value> old(conditional->getResults());
  for (Operation *op : moved)
    llvm::append_range(old, op->getResults());
  SmallVector<Value> kept;
  llvm::BitVector unused(old.size());
  for (auto [i, value] : llvm::enumerate(old)) {
    bool isUsed = llvm::any_of(value.getUsers(), [&](Operation *user) {
      return llvm::none_of(moved,
                           [&](Operation *op) { return op->isAncestor(user); });
    });
    if (isUsed)
      kept.push_back(value);
    else
      unused.set(i);
  }
  OpBuilder builder(conditional);
  SmallVector<Type> types(ValueRange(kept).getTypes());
  OperationState state(conditional.getLoc(), conditional->getName());
  state.addOperands(conditional->getOperands());
  state.addTypes(types);
  state.addAttributes(conditional->getDiscardableAttrDictionary().getValue());
  for (Region &region : conditional->getRegions()) {
    if (!isFailing(region.front()))
      region.front().getTerminator()->eraseOperands(unused);
    state.addRegion()->takeBody(region);
  }
  auto result = cast<onnx::IfOp>(builder.create(state));
  for (auto [from, to] : llvm::zip_equal(kept, result->getResults()))
    from.replaceAllUsesWith(to);
  return result;
}

onnx::IfOp OpenRanks::pull(Operation *op, Infer infer,
                           SmallVectorImpl<Operation *> &dead) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return {};
  onnx::IfOp conditional = findDeciding(op);
  if (!conditional)
    return {};
  SmallVector<Operation *> moved, others;
  collectNeeded(conditional, op, moved, others);
  for (Operation *each : moved)
    each->walk([&](Operation *) { ++copies; });
  if (copies > kMaxCopies)
    return {};
  for (Operation *other : others)
    other->moveBefore(conditional);
  SmallVector<Operation *> copied;
  for (unsigned branch : {0, 1})
    copied.push_back(copyInto(conditional, branch, moved));
  // Results of the copies that nobody reads are gone before types are inferred.
  onnx::IfOp result = rebuild(conditional, moved);
  moved.push_back(conditional);
  for (Operation *each : moved) {
    each->dropAllReferences();
    each->remove();
    dead.push_back(each);
  }
  for (unsigned branch : {0, 1})
    if (copied[branch])
      infer(result, branch, copied[branch]);
  return result;
}
