//===- FoldShapes.cpp - Evaluate arithmetic on shapes ---------------------===//

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

/// The shape of a Reshape as a constant with -1 for its only unknown size. No
/// entry may be 0: -1 is not determined then.
DenseElementsAttr getReshapeTarget(ShapeEvaluator &evaluator,
                                   onnx::ReshapeOp op) {
  auto elements = evaluator.evaluate(op.getShape());
  if (!elements ||
      llvm::all_of(*elements, [](ShapeElement e) { return e.isKnown(); }))
    return {};
  unsigned unknown = 0;
  for (ShapeElement &element : *elements) {
    if (element.isKnown() && element.value <= 0)
      return {};
    if (element.isKnown())
      continue;
    ++unknown;
    element = ShapeElement::known(-1);
  }
  if (unknown != 1)
    return {};
  return getKnownElements(cast<RankedTensorType>(op.getShape().getType()),
                          *elements);
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
      for (Value result : op->getResults())
        if (auto elements = evaluator.evaluate(result))
          if (auto value = getKnownElements(
                  cast<RankedTensorType>(result.getType()), *elements))
            constants.push_back({result, value});
      if (auto where = dyn_cast<onnx::WhereOp>(op))
        if (Value branch = getTakenBranch(evaluator, where))
          branches.push_back({where.getOutput(), branch});
      if (auto reshape = dyn_cast<onnx::ReshapeOp>(op))
        if (auto target = getReshapeTarget(evaluator, reshape))
          targets.push_back({reshape, target});
    });

    OpBuilder builder(&getContext());
    for (auto [reshape, target] : targets) {
      builder.setInsertionPoint(reshape);
      reshape.getShapeMutable().assign(
          onnx::createConstant(builder, reshape.getLoc(), target));
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
