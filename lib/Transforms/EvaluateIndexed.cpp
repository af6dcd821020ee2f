//===- EvaluateIndexed.cpp - Gathers and scatters of known tensors --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace sardonyx;

using Element = ShapeElement;
using Tensor = std::optional<ShapeTensor>;
using Ints = SmallVector<int64_t>;

static ArrayRef<int64_t> shapeOf(const ShapeTensor *tensor) {
  return tensor->shape;
}

/// The place that an index means; nothing if it is not known or out of range.
static std::optional<int64_t> getIndex(const Element &index, int64_t size) {
  return index.isKnown() ? fromFront(index.value, size) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

static Tensor evaluateGather(const Evaluation &e, onnx::GatherOp op) {
  const ShapeTensor *data = e.get(op.getData());
  const ShapeTensor *indices = e.get(op.getIndices());
  auto axis = data ? fromFront(op.getAxis(), data->shape.size()) : std::nullopt;
  if (!axis || !indices)
    return std::nullopt;
  size_t inner = indices->shape.size();
  Ints shape(shapeOf(data).take_front(*axis));
  llvm::append_range(shape, indices->shape);
  llvm::append_range(shape, shapeOf(data).drop_front(*axis + 1));
  return makeTensor(shape, [&](ArrayRef<int64_t> index) {
    int64_t place = getPlace(index.slice(*axis, inner), indices->shape);
    auto from = getIndex(indices->elements[place], data->shape[*axis]);
    if (!from)
      return Element();
    Ints at(index.take_front(*axis));
    at.push_back(*from);
    llvm::append_range(at, index.drop_front(*axis + inner));
    return data->elements[getPlace(at, data->shape)];
  });
}

static Tensor evaluateGatherElements(const Evaluation &e,
                                     onnx::GatherElementsOp op) {
  const ShapeTensor *data = e.get(op.getData());
  const ShapeTensor *indices = e.get(op.getIndices());
  if (!data || !indices || data->shape.size() != indices->shape.size())
    return std::nullopt;
  auto axis = fromFront(op.getAxis(), data->shape.size());
  if (!axis)
    return std::nullopt;
  for (auto [i, sizes] :
       llvm::enumerate(llvm::zip_equal(indices->shape, data->shape)))
    if (static_cast<int64_t>(i) != *axis &&
        std::get<0>(sizes) > std::get<1>(sizes))
      return std::nullopt;
  return makeTensor(indices->shape, [&](ArrayRef<int64_t> index) {
    auto from = getIndex(indices->elements[getPlace(index, indices->shape)],
                         data->shape[*axis]);
    if (!from)
      return Element();
    Ints at(index);
    at[*axis] = *from;
    return data->elements[getPlace(at, data->shape)];
  });
}

/// The part of the data's index that a row of `indices` gives, from dimension
/// `first` of the data on.
static std::optional<Ints> getRow(const ShapeTensor &indices,
                                  ArrayRef<int64_t> row,
                                  const ShapeTensor &data, int64_t first) {
  Ints result;
  int64_t length = indices.shape.back();
  int64_t begin = getPlace(row, ArrayRef(indices.shape).drop_back()) * length;
  for (int64_t i = 0; i < length; ++i) {
    auto at = getIndex(indices.elements[begin + i], data.shape[first + i]);
    if (!at)
      return std::nullopt;
    result.push_back(*at);
  }
  return result;
}

static Tensor evaluateGatherND(const Evaluation &e, onnx::GatherNDOp op) {
  const ShapeTensor *data = e.get(op.getData());
  const ShapeTensor *indices = e.get(op.getIndices());
  if (!data || !indices || indices->shape.empty())
    return std::nullopt;
  int64_t batch = op.getBatchDims(), length = indices->shape.back();
  int64_t rows = indices->shape.size() - 1;
  if (batch < 0 || batch > rows || length < 1 ||
      batch + length > static_cast<int64_t>(data->shape.size()) ||
      shapeOf(data).take_front(batch) != shapeOf(indices).take_front(batch))
    return std::nullopt;
  Ints shape(shapeOf(indices).drop_back());
  llvm::append_range(shape, shapeOf(data).drop_front(batch + length));
  return makeTensor(shape, [&](ArrayRef<int64_t> index) {
    auto row = getRow(*indices, index.take_front(rows), *data, batch);
    if (!row)
      return Element();
    Ints at(index.take_front(batch));
    llvm::append_range(at, *row);
    llvm::append_range(at, index.drop_front(rows));
    return data->elements[getPlace(at, data->shape)];
  });
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

namespace {
/// Data into which elements are scattered. Where a place is written twice
/// without a reduction, which one stays is open.
class Scattered {
public:
  Scattered(const Evaluation &e, const ShapeTensor &data, StringRef reduction)
      : result(data), type(e.getResultElementType()), reduction(reduction) {}

  bool isSupported() const {
    return reduction == "none" ||
           (isa<IntegerType>(type) && !type.isInteger(1) &&
            (reduction == "add" || reduction == "max" || reduction == "min"));
  }
  /// False if the result is open.
  bool put(int64_t place, const Element &update) {
    Element &to = result.elements[place];
    if (reduction == "none") {
      to = update;
      return written.insert(place).second;
    }
    to = fitElement(reduction == "add"   ? addElements(to, update)
                    : reduction == "max" ? getLarger(to, update)
                                         : getSmaller(to, update),
                    type);
    return true;
  }
  ShapeTensor result;

private:
  Type type;
  StringRef reduction;
  llvm::SmallSet<int64_t, 16> written;
};
} // namespace

static Tensor scatterElements(const Evaluation &e, Operation *op, int64_t along,
                              StringRef reduction) {
  const ShapeTensor *data = e.get(op->getOperand(0));
  const ShapeTensor *indices = e.get(op->getOperand(1));
  const ShapeTensor *updates = e.get(op->getOperand(2));
  if (!data || !indices || !updates || indices->shape != updates->shape ||
      data->shape.size() != indices->shape.size())
    return std::nullopt;
  auto axis = fromFront(along, data->shape.size());
  Scattered scattered(e, *data, reduction);
  if (!axis || !scattered.isSupported())
    return std::nullopt;
  bool isDefined = true;
  forEachIndex(indices->shape, [&](ArrayRef<int64_t> index) {
    int64_t from = getPlace(index, indices->shape);
    auto to = getIndex(indices->elements[from], data->shape[*axis]);
    Ints at(index);
    if (to)
      at[*axis] = *to;
    for (auto [i, size] : llvm::zip_equal(at, data->shape))
      isDefined &= i < size;
    isDefined =
        isDefined && to &&
        scattered.put(getPlace(at, data->shape), updates->elements[from]);
  });
  return isDefined ? Tensor(scattered.result) : std::nullopt;
}

static Tensor evaluateScatterElements(const Evaluation &e,
                                      onnx::ScatterElementsOp op) {
  return scatterElements(e, op, op.getAxis(), op.getReduction());
}

static Tensor evaluateScatter(const Evaluation &e, onnx::ScatterOp op) {
  return scatterElements(e, op, op.getAxis(), "none");
}

static Tensor evaluateScatterND(const Evaluation &e, onnx::ScatterNDOp op) {
  const ShapeTensor *data = e.get(op.getData());
  const ShapeTensor *indices = e.get(op.getIndices());
  const ShapeTensor *updates = e.get(op.getUpdates());
  if (!data || !indices || !updates || indices->shape.empty())
    return std::nullopt;
  int64_t rows = indices->shape.size() - 1, length = indices->shape.back();
  if (length < 1 || length > static_cast<int64_t>(data->shape.size()))
    return std::nullopt;
  Ints shape(shapeOf(indices).drop_back());
  llvm::append_range(shape, shapeOf(data).drop_front(length));
  Scattered scattered(e, *data, op.getReduction());
  if (shape != updates->shape || !scattered.isSupported())
    return std::nullopt;
  bool isDefined = true;
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    auto at = getRow(*indices, index.take_front(rows), *data, 0);
    if (!at) {
      isDefined = false;
      return;
    }
    llvm::append_range(*at, index.drop_front(rows));
    isDefined =
        isDefined && scattered.put(getPlace(*at, data->shape),
                                   updates->elements[getPlace(index, shape)]);
  });
  return isDefined ? Tensor(scattered.result) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Selections
//===----------------------------------------------------------------------===//

static Tensor evaluateCompress(const Evaluation &e, onnx::CompressOp op) {
  const ShapeTensor *input = e.get(op.getInput());
  std::optional<Ints> chosen = e.getIntegers(op.getCondition());
  if (!input || !chosen)
    return std::nullopt;
  Ints from = input->shape;
  int64_t axis = 0;
  if (!op.getAxis()) // of all elements in a row
    from = {static_cast<int64_t>(input->elements.size())};
  else if (auto given = fromFront(*op.getAxis(), from.size()))
    axis = *given;
  else
    return std::nullopt;
  Ints places;
  for (auto [i, isChosen] : llvm::enumerate(*chosen)) {
    if (static_cast<int64_t>(i) >= from[axis])
      break;
    if (isChosen)
      places.push_back(i);
  }
  Ints shape = from;
  shape[axis] = places.size();
  return makeTensor(shape, [&](ArrayRef<int64_t> index) {
    Ints at(index);
    at[axis] = places[index[axis]];
    return input->elements[getPlace(at, from)];
  });
}

/// The indices of what is not zero, a column each.
static Tensor evaluateNonZero(const Evaluation &e, onnx::NonZeroOp op) {
  const ShapeTensor *data = e.get(op.getX());
  if (!data || data->shape.empty() || // of scalars versions differ
      !isa<IntegerType>(Evaluation::getElementType(op.getX())))
    return std::nullopt;
  SmallVector<Ints> found;
  bool isKnown = true;
  forEachIndex(data->shape, [&](ArrayRef<int64_t> index) {
    const Element &element = data->elements[getPlace(index, data->shape)];
    isKnown &= element.isKnown();
    if (element.value != 0)
      found.push_back(Ints(index));
  });
  if (!isKnown)
    return std::nullopt;
  return makeTensor({static_cast<int64_t>(data->shape.size()),
                     static_cast<int64_t>(found.size())},
                    [&](ArrayRef<int64_t> index) {
                      return Element::known(found[index[1]][index[0]]);
                    });
}

/// `values` are those of the other places and of the chosen ones.
static Tensor evaluateOneHot(const Evaluation &e, onnx::OneHotOp op) {
  std::optional<Ints> indices = e.getIntegers(op.getIndices());
  auto depth = e.getSingle(op.getDepth());
  const ShapeTensor *values = e.get(op.getValues());
  if (!indices || !depth || !depth->isKnown() || !values ||
      values->elements.size() != 2 ||
      !isa<IntegerType>(Evaluation::getElementType(op.getDepth())))
    return std::nullopt;
  const ShapeTensor *places = e.get(op.getIndices());
  auto axis = fromFront(op.getAxis(), places->shape.size() + 1);
  if (!axis || depth->value < 1)
    return std::nullopt;
  Ints shape = places->shape;
  shape.insert(shape.begin() + *axis, depth->value);
  return makeTensor(shape, [&](ArrayRef<int64_t> index) {
    Ints at(index);
    at.erase(at.begin() + *axis);
    int64_t chosen = (*indices)[getPlace(at, places->shape)];
    auto place = fromFront(chosen, depth->value); // else none is chosen
    return values->elements[place && *place == index[*axis] ? 1 : 0];
  });
}

void sardonyx::addIndexedEvaluations(EvaluationTable &table) {
  using namespace onnx;
  table.add<GatherOp, evaluateGather>();
  table.add<GatherElementsOp, evaluateGatherElements>();
  table.add<GatherNDOp, evaluateGatherND>();
  table.add<ScatterOp, evaluateScatter>();
  table.add<ScatterElementsOp, evaluateScatterElements>();
  table.add<ScatterNDOp, evaluateScatterND>();
  table.add<CompressOp, evaluateCompress>();
  table.add<NonZeroOp, evaluateNonZero>();
  table.add<OneHotOp, evaluateOneHot>();
}
