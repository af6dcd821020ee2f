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

/// The sums of `bytes` along their dimension `along`, which becomes 1, as i32:
/// of a transpose the sums are moved, not the bytes.
Value sumBytes(TensorBuilder &b, Value bytes, int64_t along, bool isUnsigned) {
  if (auto transpose = bytes.getDefiningOp<linalg::TransposeOp>()) {
    ArrayRef<int64_t> order = transpose.getPermutation();
    return b.transpose(
        sumBytes(b, transpose.getInput(), order[along], isUnsigned), order);
  }
  Type i32 = b.getI32Type(), type = b.getIntegerType(8, !isUnsigned);
  Value sums =
      createReduction(b, b.getLoc(), {bytes, type}, {along}, i32, b.zero(i32),
                      [](OpBuilder &s, Location loc, ValueRange args) -> Value {
                        return arith::AddIOp::create(s, loc, args[1], args[0]);
                      });
  return unsqueeze(b, b.getLoc(), sums, {along});
}

/// The bytes whose numbers differ by 128 from those of `bytes`. What only moves
/// them comes after, next to the product.
Value flipSign(TensorBuilder &b, Value bytes) {
  Operation *op = bytes.getDefiningOp();
  if (isa_and_present<tensor::CastOp, tensor::ExpandShapeOp,
                      tensor::CollapseShapeOp, linalg::TransposeOp>(op)) {
    Value flipped = flipSign(b, op->getOperand(0));
    if (auto transpose = dyn_cast<linalg::TransposeOp>(op))
      return b.transpose(flipped, transpose.getPermutation());
    IRMapping mapping;
    mapping.map(op->getOperand(0), flipped);
    return b.clone(*op, mapping)->getResult(0);
  }
  Type i8 = elementTypeOf(bytes);
  return b.map(
      bytes, i8, [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
        return {arith::XOrIOp::create(s, args[0], s.integer(i8, -128))};
      });
}

/// Bytes as `wantUnsigned` says, and by how much their numbers are larger than
/// those that they were.
std::pair<Value, int64_t> withSign(TensorBuilder &b, TypedTensor bytes,
                                   bool wantUnsigned) {
  if (bytes.onnxElementType.isUnsignedInteger() == wantUnsigned)
    return {bytes.value, 0};
  return {flipSign(b, bytes.value), wantUnsigned ? 128 : -128};
}

/// [M,K] x [K,N] or [B,M,K] x [B,K,N] of unsigned by signed bytes, in i32.
Value multiplyBytes(TensorBuilder &b, Value lhs, Value rhs) {
  Type i32 = b.getI32Type();
  int64_t batch = rankedType(lhs).getRank() - 2;
  int64_t rank = batch + 3, m = batch, n = batch + 1, k = batch + 2;
  Sizes sizes = b.dims(lhs);
  sizes.back() = b.dim(rhs, batch + 1);
  auto map = [&](int64_t row, int64_t column) {
    SmallVector<int64_t> dims = {row, column};
    if (batch)
      dims.insert(dims.begin(), 0);
    return b.dimsMap(rank, dims);
  };
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  return b
      .generic({lhs, rhs}, b.zeros(sizes, i32),
               {map(m, k), map(k, n), map(m, n)}, loops,
               [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                 return {s.add(args[2], s.mul(s.convert(args[0], i32, true),
                                              s.convert(args[1], i32)))};
               })
      .front();
}

/// A zero point of bytes of which so much was added to each (`shift`).
struct ShiftedZero {
  TypedTensor zero;
  int64_t shift;

  /// Whether it is sure to be 0.
  bool isZero() const {
    DenseElementsAttr known;
    if (!zero.value)
      return shift == 0;
    return matchPattern(zero.value, m_Constant(&known)) && known.isSplat() &&
           getNumber(known.getSplatValue<APInt>()) + shift == 0;
  }

private:
  int64_t getNumber(const APInt &bits) const {
    return zero.onnxElementType.isUnsignedInteger()
               ? static_cast<int64_t>(bits.getZExtValue())
               : bits.getSExtValue();
  }
};

/// The i32 product of bytes, by a sum over unsigned times signed bytes u and s.
/// With what is subtracted from each, a and b:
///   sum (u - a)(s - b) = sum u s - a sum s - b sum u + K a b
/// Null if a zero point does not broadcast.
FailureOr<Value> createByteProduct(TensorBuilder &b, TypedTensor lhs,
                                   TypedTensor lhsZero, TypedTensor rhs,
                                   TypedTensor rhsZero) {
  Type i32 = b.getI32Type();
  auto [left, lhsShift] = withSign(b, lhs, /*wantUnsigned=*/true);
  auto [right, rhsShift] = withSign(b, rhs, /*wantUnsigned=*/false);
  FailureOr<Value> product = createMatMul(b, left, right, multiplyBytes);
  if (failed(product))
    return failure();
  ShiftedZero zeroOfLeft{lhsZero, lhsShift}, zeroOfRight{rhsZero, rhsShift};
  const bool hasA = !zeroOfLeft.isZero(), hasB = !zeroOfRight.isZero();
  if (!hasA && !hasB)
    return product;
  SmallVector<TypedTensor> inputs = {{*product, i32}};
  auto take = [&](TypedTensor tensor) -> int64_t {
    if (!tensor.value)
      return -1;
    inputs.push_back(tensor);
    return inputs.size() - 1;
  };
  int64_t a = hasA ? take(lhsZero) : -1, c = hasB ? take(rhsZero) : -1;
  int64_t columns = -1, rows = -1;
  if (hasA)
    columns = take({sumBytes(b, right, rankedType(right).getRank() - 2,
                             /*isUnsigned=*/false),
                    i32});
  if (hasB)
    rows = take({sumBytes(b, left, rankedType(left).getRank() - 1,
                          /*isUnsigned=*/true),
                 i32});
  Value depth;
  if (hasA && hasB) {
    OpFoldResult size = b.dim(left, rankedType(left).getRank() - 1);
    std::optional<int64_t> known = getStaticSize(size);
    depth = known ? b.integer(i32, *known) : b.convert(cast<Value>(size), i32);
  }
  return createElementwise(
      b, b.getLoc(), inputs, i32, rankedType(*product),
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        auto zero = [&](int64_t number, const ShiftedZero &of) {
          Value added = s.integer(i32, of.shift);
          if (number < 0)
            return added;
          return s.add(
              castScalar(s, loc, args[number], of.zero.onnxElementType, i32),
              added);
        };
        Value result = args[0];
        Value left = zero(a, zeroOfLeft), right = zero(c, zeroOfRight);
        if (columns >= 0)
          result = s.sub(result, s.mul(left, args[columns]));
        if (rows >= 0)
          result = s.sub(result, s.mul(right, args[rows]));
        if (depth)
          result = s.add(result, s.mul(s.mul(left, right), depth));
        return result;
      });
}

/// The exact i32 product of differences to zero points.
FailureOr<Value> createIntegerProduct(TensorBuilder &b, TypedTensor lhs,
                                      TypedTensor lhsZero, TypedTensor rhs,
                                      TypedTensor rhsZero) {
  RankedTensorType lhsType = rankedType(lhs.value);
  RankedTensorType rhsType = rankedType(rhs.value);
  if (areBytes(lhs, rhs) && lhsType.getRank() >= 2 && rhsType.getRank() >= 2) {
    int64_t k = lhsType.getRank() - 1, ofRight = rhsType.getRank() - 2;
    if (!b.sameSize(b.dim(lhs.value, k), b.dim(rhs.value, ofRight),
                    "inner sizes of the operands differ"))
      return failure();
    // Both say how many values of k there are if one does.
    auto refine = [&](Value &value, int64_t dim, int64_t size) {
      SmallVector<int64_t> shape(rankedType(value).getShape());
      if (ShapedType::isDynamic(size) || shape[dim] == size)
        return;
      shape[dim] = size;
      value = b.cast(value, rankedType(value).clone(shape));
    };
    refine(lhs.value, k, rhsType.getDimSize(ofRight));
    refine(rhs.value, ofRight, lhsType.getDimSize(k));
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
