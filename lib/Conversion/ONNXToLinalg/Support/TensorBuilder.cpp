//===- TensorBuilder.cpp - Builds linalg on tensors tersely ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/TensorBuilder.h"
#include "Support/Checks.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

Value TensorBuilder::index(OpFoldResult size) {
  return asIndex(*this, getLoc(), size);
}

OpFoldResult TensorBuilder::dim(Value tensor, int64_t dim) {
  return getSize(*this, getLoc(), tensor, dim);
}

Sizes TensorBuilder::dims(Value tensor) {
  return getSizes(*this, getLoc(), tensor);
}

OpFoldResult TensorBuilder::plus(OpFoldResult a, OpFoldResult b) {
  return addSizes(*this, getLoc(), a, b);
}

OpFoldResult TensorBuilder::minus(OpFoldResult a, OpFoldResult b) {
  return subSizes(*this, getLoc(), a, b);
}

OpFoldResult TensorBuilder::times(OpFoldResult a, OpFoldResult b) {
  return mulSizes(*this, getLoc(), a, b);
}

OpFoldResult TensorBuilder::floorDiv(OpFoldResult a, OpFoldResult b) {
  return floorDivSizes(*this, getLoc(), a, b);
}

OpFoldResult TensorBuilder::ceilDiv(OpFoldResult a, OpFoldResult b) {
  return ceilDivSizes(*this, getLoc(), a, b);
}

OpFoldResult TensorBuilder::atLeast(OpFoldResult a, int64_t b) {
  if (std::optional<int64_t> x = getConstantIntValue(a))
    return size(std::max(*x, b));
  return arith::MaxSIOp::create(*this, index(a), index(b)).getResult();
}

OpFoldResult TensorBuilder::product(ArrayRef<OpFoldResult> sizes) {
  return productOfSizes(*this, getLoc(), sizes);
}

OpFoldResult TensorBuilder::sameSize(OpFoldResult a, OpFoldResult b,
                                     const Twine &message) {
  std::optional<int64_t> x = getStaticSize(a), y = getStaticSize(b);
  if (x && y && *x != *y) {
    contradict(message + ": " + Twine(*x) + " and " + Twine(*y));
    return {};
  }
  if (x && y)
    return a;
  checkSameSize(*this, getLoc(), a, b, message);
  return x ? a : b;
}

OpFoldResult TensorBuilder::broadcastSize(OpFoldResult a, OpFoldResult b,
                                          const Twine &message) {
  std::optional<int64_t> x = getStaticSize(a), y = getStaticSize(b);
  if (x == 1 || isSameSize(a, b))
    return b;
  if (y == 1)
    return a;
  if (x && y) {
    contradict(message + ": " + Twine(*x) + " and " + Twine(*y));
    return {};
  }
  Value p = index(a), q = index(b), one = index(1);
  Value equal = compare(arith::CmpIPredicate::eq, p, q);
  Value leftIsOne = compare(arith::CmpIPredicate::eq, p, one);
  Value rightIsOne = compare(arith::CmpIPredicate::eq, q, one);
  Value good = arith::OrIOp::create(
      *this, equal, arith::OrIOp::create(*this, leftIsOne, rightIsOne));
  createCheck(*this, getLoc(), good, message + ": {0} and {1}", {a, b});
  // One that is known and not 1 is what the result has.
  if (x || y)
    return x ? a : b;
  return select(leftIsOne, q, p);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value TensorBuilder::scalar(Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(*this, getFloatAttr(type, value));
  return integer(type, static_cast<int64_t>(value));
}

Value TensorBuilder::integer(Type type, int64_t value) {
  if (isa<FloatType>(type))
    return scalar(type, static_cast<double>(value));
  if (isa<IndexType>(type))
    return index(value);
  APInt bits = APInt(64, value, /*isSigned=*/true)
                   .sextOrTrunc(type.getIntOrFloatBitWidth());
  return arith::ConstantOp::create(*this, getIntegerAttr(type, bits));
}

Value TensorBuilder::zero(Type type) {
  return arith::ConstantOp::create(*this, getZeroAttr(type));
}

Value TensorBuilder::lowest(Type type, bool isUnsigned) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(
        *this, getFloatAttr(type, APFloat::getInf(floatType.getFloatSemantics(),
                                                  /*Negative=*/true)));
  unsigned width = type.getIntOrFloatBitWidth();
  APInt bits =
      isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  return arith::ConstantOp::create(*this, getIntegerAttr(type, bits));
}

Value TensorBuilder::add(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::AddFOp::create(*this, a, b);
  return arith::AddIOp::create(*this, a, b);
}

Value TensorBuilder::sub(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::SubFOp::create(*this, a, b);
  return arith::SubIOp::create(*this, a, b);
}

Value TensorBuilder::mul(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::MulFOp::create(*this, a, b);
  return arith::MulIOp::create(*this, a, b);
}

Value TensorBuilder::maximum(Value a, Value b, bool isUnsigned) {
  if (isa<FloatType>(a.getType()))
    return arith::MaximumFOp::create(*this, a, b);
  if (isUnsigned)
    return arith::MaxUIOp::create(*this, a, b);
  return arith::MaxSIOp::create(*this, a, b);
}

Value TensorBuilder::minimum(Value a, Value b, bool isUnsigned) {
  if (isa<FloatType>(a.getType()))
    return arith::MinimumFOp::create(*this, a, b);
  if (isUnsigned)
    return arith::MinUIOp::create(*this, a, b);
  return arith::MinSIOp::create(*this, a, b);
}

Value TensorBuilder::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(*this, predicate, a, b);
}

Value TensorBuilder::greater(Value a, Value b, bool isUnsigned) {
  if (isa<FloatType>(a.getType()))
    return arith::CmpFOp::create(*this, arith::CmpFPredicate::OGT, a, b);
  return compare(
      isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt, a, b);
}

Value TensorBuilder::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(*this, condition, a, b);
}

Value TensorBuilder::convert(Value value, Type type, bool isUnsigned) {
  Type from = value.getType();
  if (from == type)
    return value;
  if (isa<IndexType>(from) && isa<FloatType>(type))
    return convert(arith::IndexCastOp::create(*this, getI64Type(), value),
                   type);
  if (isa<IndexType>(from) || isa<IndexType>(type)) {
    if (isUnsigned)
      return arith::IndexCastUIOp::create(*this, type, value);
    return arith::IndexCastOp::create(*this, type, value);
  }
  return convertScalarToDtype(*this, getLoc(), value, type, isUnsigned);
}

Value TensorBuilder::extract(Value tensor, ValueRange indices) {
  return tensor::ExtractOp::create(*this, tensor, indices);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value TensorBuilder::empty(ArrayRef<OpFoldResult> sizes, Type elementType) {
  return createEmpty(*this, getLoc(), sizes, elementType);
}

Value TensorBuilder::filled(ArrayRef<OpFoldResult> sizes, Value scalar) {
  return createFilled(*this, getLoc(), sizes, scalar);
}

Value TensorBuilder::cast(Value tensor, Type type) {
  return castTo(*this, getLoc(), tensor, type);
}

Value TensorBuilder::collapse(Value tensor,
                              ArrayRef<ReassociationIndices> groups) {
  if (rankedType(tensor).getRank() == static_cast<int64_t>(groups.size()))
    return tensor;
  return tensor::CollapseShapeOp::create(*this, tensor, groups);
}

Value TensorBuilder::expand(Value tensor, ArrayRef<ReassociationIndices> groups,
                            ArrayRef<OpFoldResult> sizes) {
  if (rankedType(tensor).getRank() == static_cast<int64_t>(sizes.size()))
    return tensor;
  SmallVector<int64_t> shape;
  SmallVector<Value> unused;
  dispatchIndexOpFoldResults(sizes, unused, shape);
  // The operation wants a dimension to be dynamic exactly when one of those it
  // expands to is.
  Type element = elementTypeOf(tensor);
  SmallVector<int64_t> collapsed;
  for (const ReassociationIndices &group : groups) {
    int64_t product = 1;
    for (int64_t dim : group)
      product =
          ShapedType::isDynamic(product) || ShapedType::isDynamic(shape[dim])
              ? ShapedType::kDynamic
              : product * shape[dim];
    collapsed.push_back(product);
  }
  tensor = cast(tensor, RankedTensorType::get(collapsed, element));
  auto type = RankedTensorType::get(shape, element);
  return tensor::ExpandShapeOp::create(*this, type, tensor, groups, sizes);
}

Value TensorBuilder::slice(Value tensor, ArrayRef<OpFoldResult> offsets,
                           ArrayRef<OpFoldResult> sizes,
                           ArrayRef<int64_t> dropped) {
  SmallVector<OpFoldResult> strides(offsets.size(), size(1));
  SmallVector<int64_t> shape, kept;
  SmallVector<Value> unused;
  dispatchIndexOpFoldResults(sizes, unused, shape);
  if (isEmptyBox(sizes) ||
      llvm::is_contained(rankedType(tensor).getShape(), 0)) {
    Sizes left;
    for (auto [dim, extent] : llvm::enumerate(sizes))
      if (!llvm::is_contained(dropped, static_cast<int64_t>(dim)))
        left.push_back(extent);
    return empty(left, elementTypeOf(tensor));
  }
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (!llvm::is_contained(dropped, static_cast<int64_t>(dim)))
      kept.push_back(extent);
  auto type = RankedTensorType::get(kept, elementTypeOf(tensor));
  return tensor::ExtractSliceOp::create(*this, type, tensor, offsets, sizes,
                                        strides);
}

Value TensorBuilder::subTensor(Value tensor, int64_t dim, OpFoldResult index) {
  Sizes sizes = dims(tensor);
  Sizes offsets(sizes.size(), size(0));
  offsets[dim] = index;
  sizes[dim] = size(1);
  return slice(tensor, offsets, sizes, {dim});
}

Value TensorBuilder::insert(Value part, Value into,
                            ArrayRef<OpFoldResult> offsets,
                            ArrayRef<OpFoldResult> sizes) {
  return insertSlice(*this, getLoc(), part, into, offsets, sizes);
}

Value TensorBuilder::pad(Value tensor, ArrayRef<OpFoldResult> low,
                         ArrayRef<OpFoldResult> high, Value value) {
  auto isZero = [](OpFoldResult size) { return isZeroInteger(size); };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return tensor;
  return tensor::PadOp::create(*this, Type(), tensor, low, high, value);
}

Value TensorBuilder::transpose(Value tensor, ArrayRef<int64_t> permutation) {
  return sardonyx::transpose(*this, getLoc(), tensor, permutation);
}

Value TensorBuilder::reshape(Value tensor, ArrayRef<OpFoldResult> sizes) {
  return sardonyx::reshape(*this, getLoc(), tensor, sizes);
}

Value TensorBuilder::broadcast(Value tensor, ArrayRef<OpFoldResult> sizes) {
  return broadcastTo(*this, getLoc(), tensor, sizes);
}

Value TensorBuilder::convertElements(Value tensor, Type type, bool isUnsigned) {
  if (elementTypeOf(tensor) == type)
    return tensor;
  return map(tensor, type, [&](TensorBuilder &s, ValueRange args) {
    return SmallVector<Value>{s.convert(args[0], type, isUnsigned)};
  });
}

SmallVector<Value>
TensorBuilder::generic(ValueRange inputs, ValueRange inits,
                       ArrayRef<AffineMap> maps,
                       ArrayRef<utils::IteratorType> iterators, Body body) {
  SmallVector<Type> types(inits.getTypes());
  // No verifier takes the indices of a window that a loop without iterations
  // would read.
  if (llvm::all_of(types, [](Type type) {
        return llvm::is_contained(llvm::cast<RankedTensorType>(type).getShape(),
                                  0);
      }))
    return SmallVector<Value>(inits);
  auto op = linalg::GenericOp::create(
      *this, types, inputs, inits, maps, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange args) {
        TensorBuilder inner(loc, builder);
        linalg::YieldOp::create(inner, body(inner, args));
      });
  return SmallVector<Value>(op.getResults());
}

SmallVector<Value> TensorBuilder::elementwise(ArrayRef<OpFoldResult> sizes,
                                              ValueRange inputs,
                                              ArrayRef<AffineMap> inputMaps,
                                              ArrayRef<Type> elementTypes,
                                              Body body) {
  SmallVector<AffineMap> maps(inputMaps);
  SmallVector<Value> inits;
  for (Type type : elementTypes) {
    inits.push_back(empty(sizes, type));
    maps.push_back(identityMap(sizes.size()));
  }
  SmallVector<utils::IteratorType> iterators(sizes.size(),
                                             utils::IteratorType::parallel);
  // The body never reads what the results held before.
  size_t count = inputs.size();
  return generic(inputs, inits, maps, iterators,
                 [&](TensorBuilder &s, ValueRange args) {
                   return body(s, args.take_front(count));
                 });
}

Value TensorBuilder::map(ValueRange inputs, Type elementType, Body body) {
  Sizes sizes = dims(inputs.front());
  SmallVector<AffineMap> maps(inputs.size(), identityMap(sizes.size()));
  return elementwise(sizes, inputs, maps, {elementType}, body).front();
}

AffineMap TensorBuilder::dimsMap(int64_t rank, ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim : dims)
    exprs.push_back(getAffineDimExpr(dim));
  return AffineMap::get(rank, 0, exprs, getContext());
}

void appendGroup(SmallVectorImpl<ReassociationIndices> &groups, int64_t first,
                 int64_t count) {
  ReassociationIndices group;
  for (int64_t i = 0; i < count; ++i)
    group.push_back(first + i);
  groups.push_back(group);
}

} // namespace sardonyx
