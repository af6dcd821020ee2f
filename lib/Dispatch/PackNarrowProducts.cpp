//===- PackNarrowProducts.cpp - Products of bytes and of bf16, packed -----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// out[m,n] += extui(lhs[m,k]) * extsi(rhs[k,n]) in i32 and the product of bf16
// in f32 become packed products, for which as many values of k as fill 32 bits
// lie together in the right-hand side.
//
//===----------------------------------------------------------------------===//

#include "Utils.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace sardonyx;

/// Whether the body is out + extui(first) * extsi(second).
static bool isByteProduct(linalg::GenericOp op) {
  Block *body = op.getBody();
  auto add =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddIOp>();
  if (!add || body->getOperations().size() != 5)
    return false;
  auto product = add.getRhs().getDefiningOp<arith::MulIOp>();
  if (!product || add.getLhs() != body->getArgument(2))
    return false;
  auto left = product.getLhs().getDefiningOp<arith::ExtUIOp>();
  auto right = product.getRhs().getDefiningOp<arith::ExtSIOp>();
  return left && right && left.getIn() == body->getArgument(0) &&
         right.getIn() == body->getArgument(1);
}

/// `matrix` [K,N] as [ceil(N / Nt), ceil(K / G), Nt * G], zero past its end,
/// where G elements have 32 bits.
static Value packGroups(OpBuilder &b, Location loc, Value matrix) {
  auto type = cast<RankedTensorType>(matrix.getType());
  Type element = type.getElementType();
  int64_t group = 32 / element.getIntOrFloatBitWidth();
  int64_t depth = type.getDimSize(0), columns = type.getDimSize(1);
  int64_t groups = llvm::divideCeil(depth, group);
  int64_t panels = llvm::divideCeil(columns, sdx::kPanelWidth);
  SmallVector<int64_t> whole = {groups * group, panels * sdx::kPanelWidth};
  if (type.getShape() != ArrayRef(whole)) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    Value empty = tensor::EmptyOp::create(b, loc, whole, element);
    Value filled = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
    SmallVector<OpFoldResult> offsets(2, b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(2, b.getIndexAttr(1));
    SmallVector<OpFoldResult> sizes = {b.getIndexAttr(depth),
                                       b.getIndexAttr(columns)};
    matrix = tensor::InsertSliceOp::create(b, loc, matrix, filled, offsets,
                                           sizes, strides);
  }
  SmallVector<ReassociationIndices> halves = {{0, 1}, {2, 3}};
  Value split = tensor::ExpandShapeOp::create(
      b, loc,
      RankedTensorType::get({groups, group, panels, sdx::kPanelWidth}, element),
      matrix, halves);
  Value empty = tensor::EmptyOp::create(
      b, loc, {panels, groups, sdx::kPanelWidth, group}, element);
  Value moved = linalg::TransposeOp::create(b, loc, split, empty,
                                            ArrayRef<int64_t>{2, 0, 3, 1})
                    ->getResult(0);
  SmallVector<ReassociationIndices> lanes = {{0}, {1}, {2, 3}};
  return tensor::CollapseShapeOp::create(b, loc, moved, lanes);
}

namespace {

struct PackByteProduct : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 ||
        op.getNumDpsInits() != 1 || op.getNumLoops() != 3 ||
        op.getNumParallelLoops() != 2)
      return rewriter.notifyMatchFailure(op, "no matrix product");
    AffineExpr m, n, k;
    bindDims(rewriter.getContext(), m, n, k);
    auto map = [&](AffineExpr x, AffineExpr y) {
      return AffineMap::get(3, 0, {x, y}, rewriter.getContext());
    };
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    if (maps[0] != map(m, k) || maps[1] != map(k, n) || maps[2] != map(m, n) ||
        !isByteProduct(op))
      return rewriter.notifyMatchFailure(op, "is not of bytes, or transposed");
    auto lhs = cast<RankedTensorType>(op.getDpsInputs()[0].getType());
    auto rhs = cast<RankedTensorType>(op.getDpsInputs()[1].getType());
    if (!lhs.getElementType().isInteger(8) ||
        !rhs.getElementType().isInteger(8) || lhs.isDynamicDim(1) ||
        !rhs.hasStaticShape() || !isZeroFilled(op.getDpsInits()[0]))
      return rewriter.notifyMatchFailure(op, "its sizes or its start are open");
    Value packed = packGroups(rewriter, op.getLoc(), op.getDpsInputs()[1]);
    rewriter.replaceOpWithNewOp<sdx::PackedMatmulOp>(
        op, op.getDpsInputs()[0], packed, op.getDpsInits()[0]);
    return success();
  }
};

/// Whether `op` multiplies bf16 and adds up f32.
static bool isBf16Product(linalg::LinalgOp op) {
  auto elementType = [](Value value) {
    return getElementTypeOrSelf(value.getType());
  };
  return op.hasPureTensorSemantics() &&
         elementType(op.getDpsInputs()[0]).isBF16() &&
         elementType(op.getDpsInputs()[1]).isBF16() &&
         elementType(op.getDpsInits()[0]).isF32();
}

struct PackBf16Product : OpRewritePattern<linalg::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    Value lhs = op.getDpsInputs()[0], rhs = op.getDpsInputs()[1];
    if (!isBf16Product(op) || op.hasUserDefinedMaps())
      return rewriter.notifyMatchFailure(op, "is not of bf16, or transposed");
    if (cast<RankedTensorType>(lhs.getType()).isDynamicDim(1) ||
        !isWeight(rhs) || !isZeroFilled(op.getDpsInits()[0]))
      return rewriter.notifyMatchFailure(op, "no weight, or an open depth");
    rewriter.replaceOpWithNewOp<sdx::PackedMatmulOp>(
        op, lhs, packGroups(rewriter, op.getLoc(), rhs), op.getDpsInits()[0]);
    return success();
  }
};

/// `tensor` of bf16 as f32. A transpose stays the last, where packing absorbs
/// it.
static Value widen(OpBuilder &b, Location loc, Value tensor) {
  Type f32 = b.getF32Type();
  auto emptyLike = [&](Value value) -> Value {
    return tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, value),
                                   f32);
  };
  if (auto transpose = tensor.getDefiningOp<linalg::TransposeOp>()) {
    Value wide = widen(b, loc, transpose.getInput());
    return linalg::TransposeOp::create(b, loc, wide, emptyLike(tensor),
                                       transpose.getPermutation())
        ->getResult(0);
  }
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  Value empty = emptyLike(tensor);
  return linalg::GenericOp::create(
             b, loc, TypeRange{empty.getType()}, tensor, empty, maps, loops,
             [&](OpBuilder &body, Location at, ValueRange args) {
               Value wide = arith::ExtFOp::create(body, at, f32, args[0]);
               linalg::YieldOp::create(body, at, wide);
             })
      .getResult(0);
}

template <typename OpT> struct WidenBf16Product : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    if (!isBf16Product(op))
      return rewriter.notifyMatchFailure(op, "is not of bf16");
    Location loc = op.getLoc();
    Value lhs = widen(rewriter, loc, op.getDpsInputs()[0]);
    Value rhs = widen(rewriter, loc, op.getDpsInputs()[1]);
    rewriter.modifyOpInPlace(op, [&] {
      op.getDpsInputOperand(0)->set(lhs);
      op.getDpsInputOperand(1)->set(rhs);
    });
    return success();
  }
};

} // namespace

void sardonyx::populatePackNarrowProductsPatterns(RewritePatternSet &patterns,
                                                  bool packBf16) {
  MLIRContext *context = patterns.getContext();
  patterns.add<PackByteProduct, WidenBf16Product<linalg::MatmulOp>,
               WidenBf16Product<linalg::BatchMatmulOp>>(context);
  if (packBf16)
    patterns.add<PackBf16Product>(context, /*benefit=*/2);
}
