//===- ShapeArithmetic.cpp - Small tensors as scalars ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Models compute shapes with the same ops as data. These lowerings keep such
// tensors as scalars (tensor.from_elements), so that sizes are plain arithmetic
// and no kernel runs for them. They are special cases, of operands that exist
// as scalars already.
//
//===----------------------------------------------------------------------===//

#include "Support/ShapeArithmetic.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

static Value fromElements(OpBuilder &b, Location loc, ArrayRef<Value> elements,
                          Type elementType, bool isScalar = false) {
  SmallVector<int64_t> shape;
  if (!isScalar)
    shape.push_back(elements.size());
  return tensor::FromElementsOp::create(
      b, loc, RankedTensorType::get(shape, elementType), elements);
}

static int64_t rankOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getRank();
}

/// A size as an i64 scalar.
static Value sizeAsInt(OpBuilder &b, Location loc, Size size) {
  if (std::optional<int64_t> known = getStaticSize(size))
    return createIntConstant(b, loc, b.getI64Type(), *known);
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), cast<Value>(size));
}

Value scalariseElementwise(OpBuilder &b, Location loc,
                           ArrayRef<TypedTensor> inputs, Type resultOnnx,
                           ScalarBody body) {
  size_t count = 1;
  int64_t rank = 0;
  SmallVector<SmallVector<Value>> elements;
  bool anyComputed = false;
  for (const TypedTensor &input : inputs) {
    auto scalars = getScalarElements(b, loc, input.value);
    if (!scalars)
      return {};
    anyComputed |= !getConstantElements(input.value);
    rank = std::max(rank, rankOf(input.value));
    if (scalars->size() != 1) {
      if (count != 1 && count != scalars->size())
        return {};
      count = scalars->size();
    }
    elements.push_back(std::move(*scalars));
  }
  // Float constants are weights more often than sizes.
  if (!anyComputed && isa<FloatType>(resultOnnx))
    return {};
  SmallVector<Value> results;
  for (size_t i = 0; i < count; ++i) {
    SmallVector<Value> args;
    for (auto [input, scalars] : llvm::zip(inputs, elements))
      args.push_back(loadScalar(b, loc, scalars[scalars.size() == 1 ? 0 : i],
                                input.onnxElementType));
    results.push_back(storeScalar(b, loc, body(b, loc, args), resultOnnx));
  }
  return fromElements(b, loc, results, convertElementType(resultOnnx),
                      /*isScalar=*/rank == 0);
}

namespace {

LogicalResult lowerShape(Lowering<onnx::ShapeOp> &b) {
  Location loc = b.getLoc();
  auto type = dyn_cast<RankedTensorType>(b.in.getData().getType());
  if (!type)
    return b.refuse("the operand's rank is unknown");
  int64_t rank = type.getRank();
  auto clamp = [&](int64_t position) {
    if (position < 0)
      position += rank;
    return std::clamp<int64_t>(position, 0, rank);
  };
  int64_t start = clamp(b.op.getStart());
  int64_t end = clamp(b.op.getEnd().value_or(rank));
  SmallVector<Value> elements;
  for (int64_t dim = start; dim < end; ++dim)
    elements.push_back(sizeAsInt(b, loc, b.dim(b.in.getData(), dim)));
  return b.replace(fromElements(b, loc, elements, b.getI64Type()));
}

LogicalResult lowerSize(Lowering<onnx::SizeOp> &b) {
  Location loc = b.getLoc();
  if (!isa<RankedTensorType>(b.in.getData().getType()))
    return b.refuse("the operand's rank is unknown");
  Sizes sizes = b.dims(b.in.getData());
  Value count = sizeAsInt(b, loc, b.product(sizes));
  return b.replace(fromElements(b, loc, count, b.getI64Type(),
                                /*isScalar=*/true));
}

/// Gather from scalars at constant places.
LogicalResult lowerScalarGather(Lowering<onnx::GatherOp> &b) {
  Value data = b.in.getData(), indices = b.in.getIndices();
  auto places = getConstantInts(indices, kMaxScalarised);
  if (!places || b.rank(indices) > 1 || b.rank(data) != 1)
    return b.refuse("it gathers no scalars");
  auto elements = getScalarElements(b, b.getLoc(), data);
  if (!elements)
    return b.refuse("its data are no scalars");
  SmallVector<Value> picked;
  int64_t count = elements->size();
  for (int64_t place : *places) {
    FailureOr<int64_t> normal = normalizeAxis(place, count);
    if (failed(normal))
      return b.refuse("an index is out of range");
    picked.push_back((*elements)[*normal]);
  }
  return b.replace(fromElements(b, b.getLoc(), picked, elementTypeOf(data),
                                b.rank(indices) == 0));
}

LogicalResult lowerScalarSlice(Lowering<onnx::SliceOp> &b) {
  Value data = b.in.getData();
  if (b.rank(data) != 1)
    return b.refuse("its data are no list of scalars");
  auto starts = getConstantInts(b.in.getStarts());
  auto ends = getConstantInts(b.in.getEnds());
  std::optional<SmallVector<int64_t>> steps = SmallVector<int64_t>{1};
  if (Value operand = b.in.getSteps())
    steps = getConstantInts(operand);
  if (!starts || !ends || !steps || starts->size() != 1 || ends->size() != 1 ||
      steps->size() != 1 || steps->front() == 0)
    return b.refuse("its bounds are not constant");
  auto elements = getScalarElements(b, b.getLoc(), data);
  if (!elements)
    return b.refuse("its data are no scalars");
  int64_t size = elements->size(), step = steps->front();
  auto clamp = [&](int64_t position) {
    if (position < 0)
      position += position < -size ? 0 : size;
    return step > 0 ? std::clamp<int64_t>(position, 0, size)
                    : std::clamp<int64_t>(position, -1, size - 1);
  };
  SmallVector<Value> picked;
  int64_t start = clamp(starts->front()), end = clamp(ends->front());
  for (int64_t i = start; step > 0 ? i < end : i > end;) {
    picked.push_back((*elements)[i]);
    // Steps may be as large as the integers go.
    if (step >= size || step <= -size)
      break;
    i += step;
  }
  return b.replace(fromElements(b, b.getLoc(), picked, elementTypeOf(data)));
}

LogicalResult lowerScalarConcat(Lowering<onnx::ConcatOp> &b) {
  SmallVector<Value> all;
  Type element;
  for (Value input : b.in.getOperands()) {
    if (b.rank(input) != 1)
      return b.refuse("an operand is no list");
    auto elements = getScalarElements(b, b.getLoc(), input);
    if (!elements)
      return b.refuse("an operand has no scalars");
    llvm::append_range(all, *elements);
    element = elementTypeOf(input);
  }
  if (static_cast<int64_t>(all.size()) > kMaxScalarised)
    return b.refuse("the result is too long");
  return b.replace(fromElements(b, b.getLoc(), all, element));
}

/// Squeeze, Unsqueeze, Reshape and Flatten between scalars and lists.
template <typename OpT> LogicalResult lowerScalarView(Lowering<OpT> &b) {
  Value data = b.in.getOperands().front();
  auto type = dyn_cast<RankedTensorType>(b.op->getResult(0).getType());
  if (!type || type.getRank() > 1)
    return b.refuse("the result is no list");
  // A shape that only the run knows may be wrong.
  if constexpr (std::is_same_v<OpT, onnx::ReshapeOp>)
    if (!getConstantInts(b.in.getShape()))
      return b.refuse("its shape is not constant");
  auto elements = getScalarElements(b, b.getLoc(), data);
  if (!elements || (type.getRank() == 0 && elements->size() != 1))
    return b.refuse("its data are no scalars");
  // Constants are viewed in place by the general lowerings.
  if (getConstantElements(data))
    return b.refuse("its data are constant");
  return b.replace(fromElements(b, b.getLoc(), *elements, elementTypeOf(data),
                                type.getRank() == 0));
}

LogicalResult lowerScalarFill(Lowering<onnx::ConstantOfShapeOp> &b) {
  Location loc = b.getLoc();
  auto shape = getConstantInts(b.in.getInput());
  RankedTensorType type = getConvertedType(b.op.getOutput());
  if (!shape || shape->size() > 1 || !type ||
      (!shape->empty() &&
       (shape->front() > kMaxScalarised || shape->front() < 0)))
    return b.refuse("its shape is no small constant");
  Type element = type.getElementType();
  if (!isa<IntegerType>(element))
    return b.refuse("it has no integer elements");
  int64_t number = 0;
  if (auto value = dyn_cast_or_null<DenseIntElementsAttr>(b.op.getValueAttr());
      value && value.getNumElements() == 1)
    number = isBoolType(value.getElementType())
                 ? (*value.value_begin<APInt>()).getZExtValue()
                 : (*value.value_begin<APInt>()).getSExtValue();
  else if (b.op.getValueAttr())
    return b.refuse("its value can't be read");
  SmallVector<Value> elements(shape->empty() ? 1 : shape->front(),
                              createIntConstant(b, loc, element, number));
  return b.replace(fromElements(b, loc, elements, element, shape->empty()));
}

/// A short range whose length is known.
LogicalResult lowerScalarRange(Lowering<onnx::RangeOp> &b) {
  Location loc = b.getLoc();
  RankedTensorType type = getConvertedType(b.op.getOutput());
  auto start = getConstantInts(b.in.getStart());
  auto limit = getConstantInts(b.in.getLimit());
  auto delta = getConstantInts(b.in.getDelta());
  if (!type || !start || !limit || !delta || start->size() != 1 ||
      limit->size() != 1 || delta->size() != 1 || delta->front() == 0)
    return b.refuse("its bounds are not constant");
  int64_t step = delta->front();
  SmallVector<Value> elements;
  for (int64_t i = start->front();
       step > 0 ? i < limit->front() : i > limit->front();) {
    if (static_cast<int64_t>(elements.size()) == kMaxScalarised)
      return b.refuse("it is too long");
    elements.push_back(createIntConstant(b, loc, type.getElementType(), i));
    if (llvm::AddOverflow(i, step, i))
      break;
  }
  return b.replace(fromElements(b, loc, elements, type.getElementType()));
}

/// The product or sum of a list of scalars.
template <typename OpT, typename ArithOp>
LogicalResult lowerScalarReduce(Lowering<OpT> &b) {
  Location loc = b.getLoc();
  Value data = b.in.getData();
  bool noAxes = !b.op.getAxes();
  if (b.op.getAxes()) {
    auto axes = getConstantInts(b.op.getAxes());
    if (!axes)
      return b.refuse("its axes are not constant");
    noAxes = axes->empty();
  }
  if (b.rank(data) != 1 || !isa<IntegerType>(elementTypeOf(data)) ||
      (noAxes && b.op.getNoopWithEmptyAxes()))
    return b.refuse("it reduces no list of integers");
  auto elements = getScalarElements(b, loc, data);
  if (!elements || elements->empty())
    return b.refuse("its data are no scalars");
  Value result = elements->front();
  for (Value element : ArrayRef(*elements).drop_front())
    result = b.template createOrFold<ArithOp>(result, element);
  return b.replace(fromElements(b, loc, result, elementTypeOf(data),
                                /*isScalar=*/!b.op.getKeepdims()));
}

/// Split of a list of scalars into lists of known lengths.
LogicalResult lowerScalarSplit(Lowering<onnx::SplitOp> &b) {
  Value data = b.in.getOperands().front();
  if (b.rank(data) != 1 || getConstantElements(data))
    return b.refuse("its data are no scalars");
  auto elements = getScalarElements(b, b.getLoc(), data);
  if (!elements)
    return b.refuse("its data are no scalars");
  if (b.in.getSplit() && !getConstantInts(b.in.getSplit()))
    return b.refuse("its parts' sizes are unknown");
  SmallVector<Value> parts;
  ArrayRef<Value> rest = *elements;
  for (Value result : b.op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || !type.hasStaticShape() ||
        type.getNumElements() > static_cast<int64_t>(rest.size()))
      return b.refuse("its parts' sizes are unknown");
    parts.push_back(fromElements(b, b.getLoc(),
                                 rest.take_front(type.getNumElements()),
                                 elementTypeOf(data)));
    rest = rest.drop_front(type.getNumElements());
  }
  return b.replace(parts);
}

template <typename OpT>
void addView(RewritePatternSet &patterns, const TypeConverter &converter) {
  addSpecialCase<OpT, lowerScalarView<OpT>>(patterns, converter);
}

} // namespace

void populateShapeArithmeticPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  addLowering<onnx::ShapeOp, lowerShape>(patterns, converter);
  addLowering<onnx::SizeOp, lowerSize>(patterns, converter);
  addSpecialCase<onnx::GatherOp, lowerScalarGather>(patterns, converter);
  addSpecialCase<onnx::SliceOp, lowerScalarSlice>(patterns, converter);
  addSpecialCase<onnx::ConcatOp, lowerScalarConcat>(patterns, converter);
  addSpecialCase<onnx::ConstantOfShapeOp, lowerScalarFill>(patterns, converter);
  addSpecialCase<onnx::RangeOp, lowerScalarRange>(patterns, converter);
  addSpecialCase<onnx::SplitOp, lowerScalarSplit>(patterns, converter);
  addView<onnx::SqueezeOp>(patterns, converter);
  addView<onnx::UnsqueezeOp>(patterns, converter);
  addView<onnx::ReshapeOp>(patterns, converter);
  addSpecialCase<onnx::ReduceProdOp,
                 lowerScalarReduce<onnx::ReduceProdOp, arith::MulIOp>>(
      patterns, converter);
  addSpecialCase<onnx::ReduceSumOp,
                 lowerScalarReduce<onnx::ReduceSumOp, arith::AddIOp>>(
      patterns, converter);
}

} // namespace sardonyx
