//===- Softmax.cpp - Softmax, LogSoftmax, Hardmax, LpNormalization --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reduction/Normalization.h"
#include "Reduction/ReductionKinds.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

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
LogicalResult lowerSoftmax(Lowering<OpT> &b) {
  TypedTensor input = getTyped(b.op.getInput(), b.in.getInput());
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), b.rank(input.value));
  if (failed(axis))
    return b.refuse("its axis is out of range");
  return b.replace(createSoftmax(b, b.getLoc(), input, *axis, logarithm));
}

LogicalResult lowerHardmax(Lowering<onnx::HardmaxOp> &b) {
  Location loc = b.getLoc();
  TypedTensor input = getTyped(b.op.getInput(), b.in.getInput());
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), b.rank(input.value));
  if (failed(axis))
    return b.refuse("its axis is out of range");
  Value where = createArgReduction(b, loc, input, *axis,
                                   /*isMax=*/true, /*lastOfEqual=*/false);
  RowLoops loops(b, loc, input.value, *axis);
  Type type = input.onnxElementType;
  Value y = createMapped(
      b, loc, {{where, b.getI64Type()}}, {loops.row}, loops.sizes, type,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, type);
        Value index = arith::IndexCastOp::create(
            n, at, n.getI64Type(), linalg::IndexOp::create(n, at, *axis));
        return s.select(s.eq(index, args[0]), s.constant(1), s.constant(0));
      });
  return b.replace(y);
}

/// x / (|x|_p along the axis), 0 where that is 0.
LogicalResult lowerLpNormalization(Lowering<onnx::LpNormalizationOp> &b) {
  Location loc = b.getLoc();
  TypedTensor input = getTyped(b.op.getInput(), b.in.getInput());
  Type type = input.onnxElementType, statistics = getStatisticsType(type);
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), b.rank(input.value));
  if (failed(axis) || (b.op.getP() != 1 && b.op.getP() != 2))
    return b.refuse("its axis or p is out of range");
  bool square = b.op.getP() == 2;
  RowLoops loops(b, loc, input.value, *axis);
  Value norm = createReduction(
      b, loc, input, *axis, statistics, createConstant(b, loc, statistics, 0),
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, statistics);
        Value term = square ? s.mul(args[0], args[0]) : s.abs(args[0]);
        return s.add(args[1], term);
      });
  Value y = createMapped(
      b, loc, {input, {norm, statistics}}, {loops.whole, loops.row},
      loops.sizes, type, [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, statistics);
        Value x = castScalar(n, at, args[0], type, statistics);
        Value length = square ? s.sqrt(args[1]) : args[1];
        Value zero = s.constant(0);
        Value quotient = s.select(s.eq(length, zero), zero, s.div(x, length));
        return castScalar(n, at, quotient, statistics, type);
      });
  return b.replace(y);
}

} // namespace

void populateSoftmaxPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  addLowering<onnx::SoftmaxOp, lowerSoftmax<onnx::SoftmaxOp, false>>(patterns,
                                                                     converter);
  addLowering<onnx::LogSoftmaxOp, lowerSoftmax<onnx::LogSoftmaxOp, true>>(
      patterns, converter);
  addLowering<onnx::HardmaxOp, lowerHardmax>(patterns, converter);
  addLowering<onnx::LpNormalizationOp, lowerLpNormalization>(patterns,
                                                             converter);
}

} // namespace sardonyx
