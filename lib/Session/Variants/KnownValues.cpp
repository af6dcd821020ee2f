//===- KnownValues.cpp - Inputs whose values are known --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Variants/KnownValues.h"
#include "dialects/ONNX/ONNX.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace sardonyx;
using namespace mlir;

/// A longer list gives no tensor its shape.
static constexpr int64_t kLongestList = 32;

/// The element types that can be read as numbers here.
static bool isReadable(ElementType type) {
  return type == ElementType::Int64 || type == ElementType::Int32 ||
         type == ElementType::Bool;
}

bool sardonyx::isShortList(const ValueInfo &info, bool mayBeOpen) {
  if (!isReadable(info.elementType))
    return false;
  if (!info.hasRank || info.dims.empty())
    return info.hasRank || mayBeOpen;
  const Dim &length = info.dims[0];
  return info.dims.size() == 1 &&
         (length.isStatic() ? length.size <= kLongestList : mayBeOpen);
}

int64_t sardonyx::countOfKnown(const TensorRef &tensor) {
  if (!isReadable(tensor.type) || tensor.shape.size() > 1 ||
      (tensor.shape.size() == 1 && tensor.shape[0] > kLongestList))
    return -1;
  return tensor.shape.empty() ? 1 : tensor.shape[0];
}

std::optional<std::vector<int64_t>>
sardonyx::valuesOf(const TensorRef &tensor) {
  const int64_t count = countOfKnown(tensor);
  if (count < 0)
    return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i)
    switch (tensor.type) {
    case ElementType::Int64:
      values.push_back(static_cast<const int64_t *>(tensor.data)[i]);
      break;
    case ElementType::Int32:
      values.push_back(static_cast<const int32_t *>(tensor.data)[i]);
      break;
    default:
      values.push_back(static_cast<const uint8_t *>(tensor.data)[i] != 0);
    }
  return values;
}

/// A constant of these values; null where the type has no such elements.
static Operation *createConstant(OpBuilder &builder, Location loc, Type type,
                                 ArrayRef<int64_t> values) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      tensor.getNumElements() != static_cast<int64_t>(values.size()) ||
      !tensor.getElementType().isInteger())
    return nullptr;
  SmallVector<APInt> elements;
  for (int64_t value : values)
    elements.emplace_back(tensor.getElementTypeBitWidth(), value,
                          /*isSigned=*/true, /*implicitTrunc=*/true);
  OperationState state(loc, onnx::ConstantOp::getOperationName());
  state.addTypes(tensor);
  state.addAttribute("value", DenseElementsAttr::get(tensor, elements));
  return builder.create(state);
}

MaybeError
sardonyx::fixValues(ModuleOp module,
                    const std::map<std::string, std::vector<int64_t>> &values,
                    const std::vector<ValueInfo> &inputs) {
  auto func = module.lookupSymbol<func::FuncOp>("main_graph");
  if (!func || values.empty())
    return std::nullopt;
  OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto known = values.find(inputs[i].name);
    if (known == values.end())
      continue;
    BlockArgument input = func.getArgument(i);
    Operation *constant =
        createConstant(builder, input.getLoc(), input.getType(), known->second);
    if (!constant)
      return Error(
          ErrorKind::InvalidArgument,
          "input '" + inputs[i].name + "' has the type " + inputs[i].type +
              " and the shape " + describeShape(inputs[i].dims) +
              " and cannot have the values " + describeShape(known->second));
    input.replaceAllUsesWith(constant->getResult(0));
  }
  return std::nullopt;
}
