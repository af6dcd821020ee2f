//===- Softmax.cpp - Softmax, LogSoftmax, Hardmax, LpNormalization --------===//

#include "Normalization.h"
#include "ReductionKinds.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

static int64_t rankOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getRank();
}

namespace {

/// The shape of all loops over a tensor and its reduction along one axis.
struct RowLoops {
  RowLoops(OpBuilder &b, Location loc, Value tensor, int64_t axis)
      : sizes(getSizes(b, loc, tensor)),
        whole(b.getMultiDimIdentityMap(sizes.size())),
        row(mapWithout(b, sizes.size(), axis)) {}

  Sizes sizes;
  AffineMap whole, row;
};

} // namespace

static Value sumAlong(OpBuilder &b, Location loc, TypedTensor input,
                      int64_t axis, ScalarBody body) {
  Type type = input.onnxElementType;
  return createReduction(b, loc, input, axis, type,
                         createConstant(b, loc, type, 0), body);
}

/// The maximum along the axis in the statistics' type. NaN needn't be noticed:
/// it comes out of the exponentials.
static Value maximumAlong(OpBuilder &b, Location loc, TypedTensor input,
                          int64_t axis, Type statistics) {
  return createReduction(
      b, loc, input, axis, statistics, createLowest(b, loc, statistics),
      [&](OpBuilder &n, Location at, ValueRange args) {
        return arith::MaxNumFOp::create(n, at, args[1], args[0]).getResult();
      });
}

/// Softmax of f16, each step rounded as the operator's definition by others
/// (Sub, Exp, ReduceSum, Div) rounds it; ten bits show the difference.
static Value createHalfSoftmax(OpBuilder &b, Location loc, TypedTensor input,
                               int64_t axis) {
  Type half = input.onnxElementType, wide = getStatisticsType(half);
  RowLoops loops(b, loc, input.value, axis);
  Value maximum = maximumAlong(b, loc, input, axis, wide);
  auto rounded = [&](OpBuilder &n, Location at, Value x) {
    return loadScalar(n, at, storeScalar(n, at, x, half), half);
  };
  Value terms = createMapped(
      b, loc, {input, {maximum, wide}}, {loops.whole, loops.row}, loops.sizes,
      half, [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, wide);
        return s.exp(rounded(n, at, s.sub(args[0], args[1])));
      });
  Value sum = createReduction(
      b, loc, {terms, half}, axis, wide, createConstant(b, loc, wide, 0),
      [&](OpBuilder &n, Location at, ValueRange args) {
        return ScalarBuilder(n, at, wide).add(args[1], args[0]);
      });
  return createMapped(
      b, loc, {{terms, half}, {sum, wide}}, {loops.whole, loops.row},
      loops.sizes, half, [&](OpBuilder &n, Location at, ValueRange args) {
        return ScalarBuilder(n, at, wide).div(args[0], rounded(n, at, args[1]));
      });
}

Value createSoftmax(OpBuilder &b, Location loc, TypedTensor input, int64_t axis,
                    bool logarithm) {
  if (input.onnxElementType.isF16() && !logarithm)
    return createHalfSoftmax(b, loc, input, axis);
  Type type = input.onnxElementType, statistics = getStatisticsType(type);
  RowLoops loops(b, loc, input.value, axis);
  Value maximum = maximumAlong(b, loc, input, axis, statistics);
  auto shifted = [&](OpBuilder &n, Location at, ValueRange args) {
    Value x = castScalar(n, at, args[0], type, statistics);
    return ScalarBuilder(n, at, statistics).sub(x, args[1]);
  };
  Value first = createMapped(
      b, loc, {input, {maximum, statistics}}, {loops.whole, loops.row},
      loops.sizes, statistics, [&](OpBuilder &n, Location at, ValueRange args) {
        Value difference = shifted(n, at, args);
        return logarithm ? difference
                         : ScalarBuilder(n, at, statistics).exp(difference);
      });
  Value sum = sumAlong(b, loc, {first, statistics}, axis,
                       [&](OpBuilder &n, Location at, ValueRange args) {
                         ScalarBuilder s(n, at, statistics);
                         Value term = logarithm ? s.exp(args[0]) : args[0];
                         return s.add(args[1], term);
                       });
  // One reciprocal or logarithm for each row.
  Value factor = createMapped(
      b, loc, {{sum, statistics}}, {b.getMultiDimIdentityMap(rankOf(sum))},
      getSizes(b, loc, sum), statistics,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, statistics);
        return logarithm ? s.log(args[0]) : s.div(s.constant(1), args[0]);
      });
  return createMapped(b, loc, {{first, statistics}, {factor, statistics}},
                      {loops.whole, loops.row}, loops.sizes, type,
                      [&](OpBuilder &n, Location at, ValueRange args) {
                        ScalarBuilder s(n, at, statistics);
                        Value y = logarithm ? s.sub(args[0], args[1])
                                            : s.mul(args[0], args[1]);
                        return castScalar(n, at, y, statistics, type);
                      });
}

namespace {

template <typename OpT, bool logarithm>
struct SoftmaxPattern : OnnxPattern<OpT> {
  using OnnxPattern<OpT>::OnnxPattern;
  LogicalResult
  matchAndRewrite(OpT op, typename OnnxPattern<OpT>::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TypedTensor input = getTyped(op.getInput(), adaptor.getInput());
    FailureOr<int64_t> axis = normalizeAxis(op.getAxis(), rankOf(input.value));
    if (failed(axis))
      return refuse(op, "its axis is out of range");
    return this->replace(
        rewriter, op,
        createSoftmax(rewriter, op.getLoc(), input, *axis, logarithm));
  }
};

struct HardmaxPattern : OnnxPattern<onnx::HardmaxOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::HardmaxOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TypedTensor input = getTyped(op.getInput(), adaptor.getInput());
    FailureOr<int64_t> axis = normalizeAxis(op.getAxis(), rankOf(input.value));
    if (failed(axis))
      return refuse(op, "its axis is out of range");
    Value where = createArgReduction(rewriter, loc, input, *axis,
                                     /*isMax=*/true, /*lastOfEqual=*/false);
    RowLoops loops(rewriter, loc, input.value, *axis);
    Type type = input.onnxElementType;
    Value y = createMapped(
        rewriter, loc, {{where, rewriter.getI64Type()}}, {loops.row},
        loops.sizes, type, [&](OpBuilder &n, Location at, ValueRange args) {
          ScalarBuilder s(n, at, type);
          Value index = arith::IndexCastOp::create(
              n, at, n.getI64Type(), linalg::IndexOp::create(n, at, *axis));
          return s.select(s.eq(index, args[0]), s.constant(1), s.constant(0));
        });
    return replace(rewriter, op, y);
  }
};

/// x / (|x|_p along the axis), 0 where that is 0.
struct LpNormPattern : OnnxPattern<onnx::LpNormalizationOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::LpNormalizationOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TypedTensor input = getTyped(op.getInput(), adaptor.getInput());
    Type type = input.onnxElementType, statistics = getStatisticsType(type);
    FailureOr<int64_t> axis = normalizeAxis(op.getAxis(), rankOf(input.value));
    if (failed(axis) || (op.getP() != 1 && op.getP() != 2))
      return refuse(op, "its axis or p is out of range");
    bool square = op.getP() == 2;
    RowLoops loops(rewriter, loc, input.value, *axis);
    Value norm =
        createReduction(rewriter, loc, input, *axis, statistics,
                        createConstant(rewriter, loc, statistics, 0),
                        [&](OpBuilder &n, Location at, ValueRange args) {
                          ScalarBuilder s(n, at, statistics);
                          Value term =
                              square ? s.mul(args[0], args[0]) : s.abs(args[0]);
                          return s.add(args[1], term);
                        });
    Value y = createMapped(
        rewriter, loc, {input, {norm, statistics}}, {loops.whole, loops.row},
        loops.sizes, type, [&](OpBuilder &n, Location at, ValueRange args) {
          ScalarBuilder s(n, at, statistics);
          Value x = castScalar(n, at, args[0], type, statistics);
          Value length = square ? s.sqrt(args[1]) : args[1];
          Value zero = s.constant(0);
          Value quotient = s.select(s.eq(length, zero), zero, s.div(x, length));
          return castScalar(n, at, quotient, statistics, type);
        });
    return replace(rewriter, op, y);
  }
};

} // namespace

void populateSoftmaxPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  patterns.add<SoftmaxPattern<onnx::SoftmaxOp, false>,
               SoftmaxPattern<onnx::LogSoftmaxOp, true>, HardmaxPattern,
               LpNormPattern>(converter, patterns.getContext());
}

} // namespace sardonyx
