//===- IntegerMatMul.cpp - MatMulInteger and QLinearMatMul ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// A scale or zero point of the left-hand side or the result. One per row is
/// given as [M], which broadcasts as [M,1].
TypedTensor getRowParameter(TensorBuilder &b, Value original, Value converted) {
  if (!converted)
    return {Value(), Type()};
  TypedTensor parameter = getTyped(original, converted);
  RankedTensorType type = rankedType(converted);
  if (type.getRank() == 1 && type.getDimSize(0) != 1)
    parameter.value = unsqueeze(b, b.getLoc(), converted, {1});
  return parameter;
}

TypedTensor getColumnParameter(Value original, Value converted) {
  return converted ? getTyped(original, converted)
                   : TypedTensor{Value(), Type()};
}

/// The sums of the matrix `bytes` along one of its dimensions, as i32.
Value sumBytes(TensorBuilder &b, Value bytes, int64_t along, bool isUnsigned) {
  Type i32 = b.getI32Type(), type = b.getIntegerType(8, !isUnsigned);
  return createReduction(
      b, b.getLoc(), {bytes, type}, {along}, i32, b.zero(i32),
      [](OpBuilder &s, Location loc, ValueRange args) -> Value {
        return arith::AddIOp::create(s, loc, args[1], args[0]);
      });
}

/// Bytes as `wantUnsigned` says, whose numbers differ by 128 from those that
/// they were if that is not what they are.
Value flipSign(TensorBuilder &b, TypedTensor bytes, bool wantUnsigned) {
  if (bytes.onnxElementType.isUnsignedInteger() == wantUnsigned)
    return bytes.value;
  Type i8 = elementTypeOf(bytes.value);
  return b.map(bytes.value, i8,
               [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                 return {
                     arith::XOrIOp::create(s, args[0], s.integer(i8, -128))};
               });
}

/// The i32 product of [M,K] and [K,N] of bytes, by a sum over unsigned times
/// signed bytes u and s. With what is subtracted from each, a and b:
///   sum (u - a)(s - b) = sum u s - a sum s - b sum u + K a b
/// Null if a zero point does not broadcast.
FailureOr<Value> createByteProduct(TensorBuilder &b, TypedTensor lhs,
                                   TypedTensor lhsZero, TypedTensor rhs,
                                   TypedTensor rhsZero) {
  Type i32 = b.getI32Type();
  int64_t depth = rankedType(rhs.value).getDimSize(0);
  Sizes sizes = b.dims(lhs.value);
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, sizes.size() - 1);
  appendGroup(groups, sizes.size() - 1, 1);
  Value left = b.collapse(flipSign(b, lhs, /*wantUnsigned=*/true), groups);
  Value right = flipSign(b, rhs, /*wantUnsigned=*/false);
  int64_t lhsShift = lhs.onnxElementType.isUnsignedInteger() ? 0 : 128;
  int64_t rhsShift = rhs.onnxElementType.isUnsignedInteger() ? -128 : 0;

  sizes.back() = b.dim(right, 1);
  Value product =
      b.generic(
           {left, right}, b.zeros({b.dim(left, 0), sizes.back()}, i32),
           {b.dimsMap(3, {0, 2}), b.dimsMap(3, {2, 1}), b.dimsMap(3, {0, 1})},
           {utils::IteratorType::parallel, utils::IteratorType::parallel,
            utils::IteratorType::reduction},
           [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
             return {s.add(args[2], s.mul(s.convert(args[0], i32, true),
                                          s.convert(args[1], i32)))};
           })
          .front();
  product = b.expand(product, groups, sizes);

  auto mayShift = [](Value zero) {
    return zero && !matchPattern(zero, m_Zero());
  };
  bool hasA = lhsShift || mayShift(lhsZero.value);
  bool hasB = rhsShift || mayShift(rhsZero.value);
  if (!hasA && !hasB)
    return product;
  SmallVector<TypedTensor> inputs = {{product, i32}};
  auto take = [&](TypedTensor tensor) -> int64_t {
    if (!tensor.value)
      return -1;
    inputs.push_back(tensor);
    return inputs.size() - 1;
  };
  int64_t a = take(lhsZero), c = take(rhsZero), columns = -1, rows = -1;
  if (hasA)
    columns = take({sumBytes(b, right, 0, /*isUnsigned=*/false), i32});
  if (hasB) {
    Value sums = sumBytes(b, left, 1, /*isUnsigned=*/true);
    SmallVector<ReassociationIndices> spread(1);
    for (size_t i = 0; i < sizes.size(); ++i)
      spread[0].push_back(i);
    Sizes perRow = sizes;
    perRow.back() = b.size(1);
    rows = take({b.expand(sums, spread, perRow), i32});
  }
  return createElementwise(
      b, b.getLoc(), inputs, i32, rankedType(product),
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        auto zero = [&](int64_t number, TypedTensor tensor, int64_t shift) {
          Value added = s.integer(i32, shift);
          if (number < 0)
            return added;
          return s.add(
              castScalar(s, loc, args[number], tensor.onnxElementType, i32),
              added);
        };
        Value result = args[0];
        Value left = zero(a, lhsZero, lhsShift);
        Value right = zero(c, rhsZero, rhsShift);
        if (columns >= 0)
          result = s.sub(result, s.mul(left, args[columns]));
        if (rows >= 0)
          result = s.sub(result, s.mul(right, args[rows]));
        if (columns >= 0 && rows >= 0)
          result =
              s.add(result, s.mul(s.mul(left, right), s.integer(i32, depth)));
        return result;
      });
}

/// The exact i32 product of differences to zero points.
FailureOr<Value> createIntegerProduct(TensorBuilder &b, TypedTensor lhs,
                                      TypedTensor lhsZero, TypedTensor rhs,
                                      TypedTensor rhsZero) {
  RankedTensorType lhsType = rankedType(lhs.value);
  RankedTensorType rhsType = rankedType(rhs.value);
  if (areBytes(lhs, rhs) && lhsType.getRank() >= 2 && rhsType.getRank() == 2 &&
      rhsType.hasStaticShape()) {
    int64_t last = lhsType.getRank() - 1;
    if (!b.sameSize(b.dim(lhs.value, last), b.dim(rhs.value, 0),
                    "inner sizes of the operands differ"))
      return failure();
    SmallVector<int64_t> shape(lhsType.getShape());
    shape[last] = rhsType.getDimSize(0);
    lhs.value = b.cast(lhs.value, lhsType.clone(shape));
    return createByteProduct(b, lhs, lhsZero, rhs, rhsZero);
  }
  FailureOr<Value> left = subtractZeroPoint(b, lhs, lhsZero, b.getI32Type());
  FailureOr<Value> right = subtractZeroPoint(b, rhs, rhsZero, b.getI32Type());
  if (failed(left) || failed(right))
    return failure();
  return createMatMul(b, *left, *right);
}

LogicalResult lowerMatMulInteger(Lowering<onnx::MatMulIntegerOp> &b) {
  FailureOr<Value> product = createIntegerProduct(
      b, getTyped(b.op.getA(), b.in.getA()),
      getRowParameter(b, b.op.getAZeroPoint(), b.in.getAZeroPoint()),
      getTyped(b.op.getB(), b.in.getB()),
      getColumnParameter(b.op.getBZeroPoint(), b.in.getBZeroPoint()));
  if (failed(product))
    return b.refuse("shapes or zero points do not fit");
  return b.replace(*product);
}

LogicalResult lowerQLinearMatMul(Lowering<onnx::QLinearMatMulOp> &b) {
  Type lhsElement = getOnnxElementType(b.op.getA());
  Type resultElement = getOnnxElementType(b.op.getYZeroPoint());
  if (!isa_and_nonnull<IntegerType>(lhsElement) ||
      !isa_and_nonnull<IntegerType>(resultElement))
    return b.refuseAlways("only integers are quantised");
  FailureOr<Value> product = createIntegerProduct(
      b, getTyped(b.op.getA(), b.in.getA()),
      getRowParameter(b, b.op.getAZeroPoint(), b.in.getAZeroPoint()),
      getTyped(b.op.getB(), b.in.getB()),
      getColumnParameter(b.op.getBZeroPoint(), b.in.getBZeroPoint()));
  if (failed(product))
    return b.refuse("shapes or zero points do not fit");

  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  TypedTensor lhsScale = getRowParameter(b, b.op.getAScale(), b.in.getAScale());
  TypedTensor rhsScale = getColumnParameter(b.op.getBScale(), b.in.getBScale());
  TypedTensor resultScale =
      getRowParameter(b, b.op.getYScale(), b.in.getYScale());
  SmallVector<TypedTensor> inputs{
      {*product, i32},
      getRowParameter(b, b.op.getYZeroPoint(), b.in.getYZeroPoint())};
  // Those of rows and of columns would make a matrix.
  if (isSingleElement(lhsScale.value) && isSingleElement(resultScale.value)) {
    FailureOr<Value> scale =
        createRequantizationScale(b, lhsScale, rhsScale, resultScale);
    if (failed(scale))
      return b.refuse("scales do not broadcast");
    inputs.push_back({*scale, f32});
  } else {
    inputs.append({lhsScale, rhsScale, resultScale});
  }
  FailureOr<Value> result = createElementwise(
      b, b.getLoc(), inputs, resultElement,
      rankedType(*product).clone(convertElementType(resultElement)),
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        Value scale = args[2];
        if (args.size() > 3)
          scale = arith::DivFOp::create(s, s.mul(args[2], args[3]), args[4]);
        Value value = castScalar(s, loc, args[0], i32, f32);
        return requantize(s, loc, s.mul(value, scale), args[1], resultElement);
      });
  if (failed(result))
    return b.refuse("scales do not broadcast");
  return b.replace(*result);
}

} // namespace

void populateIntegerMatMulPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  addLowering<onnx::MatMulIntegerOp, lowerMatMulInteger>(patterns, converter);
  addLowering<onnx::QLinearMatMulOp, lowerQLinearMatMul>(patterns, converter);
}

} // namespace sardonyx
