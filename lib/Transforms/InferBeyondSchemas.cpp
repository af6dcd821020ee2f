//===- InferBeyondSchemas.cpp - Types that schemas do not infer -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of Inference that gives results more precise types than the schemas'
// inference functions, which see neither sizes nor what control flow decides.
//
//===----------------------------------------------------------------------===//

#include "Inference.h"
#include "ResultTypes.h"

using namespace mlir;
using namespace sardonyx;

static Type getElementType(Value value) {
  auto tensor = dyn_cast<TensorType>(value.getType());
  return tensor ? tensor.getElementType() : Type();
}

/// A tensor whose shape is the value of `shape`.
Type Inference::inferFromShape(Value shape, Type element) {
  auto elements = evaluator.evaluate(shape);
  if (!elements || !element)
    return {};
  SmallVector<int64_t> sizes;
  for (ShapeElement size : *elements)
    sizes.push_back(size.isKnown() && size.isNonNegative()
                        ? size.value
                        : ShapedType::kDynamic);
  return RankedTensorType::get(sizes, element);
}

Type Inference::inferReshape(onnx::ReshapeOp op) {
  auto elements = evaluator.evaluate(op.getShape());
  if (!elements || !getElementType(op.getData()))
    return {};
  auto data = dyn_cast<RankedTensorType>(op.getData().getType());
  SmallVector<int64_t> sizes;
  ShapeElement rest = ShapeElement::known(1);
  int64_t open = -1, unknown = 0;
  for (auto [i, size] : llvm::enumerate(*elements)) {
    if (size.isKnown(0) && !op.getAllowzero())
      size = evaluator.getDim(op.getData(), i);
    bool known = size.isKnown() && size.value >= 0;
    sizes.push_back(known ? size.value : ShapedType::kDynamic);
    if (known || size.isSymbolic()) {
      rest = multiply(rest, size);
    } else {
      open = i;
      ++unknown;
    }
  }
  // The number of elements stays, so a single unknown size is what is left.
  if (unknown == 1 && data) {
    auto left = divideExactly(evaluator.getNumElements(op.getData()), rest);
    if (left && left->isKnown())
      sizes[open] = left->value;
  }
  return RankedTensorType::get(sizes, getElementType(op.getData()));
}

Type Inference::inferExpand(onnx::ExpandOp op) {
  auto elements = evaluator.evaluate(op.getShape());
  auto input = dyn_cast<RankedTensorType>(op.getInput().getType());
  if (!elements || !input)
    return {};
  int64_t rank = std::max<int64_t>(elements->size(), input.getRank());
  SmallVector<int64_t> sizes;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t fromInput = i - (rank - input.getRank());
    int64_t fromShape = i - (rank - static_cast<int64_t>(elements->size()));
    int64_t a = fromInput < 0 ? 1 : input.getDimSize(fromInput);
    ShapeElement b =
        fromShape < 0 ? ShapeElement::known(1) : (*elements)[fromShape];
    if (b.isKnown(1))
      sizes.push_back(a);
    else if (b.isKnown() && b.value >= 0)
      sizes.push_back(b.value);
    else if (!ShapedType::isDynamic(a) && a != 1)
      sizes.push_back(a);
    else
      sizes.push_back(ShapedType::kDynamic);
  }
  return RankedTensorType::get(sizes, input.getElementType());
}

/// Dimensions that are not sliced stay.
Type Inference::inferSlice(onnx::SliceOp op) {
  auto data = dyn_cast<RankedTensorType>(op.getData().getType());
  auto axes = op.getAxes() ? evaluator.evaluate(op.getAxes()) : std::nullopt;
  if (!data || !axes)
    return {};
  SmallVector<int64_t> sizes(data.getShape());
  for (const ShapeElement &axis : *axes) {
    int64_t at = axis.value < 0 ? axis.value + data.getRank() : axis.value;
    if (!axis.isKnown() || at < 0 || at >= data.getRank())
      return {};
    sizes[at] = ShapedType::kDynamic;
  }
  return RankedTensorType::get(sizes, data.getElementType());
}

/// Which axes are reduced may be known at run time only, but how many isn't.
Type Inference::inferReduction(Operation *op) {
  auto data = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  auto axes = op->getNumOperands() > 1
                  ? dyn_cast<RankedTensorType>(op->getOperand(1).getType())
                  : RankedTensorType();
  auto keep = op->getAttrOfType<IntegerAttr>("keepdims");
  if (!data)
    return {};
  int64_t rank = data.getRank();
  if (keep && keep.getValue().isZero()) {
    if (!axes || !axes.hasStaticShape() || axes.getNumElements() > rank)
      return {};
    // No axes are all of them, or none.
    auto noop = op->getAttrOfType<IntegerAttr>("noop_with_empty_axes");
    if (axes.getNumElements() > 0)
      rank -= axes.getNumElements();
    else if (!noop || noop.getValue().isZero())
      rank = 0;
  }
  return RankedTensorType::get(SmallVector<int64_t>(rank, ShapedType::kDynamic),
                               data.getElementType());
}

Type Inference::inferMore(Operation *op, unsigned index) {
  if (auto reshape = dyn_cast<onnx::ReshapeOp>(op))
    return inferReshape(reshape);
  if (auto expand = dyn_cast<onnx::ExpandOp>(op))
    return inferExpand(expand);
  if (auto slice = dyn_cast<onnx::SliceOp>(op))
    return inferSlice(slice);
  if (auto insert = dyn_cast<onnx::SequenceInsertOp>(op))
    return inferInserted(insert);
  if (auto split = dyn_cast<onnx::SplitOp>(op))
    return inferSplit(split);
  if (isa<onnx::PadOp, onnx::SqueezeOp, onnx::UnsqueezeOp>(op))
    return inferAxes(op);
  if (isa<onnx::MelWeightMatrixOp>(op))
    if (Type element = getElementType(op->getResult(index)))
      return RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic},
                                   element);
  if (auto product = dyn_cast<onnx::MSMatMulNBitsOp>(op))
    if (auto rows = dyn_cast<RankedTensorType>(product.getA().getType());
        rows && rows.getRank() > 0) {
      SmallVector<int64_t> shape(rows.getShape());
      int64_t columns = product.getN();
      shape.back() = columns > 0 ? columns : ShapedType::kDynamic;
      return rows.clone(shape);
    }
  if (isa<onnx::GroupNormalizationOp>(op)) // The schema infers nothing.
    return op->getOperand(0).getType();
  if (op->hasTrait<onnx::Reduces>())
    return inferReduction(op);
  if (auto filled = dyn_cast<onnx::ConstantOfShapeOp>(op)) {
    Type element = Float32Type::get(op->getContext());
    if (ElementsAttr value = filled.getValueAttr())
      element = value.getShapedType().getElementType();
    return inferFromShape(filled.getInput(), element);
  }
  return inferYielded(op, index);
}

/// Whether a sequence is one that nothing has been put into, of which the type
/// of its tensors says nothing.
bool Inference::isEmptySequence(Value value) {
  if (auto identity = value.getDefiningOp<onnx::IdentityOp>())
    return isEmptySequence(identity.getInput());
  return value.getDefiningOp<onnx::SequenceEmptyOp>() || empty.contains(value);
}

/// The first tensor in a sequence says what is in it.
Type Inference::inferInserted(onnx::SequenceInsertOp op) {
  Type sequence = op.getInputSequence().getType();
  Type tensor = op.getTensor().getType();
  if (!isa<TensorType>(tensor))
    return {};
  if (isEmptySequence(op.getInputSequence()))
    return onnx::SeqType::get(tensor);
  auto held = dyn_cast<onnx::SeqType>(sequence);
  Type joined = held ? joinOnnxTypes(held.getElementType(), tensor) : Type();
  return joined ? onnx::SeqType::get(joined) : Type();
}
