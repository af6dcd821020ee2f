//===- BatchNorm.cpp - BatchNormalization and LRN -------------------------===//

#include "Normalization.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

static int64_t rankOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getRank();
}

namespace {

/// y = x * a + b with a and b for each channel: they depend on weights only.
struct BatchNormPattern : OnnxPattern<onnx::BatchNormalizationOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::BatchNormalizationOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TypedTensor x = getTyped(op.getX(), adaptor.getX());
    TypedTensor mean = getTyped(op.getInputMean(), adaptor.getInputMean());
    TypedTensor variance = getTyped(op.getInputVar(), adaptor.getInputVar());
    int64_t rank = rankOf(x.value);
    if (rank < 2)
      return refuse(op, "it has no channel dimension");
    Size channels = getSize(rewriter, loc, x.value, 1);
    std::pair<Value, StringRef> parameters[] = {
        {adaptor.getScale(), "scale"},
        {adaptor.getB(), "B"},
        {adaptor.getInputMean(), "input_mean"},
        {adaptor.getInputVar(), "input_var"}};
    for (auto [parameter, name] : parameters)
      if (failed(checkChannels(rewriter, loc, parameter, channels, name)))
        return refuse(op,
                      "its parameters must have an element for each channel");
    SmallVector<Value> results(1);
    if (op.getTrainingMode()) {
      auto [batchMean, batchVariance] = getBatchStatistics(rewriter, loc, x);
      double momentum = toDouble(op.getMomentum());
      if (op.getRunningMean())
        results.push_back(blend(rewriter, loc, mean, batchMean, momentum));
      if (op.getRunningVar())
        results.push_back(
            blend(rewriter, loc, variance, batchVariance, momentum));
      mean = batchMean;
      variance = batchVariance;
    } else {
      results.resize(op->getNumResults());
    }
    results[0] =
        normalize(rewriter, op, x, getTyped(op.getScale(), adaptor.getScale()),
                  getTyped(op.getB(), adaptor.getB()), mean, variance);
    return replace(rewriter, op, results);
  }

private:
  /// Mean and variance of each channel.
  static std::pair<TypedTensor, TypedTensor>
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
  static Value blend(OpBuilder &b, Location loc, TypedTensor old,
                     TypedTensor current, double momentum) {
    Type type = old.onnxElementType;
    AffineMap identity = b.getMultiDimIdentityMap(1);
    return createMapped(b, loc, {old, current}, {identity, identity},
                        getSizes(b, loc, old.value), type,
                        [&](OpBuilder &n, Location at, ValueRange args) {
                          ScalarBuilder s(n, at, type);
                          Value now = castScalar(n, at, args[1],
                                                 current.onnxElementType, type);
                          return s.add(s.mul(args[0], s.constant(momentum)),
                                       s.mul(now, s.constant(1 - momentum)));
                        });
  }

  static Value normalize(OpBuilder &b, onnx::BatchNormalizationOp op,
                         TypedTensor x, TypedTensor scale, TypedTensor bias,
                         TypedTensor mean, TypedTensor variance) {
    Location loc = op.getLoc();
    Type type = x.onnxElementType, statistics = getStatisticsType(type);
    Sizes channels = {getSize(b, loc, scale.value, 0)};
    AffineMap identity = b.getMultiDimIdentityMap(1);
    double epsilon = toDouble(op.getEpsilon());
    Value factor = createMapped(
        b, loc, {scale, variance}, {identity, identity}, channels, statistics,
        [&](OpBuilder &n, Location at, ValueRange args) {
          ScalarBuilder s(n, at, statistics);
          Value a =
              castScalar(n, at, args[0], scale.onnxElementType, statistics);
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
          Value m =
              castScalar(n, at, args[1], mean.onnxElementType, statistics);
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
};

/// x / (bias + alpha / size * sum of the squares of `size` channels)^beta
struct LRNPattern : OnnxPattern<onnx::LRNOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::LRNOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value x = adaptor.getX();
    Type type = getOnnxElementType(op.getX());
    Type statistics = getStatisticsType(type);
    int64_t rank = rankOf(x), size = op.getSize();
    if (rank < 2 || size < 1 || size > INT32_MAX)
      return refuse(op, "it has no channels to sum");
    Value sum = sumSquares(rewriter, loc, x, type, size);
    double alpha = toDouble(op.getAlpha()) / static_cast<double>(size);
    double beta = toDouble(op.getBeta()), bias = toDouble(op.getBias());
    AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
    Value y = createMapped(
        rewriter, loc, {{x, type}, {sum, statistics}}, {identity, identity},
        getSizes(rewriter, loc, x), type,
        [&](OpBuilder &n, Location at, ValueRange args) {
          ScalarBuilder s(n, at, statistics);
          Value value = castScalar(n, at, args[0], type, statistics);
          Value base =
              s.add(s.constant(bias), s.mul(s.constant(alpha), args[1]));
          Value divisor = s.pow(base, s.constant(beta));
          return castScalar(n, at, s.div(value, divisor), statistics, type);
        });
    return replace(rewriter, op, y);
  }

private:
  static Value sumSquares(OpBuilder &b, Location loc, Value x, Type type,
                          int64_t size) {
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
};

} // namespace

void populateBatchNormPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  patterns.add<BatchNormPattern, LRNPattern>(converter, patterns.getContext());
}

} // namespace sardonyx
