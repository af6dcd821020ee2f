//===- PackNarrowProducts.cpp - Products of bytes and of bf16, packed -----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of unsigned by signed bytes in i32 and those of bf16 in f32 become
// packed products, for which as many values of k as fill 32 bits lie together
// in the right-hand side. Products of other types become loop nests.
//
//===----------------------------------------------------------------------===//

#include "Layout/Layout.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// `matrix` [K,N] as [ceil(N / Nt), ceil(K / G), Nt * G], zero past its end,
/// where G elements have 32 bits.
static Value packGroups(OpBuilder &b, Location loc, Value matrix) {
  auto type = cast<RankedTensorType>(matrix.getType());
  Type element = type.getElementType();
  int64_t group = 32 / element.getIntOrFloatBitWidth();
  int64_t depth = type.getDimSize(0), columns = type.getDimSize(1);
  int64_t groups = llvm::divideCeil(depth, group);
  int64_t panels = llvm::divideCeil(columns, cpu::kPanelWidth);
  SmallVector<int64_t> whole = {groups * group, panels * cpu::kPanelWidth};
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
      RankedTensorType::get({groups, group, panels, cpu::kPanelWidth}, element),
      matrix, halves);
  Value empty = tensor::EmptyOp::create(
      b, loc, {panels, groups, cpu::kPanelWidth, group}, element);
  Value moved = linalg::TransposeOp::create(b, loc, split, empty,
                                            ArrayRef<int64_t>{2, 0, 3, 1})
                    ->getResult(0);
  SmallVector<ReassociationIndices> lanes = {{0}, {1}, {2, 3}};
  return tensor::CollapseShapeOp::create(b, loc, moved, lanes);
}

namespace {

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

bool isBf16Product(sdx::MatmulOp op) {
  return elementOf(op.getLhs()).isBF16() && elementOf(op.getRhs()).isBF16() &&
         elementOf(op.getInit()).isF32();
}

/// A product whose right-hand side is packed by groups of values of k.
struct PackGroupedProduct : OpRewritePattern<sdx::MatmulOp> {
  PackGroupedProduct(MLIRContext *context, bool packBf16)
      : OpRewritePattern(context, /*benefit=*/2), packBf16(packBf16) {}

  LogicalResult matchAndRewrite(sdx::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    const bool areBytes = elementOf(op.getLhs()).isInteger(8) &&
                          elementOf(op.getRhs()).isInteger(8) &&
                          elementOf(op.getInit()).isInteger(32) &&
                          op.getLhsUnsigned() && !op.getRhsUnsigned();
    const bool areBf16 = packBf16 && isBf16Product(op) && isWeight(op.getRhs());
    if (!areBytes && !areBf16)
      return rewriter.notifyMatchFailure(op, "no instruction multiplies these");
    ShapedType lhs = op.getLhs().getType(), rhs = op.getRhs().getType();
    if (lhs.getRank() != 2 || lhs.isDynamicDim(1) || !rhs.hasStaticShape() ||
        !isZeroFilled(op.getInit()))
      return rewriter.notifyMatchFailure(op, "its sizes or its start are open");
    Location loc = op.getLoc();
    Value matrix = op.getRhs();
    if (op.getTransposed())
      matrix = createTranspose(rewriter, loc, matrix, {1, 0});
    rewriter.replaceOpWithNewOp<PackedMatmulOp>(
        op, op.getLhs(), packGroups(rewriter, loc, matrix), op.getInit(),
        PackingAttr::get(op.getContext(),
                         areBytes ? PackedElement::I8 : PackedElement::BF16,
                         kPanelWidth));
    return success();
  }

private:
  bool packBf16;
};

/// `tensor` of bf16 as f32. A transpose stays the last, where packing absorbs
/// it.
Value widen(OpBuilder &b, Location loc, Value tensor) {
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

struct WidenBf16Product : OpRewritePattern<sdx::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(sdx::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || !isBf16Product(op))
      return rewriter.notifyMatchFailure(op, "is not of bf16");
    Value lhs = widen(rewriter, op.getLoc(), op.getLhs());
    Value rhs = widen(rewriter, op.getLoc(), op.getRhs());
    rewriter.modifyOpInPlace(op, [&] {
      op.getLhsMutable().assign(lhs);
      op.getRhsMutable().assign(rhs);
    });
    return success();
  }
};

/// What nothing else takes becomes a loop nest.
struct DecomposeProduct : OpRewritePattern<sdx::MatmulOp> {
  DecomposeProduct(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/0) {}

  LogicalResult matchAndRewrite(sdx::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    rewriter.replaceOp(op, decomposeToLinalg(rewriter, op));
    return success();
  }
};

} // namespace

void cpu::populatePackNarrowProductsPatterns(RewritePatternSet &patterns,
                                             bool packBf16) {
  MLIRContext *context = patterns.getContext();
  patterns.add<PackGroupedProduct>(context, packBf16);
  patterns.add<WidenBf16Product, DecomposeProduct>(context);
}
