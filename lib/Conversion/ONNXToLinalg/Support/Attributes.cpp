//===- Attributes.cpp - Tables in attributes ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Attributes.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace sardonyx {

ArrayRef<int64_t> getInts(Operation *op, const Twine &name) {
  auto list = op->getAttrOfType<DenseI64ArrayAttr>(name.str());
  return list ? list.asArrayRef() : ArrayRef<int64_t>();
}

/// Tensors of models are resources: views of bytes. Null where those are none.
static ElementsAttr toDense(ElementsAttr elements) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(elements);
  if (!resource)
    return elements;
  AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  bool isSplat;
  if (!blob || !DenseElementsAttr::isValidRawBuffer(resource.getType(),
                                                    blob->getData(), isSplat))
    return {};
  return DenseElementsAttr::getFromRawBuffer(resource.getType(),
                                             blob->getData());
}

std::vector<double> getNumbers(ElementsAttr given) {
  std::vector<double> numbers;
  ElementsAttr elements = toDense(given);
  if (!elements)
    return numbers;
  if (isa<FloatType>(elements.getElementType())) {
    if (auto values = elements.tryGetValues<APFloat>())
      for (APFloat value : *values)
        numbers.push_back(value.convertToDouble());
  } else if (auto values = elements.tryGetValues<APInt>()) {
    for (const APInt &value : *values)
      numbers.push_back(value.getZExtValue());
  }
  return numbers;
}

std::vector<int64_t> getIntegers(ElementsAttr given) {
  std::vector<int64_t> numbers;
  ElementsAttr elements = toDense(given);
  if (elements && isa<IntegerType>(elements.getElementType()))
    if (auto values = elements.tryGetValues<APInt>())
      for (const APInt &value : *values)
        numbers.push_back(value.getSExtValue());
  return numbers;
}

std::vector<double> getNumbers(Operation *op, StringRef name) {
  if (auto floats = op->getAttrOfType<DenseF32ArrayAttr>(name))
    return {floats.asArrayRef().begin(), floats.asArrayRef().end()};
  for (const std::string &text : {name.str(), name.str() + "_as_tensor"})
    if (auto tensor = op->getAttrOfType<ElementsAttr>(text))
      return getNumbers(tensor);
  return {};
}

} // namespace sardonyx
