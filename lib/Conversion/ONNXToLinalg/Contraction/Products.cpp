//===- Products.cpp - Matrix products on tensors --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/ScalarBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace sardonyx {

Type getAccumulatorType(Type elementType) {
  if (auto floatType = dyn_cast<FloatType>(elementType))
    if (floatType.getWidth() < 32)
      return Float32Type::get(elementType.getContext());
  return elementType;
}

Value convertFactor(TensorBuilder &b, Value operand) {
  Type type = elementTypeOf(operand);
  return type.isBF16() ? operand
                       : b.convertElements(operand, getAccumulatorType(type));
}

Value createMatMul2D(TensorBuilder &b, Value lhs, Value rhs) {
  Value init = b.zeros({b.dim(lhs, 0), b.dim(rhs, 1)},
                       getAccumulatorType(elementTypeOf(lhs)));
  return linalg::MatmulOp::create(b, TypeRange{init.getType()},
                                  ValueRange{lhs, rhs}, ValueRange{init})
      .getResult(0);
}

Value multiplyMatrices(TensorBuilder &b, Value lhs, Value rhs) {
  if (rankedType(lhs).getRank() == 2)
    return createMatMul2D(b, lhs, rhs);
  Value init = b.zeros({b.dim(lhs, 0), b.dim(lhs, 1), b.dim(rhs, 2)},
                       getAccumulatorType(elementTypeOf(lhs)));
  return linalg::BatchMatmulOp::create(b, TypeRange{init.getType()},
                                       ValueRange{lhs, rhs}, ValueRange{init})
      .getResult(0);
}

/// All leading dimensions of `tensor` but `kept` trailing ones as one.
static Value collapseLeading(TensorBuilder &b, Value tensor, int64_t kept) {
  int64_t rank = rankedType(tensor).getRank();
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, rank - kept);
  for (int64_t dim = rank - kept; dim < rank; ++dim)
    appendGroup(groups, dim, 1);
  return b.collapse(tensor, groups);
}

/// A right-hand side whose dimensions but the last two are united in `groups`.
/// A transposition of the last two moves behind the reshape, so that it stands
/// right before the product, where packing absorbs it.
static Value collapseRhsBatch(TensorBuilder &b, Value rhs,
                              ArrayRef<ReassociationIndices> groups) {
  auto transposed = stripCast(rhs).getDefiningOp<linalg::TransposeOp>();
  const int64_t rank = rankedType(rhs).getRank(), last = groups.size() - 1;
  if (!transposed || last + 1 == rank)
    return b.collapse(rhs, groups);
  SmallVector<int64_t> permutation(transposed.getPermutation());
  std::swap(permutation[rank - 2], permutation[rank - 1]);
  if (permutation[rank - 1] != rank - 1)
    return b.collapse(rhs, groups);
  Value plain = b.transpose(transposed.getInput(), permutation);
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, last + 1));
  std::swap(order[last - 1], order[last]);
  return b.transpose(b.collapse(plain, groups), order);
}

/// The batch sizes of the product.
static FailureOr<Sizes> broadcastBatch(TensorBuilder &b,
                                       ArrayRef<OpFoldResult> l,
                                       ArrayRef<OpFoldResult> r) {
  Sizes result;
  size_t rank = std::max(l.size(), r.size());
  for (size_t i = 0; i < rank; ++i) {
    bool inL = i + l.size() >= rank, inR = i + r.size() >= rank;
    OpFoldResult x = inL ? l[i + l.size() - rank] : b.size(1);
    OpFoldResult y = inR ? r[i + r.size() - rank] : b.size(1);
    OpFoldResult size = b.broadcastSize(
        x, y, "batch sizes of the operands cannot be broadcast");
    if (!size)
      return failure();
    result.push_back(size);
  }
  return result;
}

static bool isUnit(ArrayRef<OpFoldResult> sizes) {
  return llvm::all_of(
      sizes, [](OpFoldResult size) { return getStaticSize(size) == 1; });
}

using MultiplyMatrices =
    function_ref<Value(TensorBuilder &b, Value lhs, Value rhs)>;

static FailureOr<Value> createMatrixProduct(TensorBuilder &b, Value lhs,
                                            Value rhs,
                                            MultiplyMatrices multiply);

/// How many of the last batch dimensions, but not all of them, are known to
/// have one right-hand side, where both operands have all of them.
static int64_t countShared(ArrayRef<OpFoldResult> lhs,
                           ArrayRef<OpFoldResult> rhs) {
  int64_t shared = 0;
  if (lhs.size() == rhs.size())
    while (shared < int64_t(rhs.size()) &&
           getStaticSize(rhs[rhs.size() - 1 - shared]) == 1)
      ++shared;
  return shared < int64_t(rhs.size()) ? shared : 0;
}

/// The product where the last `shared` batch dimensions have one right-hand
/// side: they are rows of one product.
static FailureOr<Value> multiplyShared(TensorBuilder &b, Value lhs, Value rhs,
                                       int64_t shared,
                                       MultiplyMatrices multiply) {
  const int64_t rank = rankedType(lhs).getRank(), own = rank - 2 - shared;
  SmallVector<ReassociationIndices> ofRows, ofBatch;
  for (int64_t dim = 0; dim < own; ++dim) {
    appendGroup(ofRows, dim, 1);
    appendGroup(ofBatch, dim, dim + 1 == own ? 1 + shared : 1);
  }
  appendGroup(ofRows, own, shared + 1);
  appendGroup(ofRows, rank - 1, 1);
  appendGroup(ofBatch, rank - 2, 1);
  appendGroup(ofBatch, rank - 1, 1);
  FailureOr<Value> product = createMatrixProduct(
      b, b.collapse(lhs, ofRows), collapseRhsBatch(b, rhs, ofBatch), multiply);
  if (failed(product))
    return failure();
  Sizes sizes = b.dims(*product), ofLhs = b.dims(lhs);
  sizes.erase(sizes.begin() + own);
  sizes.insert(sizes.begin() + own, ofLhs.begin() + own, ofLhs.end() - 1);
  return b.expand(*product, ofRows, sizes);
}

/// Product of operands of rank >= 2.
static FailureOr<Value> createMatrixProduct(TensorBuilder &b, Value lhs,
                                            Value rhs,
                                            MultiplyMatrices multiply) {
  Sizes lhsSizes = b.dims(lhs), rhsSizes = b.dims(rhs);
  OpFoldResult rows = lhsSizes[lhsSizes.size() - 2], columns = rhsSizes.back();
  if (!b.sameSize(lhsSizes.back(), rhsSizes[rhsSizes.size() - 2],
                  "inner sizes of the operands differ"))
    return failure();
  ArrayRef<OpFoldResult> lhsBatch = ArrayRef(lhsSizes).drop_back(2);
  ArrayRef<OpFoldResult> rhsBatch = ArrayRef(rhsSizes).drop_back(2);
  if (int64_t shared = countShared(lhsBatch, rhsBatch))
    return multiplyShared(b, lhs, rhs, shared, multiply);
  FailureOr<Sizes> batch = broadcastBatch(b, lhsBatch, rhsBatch);
  if (failed(batch))
    return failure();
  Sizes resultSizes(*batch);
  resultSizes.append({rows, columns});
  if (batch->empty())
    return multiply(b, lhs, rhs);

  // One right-hand side for all: the batches are just more rows.
  if (isUnit(rhsBatch) &&
      (lhsBatch.size() == batch->size() || isUnit(*batch))) {
    SmallVector<ReassociationIndices> groups;
    appendGroup(groups, 0, lhsSizes.size() - 1);
    appendGroup(groups, lhsSizes.size() - 1, 1);
    Value product = multiply(
        b, b.collapse(lhs, groups),
        rhsBatch.empty() ? rhs
                         : b.reshape(rhs, ArrayRef(rhsSizes).take_back(2)));
    SmallVector<ReassociationIndices> resultGroups;
    appendGroup(resultGroups, 0, batch->size() + 1);
    appendGroup(resultGroups, batch->size() + 1, 1);
    return b.expand(product, resultGroups, resultSizes);
  }

  auto widen = [&](Value tensor, ArrayRef<OpFoldResult> own, OpFoldResult d0,
                   OpFoldResult d1) {
    if (llvm::equal(own, *batch, isSameSize))
      return tensor;
    Sizes wide(*batch);
    wide.append({d0, d1});
    return b.broadcast(tensor, wide);
  };
  lhs = widen(lhs, lhsBatch, rows, lhsSizes.back());
  rhs = widen(rhs, rhsBatch, rhsSizes[rhsSizes.size() - 2], columns);
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, batch->size());
  appendGroup(groups, batch->size(), 1);
  appendGroup(groups, batch->size() + 1, 1);
  Value product =
      multiply(b, collapseLeading(b, lhs, 2), collapseRhsBatch(b, rhs, groups));
  return b.expand(product, groups, resultSizes);
}

FailureOr<Value> createMatMul(TensorBuilder &b, Value lhs, Value rhs,
                              MultiplyMatrices multiply) {
  bool lhsVector = rankedType(lhs).getRank() == 1;
  bool rhsVector = rankedType(rhs).getRank() == 1;
  if (rankedType(lhs).getRank() == 0 || rankedType(rhs).getRank() == 0)
    return failure();
  if (lhsVector)
    lhs = unsqueeze(b, b.getLoc(), lhs, {0});
  if (rhsVector)
    rhs = unsqueeze(b, b.getLoc(), rhs, {1});
  FailureOr<Value> product = createMatrixProduct(b, lhs, rhs, multiply);
  if (failed(product) || (!lhsVector && !rhsVector))
    return product;
  int64_t rank = rankedType(*product).getRank();
  SmallVector<int64_t> dropped;
  if (lhsVector)
    dropped.push_back(rank - 2);
  if (rhsVector)
    dropped.push_back(rank - 1);
  return squeeze(b, b.getLoc(), *product, dropped);
}

bool isSingleElement(Value tensor) {
  RankedTensorType type = rankedType(tensor);
  return type.hasStaticShape() && type.getNumElements() == 1;
}

bool isQuantizedInteger(Type type) {
  return isa<IntegerType>(type) && !isBoolType(type) &&
         type.getIntOrFloatBitWidth() <= 16;
}

Value requantize(OpBuilder &b, Location loc, Value scaled, Value zeroPoint,
                 Type onnxType) {
  Type floatType = scaled.getType(), i32 = b.getI32Type();
  if (!isQuantizedInteger(onnxType)) {
    Value rounded = math::RoundEvenOp::create(b, loc, scaled);
    if (zeroPoint)
      rounded = arith::AddFOp::create(
          b, loc, rounded, castScalar(b, loc, zeroPoint, onnxType, floatType));
    return saturateScalar(b, loc, rounded, onnxType);
  }
  ScalarBuilder s(b, loc, floatType);
  unsigned width = onnxType.getIntOrFloatBitWidth();
  bool isUnsigned = isUnsignedType(onnxType);
  Value lowest = s.constant(isUnsigned ? 0 : -std::ldexp(1.0, width - 1));
  Value highest =
      s.constant(std::ldexp(1.0, isUnsigned ? width : width - 1) - 1);
  if (zeroPoint) {
    Value zero = castScalar(b, loc, zeroPoint, onnxType, floatType);
    lowest = s.sub(lowest, zero);
    highest = s.sub(highest, zero);
  }
  Value q = s.select(s.lt(lowest, scaled), scaled, lowest);
  q = s.select(s.lt(q, highest), q, highest);
  q = s.createOrFold<math::RoundEvenOp>(q);
  Value wide = arith::FPToSIOp::create(b, loc, i32, q);
  if (zeroPoint)
    wide = arith::AddIOp::create(b, loc, wide,
                                 castScalar(b, loc, zeroPoint, onnxType, i32));
  return arith::TruncIOp::create(b, loc, getComputeType(onnxType), wide);
}

FailureOr<Value> createRequantizationScale(TensorBuilder &b, TypedTensor lhs,
                                           TypedTensor rhs,
                                           TypedTensor result) {
  Type f32 = b.getF32Type();
  SmallVector<int64_t> shape(rankedType(rhs.value).getShape());
  const int64_t rank = std::max(rankedType(lhs.value).getRank(),
                                rankedType(result.value).getRank());
  while (static_cast<int64_t>(shape.size()) < rank)
    shape.insert(shape.begin(), 1);
  auto type = RankedTensorType::get(shape, f32);
  return createElementwise(
      b, b.getLoc(), {lhs, rhs, result}, f32, type,
      [](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        return arith::DivFOp::create(s, s.mul(args[0], args[1]), args[2]);
      });
}

Value saturateScalar(OpBuilder &b, Location loc, Value value, Type onnxType) {
  Type type = value.getType();
  if (auto intType = dyn_cast<IntegerType>(onnxType);
      intType && intType.getWidth() <= 16) {
    unsigned width = intType.getWidth();
    bool isUnsigned = isUnsignedType(onnxType);
    double low = isUnsigned ? 0 : -std::ldexp(1.0, width - 1);
    double high = std::ldexp(1.0, isUnsigned ? width : width - 1) - 1;
    value = arith::MaximumFOp::create(b, loc, value,
                                      createConstant(b, loc, type, low));
    value = arith::MinimumFOp::create(b, loc, value,
                                      createConstant(b, loc, type, high));
  }
  return castScalar(b, loc, value, type, onnxType);
}

FailureOr<Value> subtractZeroPoint(TensorBuilder &b, TypedTensor value,
                                   TypedTensor zeroPoint, Type type) {
  SmallVector<TypedTensor> inputs{value};
  if (zeroPoint.value)
    inputs.push_back(zeroPoint);
  return createElementwise(
      b, b.getLoc(), inputs, type, rankedType(value.value).clone(type),
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        Type i32 = s.getI32Type();
        Value x = castScalar(s, loc, args[0], value.onnxElementType, i32);
        if (zeroPoint.value)
          x = s.sub(
              x, castScalar(s, loc, args[1], zeroPoint.onnxElementType, i32));
        return s.convert(x, type);
      });
}

bool areBytes(TypedTensor lhs, TypedTensor rhs) {
  return lhs.onnxElementType.isInteger(8) && rhs.onnxElementType.isInteger(8);
}

} // namespace sardonyx
