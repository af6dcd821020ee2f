//===- Evaluation.cpp - What evaluations of all operators share -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

using namespace mlir;
using namespace sardonyx;

using Element = ShapeElement;

const EvaluationTable &EvaluationTable::get() {
  static const EvaluationTable table = [] {
    EvaluationTable result;
    addElementwiseEvaluations(result);
    addMovementEvaluations(result);
    addIndexedEvaluations(result);
    addReductionEvaluations(result);
    return result;
  }();
  return table;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Type Evaluation::getElementType(Value value) {
  auto tensor = dyn_cast<TensorType>(value.getType());
  return tensor ? tensor.getElementType() : Type();
}

std::optional<SmallVector<int64_t>>
Evaluation::getIntegers(Value operand) const {
  const ShapeTensor *tensor = get(operand);
  if (!tensor || !isa<IntegerType>(getElementType(operand)))
    return std::nullopt;
  SmallVector<int64_t> values;
  for (const Element &element : tensor->elements) {
    if (!element.isKnown())
      return std::nullopt;
    values.push_back(element.value);
  }
  return values;
}

std::optional<Element> Evaluation::getSingle(Value operand) const {
  const ShapeTensor *tensor = get(operand);
  return tensor && tensor->elements.size() == 1
             ? std::optional(tensor->elements.front())
             : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

bool sardonyx::isEvaluated(Type type) {
  auto integer = dyn_cast_or_null<IntegerType>(type);
  return (integer && integer.getWidth() <= 64) ||
         isa_and_nonnull<Float16Type, BFloat16Type, Float32Type, Float64Type>(
             type);
}

/// Whether the type has no negative values.
static bool isNatural(IntegerType type) {
  return type.isUnsigned() || type.getWidth() == 1;
}

static double roundTo(double value, FloatType type) {
  APFloat number(value);
  bool ignored;
  number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &ignored);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &ignored);
  return number.convertToDouble();
}

Element sardonyx::fitElement(Element element, Type type) {
  if (!element.isKnown())
    return element;
  if (auto floating = dyn_cast<FloatType>(type))
    return Element::number(roundTo(element.getNumber(), floating));
  auto integer = cast<IntegerType>(type);
  bool fits = isNatural(integer)
                  ? element.value >= 0 &&
                        llvm::isUIntN(integer.getWidth(), element.value)
                  : llvm::isIntN(integer.getWidth(), element.value);
  return fits ? element : Element();
}

/// Integers lose their high bits.
static Element castInteger(Element element, IntegerType to) {
  if (!element.isKnown()) // a size fits wherever models put it
    return to.getWidth() < 32 ? Element() : element;
  if (to.getWidth() == 1)
    return Element::known(element.value != 0);
  APInt bits = APInt(64, element.value, /*isSigned=*/true).trunc(to.getWidth());
  if (!isNatural(to))
    return Element::known(bits.getSExtValue());
  return bits.getActiveBits() > 63 ? Element()
                                   : Element::known(bits.getZExtValue());
}

Element sardonyx::castElement(Element element, Type from, Type to) {
  if (isa<IntegerType>(from) && isa<IntegerType>(to))
    return castInteger(element, cast<IntegerType>(to));
  if (!element.isKnown())
    return {};
  if (auto floating = dyn_cast<FloatType>(to)) {
    if (isa<FloatType>(from))
      return fitElement(element, to);
    APFloat number(floating.getFloatSemantics());
    number.convertFromAPInt(APInt(64, element.value, /*isSigned=*/true),
                            /*IsSigned=*/true, APFloat::rmNearestTiesToEven);
    bool ignored;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &ignored);
    return Element::number(number.convertToDouble());
  }
  double number = element.getNumber();
  if (to.isInteger(1))
    return Element::known(number != 0); // a NaN is not zero
  // Towards zero; what has no place in the type is open.
  APSInt value(64, /*isUnsigned=*/false);
  bool ignored;
  if (APFloat(number).convertToInteger(value, APFloat::rmTowardZero,
                                       &ignored) == APFloat::opInvalidOp)
    return {};
  return fitElement(Element::known(value.getSExtValue()), to);
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

std::optional<int64_t> sardonyx::fromFront(int64_t index, int64_t size) {
  if (index < -size || index >= size)
    return std::nullopt;
  return index < 0 ? index + size : index;
}

std::optional<int64_t> sardonyx::countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0 || size > ShapeEvaluator::maxElements)
      return std::nullopt;
    count *= size;
    if (count > ShapeEvaluator::maxElements)
      return std::nullopt;
  }
  return count;
}

std::optional<SmallVector<int64_t>>
sardonyx::broadcastShapes(ArrayRef<ArrayRef<int64_t>> shapes) {
  size_t rank = 0;
  for (ArrayRef<int64_t> shape : shapes)
    rank = std::max(rank, shape.size());
  SmallVector<int64_t> result(rank, 1);
  for (ArrayRef<int64_t> shape : shapes)
    for (auto [i, size] : llvm::enumerate(shape)) {
      int64_t &to = result[rank - shape.size() + i];
      if (size != 1 && to != 1 && size != to)
        return std::nullopt;
      to = to == 1 ? size : to;
    }
  return result;
}

int64_t sardonyx::getPlace(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t place = 0;
  for (auto [i, size] : llvm::zip_equal(index, shape))
    place = place * size + i;
  return place;
}

void sardonyx::forEachIndex(ArrayRef<int64_t> shape,
                            function_ref<void(ArrayRef<int64_t>)> body) {
  if (llvm::is_contained(shape, 0))
    return;
  SmallVector<int64_t> index(shape.size(), 0);
  for (;;) {
    body(index);
    size_t dim = shape.size();
    while (dim > 0 && ++index[dim - 1] == shape[dim - 1])
      index[--dim] = 0;
    if (dim == 0)
      return;
  }
}

SmallVector<int64_t> sardonyx::getBroadcastPlaces(ArrayRef<int64_t> from,
                                                  ArrayRef<int64_t> to) {
  SmallVector<int64_t> places;
  forEachIndex(to, [&](ArrayRef<int64_t> index) {
    int64_t place = 0;
    for (auto [i, size] : llvm::zip_equal(index.take_back(from.size()), from))
      place = place * size + (size == 1 ? 0 : i);
    places.push_back(place);
  });
  return places;
}

std::optional<ShapeTensor>
sardonyx::makeTensor(ArrayRef<int64_t> shape,
                     function_ref<Element(ArrayRef<int64_t>)> body) {
  if (!countElements(shape))
    return std::nullopt;
  ShapeTensor result{SmallVector<int64_t>(shape), {}};
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    result.elements.push_back(body(index));
  });
  return result;
}
