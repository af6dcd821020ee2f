//===- CustomOps.cpp - Operators that callers bring along -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One that is called becomes a call of the runtime, whose results go straight
// into the program's memory where all sizes are known before. One that is a
// function of MLIR's is put in the op's place, so that it fuses with what is
// around it.
//
//===----------------------------------------------------------------------===//

#include "StringsAndSequences/Sequences.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RuntimeCalls.h"
#include "dialects/ONNX/ONNX.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace sardonyx {

namespace {

using Custom = Lowering<onnx::CustomOp>;

bool areTensors(ValueRange values) {
  return llvm::all_of(values.getTypes(), llvm::IsaPred<TensorType>);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// The results, of sizes that the call tells.
SmallVector<Value> takeResults(Custom &b, ValueRange operands,
                               ArrayRef<RankedTensorType> types,
                               bool isStateful) {
  Type i64 = b.getI64Type();
  OpFoldResult count = b.size(static_cast<int64_t>(types.size()));
  Value handles =
      callRuntime(b, "sdx_rt_custom", operands, count, i64, isStateful);
  SmallVector<Value> results;
  for (auto [i, type] : llvm::enumerate(types)) {
    if (b.op->getResult(i).use_empty()) {
      results.push_back({});
      continue;
    }
    Value list = tensor::FromElementsOp::create(
        b, RankedTensorType::get({}, i64),
        b.extract(handles, b.index(static_cast<int64_t>(i))));
    results.push_back(
        getListItem(b, list, b.zeros({}, i64), type, "sdx_rt_custom_take"));
  }
  return results;
}

LogicalResult lowerCall(Custom &b, bool isStateful) {
  auto *ops = const_cast<onnx::CustomOpsDialectInterface *>(
      b.op->getDialect()
          ->getRegisteredInterface<onnx::CustomOpsDialectInterface>());
  if (!areTensors(b.op.getInputs()) || !areTensors(b.op.getOutputs()))
    return b.refuse("a custom operator takes and gives tensors only");
  SmallVector<RankedTensorType> types;
  for (unsigned i = 0; i < b.op->getNumResults(); ++i) {
    types.push_back(b.declared(i));
    if (!types.back())
      return b.refuse("the rank of its result " + Twine(i) +
                      " is not known; its shape function has to tell it");
  }
  std::string error;
  FailureOr<int64_t> number = ops->addNode(b.op, error);
  if (failed(number))
    return b.refuse(error);
  bool isDirect = llvm::all_of(types, isStatic);
  SmallVector<Value> operands = {asNumber(b, *number), asNumber(b, isDirect)};
  llvm::append_range(operands, b.in.getInputs());
  if (!isDirect)
    return b.replace(takeResults(b, operands, types, isStateful));
  SmallVector<Value> targets;
  for (RankedTensorType type : types)
    targets.push_back(
        b.empty(getDeclaredSizes(b, type), type.getElementType()));
  return b.replace(
      callRuntime(b, "sdx_rt_custom", operands, targets, isStateful));
}

//===----------------------------------------------------------------------===//
// Functions of MLIR's
//===----------------------------------------------------------------------===//

/// Booleans of a byte as those of a bit, or the other way round.
Value convertBools(TensorBuilder &b, Value tensor, bool toBits) {
  Type bit = b.getI1Type();
  return b.map(tensor, toBits ? bit : b.getI8Type(),
               [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                 return {toBits ? loadScalar(s, s.getLoc(), args[0], bit)
                                : storeScalar(s, s.getLoc(), args[0], bit)};
               });
}

/// The tensor with the sizes that `type` states, which the run checks.
Value castChecked(TensorBuilder &b, Value tensor, RankedTensorType type,
                  const Twine &message) {
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!ShapedType::isDynamic(size))
      checkSameSize(b, b.getLoc(), b.dim(tensor, static_cast<int64_t>(dim)),
                    b.size(size), message);
  return b.cast(tensor, type);
}

/// The node's attribute, or the default, as the argument's scalar.
Value makeScalar(Custom &b, FunctionOpInterface function, unsigned index) {
  auto name =
      function.getArgAttrOfType<StringAttr>(index, "sardonyx.attribute");
  Attribute value = function.getArgAttr(index, "sardonyx.default");
  if (DictionaryAttr given = b.op.getNodeAttributesAttr())
    if (Attribute own = given.get(name))
      value = own;
  Type type = function.getArgument(index).getType();
  if (auto number = dyn_cast_or_null<FloatAttr>(value);
      number && isa<FloatType>(type))
    return createConstant(b, b.getLoc(), type, number.getValueAsDouble());
  if (auto number = dyn_cast_or_null<IntegerAttr>(value);
      number && type.isIntOrIndex())
    return createIntConstant(b, b.getLoc(), type,
                             number.getValue().getSExtValue());
  return {};
}

LogicalResult inlineBody(Custom &b, FunctionOpInterface function) {
  IRMapping mapping;
  unsigned next = 0;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type) {
      Value scalar = makeScalar(b, function, index);
      if (!scalar)
        return b.refuse(
            "its function wants the attribute '" +
            function.getArgAttrOfType<StringAttr>(index, "sardonyx.attribute")
                .getValue() +
            "', which the node does not have or has of another kind");
      mapping.map(argument, scalar);
      continue;
    }
    Value operand = b.in.getInputs()[next++];
    if (isBoolType(type.getElementType()))
      operand = convertBools(b, operand, /*toBits=*/true);
    mapping.map(argument, castChecked(b, operand, type,
                                      "a size of input " + Twine(next - 1) +
                                          " is not what the operator takes"));
  }
  Block &body = function.getFunctionBody().front();
  for (Operation &op : body.without_terminator())
    b.clone(op, mapping)->walk([&](Operation *inner) {
      inner->setLoc(b.getLoc());
    });
  SmallVector<Value> results;
  for (auto [i, value] :
       llvm::enumerate(body.getTerminator()->getOperands().take_front(
           b.op->getNumResults()))) {
    Value result = mapping.lookup(value);
    if (isBoolType(elementTypeOf(result)))
      result = convertBools(b, result, /*toBits=*/false);
    if (RankedTensorType declared = b.declared(i))
      result = castChecked(b, result, declared,
                           "a size of result " + Twine(i) +
                               " is not what the model says");
    results.push_back(result);
  }
  return b.replace(results);
}

LogicalResult lowerCustom(Custom &b) {
  onnx::CustomImplementation found = onnx::findCustomImplementation(b.op);
  switch (found.kind) {
  case onnx::CustomImplementation::Call:
    return lowerCall(b, found.isStateful);
  case onnx::CustomImplementation::Body:
    return inlineBody(b, cast<FunctionOpInterface>(found.body));
  case onnx::CustomImplementation::Unknown:
    return failure(); // the report says so
  }
  return failure();
}

} // namespace

void populateCustomOpPatterns(const TypeConverter &converter,
                              RewritePatternSet &patterns) {
  addLowering<onnx::CustomOp, lowerCustom>(patterns, converter);
}

} // namespace sardonyx
