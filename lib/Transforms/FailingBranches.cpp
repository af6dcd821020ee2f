//===- FailingBranches.cpp - Branches that cannot be computed -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingBranches.h"
#include "sardonyx/NodeName.h"

#include "dialects/SDX/SDX.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace sardonyx;

bool sardonyx::isFailing(Block &branch) {
  auto checks = branch.getOps<sdx::CheckOp>();
  return checks.begin() != checks.end();
}

static void remove(Operation *op, SmallVectorImpl<Operation *> &dead) {
  op->dropAllReferences();
  op->dropAllUses();
  op->remove();
  dead.push_back(op);
}

/// A diagnostic as a run says it: "node 'n' (LSTM): ..." for what is said of
/// "'onnx.LSTM' op". Braces stand for values in a check's message.
static std::string describe(Location loc, StringRef message) {
  StringRef rest = message, kind;
  if (rest.consume_front("'onnx.")) {
    std::tie(kind, rest) = rest.split("' op ");
    message = rest;
  }
  std::string text = message.str(), node = describeNode(loc);
  if (!kind.empty())
    text = (node.empty() ? kind.str() : node + " (" + kind.str() + ")") + ": " +
           text;
  llvm::replace(text, '{', '(');
  llvm::replace(text, '}', ')');
  return text;
}

void sardonyx::makeFailing(Block &branch, Location loc, StringRef message,
                           SmallVectorImpl<Operation *> &dead) {
  branch.getTerminator()->setOperands({});
  while (&branch.front() != branch.getTerminator())
    remove(&branch.front(), dead);
  OpBuilder builder = OpBuilder::atBlockBegin(&branch);
  Value no =
      arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
  sdx::CheckOp::create(builder, loc, no,
                       builder.getStringAttr(describe(loc, message)),
                       ValueRange(), sdx::FailureKind::InvalidArgument);
}

/// Some value of a type: zeros, sizes that are not known being 0, or nothing in
/// a list.
static Value createAny(OpBuilder &builder, Location loc, Type type) {
  if (auto sequence = dyn_cast<onnx::SeqType>(type)) {
    OperationState state(loc, onnx::SequenceEmptyOp::getOperationName());
    state.addTypes(sequence);
    if (auto tensor = dyn_cast<TensorType>(sequence.getElementType()))
      if (auto number = onnx::getDataType(tensor.getElementType()))
        state.addAttribute(
            "dtype",
            builder.getIntegerAttr(
                builder.getIntegerType(64, /*isSigned=*/true), *number));
    return builder.create(state)->getResult(0);
  }
  auto tensor = dyn_cast<TensorType>(type);
  Type element = tensor ? tensor.getElementType() : Type();
  SmallVector<int64_t> shape;
  if (tensor && tensor.hasRank())
    for (int64_t size : tensor.getShape())
      shape.push_back(ShapedType::isDynamic(size) ? 0 : size);
  if (element && isa<onnx::StringType>(element))
    return onnx::createConstant(
        builder, loc,
        cast<ElementsAttr>(Attribute(DenseStringElementsAttr::get(
            RankedTensorType::get(shape, element), {StringRef()}))));
  if (!element || !element.isIntOrFloat())
    return {};
  return onnx::createConstant(
      builder, loc,
      DenseElementsAttr::get(RankedTensorType::get(shape, element),
                             builder.getZeroAttr(element)));
}

LogicalResult sardonyx::completeFailing(onnx::IfOp op,
                                        SmallVectorImpl<Operation *> &dead) {
  for (unsigned index : {0, 1}) {
    Block &branch = op->getRegion(index).front();
    if (!isFailing(branch))
      continue;
    Operation *yield = branch.getTerminator();
    Operation *other = op->getRegion(1 - index).front().getTerminator();
    if (llvm::equal(yield->getOperandTypes(), other->getOperandTypes()))
      continue;
    SmallVector<Value> before(yield->getOperands());
    OpBuilder builder(yield);
    SmallVector<Value> values;
    for (Value model : other->getOperands()) {
      Value any = createAny(builder, op.getLoc(), model.getType());
      // What has no constants may have been made outside.
      if (!any && model.getParentBlock() == other->getBlock())
        return failure();
      values.push_back(any ? any : model);
    }
    yield->setOperands(values);
    // A check may stand among operations that others of the branch read: it
    // comes with the branch of an inner If that is sure to be taken.
    for (Value value : before)
      if (Operation *maker = value.getDefiningOp();
          maker && maker->getBlock() == &branch && maker->use_empty())
        remove(maker, dead);
  }
  return success();
}
