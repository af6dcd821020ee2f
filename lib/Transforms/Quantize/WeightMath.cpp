//===- WeightMath.cpp - Operators on weights ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightMath.h"

#include "dialects/ONNX/ONNXSchema.h"
#include "sardonyx/NodeName.h"
#include "sardonyx/UnknownName.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Traits.h"

using namespace mlir;
using namespace sardonyx;

RankedTensorType sardonyx::getWeightType(Value value) {
  auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : nullptr;
  if (!type || !type.hasStaticShape() ||
      !isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(
          type.getElementType()) ||
      !isConstantOnly(value))
    return nullptr;
  return type;
}

std::optional<WeightedOp> WeightedOp::get(Operation *op) {
  WeightedOp result{op, nullptr, nullptr, 0, 1};
  int64_t least = 2, most = 2;
  if (auto conv = dyn_cast<onnx::ConvOp>(op)) {
    result.groups = conv.getGroup();
    least = 3, most = 8;
  } else if (auto conv = dyn_cast<onnx::ConvTransposeOp>(op)) {
    result.groups = conv.getGroup();
    result.outputDim = 1, result.depthDim = 0;
    least = 3, most = 8;
  } else if (auto gemm = dyn_cast<onnx::GemmOp>(op)) {
    if (gemm.getTransB() == 0)
      result.outputDim = 1, result.depthDim = 0;
  } else if (isa<onnx::MatMulOp>(op)) {
    result.outputDim = 1, result.depthDim = 0;
  } else {
    return std::nullopt;
  }
  result.weight = &op->getOpOperand(1);
  result.type = getWeightType(result.weight->get());
  if (!result.type || result.type.getRank() < least ||
      result.type.getRank() > most || result.type.getNumElements() == 0 ||
      result.groups < 1 || result.type.getDimSize(0) % result.groups)
    return std::nullopt;
  return result;
}

Value WeightedOp::getBias() const {
  if (isa<onnx::MatMulOp>(op) || op->getNumOperands() < 3)
    return nullptr;
  Value bias = op->getOperand(2);
  return isa<NoneType>(bias.getType()) ? nullptr : bias;
}

int64_t WeightedOp::countOutputs() const {
  const int64_t size = type.getDimSize(outputDim);
  return isa<onnx::ConvTransposeOp>(op) ? size * groups : size;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

APFloat sardonyx::toFloat(double value, FloatType type) {
  APFloat number(value);
  bool ignored;
  number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &ignored);
  return number;
}

Value WeightMath::scalar(Value like, double value) {
  auto element = llvm::cast<FloatType>(getType(like).getElementType());
  return onnx::createConstant(
      b, b.getLoc(),
      DenseElementsAttr::get(RankedTensorType::get({}, element),
                             toFloat(value, element)));
}

Value WeightMath::integers(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({int64_t(values.size())}, b.getI64Type());
  return onnx::createConstant(b, b.getLoc(),
                              DenseElementsAttr::get(type, values));
}

Value WeightMath::zeros(Type element, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, element);
  return onnx::createConstant(b, b.getLoc(),
                              llvm::cast<ElementsAttr>(b.getZeroAttr(type)));
}

Value WeightMath::reshape(Value x, ArrayRef<int64_t> shape) {
  auto type = getType(x).clone(shape);
  if (type == x.getType())
    return x;
  return onnx::ReshapeOp::create(b, type, x, integers(shape), /*allowzero=*/0);
}

Value WeightMath::transpose(Value x, ArrayRef<int64_t> order) {
  SmallVector<int64_t> shape;
  for (int64_t dim : order)
    shape.push_back(getType(x).getDimSize(dim));
  return onnx::TransposeOp::create(b, getType(x).clone(shape), x,
                                   b.getDenseI64ArrayAttr(order));
}

Value WeightMath::cast(Value x, Type element) {
  if (getType(x).getElementType() == element)
    return x;
  return onnx::CastOp::create(b, getType(x).clone(element), x,
                              /*round_mode=*/"up", /*saturate=*/1,
                              *onnx::getDataType(element));
}

RankedTensorType WeightMath::broadcast(Value x, Value y, Type element) {
  SmallVector<int64_t> shape;
  bool fits = OpTrait::util::getBroadcastedShape(getType(x).getShape(),
                                                 getType(y).getShape(), shape);
  assert(fits && "shapes that have no broadcast");
  (void)fits;
  return RankedTensorType::get(shape,
                               element ? element : getType(x).getElementType());
}

RankedTensorType WeightMath::reduced(Value x, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> shape(getType(x).getShape());
  for (int64_t axis : axes)
    shape[axis] = 1;
  return getType(x).clone(shape);
}

Value WeightMath::larger(Value x, Value y) {
  return onnx::MaxOp::create(b, broadcast(x, y, nullptr), ValueRange{x, y});
}

Value WeightMath::isPositive(Value x) {
  return onnx::GreaterOp::create(b, getType(x).clone(b.getI1Type()), x,
                                 scalar(x, 0));
}

Value WeightMath::select(Value condition, Value x, Value y) {
  Type element = getType(x).getElementType();
  RankedTensorType all = broadcast(x, y, element);
  SmallVector<int64_t> shape;
  OpTrait::util::getBroadcastedShape(all.getShape(),
                                     getType(condition).getShape(), shape);
  return onnx::WhereOp::create(b, RankedTensorType::get(shape, element),
                               condition, x, y);
}

Value WeightMath::largest(Value x, ArrayRef<int64_t> axes) {
  return reduce<onnx::ReduceMaxOp>(unary<onnx::AbsOp>(x), axes);
}

Value WeightMath::markLargest(Value x, int64_t count, int64_t axis) {
  RankedTensorType type = getType(x);
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = count;
  auto indices = RankedTensorType::get(shape, b.getI64Type());
  auto top = onnx::TopKOp::create(b, type.clone(shape), indices, x,
                                  integers({count}), axis);
  Type element = type.getElementType();
  auto ones =
      DenseElementsAttr::get(type.clone(shape), b.getFloatAttr(element, 1));
  return onnx::ScatterElementsOp::create(
      b, type, zeros(element, type.getShape()), top.getIndices(),
      onnx::createConstant(b, b.getLoc(), ones), axis);
}

Value WeightMath::quantize(Value x, Value scale, Value zeroPoint, Type integer,
                           int64_t axis, int64_t block) {
  return onnx::QuantizeLinearOp::create(b, getType(x).clone(integer), x, scale,
                                        zeroPoint, axis, block);
}

Value WeightMath::dequantize(Value x, Value scale, Value zeroPoint,
                             int64_t axis, int64_t block) {
  return onnx::DequantizeLinearOp::create(
      b, getType(x).clone(getType(scale).getElementType()), x, scale, zeroPoint,
      axis, block);
}

SmallVector<int64_t> sardonyx::getOtherDims(int64_t rank,
                                            ArrayRef<int64_t> without) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(without, dim))
      dims.push_back(dim);
  return dims;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

StringRef sardonyx::getResultName(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return "";
  auto names = result.getOwner()->getAttrOfType<ArrayAttr>("onnx.names");
  if (!names || result.getResultNumber() >= names.size())
    return "";
  auto name = dyn_cast<StringAttr>(names[result.getResultNumber()]);
  return name ? name.getValue() : "";
}

void sardonyx::setResultName(Value value, StringRef name) {
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  Builder b(op->getContext());
  SmallVector<Attribute> names(op->getNumResults(), b.getStringAttr(""));
  if (auto old = op->getAttrOfType<ArrayAttr>("onnx.names"))
    llvm::copy(old.getValue().take_front(names.size()), names.begin());
  names[result.getResultNumber()] = b.getStringAttr(name);
  op->setAttr("onnx.names", b.getArrayAttr(names));
}

llvm::StringMap<Value> sardonyx::getNamedValues(Operation *root) {
  llvm::StringMap<Value> values;
  root->walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (StringRef name = getResultName(result); !name.empty())
        values.try_emplace(name, result);
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function || function.isDeclaration())
      return;
    for (BlockArgument argument : function.getArguments())
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), "onnx.name"))
        values.try_emplace(name.getValue(), argument);
  });
  return values;
}

std::string sardonyx::getNameOfNode(Operation *op) {
  std::string name = nodeName(op->getLoc());
  return !name.empty() || !op->getNumResults()
             ? name
             : getResultName(op->getResult(0)).str();
}

InFlightDiagnostic sardonyx::remarkOn(Operation *op) {
  InFlightDiagnostic remark = emitRemark(op->getLoc());
  if (std::string name = getNameOfNode(op); !name.empty())
    remark << "node '" << name << "' ";
  remark << "(" << op->getName().stripDialect() << ") ";
  return remark;
}

LogicalResult sardonyx::checkNodeNames(Operation *root,
                                       ArrayRef<std::string> names,
                                       StringRef option) {
  if (names.empty())
    return success();
  std::vector<std::string> known;
  root->walk([&](Operation *op) {
    if (std::string name = getNameOfNode(op); !name.empty())
      known.push_back(std::move(name));
  });
  for (const std::string &name : names)
    if (!llvm::is_contained(known, name))
      return emitError(root->getLoc())
             << option << ": " << unknownName("node", name, known);
  return success();
}
