//===- ShapeValues.cpp - What is known of small tensors -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShapeValues.h"
#include "Evaluation.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"

#include <cstring>

using namespace mlir;
using namespace sardonyx;

using Element = ShapeElement;

/// Whether tensors of this many elements are evaluated.
static bool isSmall(int64_t count, Type elementType) {
  return count <= (isa<FloatType>(elementType) ? ShapeEvaluator::maxFloats
                                               : ShapeEvaluator::maxElements);
}

/// Whether a type may be that of a small tensor: it is static, or not known.
static bool mayBeSmall(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor || !isEvaluated(tensor.getElementType()))
    return false;
  if (!tensor.hasRank() || !tensor.hasStaticShape())
    return true;
  std::optional<int64_t> count = countElements(tensor.getShape());
  return count && isSmall(*count, tensor.getElementType());
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static Element readNumber(APFloat number) {
  bool ignored;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &ignored);
  return Element::number(number.convertToDouble());
}

static Element readInteger(const APInt &value, IntegerType type) {
  bool isNatural = type.isUnsigned() || type.getWidth() == 1;
  if (!isNatural)
    return Element::known(value.getSExtValue());
  return value.getActiveBits() > 63 ? Element()
                                    : Element::known(value.getZExtValue());
}

/// The elements of a constant whose bytes are kept outside of the IR.
static std::optional<ShapeValue> readBytes(DenseResourceElementsAttr resource,
                                           size_t count) {
  Type type = resource.getElementType();
  AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  unsigned width = type.getIntOrFloatBitWidth(), bytes = width / 8;
  if (!blob || width % 8 != 0 || blob->getData().size() != count * bytes)
    return std::nullopt;
  ShapeValue result;
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, blob->getData().data() + i * bytes, bytes);
    APInt value(width, bits);
    if (auto floating = dyn_cast<FloatType>(type))
      result.push_back(
          readNumber(APFloat(floating.getFloatSemantics(), value)));
    else
      result.push_back(readInteger(value, cast<IntegerType>(type)));
  }
  return result;
}

std::optional<ShapeTensor>
ShapeEvaluator::readConstant(ElementsAttr attribute) {
  auto type = dyn_cast<RankedTensorType>(attribute.getType());
  if (!type || !mayBeSmall(type))
    return std::nullopt;
  ShapeTensor result{SmallVector<int64_t>(type.getShape()), {}};
  if (auto dense = dyn_cast<DenseIntElementsAttr>(attribute)) {
    for (const APInt &value : dense.getValues<APInt>())
      result.elements.push_back(
          readInteger(value, cast<IntegerType>(type.getElementType())));
  } else if (auto dense = dyn_cast<DenseFPElementsAttr>(attribute)) {
    for (const APFloat &value : dense.getValues<APFloat>())
      result.elements.push_back(readNumber(value));
  } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute)) {
    auto elements = readBytes(resource, type.getNumElements());
    if (!elements)
      return std::nullopt;
    result.elements = std::move(*elements);
  } else {
    return std::nullopt;
  }
  return result;
}

DenseElementsAttr sardonyx::getKnownElements(RankedTensorType type,
                                             ArrayRef<ShapeElement> elements) {
  Type elementType = type.getElementType();
  SmallVector<Attribute> floats;
  SmallVector<APInt> integers;
  for (const Element &element : elements) {
    if (!fitElement(element, elementType).isKnown())
      return {};
    if (isa<FloatType>(elementType))
      floats.push_back(FloatAttr::get(elementType, element.getNumber()));
    else
      integers.emplace_back(elementType.getIntOrFloatBitWidth(), element.value,
                            /*isSigned=*/false, /*implicitTrunc=*/true);
  }
  return isa<FloatType>(elementType)
             ? DenseElementsAttr::get(type, floats)
             : DenseElementsAttr::get(type, ArrayRef(integers));
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

std::optional<ShapeTensor> ShapeEvaluator::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  ElementsAttr attribute;
  if (matchPattern(op, m_Constant(&attribute)))
    return readConstant(attribute);
  EvaluationTable::Function function = EvaluationTable::get().lookup(op);
  // In the order of the ops operands are known already; this bound is for
  // questions out of order on endless chains.
  if (!function || depth >= maxDepth)
    return std::nullopt;
  ++depth;
  auto result = function({*this, cast<OpResult>(value)}, op);
  --depth;
  Type elementType = Evaluation::getElementType(value);
  if (!result || !isSmall(result->elements.size(), elementType))
    return std::nullopt;
  for (Element &element : result->elements)
    element = fitElement(element, elementType);
  return result;
}

const ShapeTensor *ShapeEvaluator::getTensor(Value value) {
  auto found = memo.find(value);
  if (found != memo.end())
    return found->second.get();
  std::unique_ptr<ShapeTensor> result;
  if (mayBeSmall(value.getType())) {
    if (auto computed = compute(value))
      result = std::make_unique<ShapeTensor>(std::move(*computed));
    auto type = dyn_cast<RankedTensorType>(value.getType());
    bool isStatic = type && type.hasStaticShape();
    // A shape that contradicts the type leaves only the type. But of what has
    // no elements only lists are read: whatever else makes one keeps its
    // checks.
    if (!result && isStatic && type.getNumElements() == 0 &&
        type.getRank() != 1)
      isStatic = false;
    if (isStatic && (!result || ArrayRef(result->shape) != type.getShape()))
      result = std::make_unique<ShapeTensor>(
          ShapeTensor{SmallVector<int64_t>(type.getShape()),
                      ShapeValue(type.getNumElements(), Element())});
  }
  return (memo[value] = std::move(result)).get();
}

std::optional<ShapeValue> ShapeEvaluator::evaluate(Value value) {
  if (!isa_and_nonnull<IntegerType>(Evaluation::getElementType(value)))
    return std::nullopt;
  const ShapeTensor *tensor = getTensor(value);
  return tensor ? std::optional(tensor->elements) : std::nullopt;
}

void ShapeEvaluator::refineType(OpResult result) {
  Type element = Evaluation::getElementType(result);
  if (!isEvaluated(element))
    return;
  std::optional<ShapeTensor> computed = compute(result);
  if (!computed)
    return;
  result.setType(RankedTensorType::get(computed->shape, element));
  memo[result] = std::make_unique<ShapeTensor>(std::move(*computed));
}
