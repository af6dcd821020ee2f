//===- PackNarrowProducts.cpp - Products of bytes and of bf16, packed -----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of unsigned by signed bytes in i32 and those of bf16 in f32 become
// packed products, for which as many values of k as fill 32 bits lie together
// in the right-hand side: weights of bytes and of bf16 by what is done once,
// computed bytes by a kernel. Products of other types become loop nests.
//
//===----------------------------------------------------------------------===//

#include "Layout/Layout.h"

#include "Common/ShortOperands.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

Value cpu::mapElements(OpBuilder &b, Location loc, Value tensor, Type element,
                       function_ref<Value(OpBuilder &, Value)> emit) {
  const int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, tensor), element);
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, TypeRange{empty.getType()}, tensor, empty, maps, loops,
             [&](OpBuilder &body, Location at, ValueRange args) {
               linalg::YieldOp::create(body, at, emit(body, args[0]));
             })
      .getResult(0);
}

Value cpu::widenBytes(OpBuilder &b, Location loc, Value bytes,
                      bool areUnsigned) {
  Type i16 = b.getI16Type();
  return mapElements(b, loc, bytes, i16, [&](OpBuilder &body, Value x) {
    return areUnsigned ? Value(arith::ExtUIOp::create(body, loc, i16, x))
                       : arith::ExtSIOp::create(body, loc, i16, x);
  });
}

/// `matrix` [K,N] as [ceil(N / Nt), ceil(K / G), Nt * G], zero past its end,
/// where G values of k lie together.
static Value packGroups(OpBuilder &b, Location loc, Value matrix,
                        int64_t group) {
  auto type = cast<RankedTensorType>(matrix.getType());
  Type element = type.getElementType();
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

bool cpu::keepsHalves(sdx::MatmulOp op, TargetAttr target) {
  // Tile registers multiply many rows by sums of bf16, which are made of f32.
  ShapedType lhs = op.getLhs().getType(), rhs = op.getRhs().getType();
  const int64_t rows = lhs.getShape().front();
  return target.has(TargetTraits::ConvertsHalves) && lhs.getRank() == 2 &&
         !lhs.isDynamicDim(1) && rhs.hasStaticShape() &&
         lhs.getElementType().isF32() &&
         getElementTypeOrSelf(op.getInit().getType()).isF32() &&
         isWeight(op.getRhs()) &&
         (target.getF32() != F32Product::AmxBf16x6 ||
          (!ShapedType::isDynamic(rows) && rows <= kFewRows));
}

namespace {

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

bool isBf16Product(sdx::MatmulOp op) {
  return elementOf(op.getLhs()).isBF16() && elementOf(op.getRhs()).isBF16() &&
         elementOf(op.getInit()).isF32();
}

bool areBytes(sdx::MatmulOp op) {
  return elementOf(op.getLhs()).isInteger(8) &&
         elementOf(op.getRhs()).isInteger(8) &&
         elementOf(op.getInit()).isInteger(32) && op.getLhsUnsigned() &&
         !op.getRhsUnsigned();
}

/// Where no instruction multiplies bytes, two matrices that are computed are
/// multiplied as floats, if these are exact.
struct WidenByteProduct : OpRewritePattern<sdx::MatmulOp> {
  WidenByteProduct(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/3) {}

  LogicalResult matchAndRewrite(sdx::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    constexpr int64_t kLargest = 255 * 128, kExact = 1 << 24;
    ShapedType lhs = op.getLhs().getType();
    const int64_t depth = lhs.getShape().back();
    if (!areBytes(op) || isWeight(op.getRhs()) || !isZeroFilled(op.getInit()) ||
        ShapedType::isDynamic(depth) || depth > kExact / kLargest)
      return rewriter.notifyMatchFailure(op, "sums are no exact floats");
    Location loc = op.getLoc();
    Type f32 = rewriter.getF32Type(), i32 = rewriter.getI32Type();
    Value left =
        mapElements(rewriter, loc, op.getLhs(), f32,
                    [&](OpBuilder &body, Value x) -> Value {
                      return arith::UIToFPOp::create(body, loc, f32, x);
                    });
    Value right =
        mapElements(rewriter, loc, op.getRhs(), f32,
                    [&](OpBuilder &body, Value x) -> Value {
                      return arith::SIToFPOp::create(body, loc, f32, x);
                    });
    Value zeros = createZeros(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, op.getInit()), f32);
    Value sums = sdx::MatmulOp::create(rewriter, loc, left, right, zeros,
                                       op.getTransposed())
                     .getResult();
    rewriter.replaceOp(op, mapElements(rewriter, loc, sums, i32,
                                       [&](OpBuilder &body, Value x) -> Value {
                                         return arith::FPToSIOp::create(
                                             body, loc, i32, x);
                                       }));
    return success();
  }
};

/// A product whose right-hand side is packed by groups of values of k.
struct PackGroupedProduct : OpRewritePattern<sdx::MatmulOp> {
  PackGroupedProduct(MLIRContext *context, TargetAttr target)
      : OpRewritePattern(context, /*benefit=*/2), target(target) {}

  LogicalResult matchAndRewrite(sdx::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    const bool areBytes = ::areBytes(op);
    const bool areBf16 = target.getBf16() != Bf16Product::Generic &&
                         isBf16Product(op) && isWeight(op.getRhs());
    if (!areBytes && !areBf16)
      return rewriter.notifyMatchFailure(op, "no instruction multiplies these");
    if (!isZeroFilled(op.getInit()))
      return rewriter.notifyMatchFailure(op, "it starts from other numbers");
    ShapedType lhs = op.getLhs().getType(), rhs = op.getRhs().getType();
    const bool areWeights = isWeight(op.getRhs()) && lhs.getRank() == 2 &&
                            !lhs.isDynamicDim(1) && rhs.hasStaticShape();
    if (!areBytes && !areWeights)
      return rewriter.notifyMatchFailure(op, "its sizes are open");
    Location loc = op.getLoc();
    Value left = op.getLhs(), matrix = op.getRhs(), right;
    auto packing = PackingAttr::get(
        op.getContext(), areBytes ? getPackedByte(target) : PackedElement::BF16,
        kPanelWidth);
    const bool areWide = packing.getElement() == PackedElement::I16;
    if (areWeights) {
      if (op.getTransposed())
        matrix = createTranspose(rewriter, loc, matrix, {1, 0});
      right = packGroups(rewriter, loc, matrix, packing.getDepthGroup());
      if (areWide)
        right = widenBytes(rewriter, loc, right, /*areUnsigned=*/false);
    } else {
      right = packRhs(rewriter, loc, matrix, op.getTransposed(), packing);
    }
    if (areWide)
      left = widenBytes(rewriter, loc, left, /*areUnsigned=*/true);
    rewriter.replaceOpWithNewOp<PackedMatmulOp>(op, left, right, op.getInit(),
                                                packing);
    return success();
  }

private:
  TargetAttr target;
};

/// A product of f32 whose weights are f16 in memory.
struct PackHalfProduct : OpRewritePattern<sdx::MatmulOp> {
  PackHalfProduct(MLIRContext *context, TargetAttr target)
      : OpRewritePattern(context, /*benefit=*/2), target(target) {}

  LogicalResult matchAndRewrite(sdx::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || !keepsHalves(op, target))
      return rewriter.notifyMatchFailure(op, "weights are multiplied as f32");
    Location loc = op.getLoc();
    Value root = op.getRhs();
    while (isMovement(root.getDefiningOp()))
      root = root.getDefiningOp()->getOperand(0);
    Value source = findWidenedSource(root);
    if (!source || !elementOf(source).isF16())
      return rewriter.notifyMatchFailure(op, "weights are no f16");
    rewriter.modifyOpInPlace(op,
                             [&] { narrowOperand(op, op.getRhsMutable()); });
    Value matrix = op.getRhs();
    if (op.getTransposed())
      matrix = createTranspose(rewriter, loc, matrix, {1, 0});
    auto packing =
        PackingAttr::get(op.getContext(), PackedElement::F16, kPanelWidth);
    rewriter.replaceOpWithNewOp<PackedMatmulOp>(
        op, op.getLhs(), packGroups(rewriter, loc, matrix, /*group=*/1),
        op.getInit(), packing);
    return success();
  }

private:
  TargetAttr target;
};

/// `tensor` of bf16 as f32. A transpose stays the last, where packing absorbs
/// it.
Value widen(OpBuilder &b, Location loc, Value tensor) {
  if (auto transpose = tensor.getDefiningOp<linalg::TransposeOp>())
    return createTranspose(b, loc, widen(b, loc, transpose.getInput()),
                           transpose.getPermutation());
  return mapElements(
      b, loc, tensor, b.getF32Type(), [&](OpBuilder &body, Value x) -> Value {
        return arith::ExtFOp::create(body, loc, b.getF32Type(), x);
      });
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
                                             TargetAttr target) {
  MLIRContext *context = patterns.getContext();
  patterns.add<PackGroupedProduct, PackHalfProduct>(context, target);
  if (target.getInt8() == Int8Product::Generic)
    patterns.add<WidenByteProduct>(context);
  patterns.add<WidenBf16Product, DecomposeProduct>(context);
}
