//===- ShapeDims.cpp - Which dimensions are the same size -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of ShapeEvaluator that follows a dynamic dimension through the ops
// that hand it on.
//
//===----------------------------------------------------------------------===//

#include "ShapeValues.h"
#include "sardonyx/DimNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace sardonyx;

using Element = ShapeElement;

static int64_t getRank(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : -1;
}

/// `axis` counted from the front.
static int64_t normalize(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}

/// Known axes as a set over `rank` dimensions.
static std::optional<SmallVector<bool>> getAxes(ShapeEvaluator &evaluator,
                                                Value axes, int64_t rank) {
  auto elements = axes ? evaluator.evaluate(axes) : std::nullopt;
  if (!elements)
    return std::nullopt;
  SmallVector<bool> set(rank);
  for (const Element &axis : *elements) {
    int64_t at = normalize(axis.value, rank);
    if (!axis.isKnown() || at < 0 || at >= rank)
      return std::nullopt;
    set[at] = true;
  }
  return set;
}

Element ShapeEvaluator::makeSymbol(Value value, int64_t dim) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument
          ? dyn_cast_or_null<func::FuncOp>(argument.getOwner()->getParentOp())
          : func::FuncOp();
  if (function && argument.getOwner()->isEntryBlock()) {
    auto names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(),
                                                      "onnx.dim_params");
    auto name = names && dim < static_cast<int64_t>(names.size())
                    ? dyn_cast<StringAttr>(names[dim])
                    : StringAttr();
    if (name && isNameOfSize(name.getValue())) {
      auto [it, added] = named.try_emplace(name, symbols + 1);
      symbols += added;
      return Element::symbol(it->second);
    }
  }
  return Element::symbol(++symbols);
}

Element ShapeEvaluator::getDim(Value value, int64_t dim) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || dim < 0 || dim >= type.getRank())
    return Element::size();
  if (!type.isDynamicDim(dim))
    return Element::known(type.getDimSize(dim));
  auto found = dims.find({value, dim});
  if (found != dims.end())
    return found->second;
  Element result;
  auto made = dyn_cast<OpResult>(value);
  if (made && depth < maxDepth) {
    ++depth;
    result = computeDim(made, dim);
    --depth;
  }
  // What is known in spite of the type is left to the type's refinement.
  if (!result.isSymbolic() && !(result.isKnown() && result.value >= 0))
    result = makeSymbol(value, dim);
  dims[{value, dim}] = result;
  return result;
}

Element ShapeEvaluator::getNumElements(Value value) {
  int64_t rank = getRank(value);
  if (rank < 0)
    return Element::size();
  Element result = Element::known(1);
  for (int64_t i = 0; i < rank; ++i)
    result = multiply(result, getDim(value, i));
  return result;
}

/// The size that two sizes broadcast to. Those that differ may be 1 when the
/// model runs, and then the other one counts; unless one is min(n, c) and the
/// other n: they either are equal or an error.
Element ShapeEvaluator::broadcast(const Element &a, const Element &b) {
  if (a.isKnown(1) || a.isSame(b))
    return b;
  if (b.isKnown(1))
    return a;
  auto isClamped = [&](const Element &size, const Element &of) {
    return size.symbols.size() == 1 && of.symbols.size() == 1 &&
           size.value == 1 && of.value == 1 &&
           clamped.lookup(size.symbols[0]) == of.symbols[0];
  };
  if (isClamped(a, b))
    return b;
  return isClamped(b, a) ? a : Element();
}

Element ShapeEvaluator::broadcastDim(OpResult value, int64_t dim,
                                     ValueRange operands) {
  int64_t fromEnd = getRank(value) - dim;
  Element result = Element::known(1);
  for (Value operand : operands) {
    int64_t rank = getRank(operand);
    if (rank < 0)
      return {};
    if (fromEnd <= rank)
      result = broadcast(result, getDim(operand, rank - fromEnd));
  }
  return result;
}

SmallVector<int64_t> ShapeEvaluator::getSameDims(Operation *op) {
  SmallVector<int64_t> same;
  bool product = isa<onnx::MatMulOp>(op);
  int64_t rank = op->getNumResults() == 1 ? getRank(op->getResult(0)) : -1;
  if (!product && !op->hasTrait<onnx::Elementwise>())
    return same;
  for (int64_t dim = 0; dim < rank - (product ? 2 : 0); ++dim) {
    Element first = Element::known(1);
    unsigned dynamic = 0;
    bool equal = true;
    for (Value operand : op->getOperands()) {
      int64_t at = dim - (rank - getRank(operand));
      if (getRank(operand) < 0 || at < 0)
        continue;
      Element size = getDim(operand, at);
      if (size.isKnown(1))
        continue;
      dynamic += cast<RankedTensorType>(operand.getType()).isDynamicDim(at);
      equal &= first.isKnown(1) || first.isSame(size);
      first = size;
    }
    if (equal && dynamic >= 2)
      same.push_back(dim);
  }
  return same;
}

/// A slice from the start to a size n has min(n, size of the data).
Element ShapeEvaluator::sliceDim(OpResult value, int64_t dim) {
  auto slice = cast<onnx::SliceOp>(value.getOwner());
  int64_t rank = getRank(value);
  auto axes = getAxes(*this, slice.getAxes(), rank);
  if (!axes)
    return {};
  if (!(*axes)[dim])
    return getDim(slice.getData(), dim);
  ShapeValue order = *evaluate(slice.getAxes());
  auto starts = evaluate(slice.getStarts()), ends = evaluate(slice.getEnds());
  auto steps = slice.getSteps() ? evaluate(slice.getSteps())
                                : ShapeValue(order.size(), Element::known(1));
  auto type = dyn_cast<RankedTensorType>(slice.getData().getType());
  if (!type || type.isDynamicDim(dim) || !starts || !ends || !steps ||
      starts->size() != order.size() || ends->size() != order.size() ||
      steps->size() != order.size())
    return {};
  for (size_t i = 0; i < order.size(); ++i) {
    const Element &end = (*ends)[i];
    if (normalize(order[i].value, rank) != dim || !(*starts)[i].isKnown(0) ||
        !(*steps)[i].isKnown(1) || end.symbols.size() != 1 || end.value != 1)
      continue;
    Element result = makeSymbol(value, dim);
    clamped[result.symbols[0]] = end.symbols[0];
    return result;
  }
  return {};
}

/// The dimensions of the indices are in the place of the axis.
static Element gatherDim(ShapeEvaluator &evaluator, onnx::GatherOp gather,
                         int64_t dim) {
  int64_t data = getRank(gather.getData());
  int64_t indices = getRank(gather.getIndices());
  if (data < 0 || indices < 0)
    return {};
  int64_t axis = normalize(gather.getAxis(), data);
  if (dim < axis)
    return evaluator.getDim(gather.getData(), dim);
  if (dim < axis + indices)
    return evaluator.getDim(gather.getIndices(), dim - axis);
  return evaluator.getDim(gather.getData(), dim - indices + 1);
}

/// A range from 0 by steps of 1 has as many elements as its limit says.
static Element rangeSize(ShapeEvaluator &evaluator, onnx::RangeOp range) {
  auto start = evaluator.evaluate(range.getStart()),
       limit = evaluator.evaluate(range.getLimit()),
       delta = evaluator.evaluate(range.getDelta());
  bool plain = start && limit && delta && start->size() == 1 &&
               limit->size() == 1 && delta->size() == 1 &&
               start->front().isKnown(0) && delta->front().isKnown(1);
  return plain ? limit->front() : Element();
}

Element ShapeEvaluator::computeDim(OpResult value, int64_t dim) {
  Operation *op = value.getOwner();
  int64_t rank = getRank(value);
  if (value.getResultNumber() != 0)
    return {};
  if (op->hasTrait<onnx::KeepsShape>())
    return getRank(op->getOperand(0)) == rank ? getDim(op->getOperand(0), dim)
                                              : Element();
  if (op->hasTrait<onnx::Elementwise>())
    return broadcastDim(value, dim, op->getOperands());

  if (auto matmul = dyn_cast<onnx::MatMulOp>(op)) {
    int64_t a = getRank(matmul.getA()), b = getRank(matmul.getB());
    if (a < 2 || b < 2)
      return {};
    if (dim == rank - 2)
      return getDim(matmul.getA(), a - 2);
    if (dim == rank - 1)
      return getDim(matmul.getB(), b - 1);
    return broadcastDim(value, dim, op->getOperands());
  }
  if (auto gemm = dyn_cast<onnx::GemmOp>(op))
    return dim == 0 ? getDim(gemm.getA(), gemm.getTransA() ? 1 : 0)
                    : getDim(gemm.getB(), gemm.getTransB() ? 0 : 1);
  if (op->hasTrait<onnx::KeepsBatch>())
    return dim == 0 ? getDim(op->getOperand(0), 0) : Element();
  if (auto transpose = dyn_cast<onnx::TransposeOp>(op)) {
    if (!transpose.getPerm())
      return getDim(transpose.getData(), rank - 1 - dim);
    return dim < static_cast<int64_t>(transpose.getPerm()->size())
               ? getDim(transpose.getData(), (*transpose.getPerm())[dim])
               : Element();
  }
  if (auto unsqueeze = dyn_cast<onnx::UnsqueezeOp>(op)) {
    auto axes = getAxes(*this, unsqueeze.getAxes(), rank);
    if (!axes || (*axes)[dim])
      return {};
    return getDim(unsqueeze.getData(),
                  llvm::count(ArrayRef(*axes).take_front(dim), false));
  }
  if (auto squeeze = dyn_cast<onnx::SqueezeOp>(op)) {
    auto axes = getAxes(*this, squeeze.getAxes(), getRank(squeeze.getData()));
    for (size_t i = 0; axes && i < axes->size(); ++i)
      if (!(*axes)[i] && dim-- == 0)
        return getDim(squeeze.getData(), i);
    return {};
  }
  if (auto gather = dyn_cast<onnx::GatherOp>(op))
    return gatherDim(*this, gather, dim);
  if (auto gather = dyn_cast<onnx::GatherElementsOp>(op))
    return getDim(gather.getIndices(), dim);
  if (auto concat = dyn_cast<onnx::ConcatOp>(op))
    return dim == normalize(concat.getAxis(), rank)
               ? Element()
               : getDim(concat.getInputs().front(), dim);
  if (isa<onnx::SliceOp>(op))
    return sliceDim(value, dim);
  if (auto reshape = dyn_cast<onnx::ReshapeOp>(op)) {
    auto shape = evaluate(reshape.getShape());
    if (!shape || static_cast<int64_t>(shape->size()) != rank)
      return {};
    // A size of 0 may mean another one; it is the same size where the data has
    // it in the same place, and an empty tensor otherwise.
    Element size = (*shape)[dim];
    if (size.isKnown(0) && !reshape.getAllowzero())
      return getDim(reshape.getData(), dim);
    return size.isSymbolic() ? size : Element();
  }
  if (auto expand = dyn_cast<onnx::ExpandOp>(op)) {
    auto shape = evaluate(expand.getShape());
    int64_t input = getRank(expand.getInput());
    if (!shape || input < 0)
      return {};
    int64_t fromEnd = rank - dim, length = shape->size();
    Element a = fromEnd > input ? Element::known(1)
                                : getDim(expand.getInput(), input - fromEnd);
    Element b =
        fromEnd > length ? Element::known(1) : (*shape)[length - fromEnd];
    return broadcast(a, b);
  }
  if (auto filled = dyn_cast<onnx::ConstantOfShapeOp>(op)) {
    auto shape = evaluate(filled.getInput());
    return shape && dim < static_cast<int64_t>(shape->size()) ? (*shape)[dim]
                                                              : Element();
  }
  if (auto range = dyn_cast<onnx::RangeOp>(op))
    return rangeSize(*this, range);
  return {};
}
