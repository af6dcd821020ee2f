//===- EvaluateReductions.cpp - Reductions of known tensors ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of integers: in which order floats are added is open.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;

using Element = ShapeElement;
using Tensor = std::optional<ShapeTensor>;
using Ints = SmallVector<int64_t>;
using Binary = Element (*)(Element, Element);

/// A product may be one of sizes.
static Element multiplied(Element a, Element b) {
  if (a.isKnown() && b.isKnown()) {
    int64_t product;
    return llvm::MulOverflow(a.value, b.value, product)
               ? Element()
               : Element::known(product);
  }
  return a.isNonNegative() && b.isNonNegative() ? multiply(a, b) : Element();
}

static Element absoluteOf(Element a) {
  return a.isNonNegative()
             ? a
             : multiplied(a, Element::known(a.isKnown() ? -1 : 1));
}
static Element addAbsolute(Element sum, Element a) {
  return addElements(sum, absoluteOf(a));
}
static Element addSquare(Element sum, Element a) {
  return addElements(sum, multiplied(a, a));
}

/// Combines the elements along the axes, beginning with `neutral`, or with the
/// first one where there is no neutral element.
static Tensor reduce(const Evaluation &e, Operation *op, Binary function,
                     std::optional<int64_t> neutral) {
  const ShapeTensor *data = e.get(op->getOperand(0));
  Value given = op->getNumOperands() > 1 ? op->getOperand(1) : Value();
  std::optional<Ints> axes = e.getIntegers(given);
  Type type = e.getResultElementType();
  if (!data || (given && !axes) || !isa_and_nonnull<IntegerType>(type))
    return std::nullopt;
  auto flag = [&](StringRef name, bool byDefault) {
    auto value = op->getAttrOfType<IntegerAttr>(name);
    return value ? !value.getValue().isZero() : byDefault;
  };
  int64_t rank = data->shape.size();
  SmallVector<bool> isReduced(rank, !axes || axes->empty());
  if (!axes || axes->empty())
    if (flag("noop_with_empty_axes", false))
      return std::nullopt; // what it does to single elements differs by version
  if (axes)
    for (int64_t axis : *axes) {
      auto at = fromFront(axis, rank);
      if (!at)
        return std::nullopt;
      isReduced[*at] = true;
    }
  Ints kept, shape;
  for (int64_t i = 0; i < rank; ++i) {
    kept.push_back(isReduced[i] ? 1 : data->shape[i]);
    if (!isReduced[i] || flag("keepdims", true))
      shape.push_back(kept.back());
  }
  std::optional<int64_t> count = countElements(kept);
  if (!count)
    return std::nullopt;
  Element first = neutral ? Element::known(*neutral) : Element();
  ShapeTensor result{shape, ShapeValue(*count, first)};
  SmallVector<bool> isEmpty(*count, !neutral);
  forEachIndex(data->shape, [&](ArrayRef<int64_t> index) {
    Ints at(index);
    for (int64_t i = 0; i < rank; ++i)
      at[i] = isReduced[i] ? 0 : at[i];
    int64_t place = getPlace(at, kept);
    const Element &next = data->elements[getPlace(index, data->shape)];
    Element &to = result.elements[place];
    to = isEmpty[place] ? next : fitElement(function(to, next), type);
    isEmpty[place] = false;
  });
  return result;
}

static Tensor evaluateSum(const Evaluation &e, Operation *op) {
  return reduce(e, op, addElements, 0);
}
static Tensor evaluateProduct(const Evaluation &e, Operation *op) {
  return reduce(e, op, multiplied, 1);
}
static Tensor evaluateMaximum(const Evaluation &e, Operation *op) {
  return reduce(e, op, getLarger, std::nullopt);
}
static Tensor evaluateMinimum(const Evaluation &e, Operation *op) {
  return reduce(e, op, getSmaller, std::nullopt);
}
static Tensor evaluateL1(const Evaluation &e, Operation *op) {
  return reduce(e, op, addAbsolute, 0);
}
static Tensor evaluateSumSquare(const Evaluation &e, Operation *op) {
  return reduce(e, op, addSquare, 0);
}

/// Where the largest, or smallest, element along the axis is.
template <typename OpT> static Tensor evaluateArg(const Evaluation &e, OpT op) {
  constexpr bool isMax = std::is_same_v<OpT, onnx::ArgMaxOp>;
  const ShapeTensor *data = e.get(op.getData());
  std::optional<Ints> values = e.getIntegers(op.getData());
  auto axis = data ? fromFront(op.getAxis(), data->shape.size()) : std::nullopt;
  if (!values || !axis || data->shape[*axis] == 0)
    return std::nullopt;
  Ints shape = data->shape;
  shape[*axis] = 1;
  Tensor result = makeTensor(shape, [&](ArrayRef<int64_t> index) {
    Ints at(index);
    int64_t best = 0, bestValue = 0;
    for (int64_t i = 0; i < data->shape[*axis]; ++i) {
      at[*axis] = i;
      int64_t value = (*values)[getPlace(at, data->shape)];
      bool isBetter = isMax ? value > bestValue : value < bestValue;
      if (i == 0 || isBetter ||
          (value == bestValue && op.getSelectLastIndex())) {
        best = i;
        bestValue = value;
      }
    }
    return Element::known(best);
  });
  if (result && !op.getKeepdims())
    result->shape.erase(result->shape.begin() + *axis);
  return result;
}

static Tensor evaluateCumSum(const Evaluation &e, onnx::CumSumOp op) {
  const ShapeTensor *data = e.get(op.getX());
  auto along = e.getSingle(op.getAxis());
  Type type = e.getResultElementType();
  if (!data || !along || !along->isKnown() ||
      !isa_and_nonnull<IntegerType>(type))
    return std::nullopt;
  auto axis = fromFront(along->value, data->shape.size());
  if (!axis)
    return std::nullopt;
  return makeTensor(data->shape, [&](ArrayRef<int64_t> index) {
    Ints at(index);
    int64_t size = data->shape[*axis], here = index[*axis];
    bool withSelf = !op.getExclusive();
    int64_t begin = op.getReverse() ? here + !withSelf : 0;
    int64_t end = op.getReverse() ? size : here + withSelf;
    Element sum = Element::known(0);
    for (int64_t i = begin; i < end; ++i) {
      at[*axis] = i;
      sum = fitElement(
          addElements(sum, data->elements[getPlace(at, data->shape)]), type);
    }
    return sum;
  });
}

void sardonyx::addReductionEvaluations(EvaluationTable &table) {
  using namespace onnx;
  table.add<ReduceSumOp, evaluateSum>();
  table.add<ReduceProdOp, evaluateProduct>();
  table.add<ReduceMaxOp, evaluateMaximum>();
  table.add<ReduceMinOp, evaluateMinimum>();
  table.add<ReduceL1Op, evaluateL1>();
  table.add<ReduceSumSquareOp, evaluateSumSquare>();
  table.add<ArgMaxOp, evaluateArg<ArgMaxOp>>();
  table.add<ArgMinOp, evaluateArg<ArgMinOp>>();
  table.add<CumSumOp, evaluateCumSum>();
}
