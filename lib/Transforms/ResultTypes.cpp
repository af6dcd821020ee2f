//===- ResultTypes.cpp - Types that follow for results --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ResultTypes.h"

using namespace mlir;
using namespace sardonyx;

Type sardonyx::joinOnnxTypes(Type a, Type b) {
  if (a == b)
    return a;
  if (auto x = dyn_cast_or_null<onnx::SeqType>(a))
    if (auto y = dyn_cast_or_null<onnx::SeqType>(b)) {
      Type joined = joinOnnxTypes(x.getElementType(), y.getElementType());
      return joined ? onnx::SeqType::get(joined) : Type();
    }
  auto left = dyn_cast<TensorType>(a), right = dyn_cast<TensorType>(b);
  if (!left || !right || left.getElementType() != right.getElementType())
    return {};
  if (!left.hasRank() || !right.hasRank() || left.getRank() != right.getRank())
    return UnrankedTensorType::get(left.getElementType());
  SmallVector<int64_t> shape;
  for (auto [x, y] : llvm::zip(left.getShape(), right.getShape()))
    shape.push_back(x == y ? x : ShapedType::kDynamic);
  return RankedTensorType::get(shape, left.getElementType());
}

Type sardonyx::refine(Type declared, Type inferred, bool &contradiction) {
  if (!inferred || isa<onnx::UnknownType>(inferred))
    return declared;
  if (isa<onnx::UnknownType>(declared))
    return inferred;
  if (auto a = dyn_cast<onnx::SeqType>(declared))
    if (auto b = dyn_cast<onnx::SeqType>(inferred))
      return onnx::SeqType::get(
          refine(a.getElementType(), b.getElementType(), contradiction));
  if (auto a = dyn_cast<onnx::OptType>(declared))
    if (auto b = dyn_cast<onnx::OptType>(inferred))
      return onnx::OptType::get(
          refine(a.getElementType(), b.getElementType(), contradiction));
  auto from = dyn_cast<TensorType>(declared);
  auto to = dyn_cast<TensorType>(inferred);
  if (!from || !to || !to.hasRank())
    return declared;
  Type element = isa<onnx::UnknownType>(from.getElementType())
                     ? to.getElementType()
                     : from.getElementType();
  if (!from.hasRank())
    return RankedTensorType::get(to.getShape(), element);
  if (from.getRank() != to.getRank()) {
    contradiction = true;
    return RankedTensorType::get(to.getShape(), element);
  }
  SmallVector<int64_t> shape;
  for (auto [old, now] : llvm::zip(from.getShape(), to.getShape())) {
    contradiction |= !ShapedType::isDynamic(old) &&
                     !ShapedType::isDynamic(now) && old != now;
    shape.push_back(ShapedType::isDynamic(now) ? old : now);
  }
  return RankedTensorType::get(shape, element);
}

Type sardonyx::inferSplit(onnx::SplitOp op) {
  auto input = dyn_cast<RankedTensorType>(op.getInput().getType());
  if (!input)
    return {};
  int64_t axis = op.getAxis() + (op.getAxis() < 0 ? input.getRank() : 0);
  if (axis < 0 || axis >= input.getRank())
    return {};
  SmallVector<int64_t> sizes(input.getShape());
  sizes[axis] = ShapedType::kDynamic;
  return RankedTensorType::get(sizes, input.getElementType());
}

Type sardonyx::inferAxes(Operation *op) {
  auto data = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  if (!data)
    return {};
  int64_t rank = data.getRank();
  if (!isa<onnx::PadOp>(op)) {
    auto axes = op->getNumOperands() > 1
                    ? dyn_cast<RankedTensorType>(op->getOperand(1).getType())
                    : RankedTensorType();
    if (!axes || !axes.hasStaticShape())
      return {};
    int64_t count = axes.getNumElements();
    rank += isa<onnx::SqueezeOp>(op) ? -count : count;
    // Nobody makes so many dimensions, but a list may be as long.
    if (rank < 0 || count > 64)
      return {};
  }
  return RankedTensorType::get(SmallVector<int64_t>(rank, ShapedType::kDynamic),
                               data.getElementType());
}

std::optional<int64_t>
sardonyx::getScanAxis(std::optional<ArrayRef<int64_t>> axes, unsigned index,
                      int64_t rank) {
  int64_t axis = 0;
  if (axes && index < axes->size())
    axis = (*axes)[index];
  axis = axis < 0 ? axis + rank : axis;
  return axis >= 0 && axis < rank ? std::optional<int64_t>(axis) : std::nullopt;
}

Type sardonyx::inferScanned(onnx::ScanOp op, Type type, unsigned index) {
  unsigned inputs = op.getNumScanInputs();
  unsigned states = op->getNumOperands() - inputs;
  auto slice = dyn_cast_or_null<RankedTensorType>(type);
  if (index < states || !slice)
    return index < states ? type : Type();
  int64_t steps = ShapedType::kDynamic;
  if (auto first = dyn_cast<RankedTensorType>(op->getOperand(states).getType()))
    if (auto axis = getScanAxis(op.getScanInputAxes(), 0, first.getRank()))
      steps = first.getDimSize(*axis);
  auto axis =
      getScanAxis(op.getScanOutputAxes(), index - states, slice.getRank() + 1);
  if (!axis)
    return {};
  SmallVector<int64_t> shape(slice.getShape());
  shape.insert(shape.begin() + *axis, steps);
  return RankedTensorType::get(shape, slice.getElementType());
}
