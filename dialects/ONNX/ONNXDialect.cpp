//===- ONNXDialect.cpp - Registration, types, constants -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNX.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sardonyx::onnx;

#include "dialects/ONNX/ONNXDialect.cpp.inc"
#include "dialects/ONNX/ONNXInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/ONNX/ONNXTypes.cpp.inc"

namespace {
/// Operators may stand in any function.
struct OnnxInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Operation *, bool) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void ONNXDialect::initialize() {
  registerONNXDialectOperations(this);
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/ONNX/ONNXTypes.cpp.inc"
      >();
  addInterfaces<OnnxInliner>();
}

Operation *ONNXDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                            Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || !isa<TensorType>(type))
    return nullptr;
  OperationState state(loc, ConstantOp::getOperationName());
  state.addTypes(type);
  state.addAttribute("value", elements);
  return builder.create(state);
}

ConstantOp sardonyx::onnx::createConstant(OpBuilder &builder, Location loc,
                                          ElementsAttr value) {
  OperationState state(loc, ConstantOp::getOperationName());
  state.addTypes(value.getType());
  state.addAttribute("value", value);
  return cast<ConstantOp>(builder.create(state));
}

LogicalResult MapType::verify(function_ref<InFlightDiagnostic()> emitError,
                              Type keyType, Type valueType) {
  if (!isa<IntegerType, StringType>(keyType))
    return emitError() << "the keys of a map must be integers or strings, not "
                       << keyType << ".";
  return success();
}

LogicalResult
sardonyx::onnx::inferTypesFromSchema(Operation *op,
                                     SmallVectorImpl<Type> &types) {
  auto *interface =
      op->getDialect()->getRegisteredInterface<OnnxInferenceDialectInterface>();
  types.assign(op->result_type_begin(), op->result_type_end());
  if (!interface)
    return success();
  std::string error;
  if (succeeded(interface->inferResultTypes(op, types, error)))
    return success();
  return op->emitOpError("breaks a rule of its schema: ") << error;
}

//===----------------------------------------------------------------------===//
// Operators that are none of ONNX's own
//===----------------------------------------------------------------------===//

static const CustomOpsDialectInterface *customOpsOf(Operation *op) {
  return op->getDialect()->getRegisteredInterface<CustomOpsDialectInterface>();
}

CustomImplementation sardonyx::onnx::findCustomImplementation(Operation *op) {
  const CustomOpsDialectInterface *ops = customOpsOf(op);
  return ops ? ops->find(op) : CustomImplementation();
}

LogicalResult sardonyx::onnx::inferCustomTypes(Operation *op,
                                               SmallVectorImpl<Type> &types) {
  types.assign(op->result_type_begin(), op->result_type_end());
  const CustomOpsDialectInterface *ops = customOpsOf(op);
  std::string error;
  if (!ops || succeeded(ops->inferResultTypes(op, types, error)))
    return success();
  return op->emitOpError(error);
}
