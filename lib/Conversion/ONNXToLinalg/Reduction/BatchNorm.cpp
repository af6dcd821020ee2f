//===- BatchNorm.cpp - BatchNormalization and LRN -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reduction/Normalization.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

static int64_t rankOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getRank();
}

namespace {

/// Mean and variance of each channel.
std::pair<TypedTensor, TypedTensor>
getBatchStatistics(OpBuilder &b, Location loc, TypedTensor x) {
  SmallVector<int64_t> axes;
  for (int64_t d = 0; d < rankOf(x.value); ++d)
    if (d != 1)
      axes.push_back(d);
  Type statistics = getStatisticsType(x.onnxElementType);
  Value mean = reduceMean(b, loc, x, axes, /*ofSquares=*/false);
  Value centred = centre(b, loc, x, mean, axes, statistics);
  Value variance =
      reduceMean(b, loc, {centred, statistics}, axes, /*ofSquares=*/true);
  return {{mean, statistics}, {variance, statistics}};
}

/// old * momentum + current * (1 - momentum), in the old one's type.
Value blend(OpBuilder &b, Location loc, TypedTensor old, TypedTensor current,
            double momentum) {
  Type type = old.onnxElementType;
  AffineMap identity = b.getMultiDimIdentityMap(1);
  return createMapped(
      b, loc, {old, current}, {identity, identity}, getSizes(b, loc, old.value),
      type, [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, type);
        Value now = castScalar(n, at, args[1], current.onnxElementType, type);
        return s.add(s.mul(args[0], s.constant(momentum)),
                     s.mul(now, s.constant(1 - momentum)));
      });
}

Value normalize(OpBuilder &b, onnx::BatchNormalizationOp op, TypedTensor x,
                TypedTensor scale, TypedTensor bias, TypedTensor mean,
                TypedTensor variance) {
  Location loc = op.getLoc();
  Type type = x.onnxElementType, statistics = getStatisticsType(type);
  Sizes channels = {getSize(b, loc, scale.value, 0)};
  AffineMap identity = b.getMultiDimIdentityMap(1);
  double epsilon = toDouble(op.getEpsilon());
  Value factor = createMapped(
      b, loc, {scale, variance}, {identity, identity}, channels, statistics,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, statistics);
        Value a = castScalar(n, at, args[0], scale.onnxElementType, statistics);
        Value v =
            castScalar(n, at, args[1], variance.onnxElementType, statistics);
        return s.div(a, s.sqrt(s.add(v, s.constant(epsilon))));
      });
  Value offset = createMapped(
      b, loc, {bias, mean, {factor, statistics}},
      {identity, identity, identity}, channels, statistics,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, statistics);
        Value shift =
            castScalar(n, at, args[0], bias.onnxElementType, statistics);
        Value m = castScalar(n, at, args[1], mean.onnxElementType, statistics);
        return s.sub(shift, s.mul(m, args[2]));
      });
  int64_t rank = rankOf(x.value);
  AffineMap channel = AffineMap::get(rank, 0, b.getAffineDimExpr(1));
  return createMapped(b, loc, {x, {factor, statistics}, {offset, statistics}},
                      {b.getMultiDimIdentityMap(rank), channel, channel},
                      getSizes(b, loc, x.value), type,
                      [&](OpBuilder &n, Location at, ValueRange args) {
                        ScalarBuilder s(n, at, statistics);
                        Value value =
                            castScalar(n, at, args[0], type, statistics);
                        Value y = s.mulAdd(value, args[1], args[2]);
                        return castScalar(n, at, y, statistics, type);
                      });
}

/// y = x * a + b with a and b for each channel: they depend on weights only. A
/// list is a batch of one channel.
LogicalResult lowerBatchNormalization(Lowering<onnx::BatchNormalizationOp> &b) {
  Location loc = b.getLoc();
  TypedTensor x = getTyped(b.op.getX(), b.in.getX());
  TypedTensor mean = getTyped(b.op.getInputMean(), b.in.getInputMean());
  TypedTensor variance = getTyped(b.op.getInputVar(), b.in.getInputVar());
  Sizes sizes = b.dims(x.value);
  if (sizes.empty())
    return b.refuse("it has no channel dimension");
  if (sizes.size() == 1)
    x.value = unsqueeze(b, loc, x.value, 1);
  Size channels = b.dim(x.value, 1);
  std::pair<Value, StringRef> parameters[] = {
      {b.in.getScale(), "scale"},
      {b.in.getB(), "B"},
      {b.in.getInputMean(), "input_mean"},
      {b.in.getInputVar(), "input_var"}};
  for (auto [parameter, name] : parameters)
    if (failed(checkChannels(b, loc, parameter, channels, name)))
      return b.refuse("its parameters must have an element for each channel");
  SmallVector<Value> results(1);
  if (b.op.getTrainingMode()) {
    auto [batchMean, batchVariance] = getBatchStatistics(b, loc, x);
    double momentum = toDouble(b.op.getMomentum());
    if (b.op.getRunningMean())
      results.push_back(blend(b, loc, mean, batchMean, momentum));
    if (b.op.getRunningVar())
      results.push_back(blend(b, loc, variance, batchVariance, momentum));
    mean = batchMean;
    variance = batchVariance;
  } else {
    results.resize(b.op->getNumResults());
  }
  results[0] = normalize(b, b.op, x, getTyped(b.op.getScale(), b.in.getScale()),
                         getTyped(b.op.getB(), b.in.getB()), mean, variance);
  if (sizes.size() == 1)
    results[0] = b.reshape(results[0], sizes);
  return b.replace(results);
}

Value sumSquares(OpBuilder &b, Location loc, Value x, Type type, int64_t size) {
  Type statistics = getStatisticsType(type);
  int64_t rank = rankOf(x);
  Sizes sizes = getSizes(b, loc, x), low, high;
  Size none = asSize(b, 0);
  low.assign(rank, none);
  high.assign(rank, none);
  low[1] = asSize(b, (size - 1) / 2);
  high[1] = asSize(b, size - 1 - (size - 1) / 2);
  SmallVector<int64_t> shape(cast<RankedTensorType>(x.getType()).getShape());
  if (!ShapedType::isDynamic(shape[1]))
    shape[1] += size - 1;
  Type stored = cast<RankedTensorType>(x.getType()).getElementType();
  Value zero = createConstant(b, loc, stored, 0);
  Value padded =
      tensor::PadOp::create(b, loc, RankedTensorType::get(shape, stored), x,
                            low, high, zero, /*nofold=*/false);
  SmallVector<AffineExpr> write, read;
  for (int64_t d = 0; d < rank; ++d)
    write.push_back(b.getAffineDimExpr(d));
  read = write;
  read[1] = read[1] + b.getAffineDimExpr(rank);
  SmallVector<AffineMap> maps = {
      AffineMap::get(rank + 1, 0, read, b.getContext()),
      AffineMap::get(rank + 1, 0, b.getAffineDimExpr(rank), b.getContext()),
      AffineMap::get(rank + 1, 0, write, b.getContext())};
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  // The window only carries the number of summed channels.
  Value window = createEmpty(b, loc, {asSize(b, size)}, statistics);
  Value dest =
      createFilled(b, loc, sizes, createConstant(b, loc, statistics, 0));
  return linalg::GenericOp::create(
             b, loc, TypeRange{dest.getType()}, ValueRange{padded, window},
             ValueRange{dest}, maps, iterators,
             [&](OpBuilder &n, Location at, ValueRange args) {
               ScalarBuilder s(n, at, statistics);
               Value value = loadScalar(n, at, args[0], type);
               value = castScalar(n, at, value, type, statistics);
               Value next = s.add(args[2], s.mul(value, value));
               linalg::YieldOp::create(n, at, next);
             })
      .getResult(0);
}

/// x / (bias + alpha / size * sum of the squares of `size` channels)^beta
LogicalResult lowerLRN(Lowering<onnx::LRNOp> &b) {
  Location loc = b.getLoc();
  Value x = b.in.getX();
  Type type = getOnnxElementType(b.op.getX());
  Type statistics = getStatisticsType(type);
  int64_t rank = b.rank(x), size = b.op.getSize();
  if (rank < 2 || size < 1 || size > INT32_MAX)
    return b.refuse("it has no channels to sum");
  Value sum = sumSquares(b, loc, x, type, size);
  double alpha = toDouble(b.op.getAlpha()) / static_cast<double>(size);
  double beta = toDouble(b.op.getBeta()), bias = toDouble(b.op.getBias());
  AffineMap identity = b.identityMap(rank);
  Value y = createMapped(
      b, loc, {{x, type}, {sum, statistics}}, {identity, identity}, b.dims(x),
      type, [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, statistics);
        Value value = castScalar(n, at, args[0], type, statistics);
        Value base = s.add(s.constant(bias), s.mul(s.constant(alpha), args[1]));
        Value divisor = s.pow(base, s.constant(beta));
        return castScalar(n, at, s.div(value, divisor), statistics, type);
      });
  return b.replace(y);
}

} // namespace

void populateBatchNormPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  addLowering<onnx::BatchNormalizationOp, lowerBatchNormalization>(patterns,
                                                                   converter);
  addLowering<onnx::LRNOp, lowerLRN>(patterns, converter);
}

} // namespace sardonyx
