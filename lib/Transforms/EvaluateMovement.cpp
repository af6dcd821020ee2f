//===- EvaluateMovement.cpp - Views, copies and shapes of known tensors ---===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;

using Element = ShapeElement;
using Tensor = std::optional<ShapeTensor>;
using Ints = SmallVector<int64_t>;

/// The static shape that inference gave the result; nothing if it has none.
static std::optional<Ints> getDeclaredShape(const Evaluation &e) {
  auto type = dyn_cast<RankedTensorType>(e.result.getType());
  if (!type || !type.hasStaticShape() || !countElements(type.getShape()))
    return std::nullopt;
  return Ints(type.getShape());
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// `end` and `begin` of Shape, as Python would clamp them.
static Tensor evaluateShape(const Evaluation &e, onnx::ShapeOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getData().getType());
  if (!type)
    return std::nullopt;
  int64_t rank = type.getRank();
  auto clamp = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  ShapeTensor result;
  for (int64_t i = clamp(op.getStart()),
               end = clamp(op.getEnd().value_or(rank));
       i < end; ++i)
    result.elements.push_back(e.evaluator.getDim(op.getData(), i));
  result.shape = {static_cast<int64_t>(result.elements.size())};
  return result;
}

static Tensor evaluateSize(const Evaluation &e, onnx::SizeOp op) {
  return ShapeTensor{{}, {e.evaluator.getNumElements(op.getData())}};
}

/// The elements stay in their order.
static Tensor evaluateReshaped(const Evaluation &e, Operation *op) {
  const ShapeTensor *data = e.get(op->getOperand(0));
  std::optional<Ints> shape = getDeclaredShape(e);
  if (!data || !shape ||
      *countElements(*shape) != static_cast<int64_t>(data->elements.size()))
    return std::nullopt;
  return ShapeTensor{*shape, data->elements};
}

static Tensor evaluateIdentity(const Evaluation &e, Operation *op) {
  const ShapeTensor *data = e.get(op->getOperand(0));
  return data ? Tensor(*data) : std::nullopt;
}

static Tensor evaluateConstantOfShape(const Evaluation &e,
                                      onnx::ConstantOfShapeOp op) {
  std::optional<Ints> shape = e.getIntegers(op.getInput());
  if (!shape)
    return std::nullopt;
  Element element = Element::known(0); // of floats, too
  if (ElementsAttr value = op.getValueAttr()) {
    auto single = e.evaluator.readConstant(value);
    if (!single || single->elements.size() != 1)
      return std::nullopt;
    element = single->elements.front();
  }
  return makeTensor(*shape, [&](ArrayRef<int64_t>) { return element; });
}

/// Also of limits that are sizes, where the number of elements is known.
static Tensor evaluateRange(const Evaluation &e, onnx::RangeOp op) {
  auto start = e.getSingle(op.getStart()), limit = e.getSingle(op.getLimit()),
       delta = e.getSingle(op.getDelta());
  if (!start || !delta || !isa<IntegerType>(e.getResultElementType()))
    return std::nullopt;
  int64_t count;
  if (limit && start->isKnown() && limit->isKnown() && delta->isKnown()) {
    // The difference of two numbers of 64 bits may need more.
    APInt span = APInt(66, limit->value, true) - APInt(66, start->value, true);
    APInt step(66, delta->value, true);
    if (step.isZero())
      return std::nullopt;
    if (span.isZero() || span.isNegative() != step.isNegative())
      count = 0;
    else
      count = llvm::APIntOps::RoundingUDiv(span.abs(), step.abs(),
                                           APInt::Rounding::UP)
                  .getLimitedValue(INT64_MAX);
  } else if (std::optional<Ints> shape = getDeclaredShape(e)) {
    count = shape->size() == 1 ? shape->front() : -1;
  } else {
    return std::nullopt;
  }
  Element next = *start;
  return makeTensor({count}, [&](ArrayRef<int64_t>) {
    Element element = next;
    next = addElements(next, *delta);
    return element;
  });
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

namespace {
/// What Slice takes of one dimension: `count` places from `begin` on.
struct Taken {
  int64_t begin = 0, step = 1, count = 0;
};
} // namespace

/// Nothing where implementations differ: backwards from before the first.
static std::optional<Taken> getTaken(int64_t start, int64_t end, int64_t step,
                                     int64_t size) {
  if (step == 0)
    return std::nullopt;
  auto clamp = [&](int64_t i, int64_t least, int64_t most) {
    if (i < 0)
      i = i < -size ? -1 : i + size;
    return std::clamp(i, std::min(least, most), std::max(least, most));
  };
  if (step < 0 && start < -size)
    return std::nullopt;
  Taken taken;
  taken.step = step;
  taken.begin = step > 0 ? clamp(start, 0, size) : clamp(start, -1, size - 1);
  int64_t stop = step > 0 ? clamp(end, 0, size) : clamp(end, -1, size - 1);
  int64_t span = step > 0 ? stop - taken.begin : taken.begin - stop;
  if (span > 0)
    // A step of more than the span takes one place.
    taken.count = step > 0 ? (span - 1) / step + 1 : 1 - (span - 1) / step;
  return taken;
}

static Tensor evaluateSlice(const Evaluation &e, onnx::SliceOp op) {
  const ShapeTensor *data = e.get(op.getData());
  auto starts = e.getIntegers(op.getStarts()),
       ends = e.getIntegers(op.getEnds());
  auto axes = e.getIntegers(op.getAxes()), steps = e.getIntegers(op.getSteps());
  if (!data || !starts || !ends || starts->size() != ends->size() ||
      (op.getAxes() && (!axes || axes->size() != starts->size())) ||
      (op.getSteps() && (!steps || steps->size() != starts->size())))
    return std::nullopt;
  int64_t rank = data->shape.size();
  SmallVector<Taken> taken;
  for (int64_t size : data->shape)
    taken.push_back({0, 1, size});
  SmallVector<bool> seen(rank);
  for (size_t i = 0; i < starts->size(); ++i) {
    auto axis = fromFront(axes ? (*axes)[i] : static_cast<int64_t>(i), rank);
    if (!axis || seen[*axis])
      return std::nullopt;
    seen[*axis] = true;
    auto part = getTaken((*starts)[i], (*ends)[i], steps ? (*steps)[i] : 1,
                         data->shape[*axis]);
    if (!part)
      return std::nullopt;
    taken[*axis] = *part;
  }
  Ints shape, at(rank);
  for (const Taken &part : taken)
    shape.push_back(part.count);
  return makeTensor(shape, [&](ArrayRef<int64_t> index) {
    for (int64_t i = 0; i < rank; ++i)
      at[i] = taken[i].begin + index[i] * taken[i].step;
    return data->elements[getPlace(at, data->shape)];
  });
}

/// The length of the part and those before it are known from `split` or, for
/// equal ones, from the results' types.
static Tensor evaluateSplit(const Evaluation &e, onnx::SplitOp op) {
  const ShapeTensor *data = e.get(op.getInput());
  if (!data)
    return std::nullopt;
  auto axis = fromFront(op.getAxis(), data->shape.size());
  std::optional<Ints> lengths = e.getIntegers(op.getSplit());
  if (!axis || (op.getSplit() && !lengths))
    return std::nullopt;
  unsigned number = e.result.getResultNumber(), parts = op->getNumResults();
  int64_t size = data->shape[*axis];
  if (!lengths) { // the last one is smaller if it must be
    lengths.emplace();
    int64_t each = llvm::divideCeil(size, static_cast<int64_t>(parts));
    for (unsigned i = 0; i < parts; ++i)
      lengths->push_back(std::min(each, size - each * i));
  }
  int64_t sum = 0, begin = 0;
  for (auto [i, length] : llvm::enumerate(*lengths)) {
    if (length < 0 || length > size)
      return std::nullopt;
    begin += i < number ? length : 0;
    sum += length;
  }
  if (sum != size || lengths->size() != parts)
    return std::nullopt;
  Ints shape = data->shape;
  shape[*axis] = (*lengths)[number];
  return makeTensor(shape, [&](ArrayRef<int64_t> index) {
    Ints at(index);
    at[*axis] += begin;
    return data->elements[getPlace(at, data->shape)];
  });
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static Tensor evaluateTranspose(const Evaluation &e, onnx::TransposeOp op) {
  const ShapeTensor *data = e.get(op.getData());
  if (!data)
    return std::nullopt;
  int64_t rank = data->shape.size();
  Ints perm;
  if (auto given = op.getPerm())
    perm.assign(given->begin(), given->end());
  else
    for (int64_t i = rank; i-- > 0;)
      perm.push_back(i);
  Ints sorted = perm;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
    return std::nullopt;
  Ints shape, at(rank);
  for (int64_t dim : perm)
    shape.push_back(data->shape[dim]);
  return makeTensor(shape, [&](ArrayRef<int64_t> index) {
    for (auto [dim, i] : llvm::zip_equal(perm, index))
      at[dim] = i;
    return data->elements[getPlace(at, data->shape)];
  });
}

static Tensor evaluateConcat(const Evaluation &e, onnx::ConcatOp op) {
  SmallVector<const ShapeTensor *> parts;
  for (Value input : op->getOperands()) {
    parts.push_back(e.get(input));
    if (!parts.back())
      return std::nullopt;
  }
  Ints shape = parts.front()->shape;
  auto axis = fromFront(op.getAxis(), shape.size());
  if (!axis)
    return std::nullopt;
  shape[*axis] = 0;
  for (const ShapeTensor *part : parts) {
    if (part->shape.size() != shape.size())
      return std::nullopt;
    for (size_t i = 0; i < shape.size(); ++i)
      if (static_cast<int64_t>(i) != *axis && part->shape[i] != shape[i])
        return std::nullopt;
    shape[*axis] += part->shape[*axis];
  }
  return makeTensor(shape, [&](ArrayRef<int64_t> index) {
    Ints at(index);
    const ShapeTensor *const *part = parts.begin();
    for (; at[*axis] >= (*part)->shape[*axis]; ++part)
      at[*axis] -= (*part)->shape[*axis];
    return (*part)->elements[getPlace(at, (*part)->shape)];
  });
}

static Tensor evaluateExpand(const Evaluation &e, onnx::ExpandOp op) {
  const ShapeTensor *input = e.get(op.getInput());
  std::optional<Ints> target = e.getIntegers(op.getShape());
  // Sizes that are not known may still have been inferred.
  std::optional<Ints> shape = !input ? std::nullopt
                              : target
                                  ? broadcastShapes({input->shape, *target})
                                  : getDeclaredShape(e);
  if (!shape || !countElements(*shape) ||
      broadcastShapes({input->shape, *shape}) != shape)
    return std::nullopt;
  ShapeTensor result{*shape, {}};
  for (int64_t place : getBroadcastPlaces(input->shape, *shape))
    result.elements.push_back(input->elements[place]);
  return result;
}

static Tensor evaluateTile(const Evaluation &e, onnx::TileOp op) {
  const ShapeTensor *input = e.get(op.getInput());
  std::optional<Ints> repeats = e.getIntegers(op.getRepeats());
  if (!input || !repeats || repeats->size() != input->shape.size())
    return std::nullopt;
  Ints shape, at(input->shape.size());
  for (auto [size, repeat] : llvm::zip_equal(input->shape, *repeats)) {
    if (repeat < 0 || repeat > ShapeEvaluator::maxElements)
      return std::nullopt;
    shape.push_back(size * repeat);
  }
  return makeTensor(shape, [&](ArrayRef<int64_t> index) {
    for (size_t i = 0; i < at.size(); ++i)
      at[i] = index[i] % input->shape[i];
    return input->elements[getPlace(at, input->shape)];
  });
}

/// Padding by a value.
static Tensor evaluatePad(const Evaluation &e, onnx::PadOp op) {
  const ShapeTensor *data = e.get(op.getData());
  auto pads = e.getIntegers(op.getPads()), axes = e.getIntegers(op.getAxes());
  auto filling = e.getSingle(op.getConstantValue());
  if (!data || !pads || op.getMode() != "constant" || (op.getAxes() && !axes) ||
      (op.getConstantValue() && !filling))
    return std::nullopt;
  int64_t rank = data->shape.size();
  size_t count = axes ? axes->size() : rank;
  if (pads->size() != 2 * count)
    return std::nullopt;
  Ints before(rank), shape = data->shape;
  SmallVector<bool> seen(rank);
  for (size_t i = 0; i < count; ++i) {
    auto axis = fromFront(axes ? (*axes)[i] : static_cast<int64_t>(i), rank);
    int64_t low = (*pads)[i], high = (*pads)[count + i];
    if (!axis || seen[*axis] || std::abs(low) > ShapeEvaluator::maxElements ||
        std::abs(high) > ShapeEvaluator::maxElements)
      return std::nullopt;
    seen[*axis] = true;
    before[*axis] = low;
    shape[*axis] += low + high;
  }
  return makeTensor(shape, [&](ArrayRef<int64_t> index) {
    Ints at(index);
    for (int64_t i = 0; i < rank; ++i) {
      at[i] -= before[i];
      if (at[i] < 0 || at[i] >= data->shape[i])
        return filling.value_or(Element::known(0));
    }
    return data->elements[getPlace(at, data->shape)];
  });
}

static Tensor evaluateTrilu(const Evaluation &e, onnx::TriluOp op) {
  const ShapeTensor *input = e.get(op.getInput());
  auto k = e.getSingle(op.getK());
  int64_t rank = input ? input->shape.size() : 0;
  if (rank < 2 || (op.getK() && (!k || !k->isKnown())))
    return std::nullopt;
  int64_t shift =
      k ? std::clamp<int64_t>(k->value, -ShapeEvaluator::maxElements,
                              ShapeEvaluator::maxElements)
        : 0;
  return makeTensor(input->shape, [&](ArrayRef<int64_t> index) {
    int64_t above = index[rank - 1] - index[rank - 2] - shift;
    bool isKept = op.getUpper() ? above >= 0 : above <= 0;
    return isKept ? input->elements[getPlace(index, input->shape)]
                  : Element::known(0);
  });
}

void sardonyx::addMovementEvaluations(EvaluationTable &table) {
  using namespace onnx;
  table.add<ShapeOp, evaluateShape>();
  table.add<SizeOp, evaluateSize>();
  table.add<IdentityOp, evaluateIdentity>();
  table.add<OptionalGetElementOp, evaluateIdentity>();
  table.add<ReshapeOp, evaluateReshaped>();
  table.add<FlattenOp, evaluateReshaped>();
  table.add<SqueezeOp, evaluateReshaped>();
  table.add<UnsqueezeOp, evaluateReshaped>();
  table.add<ConstantOfShapeOp, evaluateConstantOfShape>();
  table.add<RangeOp, evaluateRange>();
  table.add<SliceOp, evaluateSlice>();
  table.add<SplitOp, evaluateSplit>();
  table.add<TransposeOp, evaluateTranspose>();
  table.add<ConcatOp, evaluateConcat>();
  table.add<ExpandOp, evaluateExpand>();
  table.add<TileOp, evaluateTile>();
  table.add<PadOp, evaluatePad>();
  table.add<TriluOp, evaluateTrilu>();
}
