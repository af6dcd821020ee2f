//===- Quantization.cpp - QuantizeLinear, DequantizeLinear ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/ScalarBuilder.h"
#include "Support/SmallFloats.h"

#include "dialects/ONNX/ONNX.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;

namespace sardonyx {

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

//===----------------------------------------------------------------------===//
// Parameters: one for all, one for each index along an axis, or one per block
//===----------------------------------------------------------------------===//

namespace {

/// The data and its parameters in a common space of loops.
struct QuantizedSpace {
  Value data;
  SmallVector<Value> parameters;
  AffineMap parameterMap;
  /// The sizes to which the result must be reshaped, if `data` was.
  std::optional<Sizes> original;
};

} // namespace

static bool isSingle(Value parameter) {
  RankedTensorType type = typeOf(parameter);
  return type.hasStaticShape() && type.getNumElements() == 1;
}

/// Repeats each index along `axis` `block` times and cuts to `size`.
static Value repeatAlong(OpBuilder &b, Location loc, Value parameter,
                         int64_t axis, int64_t block, Size size) {
  Sizes sizes = getSizes(b, loc, parameter);
  Sizes wide = sizes;
  wide.insert(wide.begin() + axis + 1, asSize(b, block));
  Value repeated = unsqueeze(b, loc, parameter, {axis + 1});
  repeated = broadcastTo(b, loc, repeated, wide);
  repeated = collapseRange(b, loc, repeated, axis, axis + 2);
  if (isSameSize(getSize(b, loc, repeated, axis), size))
    return repeated;
  Sizes offsets(sizes.size(), asSize(b, 0));
  sizes[axis] = size;
  return slice(b, loc, repeated, offsets, sizes);
}

/// The check that a dimension of a parameter has the size that it must have;
/// fails when it is known not to.
static LogicalResult checkParameter(OpBuilder &b, Location loc, Value parameter,
                                    int64_t dim, Size wanted) {
  Size size = getSize(b, loc, parameter, dim);
  if (getStaticSize(size) && getStaticSize(wanted))
    return success(isSameSize(size, wanted));
  checkSameSize(b, loc, size, wanted,
                "dimension " + Twine(dim) +
                    " of a scale or zero point does not fit the input");
  return success();
}

/// Brings data and parameters together, or says why that is impossible.
static FailureOr<QuantizedSpace> alignParameters(OpBuilder &b, Location loc,
                                                 Value data,
                                                 ArrayRef<Value> parameters,
                                                 int64_t axis, int64_t block) {
  int64_t rank = typeOf(data).getRank();
  MLIRContext *context = b.getContext();
  QuantizedSpace space{data, {}, AffineMap::get(rank, 0, context), {}};
  if (isSingle(parameters.front())) {
    for (Value parameter : parameters) {
      if (typeOf(parameter).hasStaticShape() && !isSingle(parameter))
        return failure();
      space.parameters.push_back(reshape(b, loc, parameter, {}));
    }
    return space;
  }
  FailureOr<int64_t> normal = normalizeAxis(axis, rank);
  if (failed(normal))
    return failure();
  if (block == 0) {
    for (Value parameter : parameters)
      if (typeOf(parameter).getRank() != 1 ||
          failed(checkParameter(b, loc, parameter, 0,
                                getSize(b, loc, data, *normal))))
        return failure();
    space.parameters.assign(parameters.begin(), parameters.end());
    space.parameterMap = AffineMap::get(rank, 0, b.getAffineDimExpr(*normal));
    return space;
  }
  if (block < 0)
    return failure();
  Sizes sizes = getSizes(b, loc, data), blocks = sizes;
  blocks[*normal] = ceilDivSizes(b, loc, sizes[*normal], asSize(b, block));
  for (Value parameter : parameters)
    for (int64_t dim = 0; dim < rank; ++dim)
      if (typeOf(parameter).getRank() != rank ||
          failed(checkParameter(b, loc, parameter, dim, blocks[dim])))
        return failure();
  std::optional<int64_t> known = getStaticSize(sizes[*normal]);
  if (!known || *known % block != 0) {
    for (Value parameter : parameters)
      space.parameters.push_back(
          repeatAlong(b, loc, parameter, *normal, block, sizes[*normal]));
    space.parameterMap = b.getMultiDimIdentityMap(rank);
    return space;
  }
  Sizes split = sizes;
  split[*normal] = asSize(b, *known / block);
  split.insert(split.begin() + *normal + 1, asSize(b, block));
  space.original = sizes;
  space.data = reshape(b, loc, data, split);
  space.parameters.assign(parameters.begin(), parameters.end());
  SmallVector<AffineExpr> exprs;
  for (int64_t d = 0; d <= rank; ++d)
    if (d != *normal + 1)
      exprs.push_back(b.getAffineDimExpr(d));
  space.parameterMap = AffineMap::get(rank + 1, 0, exprs, context);
  return space;
}

static Value finishSpace(OpBuilder &b, Location loc, Value result,
                         const QuantizedSpace &space) {
  return space.original ? reshape(b, loc, result, *space.original) : result;
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

LogicalResult lowerQuantizeLinear(Lowering<onnx::QuantizeLinearOp> &b) {
  Location loc = b.getLoc();
  Type xType = getOnnxElementType(b.op.getX());
  Type scaleType = getOnnxElementType(b.op.getYScale());
  Type result = getOnnxElementType(b.op.getY());
  bool toFloat = isSmallFloat(result) && !isa<Float8E8M0FNUType>(result);
  if ((!isQuantizedInteger(result) && !toFloat) ||
      !convertElementType(scaleType))
    return b.refuseAlways("quantisation to " + debugString(result) +
                          " is not supported");
  SmallVector<Value> parameters = {b.in.getYScale()};
  if (b.op.getYZeroPoint())
    parameters.push_back(b.in.getYZeroPoint());
  FailureOr<QuantizedSpace> space = alignParameters(
      b, loc, b.in.getX(), parameters, b.op.getAxis(), b.op.getBlockSize());
  if (failed(space))
    return b.refuse("its scale's shape doesn't fit");
  SmallVector<TypedTensor> inputs = {{space->data, xType},
                                     {space->parameters[0], scaleType}};
  if (b.op.getYZeroPoint())
    inputs.push_back({space->parameters[1], result});
  int64_t rank = typeOf(space->data).getRank();
  SmallVector<AffineMap> maps(inputs.size(), space->parameterMap);
  maps[0] = b.identityMap(rank);
  // Without a stated precision the quotient has the operands' own.
  bool rounds = b.op.getPrecision() == 0 && xType == scaleType;
  bool saturate = b.op.getSaturate();
  Type stored = toFloat ? Type(b.getI8Type()) : result;
  Type wide = xType.isF64() ? xType : Type(b.getF32Type());
  Value y = createMapped(
      b, loc, inputs, maps, b.dims(space->data), stored,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, wide);
        Value x = castScalar(n, at, args[0], xType, wide);
        Value scale = castScalar(n, at, args[1], scaleType, wide);
        Value quotient = s.div(x, scale);
        if (rounds)
          quotient = loadScalar(n, at, storeScalar(n, at, quotient, scaleType),
                                scaleType);
        Value zero = args.size() > 2 ? args[2] : Value();
        if (toFloat) {
          if (zero)
            quotient = s.add(quotient, castScalar(n, at, zero, result, wide));
          Value value = castScalar(n, at, quotient, wide, result);
          return encodeSmallFloat(n, at, value, result, saturate);
        }
        return requantize(n, at, quotient, zero, result);
      });
  return b.replace(finishSpace(b, loc, y, *space));
}

LogicalResult lowerDequantizeLinear(Lowering<onnx::DequantizeLinearOp> &b) {
  Location loc = b.getLoc();
  Type xType = getOnnxElementType(b.op.getX());
  Type scaleType = getOnnxElementType(b.op.getXScale());
  Type result = getOnnxElementType(b.op.getY());
  if (!convertElementType(xType) || !convertElementType(scaleType) ||
      !convertElementType(result))
    return b.refuseAlways("dequantisation of " + debugString(xType) +
                          " is not supported");
  SmallVector<Value> parameters = {b.in.getXScale()};
  if (b.op.getXZeroPoint())
    parameters.push_back(b.in.getXZeroPoint());
  FailureOr<QuantizedSpace> space = alignParameters(
      b, loc, b.in.getX(), parameters, b.op.getAxis(), b.op.getBlockSize());
  if (failed(space))
    return b.refuse("its scale's shape doesn't fit");
  SmallVector<TypedTensor> inputs = {{space->data, xType},
                                     {space->parameters[0], scaleType}};
  if (b.op.getXZeroPoint())
    inputs.push_back({space->parameters[1], xType});
  int64_t rank = typeOf(space->data).getRank();
  SmallVector<AffineMap> maps(inputs.size(), space->parameterMap);
  maps[0] = b.identityMap(rank);
  Type wide = scaleType.isF64() ? scaleType : Type(b.getF32Type());
  Value y =
      createMapped(b, loc, inputs, maps, b.dims(space->data), result,
                   [&](OpBuilder &n, Location at, ValueRange args) {
                     ScalarBuilder s(n, at, wide);
                     Value x = castScalar(n, at, args[0], xType, wide);
                     if (args.size() > 2)
                       x = s.sub(x, castScalar(n, at, args[2], xType, wide));
                     Value scale = castScalar(n, at, args[1], scaleType, wide);
                     return castScalar(n, at, s.mul(x, scale), wide, result);
                   });
  return b.replace(finishSpace(b, loc, y, *space));
}

/// The least and the largest element of a tensor of f32, in one pass over it.
/// NaN has no place in a range: nothing is asked for it.
std::pair<Value, Value> findRange(OpBuilder &b, Location loc, Value tensor) {
  const int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  if (rank > 1)
    tensor = collapseRange(b, loc, tensor, 0, rank);
  const int64_t loops = std::min<int64_t>(rank, 1);
  Type f32 = b.getF32Type();
  Value lowest = createFilled(b, loc, {}, createHighest(b, loc, f32));
  Value highest = createFilled(b, loc, {}, createLowest(b, loc, f32));
  AffineMap scalar = AffineMap::get(loops, 0, b.getContext());
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::reduction);
  auto range = linalg::GenericOp::create(
      b, loc, TypeRange{lowest.getType(), highest.getType()},
      ValueRange{tensor}, ValueRange{lowest, highest},
      {b.getMultiDimIdentityMap(loops), scalar, scalar}, iterators,
      [&](OpBuilder &n, Location at, ValueRange args) {
        Value low = arith::MinNumFOp::create(n, at, args[1], args[0]);
        Value high = arith::MaxNumFOp::create(n, at, args[2], args[0]);
        linalg::YieldOp::create(n, at, {low, high});
      });
  return {range.getResult(0), range.getResult(1)};
}

/// The range of the data, extended to contain 0, is mapped to 0..255.
LogicalResult
lowerDynamicQuantizeLinear(Lowering<onnx::DynamicQuantizeLinearOp> &b) {
  Location loc = b.getLoc();
  Type f32 = b.getF32Type();
  Type result = getOnnxElementType(b.op.getY());
  TypedTensor x = getTyped(b.op.getX(), b.in.getX());
  if (!x.onnxElementType.isF32() || !isQuantizedInteger(result))
    return b.refuseAlways("only f32 to ui8 has a lowering");
  int64_t rank = typeOf(x.value).getRank();
  auto [lowest, highest] = findRange(b, loc, x.value);
  AffineMap scalar = AffineMap::get(0, 0, b.getContext());
  Value scale =
      createMapped(b, loc, {{lowest, f32}, {highest, f32}}, {scalar, scalar},
                   {}, f32, [&](OpBuilder &n, Location at, ValueRange args) {
                     ScalarBuilder s(n, at, f32);
                     Value zero = s.constant(0);
                     Value low = s.atMost(args[0], zero),
                           high = s.atLeast(args[1], zero);
                     // Of nothing but zeros any scale will do but 0.
                     return s.select(s.eq(low, high), s.constant(1),
                                     s.div(s.sub(high, low), s.constant(255)));
                   });
  Value zeroPoint = createMapped(
      b, loc, {{lowest, f32}, {scale, f32}}, {scalar, scalar}, {}, result,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, f32);
        Value low = s.atMost(args[0], s.constant(0));
        return requantize(n, at, s.neg(s.div(low, args[1])), Value(), result);
      });
  AffineMap same = AffineMap::get(rank, 0, b.getContext());
  Value y = createMapped(
      b, loc, {x, {scale, f32}, {zeroPoint, result}},
      {b.identityMap(rank), same, same}, b.dims(x.value), result,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, f32);
        return requantize(n, at, s.div(args[0], args[1]), args[2], result);
      });
  return b.replace({y, scale, zeroPoint});
}

} // namespace

void populateQuantizationPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  addLowering<onnx::QuantizeLinearOp, lowerQuantizeLinear>(patterns, converter);
  addLowering<onnx::DequantizeLinearOp, lowerDequantizeLinear>(patterns,
                                                               converter);
  addLowering<onnx::DynamicQuantizeLinearOp, lowerDynamicQuantizeLinear>(
      patterns, converter);
}

} // namespace sardonyx
