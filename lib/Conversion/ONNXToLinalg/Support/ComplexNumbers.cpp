//===- ComplexNumbers.cpp - Which operators take them ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A complex number is stored as an integer of its bits (its real part in the
// lower half), which operators that only move elements need not look into.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Conversion/ONNXToLinalg.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

static bool holdsComplex(Type type) {
  if (auto sequence = dyn_cast<onnx::SeqType>(type))
    return holdsComplex(sequence.getElementType());
  if (auto optional = dyn_cast<onnx::OptType>(type))
    return holdsComplex(optional.getElementType());
  auto tensor = dyn_cast<TensorType>(type);
  return tensor && isa<ComplexType>(tensor.getElementType());
}

/// The names of attributes that choose how elements are combined.
static bool movesOnly(Operation *op, StringRef attribute, StringRef wanted) {
  auto value = op->getAttrOfType<StringAttr>(attribute);
  return value && value.getValue() == wanted;
}

bool computesOnComplex(Operation *op) {
  if (!isa_and_nonnull<onnx::ONNXDialect>(op->getDialect()) ||
      op->hasTrait<OpTrait::IsTerminator>() ||
      (llvm::none_of(op->getOperandTypes(), holdsComplex) &&
       llvm::none_of(op->getResultTypes(), holdsComplex)))
    return false;
  if (isa<onnx::ScatterElementsOp, onnx::ScatterNDOp>(op))
    return !movesOnly(op, "reduction", "none");
  if (isa<onnx::ResizeOp>(op))
    return !movesOnly(op, "mode", "nearest");
  // In the graphs that an op holds, each is asked for itself.
  return !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
         !op->hasTrait<onnx::MovesData>() &&
         !op->hasTrait<onnx::IgnoresElements>();
}

} // namespace sardonyx
