//===- ByPlace.cpp - Elements that follow from their place ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement/Positions.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

LogicalResult lowerOneHot(Lowering<onnx::OneHotOp> &b) {
  Location loc = b.getLoc();
  Value indices = b.in.getIndices(), values = b.in.getValues();
  Sizes sizes = b.dims(indices);
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), sizes.size() + 1);
  if (failed(axis))
    return b.refuse("axis out of range");
  Type depthType = getOnnxElementType(b.op.getDepth());
  Type indexType = getOnnxElementType(b.op.getIndices());
  auto asInteger = [&](OpBuilder &b, Location at, Value stored, Type from) {
    Type i64 = b.getI64Type();
    Value v = castScalar(b, at, loadScalar(b, at, stored, from), from, i64);
    return toIndex(b, at, v);
  };
  Value depth =
      asInteger(b, loc, getScalar(b, loc, b.in.getDepth()), depthType);
  Type element = elementTypeOf(values);
  sizes.insert(sizes.begin() + *axis, getAsOpFoldResult(depth));
  if (failed(checkLength(b, loc, values, 2, "values")) ||
      failed(checkRange(b, loc, sizes[*axis], 0, kMaxSize,
                        "input 'depth' is impossible")))
    return b.refuse("depth or values are impossible");
  checkSizes(b, loc, sizes, element);
  if (RankedTensorType declared = b.declared())
    sizes = refineSizes(b, sizes, declared);
  Value result = createIndexed(
      b, loc, sizes, element,
      [&](OpBuilder &b, Location at, ValueRange i) -> Value {
        SmallVector<Value> source(i);
        source.erase(source.begin() + *axis);
        Value raw = tensor::ExtractOp::create(b, at, indices, source);
        Value hot = asInteger(b, at, raw, indexType);
        Value zero = createIndex(b, at, 0), one = createIndex(b, at, 1);
        Value negative = compare(b, at, arith::CmpIPredicate::slt, hot, zero);
        Value wrapped = arith::AddIOp::create(b, at, hot, depth);
        hot = arith::SelectOp::create(b, at, negative, wrapped, hot);
        Value on = compare(b, at, arith::CmpIPredicate::eq, hot, i[*axis]);
        Value which = arith::SelectOp::create(b, at, on, one, zero);
        return tensor::ExtractOp::create(b, at, values, which);
      });
  return b.replace(result);
}

/// The number of a diagonal, so that positions can be added to it. None farther
/// off than the bounds has an element.
Value clampDiagonal(OpBuilder &b, Location loc, Value k) {
  k = arith::MinSIOp::create(b, loc, k, createIndex(b, loc, kMaxSize));
  return arith::MaxSIOp::create(b, loc, k, createIndex(b, loc, -kMaxSize));
}

LogicalResult lowerTrilu(Lowering<onnx::TriluOp> &b) {
  Value input = b.in.getInput();
  int64_t rank = b.rank(input);
  if (rank < 2)
    return b.refuse("needs a matrix");
  Location loc = b.getLoc();
  Value k = b.index(int64_t(0));
  if (b.in.getK())
    k = clampDiagonal(b, loc, toIndex(b, loc, getScalar(b, loc, b.in.getK())));
  auto keeps =
      b.op.getUpper() ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle;
  Value result = createIndexed(
      b, loc, b.dims(input), elementTypeOf(input),
      [&](OpBuilder &builder, Location at, ValueRange i) -> Value {
        TensorBuilder s(at, builder);
        Value keep = s.compare(keeps, i[rank - 1], s.add(i[rank - 2], k));
        Value value = s.extract(input, i);
        return s.select(keep, value, s.zero(value.getType()));
      });
  return b.replace(result);
}

LogicalResult lowerEyeLike(Lowering<onnx::EyeLikeOp> &b) {
  Location loc = b.getLoc();
  RankedTensorType declared = b.declared();
  Sizes sizes = b.dims(b.in.getInput());
  if (!declared || sizes.size() != 2)
    return b.refuse("needs a matrix");
  Type element = declared.getElementType();
  int64_t k = std::clamp<int64_t>(b.op.getK(), -kMaxSize, kMaxSize);
  Value result = createIndexed(
      b, loc, sizes, element,
      [&](OpBuilder &b, Location at, ValueRange i) -> Value {
        Value diagonal =
            arith::AddIOp::create(b, at, i[0], createIndex(b, at, k));
        Value on = compare(b, at, arith::CmpIPredicate::eq, i[1], diagonal);
        TypedAttr one = isa<FloatType>(element)
                            ? TypedAttr(b.getFloatAttr(element, 1.0))
                            : TypedAttr(b.getIntegerAttr(element, 1));
        return arith::SelectOp::create(
            b, at, on, arith::ConstantOp::create(b, at, one),
            arith::ConstantOp::create(b, at, b.getZeroAttr(element)));
      });
  return b.replace(result);
}

Value countFloats(OpBuilder &b, Location loc, Value start, Value limit,
                  Value delta) {
  Type type = delta.getType();
  Value zero = createConstant(b, loc, type, 0);
  createCheck(
      b, loc,
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, delta, zero),
      "input 'delta' is zero");
  Value span = arith::SubFOp::create(b, loc, limit, start);
  Value ratio = arith::DivFOp::create(b, loc, span, delta);
  Value up = math::CeilOp::create(b, loc, ratio);
  Value bound = createConstant(b, loc, type, double(kMaxSize));
  // Not a number, and what is no integer, has no length.
  createCheck(
      b, loc,
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE, up, bound),
      "the bounds have no possible number of elements between them");
  up = arith::MinimumFOp::create(b, loc, up, bound);
  up = arith::MaximumFOp::create(b, loc, up, zero);
  return toIndex(b, loc, arith::FPToSIOp::create(b, loc, b.getI64Type(), up));
}

Value countIntegers(OpBuilder &b, Location loc, Value start, Value limit,
                    Value delta) {
  Type i64 = b.getI64Type();
  auto widen = [&](Value v) -> Value {
    if (v.getType() == i64)
      return v;
    return arith::ExtSIOp::create(b, loc, i64, v);
  };
  start = widen(start);
  limit = widen(limit);
  Value span = arith::SubIOp::create(b, loc, limit, start);
  Value step = widen(delta);
  Value zero = createIntConstant(b, loc, i64, 0);
  Value nonZero = compare(b, loc, arith::CmpIPredicate::ne, step, zero);
  createCheck(b, loc, nonZero, "input 'delta' is zero");
  // The difference wrapped around where its sign is wrong.
  Value grows = compare(b, loc, arith::CmpIPredicate::sge, limit, start);
  Value isPositive = compare(b, loc, arith::CmpIPredicate::sge, span, zero);
  createCheck(b, loc,
              compare(b, loc, arith::CmpIPredicate::eq, grows, isPositive),
              "inputs 'start' and 'limit' are too far apart");
  step = arith::SelectOp::create(b, loc, nonZero, step,
                                 createIntConstant(b, loc, i64, 1));
  return toIndex(b, loc, arith::CeilDivSIOp::create(b, loc, span, step));
}

/// max(ceil((limit - start) / delta), 0) elements start + i * delta.
LogicalResult lowerRange(Lowering<onnx::RangeOp> &b) {
  Location loc = b.getLoc();
  Type onnxType = getOnnxElementType(b.op.getStart());
  auto load = [&](Value tensor) {
    return loadScalar(b, loc, getScalar(b, loc, tensor), onnxType);
  };
  Value start = load(b.in.getStart()), limit = load(b.in.getLimit()),
        delta = load(b.in.getDelta());
  Type type = start.getType();
  Value count = isa<FloatType>(type)
                    ? countFloats(b, loc, start, limit, delta)
                    : countIntegers(b, loc, start, limit, delta);
  RankedTensorType declared = b.declared();
  if (!declared)
    return b.refuse("result of unknown rank");
  count = arith::MaxSIOp::create(b, loc, count, createIndex(b, loc, 0));
  Sizes sizes = {Size(count)};
  checkSizes(b, loc, sizes, declared.getElementType());
  sizes = refineSizes(b, sizes, declared);
  Value result = createIndexed(
      b, loc, sizes, declared.getElementType(),
      [&](OpBuilder &b, Location at, ValueRange i) -> Value {
        Value n = arith::IndexCastOp::create(b, at, b.getI64Type(), i[0]);
        Value value;
        if (isa<FloatType>(type)) {
          Value f = arith::SIToFPOp::create(b, at, type, n);
          f = arith::MulFOp::create(b, at, f, delta);
          value = arith::AddFOp::create(b, at, start, f);
        } else {
          Value f = n;
          if (type.getIntOrFloatBitWidth() < 64)
            f = arith::TruncIOp::create(b, at, type, n);
          f = arith::MulIOp::create(b, at, f, delta);
          value = arith::AddIOp::create(b, at, start, f);
        }
        return storeScalar(b, at, value, onnxType);
      });
  return b.replace(result);
}

} // namespace

void populateByPlacePatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  addLowering<onnx::OneHotOp, lowerOneHot>(patterns, converter);
  addLowering<onnx::EyeLikeOp, lowerEyeLike>(patterns, converter);
  addLowering<onnx::RangeOp, lowerRange>(patterns, converter);
  addLowering<onnx::TriluOp, lowerTrilu>(patterns, converter);
}

} // namespace sardonyx
