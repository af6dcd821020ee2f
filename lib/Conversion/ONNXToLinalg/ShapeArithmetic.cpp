//===- ShapeArithmetic.cpp - Small tensors as scalars ---------------------===//
//
// Models compute shapes with the same ops as data. These patterns keep such
// tensors as scalars (tensor.from_elements), so that sizes are plain arithmetic
// and no kernel runs for them. They come before the general patterns and match
// only operands that exist as scalars already.
//
//===----------------------------------------------------------------------===//

#include "ShapeArithmetic.h"
#include "Checks.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

static constexpr unsigned short kBeforeOthers = 10;

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

static Type elementTypeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
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

struct ShapePattern : OnnxPattern<onnx::ShapeOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::ShapeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = dyn_cast<RankedTensorType>(adaptor.getData().getType());
    if (!type)
      return refuse(op, "the operand's rank is unknown");
    int64_t rank = type.getRank();
    auto clamp = [&](int64_t position) {
      if (position < 0)
        position += rank;
      return std::clamp<int64_t>(position, 0, rank);
    };
    int64_t start = clamp(op.getStart());
    int64_t end = clamp(op.getEnd().value_or(rank));
    SmallVector<Value> elements;
    for (int64_t dim = start; dim < end; ++dim)
      elements.push_back(sizeAsInt(
          rewriter, loc, getSize(rewriter, loc, adaptor.getData(), dim)));
    return replace(
        rewriter, op,
        fromElements(rewriter, loc, elements, rewriter.getI64Type()));
  }
};

struct SizePattern : OnnxPattern<onnx::SizeOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::SizeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    if (!isa<RankedTensorType>(adaptor.getData().getType()))
      return refuse(op, "the operand's rank is unknown");
    Sizes sizes = getSizes(rewriter, loc, adaptor.getData());
    Value count =
        sizeAsInt(rewriter, loc, productOfSizes(rewriter, loc, sizes));
    return replace(rewriter, op,
                   fromElements(rewriter, loc, count, rewriter.getI64Type(),
                                /*isScalar=*/true));
  }
};

/// Gather from scalars at constant places.
struct GatherPattern : OnnxPattern<onnx::GatherOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::GatherOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value data = adaptor.getData(), indices = adaptor.getIndices();
    auto places = getConstantInts(indices, kMaxScalarised);
    if (!places || rankOf(indices) > 1 || rankOf(data) != 1)
      return refuse(op, "it gathers no scalars");
    auto elements = getScalarElements(rewriter, op.getLoc(), data);
    if (!elements)
      return refuse(op, "its data are no scalars");
    SmallVector<Value> picked;
    int64_t count = elements->size();
    for (int64_t place : *places) {
      FailureOr<int64_t> normal = normalizeAxis(place, count);
      if (failed(normal))
        return refuse(op, "an index is out of range");
      picked.push_back((*elements)[*normal]);
    }
    return replace(rewriter, op,
                   fromElements(rewriter, op.getLoc(), picked,
                                elementTypeOf(data), rankOf(indices) == 0));
  }
};

struct SlicePattern : OnnxPattern<onnx::SliceOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::SliceOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value data = adaptor.getData();
    if (rankOf(data) != 1)
      return refuse(op, "its data are no list of scalars");
    auto starts = getConstantInts(adaptor.getStarts());
    auto ends = getConstantInts(adaptor.getEnds());
    std::optional<SmallVector<int64_t>> steps = SmallVector<int64_t>{1};
    if (Value operand = adaptor.getSteps())
      steps = getConstantInts(operand);
    if (!starts || !ends || !steps || starts->size() != 1 ||
        ends->size() != 1 || steps->size() != 1 || steps->front() == 0)
      return refuse(op, "its bounds are not constant");
    auto elements = getScalarElements(rewriter, op.getLoc(), data);
    if (!elements)
      return refuse(op, "its data are no scalars");
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
    return replace(
        rewriter, op,
        fromElements(rewriter, op.getLoc(), picked, elementTypeOf(data)));
  }
};

struct ConcatPattern : OnnxPattern<onnx::ConcatOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::ConcatOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> all;
    Type element;
    for (Value input : adaptor.getOperands()) {
      if (rankOf(input) != 1)
        return refuse(op, "an operand is no list");
      auto elements = getScalarElements(rewriter, op.getLoc(), input);
      if (!elements)
        return refuse(op, "an operand has no scalars");
      llvm::append_range(all, *elements);
      element = elementTypeOf(input);
    }
    if (static_cast<int64_t>(all.size()) > kMaxScalarised)
      return refuse(op, "the result is too long");
    return replace(rewriter, op,
                   fromElements(rewriter, op.getLoc(), all, element));
  }
};

/// Squeeze, Unsqueeze, Reshape and Flatten between scalars and lists.
template <typename OpT> struct ViewPattern : OnnxPattern<OpT> {
  using OnnxPattern<OpT>::OnnxPattern;
  LogicalResult
  matchAndRewrite(OpT op, typename OnnxPattern<OpT>::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value data = adaptor.getOperands().front();
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type || type.getRank() > 1)
      return refuse(op, "the result is no list");
    // A shape that only the run knows may be wrong.
    if constexpr (std::is_same_v<OpT, onnx::ReshapeOp>)
      if (!getConstantInts(adaptor.getShape()))
        return refuse(op, "its shape is not constant");
    auto elements = getScalarElements(rewriter, op.getLoc(), data);
    if (!elements || (type.getRank() == 0 && elements->size() != 1))
      return refuse(op, "its data are no scalars");
    // Constants are viewed in place by the general patterns.
    if (getConstantElements(data))
      return refuse(op, "its data are constant");
    return this->replace(rewriter, op,
                         fromElements(rewriter, op.getLoc(), *elements,
                                      elementTypeOf(data),
                                      type.getRank() == 0));
  }
};

struct ConstantOfShapePattern : OnnxPattern<onnx::ConstantOfShapeOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::ConstantOfShapeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto shape = getConstantInts(adaptor.getInput());
    RankedTensorType type = getConvertedType(op.getOutput());
    if (!shape || shape->size() > 1 || !type ||
        (!shape->empty() &&
         (shape->front() > kMaxScalarised || shape->front() < 0)))
      return refuse(op, "its shape is no small constant");
    Type element = type.getElementType();
    if (!isa<IntegerType>(element))
      return refuse(op, "it has no integer elements");
    int64_t number = 0;
    if (auto value = dyn_cast_or_null<DenseIntElementsAttr>(op.getValueAttr());
        value && value.getNumElements() == 1)
      number = isBoolType(value.getElementType())
                   ? (*value.value_begin<APInt>()).getZExtValue()
                   : (*value.value_begin<APInt>()).getSExtValue();
    else if (op.getValueAttr())
      return refuse(op, "its value can't be read");
    SmallVector<Value> elements(
        shape->empty() ? 1 : shape->front(),
        createIntConstant(rewriter, loc, element, number));
    return replace(
        rewriter, op,
        fromElements(rewriter, loc, elements, element, shape->empty()));
  }
};

/// A short range whose length is known.
struct RangePattern : OnnxPattern<onnx::RangeOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::RangeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType type = getConvertedType(op.getOutput());
    auto start = getConstantInts(adaptor.getStart());
    auto limit = getConstantInts(adaptor.getLimit());
    auto delta = getConstantInts(adaptor.getDelta());
    if (!type || !start || !limit || !delta || start->size() != 1 ||
        limit->size() != 1 || delta->size() != 1 || delta->front() == 0)
      return refuse(op, "its bounds are not constant");
    int64_t step = delta->front();
    SmallVector<Value> elements;
    for (int64_t i = start->front();
         step > 0 ? i < limit->front() : i > limit->front();) {
      if (static_cast<int64_t>(elements.size()) == kMaxScalarised)
        return refuse(op, "it is too long");
      elements.push_back(
          createIntConstant(rewriter, loc, type.getElementType(), i));
      if (llvm::AddOverflow(i, step, i))
        break;
    }
    return replace(
        rewriter, op,
        fromElements(rewriter, loc, elements, type.getElementType()));
  }
};

/// The product or sum of a list of scalars.
template <typename OpT, typename ArithOp>
struct ReducePattern : OnnxPattern<OpT> {
  using OnnxPattern<OpT>::OnnxPattern;
  LogicalResult
  matchAndRewrite(OpT op, typename OnnxPattern<OpT>::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value data = adaptor.getData();
    bool noAxes = !op.getAxes();
    if (op.getAxes()) {
      auto axes = getConstantInts(op.getAxes());
      if (!axes)
        return refuse(op, "its axes are not constant");
      noAxes = axes->empty();
    }
    if (rankOf(data) != 1 || !isa<IntegerType>(elementTypeOf(data)) ||
        (noAxes && op.getNoopWithEmptyAxes()))
      return refuse(op, "it reduces no list of integers");
    auto elements = getScalarElements(rewriter, loc, data);
    if (!elements || elements->empty())
      return refuse(op, "its data are no scalars");
    Value result = elements->front();
    for (Value element : ArrayRef(*elements).drop_front())
      result = rewriter.createOrFold<ArithOp>(loc, result, element);
    return this->replace(rewriter, op,
                         fromElements(rewriter, loc, result,
                                      elementTypeOf(data),
                                      /*isScalar=*/!op.getKeepdims()));
  }
};

/// Split of a list of scalars into lists of known lengths.
struct SplitPattern : OnnxPattern<onnx::SplitOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::SplitOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value data = adaptor.getOperands().front();
    if (rankOf(data) != 1 || getConstantElements(data))
      return refuse(op, "its data are no scalars");
    auto elements = getScalarElements(rewriter, op.getLoc(), data);
    if (!elements)
      return refuse(op, "its data are no scalars");
    if (adaptor.getSplit() && !getConstantInts(adaptor.getSplit()))
      return refuse(op, "its parts' sizes are unknown");
    SmallVector<Value> parts;
    ArrayRef<Value> rest = *elements;
    for (Value result : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (!type || !type.hasStaticShape() ||
          type.getNumElements() > static_cast<int64_t>(rest.size()))
        return refuse(op, "its parts' sizes are unknown");
      parts.push_back(fromElements(rewriter, op.getLoc(),
                                   rest.take_front(type.getNumElements()),
                                   elementTypeOf(data)));
      rest = rest.drop_front(type.getNumElements());
    }
    return replace(rewriter, op, parts);
  }
};

} // namespace

void populateShapeArithmeticPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<ShapePattern, SizePattern, GatherPattern, SlicePattern,
               ConcatPattern, ConstantOfShapePattern, RangePattern,
               SplitPattern, ViewPattern<onnx::SqueezeOp>,
               ViewPattern<onnx::UnsqueezeOp>, ViewPattern<onnx::ReshapeOp>,
               ReducePattern<onnx::ReduceProdOp, arith::MulIOp>,
               ReducePattern<onnx::ReduceSumOp, arith::AddIOp>>(
      converter, patterns.getContext(), kBeforeOthers);
}

} // namespace sardonyx
