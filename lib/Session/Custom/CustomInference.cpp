//===- CustomInference.cpp - Custom operators while compiling -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From onnx.Custom to the CustomNode that an operator's functions see.
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Custom/CustomInference.h"
#include "lib/Session/Custom/CustomNodes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "sardonyx/NodeName.h"

using namespace sardonyx;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// The elements of a dense tensor, a byte for each that is smaller. Nothing
/// where they have another form.
static std::optional<std::string> bytesOf(DenseIntOrFPElementsAttr dense) {
  Type element = dense.getElementType();
  std::string bytes;
  if (element.getIntOrFloatBitWidth() >= 8) {
    ArrayRef<char> raw = dense.getRawData();
    int64_t copies = dense.isSplat() ? dense.getNumElements() : 1;
    for (int64_t i = 0; i < copies && dense.getNumElements(); ++i)
      bytes.append(raw.data(), raw.size());
    return bytes;
  }
  auto add = [&](const APInt &bits) {
    bytes.push_back(static_cast<char>(bits.getZExtValue()));
  };
  if (isa<FloatType>(element))
    for (const APFloat &number : dense.getValues<APFloat>())
      add(number.bitcastToAPInt());
  else
    for (const APInt &number : dense.getValues<APInt>())
      add(number);
  return bytes;
}

static bool readTensor(ElementsAttr value, CustomAttribute &attribute) {
  attribute.kind = CustomAttribute::Tensor;
  auto type = dyn_cast<RankedTensorType>(value.getShapedType());
  auto number = type ? onnx::getDataType(type.getElementType()) : std::nullopt;
  if (!number || byteSizeOf(static_cast<ElementType>(*number)) == 0)
    return false;
  attribute.type = static_cast<ElementType>(*number);
  attribute.ints.assign(type.getShape().begin(), type.getShape().end());
  auto count = static_cast<size_t>(type.getNumElements());
  if (auto texts = dyn_cast<DenseStringElementsAttr>(value)) {
    ArrayRef<StringRef> raw = texts.getRawStringData();
    for (size_t i = 0; i < count; ++i)
      attribute.strings.push_back(raw[raw.size() == 1 ? 0 : i].str());
    return true;
  }
  std::optional<std::string> bytes;
  if (auto dense = dyn_cast<DenseIntOrFPElementsAttr>(value))
    bytes = bytesOf(dense);
  else if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      bytes = std::string(blob->getData().data(), blob->getData().size());
  if (!bytes || bytes->size() != count * byteSizeOf(attribute.type))
    return false;
  attribute.data = std::move(*bytes);
  return true;
}

/// False for a kind that operators are not told.
static bool readAttribute(NamedAttribute named, CustomAttribute &attribute) {
  attribute.name = named.getName().str();
  Attribute value = named.getValue();
  if (auto number = dyn_cast<FloatAttr>(value)) {
    attribute.kind = CustomAttribute::Float;
    attribute.floats = {static_cast<float>(number.getValueAsDouble())};
  } else if (auto number = dyn_cast<IntegerAttr>(value)) {
    attribute.kind = CustomAttribute::Int;
    attribute.ints = {number.getValue().getSExtValue()};
  } else if (auto text = dyn_cast<StringAttr>(value)) {
    attribute.kind = CustomAttribute::String;
    attribute.strings = {text.str()};
  } else if (auto floats = dyn_cast<DenseF32ArrayAttr>(value)) {
    attribute.kind = CustomAttribute::Floats;
    attribute.floats = floats.asArrayRef().vec();
  } else if (auto ints = dyn_cast<DenseI64ArrayAttr>(value)) {
    attribute.kind = CustomAttribute::Ints;
    attribute.ints = ints.asArrayRef().vec();
  } else if (auto list = dyn_cast<ArrayAttr>(value)) {
    attribute.kind = CustomAttribute::Strings;
    for (Attribute item : list) {
      auto text = dyn_cast<StringAttr>(item);
      if (!text)
        return false;
      attribute.strings.push_back(text.str());
    }
  } else if (auto tensor = dyn_cast<ElementsAttr>(value)) {
    return readTensor(tensor, attribute);
  } else {
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

static CustomType describeType(Type type) {
  CustomType result;
  result.isPresent = true;
  auto tensor = dyn_cast<TensorType>(type);
  auto number =
      tensor ? onnx::getDataType(tensor.getElementType()) : std::nullopt;
  if (!number || byteSizeOf(static_cast<ElementType>(*number)) == 0)
    return result;
  result.type = static_cast<ElementType>(*number);
  result.hasRank = tensor.hasRank();
  if (result.hasRank)
    for (int64_t size : tensor.getShape())
      result.shape.push_back(ShapedType::isDynamic(size) ? -1 : size);
  return result;
}

/// The types by position, those that are left out among them.
static std::vector<CustomType>
describeTypes(TypeRange types, std::optional<ArrayRef<int64_t>> absent) {
  std::vector<CustomType> result;
  ArrayRef<int64_t> gaps = absent.value_or(ArrayRef<int64_t>());
  size_t next = 0;
  for (size_t i = 0, e = types.size() + gaps.size(); i < e; ++i) {
    bool isGap = llvm::is_contained(gaps, static_cast<int64_t>(i));
    if (!isGap && next == types.size())
      break;
    result.push_back(isGap ? CustomType() : describeType(types[next++]));
  }
  return result;
}

/// False, with what is wrong, for what operators are not told.
static bool describeCustomNode(onnx::CustomOp op, CustomNode &node,
                               std::string &error) {
  node.name = nodeName(op.getLoc());
  node.domain = op.getDomain().str();
  node.opType = op.getOpType().str();
  node.version = op.getOpVersion();
  node.inputs = describeTypes(op.getInputs().getTypes(), op.getAbsentInputs());
  node.outputs =
      describeTypes(op.getOutputs().getTypes(), op.getAbsentOutputs());
  if (op->getNumRegions() != 0) {
    error = "a graph as an attribute is given to no custom operator";
    return false;
  }
  if (DictionaryAttr given = op.getNodeAttributesAttr())
    for (NamedAttribute attribute : given)
      if (!readAttribute(attribute, node.attributes.emplace_back())) {
        error = "the attribute '" + attribute.getName().str() +
                "' is of a kind that is given to no custom operator";
        return false;
      }
  return true;
}

/// Null where there is no such type.
static Type buildType(MLIRContext *context, const CustomType &type) {
  Type element =
      type.type == ElementType::Undefined
          ? Type()
          : onnx::getElementType(context, static_cast<int32_t>(type.type));
  if (!element)
    return {};
  if (!type.hasRank)
    return UnrankedTensorType::get(element);
  SmallVector<int64_t> shape;
  for (int64_t size : type.shape)
    shape.push_back(size < 0 ? ShapedType::kDynamic : size);
  return RankedTensorType::get(shape, element);
}

//===----------------------------------------------------------------------===//
// CustomInference
//===----------------------------------------------------------------------===//

CustomInference::CustomInference(Dialect *dialect,
                                 std::shared_ptr<const CustomOps> given)
    : CustomOpsDialectInterface(dialect),
      ops(given ? std::move(given) : std::make_shared<const CustomOps>()),
      bodies(dialect->getContext(), ops->mlir()) {}

CustomInference *CustomInference::attach(MLIRContext &context,
                                         std::shared_ptr<const CustomOps> ops) {
  Dialect *dialect = context.getOrLoadDialect<onnx::ONNXDialect>();
  auto made = std::make_unique<CustomInference>(dialect, std::move(ops));
  CustomInference *result = made.get();
  dialect->addInterface(std::move(made));
  return result;
}

const CustomOp *CustomInference::findCall(onnx::CustomOp op) const {
  return ops->find(op.getDomain(), op.getOpType(), op.getOpVersion());
}

onnx::CustomImplementation CustomInference::find(Operation *op) const {
  auto custom = cast<onnx::CustomOp>(op);
  onnx::CustomImplementation found;
  const CustomOp *call = findCall(custom);
  found.isRegistered = call || bodies.knows(custom);
  if (func::FuncOp function = bodies.find(custom)) {
    found.kind = onnx::CustomImplementation::Body;
    found.body = function;
  } else if (call) {
    found.kind = onnx::CustomImplementation::Call;
    found.isStateful = call->isStateful;
  }
  return found;
}

LogicalResult CustomInference::inferResultTypes(Operation *op,
                                                SmallVectorImpl<Type> &types,
                                                std::string &error) const {
  auto custom = cast<onnx::CustomOp>(op);
  types.assign(op->result_type_begin(), op->result_type_end());
  onnx::CustomImplementation found = find(op);
  if (found.kind == onnx::CustomImplementation::Body) {
    types = CustomMlir::resultTypes(cast<func::FuncOp>(found.body), custom);
    return success();
  }
  // Operators are not asked about what is not known yet.
  if (found.kind != onnx::CustomImplementation::Call ||
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<onnx::UnknownType>))
    return success();
  CustomNode node;
  if (!describeCustomNode(custom, node, error))
    return failure();
  if (auto failed = inferChecked(*findCall(custom), node)) {
    error = *failed;
    return failure();
  }
  auto *next = types.begin();
  for (const CustomType &type : node.outputs) {
    if (!type.isPresent)
      continue;
    if (Type inferred = buildType(op->getContext(), type))
      *next = inferred;
    ++next;
  }
  return success();
}

FailureOr<int64_t> CustomInference::addNode(Operation *op, std::string &error) {
  auto custom = cast<onnx::CustomOp>(op);
  CustomCall call;
  if (!describeCustomNode(custom, call.node, error))
    return failure();
  const CustomOp *found = findCall(custom);
  call.results = call.node.outputs;
  call.isStateful = found->isStateful;
  if (auto failed = inferChecked(*found, call.node)) {
    error = *failed;
    return failure();
  }
  nodes.push_back(std::move(call));
  return static_cast<int64_t>(nodes.size()) - 1;
}
