//===- Normalization.cpp - Normalisation by computed statistics -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each is a chain of generics over the same outer dimensions: reductions along
// the last loop, and elementwise ones that read their results. Statistics are
// in f32 (f64 for f64).
//
//===----------------------------------------------------------------------===//

#include "Reduction/Normalization.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "Reduction/ReductionKinds.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

Type getStatisticsType(Type onnxType) {
  return onnxType.isF64() ? onnxType : Float32Type::get(onnxType.getContext());
}

static int64_t rankOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getRank();
}

/// The computed scalar rounded to what it would be stored as.
static Value roundTo(OpBuilder &b, Location loc, Value computed, Type type) {
  return loadScalar(b, loc, storeScalar(b, loc, computed, type), type);
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

LogicalResult checkChannels(OpBuilder &b, Location loc, Value parameter,
                            Size channels, StringRef name) {
  if (rankOf(parameter) != 1)
    return failure();
  Size length = getSize(b, loc, parameter, 0);
  if (getStaticSize(length) && getStaticSize(channels))
    return success(isSameSize(length, channels));
  checkSameSize(b, loc, length, channels,
                "the length of input '" + name +
                    "' is not the number of channels");
  return success();
}

AffineMap mapWithout(OpBuilder &b, int64_t rank, ArrayRef<int64_t> dropped) {
  SmallVector<AffineExpr> kept;
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(dropped, d))
      kept.push_back(b.getAffineDimExpr(d));
  return AffineMap::get(rank, 0, kept, b.getContext());
}

Value centre(OpBuilder &b, Location loc, TypedTensor input, Value mean,
             ArrayRef<int64_t> axes, Type statistics) {
  int64_t rank = rankOf(input.value);
  return createMapped(
      b, loc, {input, {mean, statistics}},
      {b.getMultiDimIdentityMap(rank), mapWithout(b, rank, axes)},
      getSizes(b, loc, input.value), statistics,
      [&](OpBuilder &n, Location at, ValueRange args) {
        Value x = castScalar(n, at, args[0], input.onnxElementType, statistics);
        return ScalarBuilder(n, at, statistics).sub(x, args[1]);
      });
}

Value reduceMean(OpBuilder &b, Location loc, TypedTensor input,
                 ArrayRef<int64_t> axes, bool ofSquares) {
  Type statistics = getStatisticsType(input.onnxElementType);
  Value zero = createConstant(b, loc, statistics, 0);
  Size size = asSize(b, 1);
  for (int64_t axis : axes)
    size = mulSizes(b, loc, size, getSize(b, loc, input.value, axis));
  Value sum = createReduction(b, loc, input, axes, statistics, zero,
                              [&](OpBuilder &n, Location at, ValueRange args) {
                                ScalarBuilder s(n, at, statistics);
                                Value element = ofSquares
                                                    ? s.mul(args[0], args[0])
                                                    : args[0];
                                return s.add(args[1], element);
                              });
  std::optional<int64_t> known = getStaticSize(size);
  Value count;
  if (!known) {
    count =
        arith::IndexCastOp::create(b, loc, b.getI64Type(), cast<Value>(size));
    count = arith::SIToFPOp::create(b, loc, statistics, count);
  }
  int64_t rank = rankOf(sum);
  return createMapped(
      b, loc, {{sum, statistics}}, {b.getMultiDimIdentityMap(rank)},
      getSizes(b, loc, sum), statistics,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, statistics);
        Value divisor = known ? s.constant(static_cast<double>(*known)) : count;
        return s.div(args[0], divisor);
      });
}

Value inverseDeviation(OpBuilder &b, Location loc, Value variance,
                       Type statistics, double epsilon) {
  return createMapped(b, loc, {{variance, statistics}},
                      {b.getMultiDimIdentityMap(rankOf(variance))},
                      getSizes(b, loc, variance), statistics,
                      [&](OpBuilder &n, Location at, ValueRange args) {
                        ScalarBuilder s(n, at, statistics);
                        Value sum = s.add(args[0], s.constant(epsilon));
                        return s.div(s.constant(1), s.sqrt(sum));
                      });
}

Value scaleAndShift(OpBuilder &b, Location loc, TypedTensor centred,
                    Value inverse, AffineMap inverseMap, TypedTensor scale,
                    AffineMap scaleMap, TypedTensor bias, AffineMap biasMap,
                    Type resultType) {
  Type statistics = centred.onnxElementType;
  int64_t rank = rankOf(centred.value);
  SmallVector<TypedTensor> inputs = {centred, {inverse, statistics}};
  SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(rank), inverseMap};
  if (scale.value) {
    inputs.push_back(scale);
    maps.push_back(scaleMap);
  }
  if (bias.value) {
    inputs.push_back(bias);
    maps.push_back(biasMap);
  }
  return createMapped(
      b, loc, inputs, maps, getSizes(b, loc, centred.value), resultType,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, statistics);
        // Each stage rounds to the result's type, as separate ops would.
        Value y = s.mul(args[0], args[1]);
        y = castScalar(n, at, y, statistics, resultType);
        y = roundTo(n, at, y, resultType);
        unsigned next = 2;
        auto operand = [&](const TypedTensor &tensor) {
          return castScalar(n, at, args[next++], tensor.onnxElementType,
                            resultType);
        };
        if (scale.value && bias.value &&
            getComputeType(resultType) == resultType) {
          Value factor = operand(scale), shift = operand(bias);
          return s.mulAdd(y, factor, shift);
        }
        if (scale.value)
          y = roundTo(n, at, s.mul(y, operand(scale)), resultType);
        if (bias.value)
          y = s.add(y, operand(bias));
        return y;
      });
}

//===----------------------------------------------------------------------===//
// LayerNormalization, RMSNormalization
//===----------------------------------------------------------------------===//

namespace {

/// A scale or bias, and how it is read beside [outer..., row], the input whose
/// normalised dimensions are one.
struct RowOperand {
  TypedTensor tensor;
  AffineMap map;
};

/// The operand as a list over the normalised dimensions, from `axis` on; one
/// that has dimensions before these, too, is broadcast to the whole input.
FailureOr<RowOperand> asRow(TensorBuilder &b, TypedTensor operand,
                            ArrayRef<Size> sizes, int64_t axis) {
  if (!operand.value)
    return RowOperand();
  int64_t rank = rankOf(operand.value), inputRank = sizes.size();
  if (rank > inputRank)
    return failure();
  bool isRow = rank <= inputRank - axis;
  if (isRow)
    sizes = sizes.drop_front(axis);
  Value whole = broadcastTo(b, b.getLoc(), operand.value, sizes);
  operand.value =
      collapseRange(b, b.getLoc(), whole, isRow ? 0 : axis, sizes.size());
  AffineMap row = AffineMap::get(axis + 1, 0, b.getAffineDimExpr(axis));
  return RowOperand{operand, isRow ? row : b.identityMap(axis + 1)};
}

LogicalResult lowerLayerNormalization(Lowering<onnx::LayerNormalizationOp> &b) {
  Location loc = b.getLoc();
  TypedTensor x = getTyped(b.op.getX(), b.in.getX());
  int64_t rank = b.rank(x.value);
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), rank);
  if (failed(axis))
    return b.refuse("its axis is out of range");
  Sizes sizes = b.dims(x.value);
  Type statistics = getStatisticsType(x.onnxElementType);
  TypedTensor rows{collapseRange(b, loc, x.value, *axis, rank),
                   x.onnxElementType};
  TypedTensor biasOperand;
  if (b.op.getB())
    biasOperand = getTyped(b.op.getB(), b.in.getB());
  FailureOr<RowOperand> scale =
      asRow(b, getTyped(b.op.getScale(), b.in.getScale()), sizes, *axis);
  FailureOr<RowOperand> bias = asRow(b, biasOperand, sizes, *axis);
  if (failed(scale) || failed(bias))
    return b.refuse("its scale has more dimensions than its input");
  Value mean = reduceMean(b, loc, rows, *axis, /*ofSquares=*/false);
  Value centred = centre(b, loc, rows, mean, *axis, statistics);
  Value variance = reduceMean(b, loc, {centred, statistics}, *axis,
                              /*ofSquares=*/true);
  Value inverse = inverseDeviation(b, loc, variance, statistics,
                                   toDouble(b.op.getEpsilon()));
  int64_t collapsed = *axis + 1;
  AffineMap outer = mapWithout(b, collapsed, *axis);
  Value y = scaleAndShift(b, loc, {centred, statistics}, inverse, outer,
                          scale->tensor, scale->map, bias->tensor, bias->map,
                          x.onnxElementType);
  SmallVector<Value> results = {b.reshape(y, sizes)};
  auto addStatistic = [&](Value result, Value value) {
    if (!result)
      return;
    Type type = getOnnxElementType(result);
    if (type != statistics)
      value = createMapped(
          b, loc, {{value, statistics}}, {b.identityMap(*axis)}, b.dims(value),
          type, [&](OpBuilder &n, Location at, ValueRange args) {
            return castScalar(n, at, args[0], statistics, type);
          });
    results.push_back(unsqueeze(
        b, loc, value, llvm::to_vector(llvm::seq<int64_t>(*axis, rank))));
  };
  addStatistic(b.op.getMean(), mean);
  addStatistic(b.op.getInvStdDev(), inverse);
  return b.replace(results);
}

LogicalResult lowerRMSNormalization(Lowering<onnx::RMSNormalizationOp> &b) {
  Location loc = b.getLoc();
  TypedTensor x = getTyped(b.op.getX(), b.in.getX());
  Type resultType = getOnnxElementType(b.op.getY());
  int64_t rank = b.rank(x.value);
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), rank);
  if (failed(axis))
    return b.refuse("its axis is out of range");
  Sizes sizes = b.dims(x.value);
  Type statistics = getStatisticsType(x.onnxElementType);
  Value rows = collapseRange(b, loc, x.value, *axis, rank);
  FailureOr<RowOperand> scale =
      asRow(b, getTyped(b.op.getScale(), b.in.getScale()), sizes, *axis);
  if (failed(scale))
    return b.refuse("its scale has more dimensions than its input");
  Value square = reduceMean(b, loc, {rows, x.onnxElementType}, *axis,
                            /*ofSquares=*/true);
  Value inverse =
      inverseDeviation(b, loc, square, statistics, toDouble(b.op.getEpsilon()));
  int64_t collapsed = *axis + 1;
  Type xType = x.onnxElementType;
  Value y = createMapped(
      b, loc, {{rows, xType}, {inverse, statistics}, scale->tensor},
      {b.identityMap(collapsed), mapWithout(b, collapsed, *axis), scale->map},
      b.dims(rows), resultType,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, statistics);
        Value value = castScalar(n, at, args[0], xType, statistics);
        value = castScalar(n, at, s.mul(value, args[1]), statistics, xType);
        value =
            castScalar(n, at, roundTo(n, at, value, xType), xType, resultType);
        Value factor = castScalar(n, at, args[2], scale->tensor.onnxElementType,
                                  resultType);
        return s.mul(value, factor);
      });
  return b.replace(b.reshape(y, sizes));
}

//===----------------------------------------------------------------------===//
// InstanceNormalization, GroupNormalization, MeanVarianceNormalization
//===----------------------------------------------------------------------===//

LogicalResult
lowerInstanceNormalization(Lowering<onnx::InstanceNormalizationOp> &b) {
  Location loc = b.getLoc();
  Value x = b.in.getInput();
  Type type = getOnnxElementType(b.op.getInput());
  int64_t rank = b.rank(x);
  if (rank < 3)
    return b.refuse("it has no spatial dimension");
  Sizes sizes = b.dims(x);
  if (failed(checkChannels(b, loc, b.in.getScale(), sizes[1], "scale")) ||
      failed(checkChannels(b, loc, b.in.getB(), sizes[1], "B")))
    return b.refuse("scale and B must have an element for each channel");
  Type statistics = getStatisticsType(type);
  Value rows = collapseRange(b, loc, x, 2, rank);
  Value mean = reduceMean(b, loc, {rows, type}, 2, false);
  Value centred = centre(b, loc, {rows, type}, mean, 2, statistics);
  Value variance = reduceMean(b, loc, {centred, statistics}, 2, true);
  Value inverse = inverseDeviation(b, loc, variance, statistics,
                                   toDouble(b.op.getEpsilon()));
  AffineMap channel = AffineMap::get(3, 0, b.getAffineDimExpr(1));
  Value y =
      scaleAndShift(b, loc, {centred, statistics}, inverse, mapWithout(b, 3, 2),
                    getTyped(b.op.getScale(), b.in.getScale()), channel,
                    getTyped(b.op.getB(), b.in.getB()), channel, type);
  return b.replace(b.reshape(y, sizes));
}

LogicalResult lowerGroupNormalization(Lowering<onnx::GroupNormalizationOp> &b) {
  Location loc = b.getLoc();
  Value x = b.in.getX();
  Type type = getOnnxElementType(b.op.getX());
  int64_t rank = b.rank(x), groups = b.op.getNumGroups();
  if (rank < 2 || groups < 1)
    return b.refuse("it has no groups of channels");
  Type statistics = getStatisticsType(type);
  Sizes sizes = b.dims(x);
  if (failed(checkChannels(b, loc, b.in.getScale(), sizes[1], "scale")) ||
      failed(checkChannels(b, loc, b.in.getBias(), sizes[1], "bias")))
    return b.refuse("scale and bias must have an element for each channel");
  if (getStaticSize(sizes[1]).value_or(0) % groups != 0)
    return b.refuse("its channels do not divide into the groups");
  Size inGroup = b.floorDiv(sizes[1], b.size(groups));
  Size space = b.product(ArrayRef<Size>(sizes).drop_front(2));
  Size one = b.size(groups);
  // [N, C, ...] is [N, G, C / G, S]; statistics are of the last two.
  Value split = b.reshape(x, Sizes{sizes[0], one, inGroup, space});
  Value rows = collapseRange(b, loc, split, 2, 4);
  Value mean = reduceMean(b, loc, {rows, type}, 2, false);
  Value centred = centre(b, loc, {rows, type}, mean, 2, statistics);
  Value variance = reduceMean(b, loc, {centred, statistics}, 2, true);
  Value inverse = inverseDeviation(b, loc, variance, statistics,
                                   toDouble(b.op.getEpsilon()));
  Value centredSplit = b.reshape(centred, Sizes{sizes[0], one, inGroup, space});
  auto perChannel = [&](Value original, Value converted) -> TypedTensor {
    return {b.reshape(converted, Sizes{one, inGroup}),
            getOnnxElementType(original)};
  };
  SmallVector<AffineExpr> channelDims = {b.getAffineDimExpr(1),
                                         b.getAffineDimExpr(2)};
  AffineMap channel = AffineMap::get(4, 0, channelDims, b.getContext());
  Value y = scaleAndShift(
      b, loc, {centredSplit, statistics}, inverse, mapWithout(b, 4, {2, 3}),
      perChannel(b.op.getScale(), b.in.getScale()), channel,
      perChannel(b.op.getBias(), b.in.getBias()), channel, type);
  return b.replace(b.reshape(y, sizes));
}

LogicalResult
lowerMeanVarianceNormalization(Lowering<onnx::MeanVarianceNormalizationOp> &b) {
  Location loc = b.getLoc();
  TypedTensor x = getTyped(b.op.getX(), b.in.getX());
  Type type = x.onnxElementType, statistics = getStatisticsType(type);
  int64_t rank = b.rank(x.value);
  auto axes = normalizeAxes(b.op.getAxes(), rank);
  if (failed(axes))
    return b.refuse("its axes are not valid");
  Value mean = reduceMean(b, loc, x, *axes, false);
  Value centred = centre(b, loc, x, mean, *axes, statistics);
  Value variance = reduceMean(b, loc, {centred, statistics}, *axes, true);
  Value y = createMapped(
      b, loc, {{centred, statistics}, {variance, statistics}},
      {b.identityMap(rank), mapWithout(b, rank, *axes)}, b.dims(x.value), type,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, statistics);
        Value deviation = s.add(s.sqrt(args[1]), s.constant(1e-9));
        return castScalar(n, at, s.div(args[0], deviation), statistics, type);
      });
  return b.replace(y);
}

} // namespace

void populateNormalizationPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  addLowering<onnx::LayerNormalizationOp, lowerLayerNormalization>(patterns,
                                                                   converter);
  addLowering<onnx::RMSNormalizationOp, lowerRMSNormalization>(patterns,
                                                               converter);
  addLowering<onnx::InstanceNormalizationOp, lowerInstanceNormalization>(
      patterns, converter);
  addLowering<onnx::GroupNormalizationOp, lowerGroupNormalization>(patterns,
                                                                   converter);
  addLowering<onnx::MeanVarianceNormalizationOp,
              lowerMeanVarianceNormalization>(patterns, converter);
  populateSoftmaxPatterns(converter, patterns);
  populateBatchNormPatterns(converter, patterns);
}

} // namespace sardonyx
