//===- InferShapes.cpp - Make the types of all values precise -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inference.h"
#include "ResultTypes.h"
#include "sardonyx/BoxedResults.h"
#include "sardonyx/Transforms/Passes.h"

#include "dialects/SDX/SDX.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXINFERSHAPES
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Whether both are tensors of known element types that differ.
static bool haveDifferentElements(Type a, Type b) {
  auto left = dyn_cast_or_null<TensorType>(a);
  auto right = dyn_cast_or_null<TensorType>(b);
  return left && right && left.getElementType() != right.getElementType() &&
         !isa<onnx::UnknownType>(left.getElementType()) &&
         !isa<onnx::UnknownType>(right.getElementType());
}

LogicalResult Inference::runOp(Operation *op) {
  if (failed(runGraphs(op)))
    return failure();
  auto interface = dyn_cast<onnx::ONNXOpInterface>(op);
  auto custom = dyn_cast<onnx::CustomOp>(op);
  if (!interface && !custom)
    return success();
  SmallVector<Type> types;
  if (custom) {
    if (failed(onnx::inferCustomTypes(op, types)))
      return failure();
  } else if (auto constant = dyn_cast<onnx::ConstantOp>(op)) {
    // Its value says it all; the bytes, which need not be at hand, are no
    // matter.
    SmallVector<OpFoldResult> value;
    if (succeeded(constant->fold(value)))
      types.push_back(
          cast<TypedAttr>(cast<Attribute>(value.front())).getType());
  } else if (failed(inferFromGraphs(op, types)) &&
             failed(interface.inferOnnxTypes(types))) {
    return failure();
  }
  if (types.size() != op->getNumResults())
    return op->emitOpError("has ")
           << op->getNumResults() << " results, but type inference knows "
           << types.size() << ".";
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Type declared = result.getType();
    bool contradiction = false, ours = false;
    // Lowerings compute in the type of the result; that of the schema counts.
    if (haveDifferentElements(declared, types[i]))
      return op->emitOpError("result ") << i << " is declared as " << declared
                                        << ", but is " << types[i] << ".";
    Type type = refine(declared, types[i], contradiction);
    // The schemas' inference may have seen less than is known here, but what
    // both know is the same; a constant target that doesn't fit its data is an
    // error of the model that the schema's inference has reported.
    type = refine(type, inferMore(op, i), ours);
    if (contradiction)
      op->emitWarning() << "result " << i << " is declared as " << declared
                        << ", but follows from the inputs as " << type
                        << "; the latter is taken.";
    result.setType(type);
    evaluator.refineType(cast<OpResult>(result));
  }
  if (!isGuess)
    foldKnown(op);
  return success();
}

/// Results whose elements are all known become constants, which the schemas'
/// inference can read.
void Inference::foldKnown(Operation *op) {
  if (isa<onnx::ConstantOp>(op) || op->getNumRegions() != 0 || !isPure(op))
    return;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  for (OpResult result : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    const ShapeTensor *tensor =
        type && !result.use_empty() ? evaluator.getTensor(result) : nullptr;
    DenseElementsAttr value =
        tensor ? getKnownElements(type, tensor->elements) : DenseElementsAttr();
    if (value)
      result.replaceAllUsesWith(
          onnx::createConstant(builder, op->getLoc(), value));
  }
}

LogicalResult Inference::run(Block &block, Block::iterator begin) {
  for (auto it = begin; it != block.end();) {
    bool isFirst = it == block.begin();
    auto before = isFirst ? it : std::prev(it);
    auto conditional = dyn_cast<onnx::IfOp>(*it);
    if (conditional && takeBranch(conditional)) {
      it = isFirst ? block.begin() : std::next(before);
      continue;
    }
    Operation *op = &*it++;
    FailureOr<bool> isGone = pullIntoBranches(op);
    if (failed(isGone) || (!*isGone && failed(runOp(op))))
      return failure();
    if (auto loop = *isGone ? onnx::LoopOp() : dyn_cast<onnx::LoopOp>(op))
      if (Operation *first = openLoop(loop))
        it = first->getIterator();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct OnnxInferShapesPass
    : sardonyx::impl::OnnxInferShapesBase<OnnxInferShapesPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Inference inference;
      for (Block &block : function.getBody())
        if (failed(inference.run(block)))
          return signalPassFailure();
      Operation *terminator = function.getBody().back().getTerminator();
      SmallVector<int64_t> boxed;
      if (failed(inference.boxResults(terminator, boxed)))
        return signalPassFailure();
      if (!boxed.empty())
        getOperation()->setAttr(kBoxedResultsAttr,
                                DenseI64ArrayAttr::get(&getContext(), boxed));
      function.setType(FunctionType::get(
          &getContext(), function.getBody().front().getArgumentTypes(),
          terminator->getOperandTypes()));
    }
  }
};
} // namespace
