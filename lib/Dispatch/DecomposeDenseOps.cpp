//===- DecomposeDenseOps.cpp - Dense operations as loop nests -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecomposeAttention.h"
#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXDECOMPOSEDENSEOPS
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using utils::IteratorType;

/// `value` as `type`, at least as wide.
static Value extend(OpBuilder &b, Location loc, Value value, Type type,
                    bool isUnsigned) {
  if (value.getType() == type)
    return value;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(b, loc, type, value);
  if (isUnsigned)
    return arith::ExtUIOp::create(b, loc, type, value);
  return arith::ExtSIOp::create(b, loc, type, value);
}

/// `sum + lhs * rhs`, extended to the type of `sum`.
static Value multiplyAdd(OpBuilder &b, Location loc, ValueRange args,
                         bool isLhsUnsigned, bool isRhsUnsigned) {
  Type type = args[2].getType();
  Value lhs = extend(b, loc, args[0], type, isLhsUnsigned);
  Value rhs = extend(b, loc, args[1], type, isRhsUnsigned);
  if (isa<FloatType>(type)) {
    Value product = arith::MulFOp::create(b, loc, lhs, rhs);
    return arith::AddFOp::create(b, loc, args[2], product);
  }
  Value product = arith::MulIOp::create(b, loc, lhs, rhs);
  return arith::AddIOp::create(b, loc, args[2], product);
}

static Value decomposeMatmul(ImplicitLocOpBuilder &b, sdx::MatmulOp op) {
  // (b, m, n, k) or (m, n, k).
  const unsigned first = op.isBatched(), loops = first + 3;
  AffineExpr batch = b.getAffineDimExpr(0), m = b.getAffineDimExpr(first);
  AffineExpr n = b.getAffineDimExpr(first + 1),
             k = b.getAffineDimExpr(first + 2);
  auto map = [&](bool isBatched, AffineExpr x, AffineExpr y) {
    SmallVector<AffineExpr> exprs = {x, y};
    if (isBatched)
      exprs.insert(exprs.begin(), batch);
    return AffineMap::get(loops, 0, exprs, b.getContext());
  };
  SmallVector<AffineMap> maps = {map(first, m, k),
                                 op.getTransposed()
                                     ? map(op.isRhsBatched(), n, k)
                                     : map(op.isRhsBatched(), k, n),
                                 map(first, m, n)};
  SmallVector<IteratorType> kinds(loops, IteratorType::parallel);
  kinds.back() = IteratorType::reduction;
  Value operands[] = {op.getLhs(), op.getRhs()};
  return linalg::GenericOp::create(
             b, TypeRange(op.getInit().getType()), operands, op.getInit(), maps,
             kinds,
             [&](OpBuilder &body, Location loc, ValueRange args) {
               linalg::YieldOp::create(body, loc,
                                       multiplyAdd(body, loc, args,
                                                   op.getLhsUnsigned(),
                                                   op.getRhsUnsigned()));
             })
      .getResult(0);
}

/// `tensor` with borders of `value` in its spatial dimensions.
static Value pad(ImplicitLocOpBuilder &b, Value tensor, ArrayRef<int64_t> begin,
                 ArrayRef<OpFoldResult> end, TypedAttr value) {
  if (llvm::all_of(begin, [](int64_t size) { return size == 0; }) &&
      llvm::all_of(end, isZeroInteger))
    return tensor;
  SmallVector<OpFoldResult> inner =
      tensor::getMixedSizes(b, b.getLoc(), tensor);
  SmallVector<OpFoldResult> offsets(inner.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> steps(inner.size(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> outer(inner);
  AffineExpr size = b.getAffineDimExpr(0), behind = b.getAffineDimExpr(1);
  for (auto [i, pads] : llvm::enumerate(llvm::zip_equal(begin, end))) {
    auto [low, high] = pads;
    offsets[i + 2] = b.getIndexAttr(low);
    outer[i + 2] = affine::makeComposedFoldedAffineApply(
        b, b.getLoc(), size + behind + low, {inner[i + 2], high});
  }
  Value empty = tensor::EmptyOp::create(b, outer, value.getType());
  Value scalar = arith::ConstantOp::create(b, value);
  Value filled = linalg::FillOp::create(b, scalar, empty).getResult(0);
  return tensor::InsertSliceOp::create(b, tensor, filled, offsets, inner,
                                       steps);
}

/// `tensor` with dimension `dim`, of `groups` times as much as `size`, as two.
static Value splitDim(ImplicitLocOpBuilder &b, Value tensor, int64_t dim,
                      int64_t groups) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, b.getLoc(), tensor);
  SmallVector<int64_t> shape(type.getShape());
  OpFoldResult inner = affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), b.getAffineDimExpr(0).floorDiv(groups), {sizes[dim]});
  if (!ShapedType::isDynamic(shape[dim]))
    shape[dim] /= groups;
  sizes[dim] = inner;
  sizes.insert(sizes.begin() + dim, b.getIndexAttr(groups));
  shape.insert(shape.begin() + dim, groups);
  SmallVector<ReassociationIndices> reassociation;
  for (int64_t i = 0, next = 0; i < type.getRank(); ++i) {
    reassociation.push_back({next++});
    if (i == dim)
      reassociation.back().push_back(next++);
  }
  return tensor::ExpandShapeOp::create(
      b, RankedTensorType::get(shape, type.getElementType()), tensor,
      reassociation, sizes);
}

/// The loop nest (n, g, f, o..., c, k...) on the padded input.
static Value decomposeConv(ImplicitLocOpBuilder &b, sdx::ConvOp op) {
  const int64_t spatial = op.getNumSpatialDims(), group = op.getGroup();
  Value input = op.getInput();
  Type element = getElementTypeOrSelf(input);
  TypedAttr padding = b.getZeroAttr(element);
  if (auto type = dyn_cast<IntegerType>(element))
    padding = b.getIntegerAttr(type, APInt(type.getWidth(), op.getPadding(),
                                           /*isSigned=*/true,
                                           /*implicitTrunc=*/true));
  Value padded =
      pad(b, input, op.getPadsBegin(),
          getAsIndexOpFoldResult(b.getContext(), op.getPadsEnd()), padding);
  const int64_t dims = 4 + 2 * spatial, channel = 3 + spatial;
  auto dim = [&](int64_t index) { return b.getAffineDimExpr(index); };
  SmallVector<AffineExpr> in = {dim(0), dim(1), dim(channel)};
  SmallVector<AffineExpr> filter = {dim(1), dim(2), dim(channel)};
  SmallVector<AffineExpr> out = {dim(0), dim(1), dim(2)};
  for (int64_t i = 0; i < spatial; ++i) {
    in.push_back(dim(3 + i) * op.getStrides()[i] +
                 dim(channel + 1 + i) * op.getDilations()[i]);
    filter.push_back(dim(channel + 1 + i));
    out.push_back(dim(3 + i));
  }
  SmallVector<AffineMap> maps;
  for (ArrayRef<AffineExpr> exprs : {in, filter, out})
    maps.push_back(AffineMap::get(dims, 0, exprs, b.getContext()));
  SmallVector<IteratorType> kinds(dims, IteratorType::reduction);
  std::fill_n(kinds.begin(), channel, IteratorType::parallel);
  Value operands[] = {splitDim(b, padded, 1, group),
                      splitDim(b, op.getWeights(), 0, group)};
  Value init = splitDim(b, op.getInit(), 1, group);
  Value result = linalg::GenericOp::create(
                     b, TypeRange(init.getType()), operands, init, maps, kinds,
                     [&](OpBuilder &body, Location loc, ValueRange args) {
                       linalg::YieldOp::create(
                           body, loc,
                           multiplyAdd(body, loc, args, op.getInputUnsigned(),
                                       op.getWeightsUnsigned()));
                     })
                     .getResult(0);
  SmallVector<ReassociationIndices> together = {{0}, {1, 2}};
  for (int64_t i = 0; i < spatial; ++i)
    together.push_back({3 + i});
  return tensor::CollapseShapeOp::create(b, op.getInit().getType(), result,
                                         together);
}

/// The input of a pool with `value` before it, and after it as far as windows
/// reach.
template <typename OpT>
static Value padForPool(ImplicitLocOpBuilder &b, OpT op, TypedAttr value) {
  AffineExpr in = b.getAffineDimExpr(0), out = b.getAffineDimExpr(1);
  SmallVector<OpFoldResult> end;
  for (int64_t i = 0; i < op.getNumSpatialDims(); ++i) {
    AffineExpr past = (out - 1) * op.getStrides()[i] + op.getKernelShape()[i] -
                      op.getPadsBegin()[i] - in;
    AffineMap map = AffineMap::get(2, 0, {past, b.getAffineConstantExpr(0)},
                                   b.getContext());
    OpFoldResult sizes[] = {
        tensor::getMixedSize(b, b.getLoc(), op.getInput(), i + 2),
        tensor::getMixedSize(b, b.getLoc(), op.getInit(), i + 2)};
    end.push_back(
        affine::makeComposedFoldedAffineMax(b, b.getLoc(), map, sizes));
  }
  return pad(b, op.getInput(), op.getPadsBegin(), end, value);
}

static Value decomposeMaxPool(ImplicitLocOpBuilder &b, sdx::MaxPoolOp op) {
  ShapedType init = op.getInit().getType();
  Type type = op.getInput().getType().getElementType();
  TypedAttr lowest;
  if (auto floats = dyn_cast<FloatType>(type))
    lowest = b.getFloatAttr(
        floats, APFloat::getInf(floats.getFloatSemantics(), /*Negative=*/true));
  else
    lowest = b.getIntegerAttr(type, op.getIsUnsigned()
                                        ? APInt::getZero(8)
                                        : APInt::getSignedMinValue(8));
  Value padded = padForPool(b, op, lowest);
  Value kernel = tensor::EmptyOp::create(b, op.getKernelShape(), type);
  if (!op.getIsUnsigned())
    return linalg::PoolingNchwMaxOp::create(
               b, TypeRange(init), ValueRange{padded, kernel}, op.getInit(),
               b.getI64TensorAttr(op.getStrides()), b.getI64TensorAttr({1, 1}))
        .getResult(0);
  // linalg has no pooling of unsigned integers with channels first.
  SmallVector<AffineExpr> dims(6), in;
  bindDimsList(b.getContext(), MutableArrayRef(dims));
  in = {dims[0], dims[1], dims[2] * op.getStrides()[0] + dims[4],
        dims[3] * op.getStrides()[1] + dims[5]};
  SmallVector<AffineMap> maps;
  for (ArrayRef<AffineExpr> exprs : {ArrayRef(in), ArrayRef(dims).take_back(2),
                                     ArrayRef(dims).take_front(4)})
    maps.push_back(AffineMap::get(dims.size(), 0, exprs, b.getContext()));
  SmallVector<IteratorType> kinds(4, IteratorType::parallel);
  kinds.append(2, IteratorType::reduction);
  return linalg::GenericOp::create(
             b, TypeRange(init), ValueRange{padded, kernel}, op.getInit(), maps,
             kinds,
             [&](OpBuilder &body, Location loc, ValueRange args) {
               linalg::YieldOp::create(
                   body, loc,
                   Value(arith::MaxUIOp::create(body, loc, args[2], args[0])));
             })
      .getResult(0);
}

/// How many positions of the window at output position `o` lie in the input,
/// of so many, in spatial dimension `dim`.
static Value countSeen(ImplicitLocOpBuilder &b, sdx::AveragePoolOp op,
                       int64_t dim, Value o, Value size) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value first = arith::SubIOp::create(
      b, arith::MulIOp::create(b, o, index(op.getStrides()[dim])),
      index(op.getPadsBegin()[dim]));
  Value last = arith::AddIOp::create(b, first, index(op.getKernelShape()[dim]));
  Value begin = arith::MaxSIOp::create(b, first, index(0));
  Value end = arith::MinSIOp::create(b, last, size);
  return arith::SubIOp::create(b, end, begin);
}

static Value decomposeAveragePool(ImplicitLocOpBuilder &b,
                                  sdx::AveragePoolOp op) {
  ShapedType init = op.getInit().getType();
  Type f32 = b.getF32Type();
  Value padded = padForPool(b, op, b.getZeroAttr(f32));
  Value kernel = tensor::EmptyOp::create(b, op.getKernelShape(), f32);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(f32));
  Value zeros = linalg::FillOp::create(b, zero, op.getInit()).getResult(0);
  Value sums =
      linalg::PoolingNchwSumOp::create(
          b, TypeRange(init), ValueRange{padded, kernel}, zeros,
          b.getI64TensorAttr(op.getStrides()), b.getI64TensorAttr({1, 1}))
          .getResult(0);
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < 2; ++dim)
    sizes.push_back(
        tensor::DimOp::create(b, op.getInput(), dim + 2).getResult());
  AffineMap same = b.getMultiDimIdentityMap(4);
  return linalg::GenericOp::create(
             b, TypeRange(init), sums, op.getInit(), ArrayRef{same, same},
             SmallVector<IteratorType>(4, IteratorType::parallel),
             [&](OpBuilder &builder, Location loc, ValueRange args) {
               ImplicitLocOpBuilder body(loc, builder);
               Value count;
               for (int64_t dim = 0; dim < 2; ++dim) {
                 Value seen =
                     op.getCountIncludePad()
                         ? Value(arith::ConstantIndexOp::create(
                               body, op.getKernelShape()[dim]))
                         : countSeen(body, op, dim,
                                     linalg::IndexOp::create(body, dim + 2),
                                     sizes[dim]);
                 count =
                     count ? arith::MulIOp::create(body, count, seen) : seen;
               }
               count =
                   arith::IndexCastOp::create(body, body.getI64Type(), count);
               count = arith::SIToFPOp::create(body, f32, count);
               Value mean = arith::DivFOp::create(body, args[0], count);
               linalg::YieldOp::create(body, mean);
             })
      .getResult(0);
}

Value sardonyx::extractBits(ImplicitLocOpBuilder &b, Value bytes,
                            SmallVector<Value> indices, Value at,
                            int64_t bits) {
  Type i32 = b.getI32Type();
  Value bit = arith::MulIOp::create(
      b, at, arith::ConstantIndexOp::create(b, bits).getResult());
  Value eight = arith::ConstantIndexOp::create(b, 8);
  indices.push_back(arith::DivUIOp::create(b, bit, eight));
  Value shift =
      arith::IndexCastOp::create(b, i32, arith::RemUIOp::create(b, bit, eight));
  Value byte = arith::ExtUIOp::create(
      b, i32, tensor::ExtractOp::create(b, bytes, indices).getResult());
  Value mask = arith::ConstantIntOp::create(b, i32, (1 << bits) - 1);
  return arith::AndIOp::create(b, arith::ShRUIOp::create(b, byte, shift), mask);
}

Value sardonyx::decodeSmallFloat(ImplicitLocOpBuilder &b, Value code,
                                 FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  const int64_t width = type.getWidth();
  const int64_t mantissa = type.getFPMantissaWidth() - 1;
  const int64_t least = llvm::APFloat::semanticsMinExponent(semantics);
  constexpr int64_t kMantissa = 23, kBias = 127, kWidth = 32;
  Type integers = code.getType();
  auto constant = [&](Type of, Attribute value) -> Value {
    if (auto shaped = dyn_cast<ShapedType>(of))
      return arith::ConstantOp::create(b,
                                       DenseElementsAttr::get(shaped, value));
    return arith::ConstantOp::create(b, cast<TypedAttr>(value));
  };
  auto number = [&](uint32_t value) {
    return constant(integers, b.getI32IntegerAttr(int32_t(value)));
  };
  Type floats = b.getF32Type();
  if (auto shaped = dyn_cast<ShapedType>(integers))
    floats = shaped.clone(floats);
  Value magnitude =
      arith::AndIOp::create(b, code, number((1u << (width - 1)) - 1));
  Value shifted =
      arith::ShLIOp::create(b, magnitude, number(kMantissa - mantissa));
  // Exponent 0 stands for the least one without a leading 1. As if it were one
  // like the others its numbers are y = (2^least + x) / 2, below 2^least: x is
  // the lesser of y and 2 y - 2^least. These are not negative, so their bits
  // compare as they do, and no f32 is subnormal on the way.
  auto rebased = [&](int64_t exponent) {
    return arith::AddIOp::create(b, shifted, number(exponent << kMantissa));
  };
  Value twice = arith::BitcastOp::create(b, floats, rebased(kBias + least));
  Value low = arith::SubFOp::create(
      b, twice,
      constant(floats, b.getF32FloatAttr(std::ldexp(1.0f, int(least)))));
  Value bits =
      arith::MinUIOp::create(b, rebased(kBias + least - 1),
                             arith::BitcastOp::create(b, integers, low));
  if (isa<Float8E5M2Type, Float16Type>(type)) {
    constexpr uint32_t kInfinity = 0x7f800000;
    const uint32_t code = uint32_t(31) << mantissa;
    Value isSpecial = arith::CmpIOp::create(b, arith::CmpIPredicate::uge,
                                            magnitude, number(code));
    bits = arith::SelectOp::create(
        b, isSpecial, arith::OrIOp::create(b, shifted, number(kInfinity)),
        bits);
  }
  Value sign = arith::AndIOp::create(
      b, arith::ShLIOp::create(b, code, number(kWidth - width)),
      number(0x80000000));
  return arith::BitcastOp::create(b, floats,
                                  arith::OrIOp::create(b, bits, sign));
}

Value sardonyx::convertToF32(ImplicitLocOpBuilder &b, Value number) {
  Type f32 = b.getF32Type();
  auto type = dyn_cast<FloatType>(number.getType());
  if (!type)
    return arith::SIToFPOp::create(b, f32, number);
  if (type.getWidth() < 32)
    return arith::ExtFOp::create(b, f32, number);
  if (type.getWidth() > 32)
    return arith::TruncFOp::create(b, f32, number);
  return number;
}

/// The f32 that floats of eight bits, as i8, stand for.
static Value decodeBytes(ImplicitLocOpBuilder &b, Value bytes, FloatType type) {
  constexpr int64_t kNaN = 0x7f;
  auto shape = cast<RankedTensorType>(bytes.getType());
  Value empty = tensor::EmptyOp::create(
      b, tensor::getMixedSizes(b, b.getLoc(), bytes), b.getF32Type());
  AffineMap map = b.getMultiDimIdentityMap(shape.getRank());
  SmallVector<IteratorType> kinds(shape.getRank(), IteratorType::parallel);
  return linalg::GenericOp::create(
             b, TypeRange(empty.getType()), bytes, empty,
             ArrayRef<AffineMap>{map, map}, kinds,
             [&](OpBuilder &body, Location loc, ValueRange args) {
               ImplicitLocOpBuilder s(loc, body);
               Value code = arith::ExtUIOp::create(s, s.getI32Type(), args[0]);
               Value number = decodeSmallFloat(s, code, type);
               if (isa<Float8E4M3FNType>(type)) {
                 auto word = [&](int64_t value) -> Value {
                   return arith::ConstantIntOp::create(s, s.getI32Type(),
                                                       value);
                 };
                 Value isNaN = arith::CmpIOp::create(
                     s, arith::CmpIPredicate::eq,
                     arith::AndIOp::create(s, code, word(kNaN)), word(kNaN));
                 Value nan = arith::ConstantOp::create(
                     s, s.getF32FloatAttr(std::nanf("")));
                 number = arith::SelectOp::create(s, isNaN, nan, number);
               }
               linalg::YieldOp::create(s, number);
             })
      .getResult(0);
}

/// The weights as f32 [N,K], then the product.
static Value decomposeDequant(ImplicitLocOpBuilder &b,
                              sdx::DequantMatmulOp op) {
  const int64_t bits = op.getBits(), block = op.getBlock();
  Type f32 = b.getF32Type();
  Value empty = tensor::EmptyOp::create(
      b, ArrayRef<int64_t>{op.getColumns(), op.getDepth()}, f32);
  Value weights =
      linalg::GenericOp::create(
          b, TypeRange(empty.getType()), ValueRange(), empty,
          b.getMultiDimIdentityMap(2),
          SmallVector<IteratorType>(2, IteratorType::parallel),
          [&](OpBuilder &body, Location loc, ValueRange) {
            ImplicitLocOpBuilder s(loc, body);
            Value n = linalg::IndexOp::create(s, 0);
            Value k = linalg::IndexOp::create(s, 1);
            Value size = arith::ConstantIndexOp::create(s, block);
            Value at = arith::DivUIOp::create(s, k, size);
            Value inBlock = arith::RemUIOp::create(s, k, size);
            Value number =
                extractBits(s, op.getWeights(), {n, at}, inBlock, bits);
            number = op.getElement()
                         ? decodeSmallFloat(s, number,
                                            cast<FloatType>(*op.getElement()))
                         : convertToF32(s, number);
            Value scale =
                convertToF32(s, tensor::ExtractOp::create(s, op.getScales(),
                                                          ValueRange{n, at}));
            Value zero;
            if (Value zeros = op.getZeroPoints()) {
              bool areFloats = isa<FloatType>(getElementTypeOrSelf(zeros));
              zero =
                  areFloats
                      ? convertToF32(s, tensor::ExtractOp::create(
                                            s, zeros, ValueRange{n, at}))
                      : convertToF32(s, extractBits(s, zeros, {n}, at, bits));
            } else if (!op.getElement()) {
              zero = arith::ConstantOp::create(
                  s, s.getF32FloatAttr(float(1 << (bits - 1))));
            }
            if (zero)
              number = arith::SubFOp::create(s, number, zero);
            linalg::YieldOp::create(
                s, arith::MulFOp::create(s, scale, number).getResult());
          })
          .getResult(0);
  Value lhs = op.getLhs();
  if (getElementTypeOrSelf(lhs).isInteger(8))
    lhs = decodeBytes(b, lhs, cast<FloatType>(*op.getElement()));
  auto product = sdx::MatmulOp::create(b, lhs, weights, op.getInit(),
                                       /*transposed=*/true);
  Value result = decomposeMatmul(b, product);
  product.erase();
  return result;
}

Value sardonyx::decomposeToLinalg(OpBuilder &builder,
                                  sdx::DenseOpInterface op) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  if (auto matmul = dyn_cast<sdx::MatmulOp>(*op))
    return decomposeMatmul(b, matmul);
  if (auto dequant = dyn_cast<sdx::DequantMatmulOp>(*op))
    return decomposeDequant(b, dequant);
  if (auto conv = dyn_cast<sdx::ConvOp>(*op))
    return decomposeConv(b, conv);
  if (auto pool = dyn_cast<sdx::MaxPoolOp>(*op))
    return decomposeMaxPool(b, pool);
  if (auto pool = dyn_cast<sdx::AveragePoolOp>(*op))
    return decomposeAveragePool(b, pool);
  if (auto attention = dyn_cast<sdx::AttentionOp>(*op))
    return decomposeAttention(b, attention);
  return nullptr;
}

namespace {

struct DecomposeDenseOpsPass
    : sardonyx::impl::SDXDecomposeDenseOpsBase<DecomposeDenseOpsPass> {
  void runOnOperation() override {
    SmallVector<sdx::DenseOpInterface> ops;
    getOperation().walk([&](sdx::DenseOpInterface op) {
      if (op->getNumResults() == 1)
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (sdx::DenseOpInterface op : ops) {
      rewriter.setInsertionPoint(op);
      if (Value result = decomposeToLinalg(rewriter, op))
        rewriter.replaceOp(op, result);
    }
  }
};

} // namespace
