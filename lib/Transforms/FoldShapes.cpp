//===- FoldShapes.cpp - Evaluate arithmetic on shapes ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShapeValues.h"
#include "sardonyx/Transforms/Passes.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXFOLDSHAPES
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// The branch of a Where that all elements come from; null if not known.
Value getTakenBranch(ShapeEvaluator &evaluator, onnx::WhereOp op) {
  auto condition = evaluator.evaluate(op.getCondition());
  if (!condition || condition->empty())
    return {};
  int64_t first = condition->front().value;
  if (!llvm::all_of(*condition,
                    [&](ShapeElement e) { return e.isKnown(first); }))
    return {};
  Value branch = first ? op.getX() : op.getY();
  return branch.getType() == op.getOutput().getType() ? branch : Value();
}

/// The operand that `op` hands on as it is; null if it may change something.
Value getUnchanged(ShapeEvaluator &evaluator, Operation *op) {
  if (op->getNumOperands() == 0 || op->getNumResults() != 1)
    return {};
  Value from = op->getOperand(0), to = op->getResult(0);
  if (from.getType() != to.getType())
    return {};
  if (isa<onnx::ConcatOp, onnx::MaxOp, onnx::MeanOp, onnx::MinOp, onnx::SumOp>(
          op))
    return op->getNumOperands() == 1 ? from : Value();
  auto type = dyn_cast<RankedTensorType>(from.getType());
  if (!type || !(op->hasTrait<onnx::KeepsOrder>() || isa<onnx::ExpandOp>(op)))
    return {};
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (!evaluator.getDim(to, i).isSame(evaluator.getDim(from, i)))
      return {};
  return from;
}

/// The shape of a Reshape as a constant: sizes that the data has in the same
/// place become 0, which copies them, and a single other unknown one -1. Null
/// if that can't be said, or is said already.
DenseElementsAttr getReshapeTarget(ShapeEvaluator &evaluator,
                                   onnx::ReshapeOp op) {
  auto elements = evaluator.evaluate(op.getShape());
  auto result = dyn_cast<RankedTensorType>(op.getReshaped().getType());
  if (!elements || !result ||
      result.getRank() != static_cast<int64_t>(elements->size()) ||
      op.getShape().getDefiningOp<onnx::ConstantOp>())
    return {};
  unsigned unknown = 0, made = 0, copies = 0;
  for (auto [i, element] : llvm::enumerate(*elements)) {
    if (element.isKnown(0))
      return {};
    if (element.isKnown() && element.value > 0)
      continue;
    if (!result.isDynamicDim(i)) {
      if (result.getDimSize(i) == 0)
        return {};
      element = ShapeElement::known(result.getDimSize(i));
    } else if (element.isSame(evaluator.getDim(op.getData(), i))) {
      ++copies;
      element = ShapeElement::known(0);
    } else {
      ++unknown;
      made += !element.isKnown();
      element = ShapeElement::known(-1);
    }
  }
  // Next to a size that turns out to be 0 a -1 is not determined.
  if (unknown > 1 || (made && copies))
    return {};
  return getKnownElements(cast<RankedTensorType>(op.getShape().getType()),
                          *elements);
}

/// Lowerings need no code for broadcasting in dimensions that are marked.
void markSameDims(ShapeEvaluator &evaluator, Operation *op) {
  SmallVector<int64_t> same = evaluator.getSameDims(op);
  if (same.empty())
    op->removeDiscardableAttr("onnx.same_dims");
  else
    op->setDiscardableAttr("onnx.same_dims",
                           DenseI64ArrayAttr::get(op->getContext(), same));
}

struct OnnxFoldShapesPass
    : sardonyx::impl::OnnxFoldShapesBase<OnnxFoldShapesPass> {
  void runOnOperation() override {
    // Values are replaced after the walk: what the evaluator remembers is keyed
    // by them.
    ShapeEvaluator evaluator;
    SmallVector<std::pair<Value, DenseElementsAttr>> constants;
    SmallVector<std::pair<Value, Value>> branches;
    SmallVector<std::pair<onnx::ReshapeOp, DenseElementsAttr>> targets;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isa<onnx::ONNXOpInterface>(op) || isa<onnx::ConstantOp>(op) ||
          !isPure(op))
        return;
      for (Value result : op->getResults()) {
        auto type = dyn_cast<RankedTensorType>(result.getType());
        const ShapeTensor *tensor = type && type.hasStaticShape()
                                        ? evaluator.getTensor(result)
                                        : nullptr;
        if (tensor)
          if (auto value = getKnownElements(type, tensor->elements))
            constants.push_back({result, value});
      }
      if (auto where = dyn_cast<onnx::WhereOp>(op))
        if (Value branch = getTakenBranch(evaluator, where))
          branches.push_back({where.getOutput(), branch});
      if (Value same = getUnchanged(evaluator, op)) {
        branches.push_back({op->getResult(0), same});
        return;
      }
      if (auto reshape = dyn_cast<onnx::ReshapeOp>(op))
        if (auto target = getReshapeTarget(evaluator, reshape))
          targets.push_back({reshape, target});
      markSameDims(evaluator, op);
    });

    OpBuilder builder(&getContext());
    for (auto [reshape, target] : targets) {
      builder.setInsertionPoint(reshape);
      reshape.getShapeMutable().assign(
          onnx::createConstant(builder, reshape.getLoc(), target));
      reshape.setAllowzero(0);
    }
    for (auto [value, branch] : llvm::reverse(branches))
      value.replaceAllUsesWith(branch);
    for (auto [value, elements] : constants) {
      builder.setInsertionPointAfterValue(value);
      value.replaceAllUsesWith(
          onnx::createConstant(builder, value.getLoc(), elements));
    }
    eraseUnused();
  }

  /// Erases what nobody reads any more, users before producers.
  void eraseUnused() {
    getOperation().walk<WalkOrder::PostOrder, ReverseIterator>(
        [](Operation *op) {
          if (isa<onnx::ONNXOpInterface>(op) && isOpTriviallyDead(op))
            op->erase();
        });
  }
};
} // namespace
