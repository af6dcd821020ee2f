//===- WidenIntegerConvs.cpp - Convolutions of bytes by wider numbers -----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f32 holds sums of a few hundred products of bytes exactly. The channels of a
// convolution of one group are cut into as many parts as that asks for, which
// are the groups of one convolution of f32, and the parts' results are added as
// integers. Where there would be many parts, and where a group of several has
// too many products, these are made in i32.
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXWIDENINTEGERCONVS
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using utils::IteratorType;

/// This many products of a difference of bytes and a byte have an f32 sum that
/// is exact in whatever order: 258 * 255^2 < 2^24.
static constexpr int64_t kExactProducts = 258;

/// Into how many equal parts the channels of a group have to be cut so that a
/// sum over a part is exact in f32; 0 when that would not pay.
static int64_t countExactParts(sdx::ConvOp op) {
  const int64_t maxParts = op.getGroup() == 1 ? 16 : 1;
  const int64_t channels = op.getWeights().getType().getDimSize(1);
  if (ShapedType::isDynamic(channels) || channels < 1)
    return 0;
  const int64_t taps = ShapedType::getNumElements(op.getKernelShape());
  for (int64_t parts = 1; parts <= std::min(channels, maxParts); ++parts)
    if (channels % parts == 0 && channels / parts * taps <= kExactProducts)
      return parts;
  return 0;
}

namespace {

class Widener {
public:
  Widener(ImplicitLocOpBuilder &b, sdx::ConvOp op)
      : b(b), op(op), parts(countExactParts(op)),
        type(parts ? Type(b.getF32Type()) : b.getI32Type()) {}

  /// The sums as i32, onto the init.
  Value build() {
    // Pads are zeros of the differences to what they hold.
    Value input = widen(op.getInput(), op.getInputUnsigned(), op.getPadding());
    Value weights = widen(op.getWeights(), op.getWeightsUnsigned(), 0);
    if (parts > 1)
      weights = cutChannels(weights);
    SmallVector<OpFoldResult> sizes = getSizes(op.getInit());
    const OpFoldResult filters = sizes[1];
    sizes[1] = scale(filters, std::max<int64_t>(parts, 1));
    Value sums =
        sdx::ConvOp::create(
            b, input, weights, createZeros(b, b.getLoc(), sizes, type),
            op.getStrides(), op.getDilations(), op.getPadsBegin(),
            op.getPadsEnd(), parts > 1 ? parts : op.getGroup(), /*exact=*/true)
            ->getResult(0);
    if (parts > 1)
      sums = addParts(sums, filters);
    return finish(sums, parts == 1);
  }

private:
  SmallVector<OpFoldResult> getSizes(Value tensor) {
    return tensor::getMixedSizes(b, b.getLoc(), tensor);
  }
  OpFoldResult scale(OpFoldResult size, int64_t factor) {
    return affine::makeComposedFoldedAffineApply(
        b, b.getLoc(), b.getAffineDimExpr(0) * factor, {size});
  }
  Value integer(Value value, bool isUnsigned) {
    if (value.getType().isInteger(32))
      return value;
    if (isUnsigned)
      return arith::ExtUIOp::create(b, b.getI32Type(), value);
    return arith::ExtSIOp::create(b, b.getI32Type(), value);
  }

  /// The differences `tensor` - `subtracted` as numbers of the wider type.
  Value widen(Value tensor, bool isUnsigned, int64_t subtracted) {
    const int64_t rank = cast<ShapedType>(tensor.getType()).getRank();
    Value empty = tensor::EmptyOp::create(b, getSizes(tensor), type);
    SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(rank));
    return build(tensor, empty, maps, [&](ValueRange args) -> Value {
      Value value = integer(args[0], isUnsigned);
      if (subtracted)
        value = arith::SubIOp::create(
            b, value,
            arith::ConstantOp::create(b, b.getI32IntegerAttr(subtracted)));
      return type.isF32() ? Value(arith::SIToFPOp::create(b, type, value))
                          : value;
    });
  }

  /// [OC,C,k...] as [parts * OC,C/parts,k...]: group g has part g of each row.
  Value cutChannels(Value weights) {
    auto whole = cast<RankedTensorType>(weights.getType());
    SmallVector<OpFoldResult> sizes = getSizes(weights);
    SmallVector<int64_t> shape(whole.getShape()), order = {1, 0, 2};
    shape[1] /= parts;
    shape.insert(shape.begin() + 1, parts);
    sizes[1] = b.getIndexAttr(shape[2]);
    sizes.insert(sizes.begin() + 1, b.getIndexAttr(parts));
    SmallVector<ReassociationIndices> split = {{0}, {1, 2}},
                                      merge = {{0, 1}, {2}};
    for (int64_t dim = 3; dim <= whole.getRank(); ++dim) {
      split.push_back({dim});
      merge.push_back({dim});
      order.push_back(dim);
    }
    Value cut = tensor::ExpandShapeOp::create(b, whole.clone(shape), weights,
                                              split, sizes);
    return tensor::CollapseShapeOp::create(
        b, createTranspose(b, b.getLoc(), cut, order), merge);
  }

  /// The i32 sum of [N,parts * OC,o...] over the parts.
  Value addParts(Value sums, OpFoldResult filters) {
    auto whole = cast<RankedTensorType>(sums.getType());
    const int64_t rank = whole.getRank();
    SmallVector<OpFoldResult> sizes = getSizes(sums);
    SmallVector<int64_t> shape(whole.getShape());
    if (!ShapedType::isDynamic(shape[1]))
      shape[1] /= parts;
    shape.insert(shape.begin() + 1, parts);
    sizes[1] = filters;
    Value zeros = createZeros(b, b.getLoc(), sizes, b.getI32Type());
    sizes.insert(sizes.begin() + 1, b.getIndexAttr(parts));
    SmallVector<ReassociationIndices> split = {{0}, {1, 2}};
    // (n, c, o..., part)
    SmallVector<AffineExpr> from = {b.getAffineDimExpr(0),
                                    b.getAffineDimExpr(rank)};
    for (int64_t dim = 1; dim < rank; ++dim)
      from.push_back(b.getAffineDimExpr(dim));
    for (int64_t dim = 3; dim <= rank; ++dim)
      split.push_back({dim});
    Value separate = tensor::ExpandShapeOp::create(b, whole.clone(shape), sums,
                                                   split, sizes);
    AffineMap all = b.getMultiDimIdentityMap(rank + 1);
    SmallVector<AffineMap> maps = {
        AffineMap::get(rank + 1, 0, from, b.getContext()),
        all.dropResult(rank)};
    return build(separate, zeros, maps, [&](ValueRange args) -> Value {
      Value part = arith::FPToSIOp::create(b, b.getI32Type(), args[0]);
      return arith::AddIOp::create(b, args[1], part);
    });
  }

  /// The sums with what the pads hold in all of a filter, and the init.
  Value finish(Value sums, bool isFloat) {
    const int64_t rank = cast<ShapedType>(sums.getType()).getRank();
    AffineMap all = b.getMultiDimIdentityMap(rank);
    SmallVector<Value> inputs = {sums};
    SmallVector<AffineMap> maps = {all};
    if (op.getPadding()) {
      inputs.push_back(sumFilters());
      maps.push_back(AffineMap::get(rank, 0, b.getAffineDimExpr(1)));
    }
    if (!isZeroFilled(op.getInit())) {
      inputs.push_back(op.getInit());
      maps.push_back(all);
    }
    if (inputs.size() == 1 && !isFloat)
      return sums;
    maps.push_back(all);
    Value empty = tensor::EmptyOp::create(b, getSizes(sums), b.getI32Type());
    return build(inputs, empty, maps, [&](ValueRange args) -> Value {
      Value result = args[0];
      if (isFloat)
        result = arith::FPToSIOp::create(b, b.getI32Type(), result);
      args = args.drop_front().drop_back();
      if (op.getPadding()) {
        Value padding =
            arith::ConstantOp::create(b, b.getI32IntegerAttr(op.getPadding()));
        result = arith::AddIOp::create(
            b, result, arith::MulIOp::create(b, args[0], padding));
        args = args.drop_front();
      }
      for (Value init : args)
        result = arith::AddIOp::create(b, result, init);
      return result;
    });
  }

  /// The sum of the weights of each filter, as i32.
  Value sumFilters() {
    const int64_t rank = op.getWeights().getType().getRank();
    SmallVector<AffineMap> maps = {
        b.getMultiDimIdentityMap(rank),
        AffineMap::get(rank, 0, b.getAffineDimExpr(0))};
    Value zeros = createZeros(b, b.getLoc(), getSizes(op.getWeights())[0],
                              b.getI32Type());
    return build(op.getWeights(), zeros, maps, [&](ValueRange args) -> Value {
      return arith::AddIOp::create(b, args[1],
                                   integer(args[0], op.getWeightsUnsigned()));
    });
  }

  /// A generic whose loops over dimensions that its result lacks are
  /// reductions.
  Value build(ValueRange inputs, Value init, ArrayRef<AffineMap> maps,
              function_ref<Value(ValueRange)> body) {
    SmallVector<IteratorType> kinds(maps[0].getNumDims(),
                                    IteratorType::reduction);
    for (AffineExpr result : maps.back().getResults())
      kinds[cast<AffineDimExpr>(result).getPosition()] = IteratorType::parallel;
    return linalg::GenericOp::create(
               b, TypeRange(init.getType()), inputs, init, maps, kinds,
               [&](OpBuilder &inner, Location loc, ValueRange args) {
                 OpBuilder::InsertionGuard guard(b);
                 b.setInsertionPoint(inner.getInsertionBlock(),
                                     inner.getInsertionPoint());
                 Value result = body(args);
                 linalg::YieldOp::create(b, result);
               })
        .getResult(0);
  }

  ImplicitLocOpBuilder &b;
  sdx::ConvOp op;
  /// Parts of the channels; 0: products are made in i32.
  const int64_t parts;
  const Type type;
};

struct WidenIntegerConvsPass
    : sardonyx::impl::SDXWidenIntegerConvsBase<WidenIntegerConvsPass> {
  void runOnOperation() override {
    SmallVector<sdx::ConvOp> convs;
    getOperation().walk([&](sdx::ConvOp op) {
      if (op.isOfBytes() && op.hasPureTensorSemantics())
        convs.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (sdx::ConvOp op : convs) {
      ImplicitLocOpBuilder b(op.getLoc(), op);
      rewriter.replaceOp(op, Widener(b, op).build());
    }
  }
};

} // namespace
