//===- PackByteProducts.cpp - Products of 8-bit integers, packed ----------===//
//
// out[m,n] += extui(lhs[m,k]) * extsi(rhs[k,n]) in i32 becomes a packed
// product, for which four values of k lie together in the right-hand side.
//
//===----------------------------------------------------------------------===//

#include "Utils.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace sardonyx;

/// Values of k in a group.
static constexpr int64_t kGroup = 4;

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

/// `matrix` [K,N] as [ceil(N / Nt), ceil(K / 4), Nt * 4], zero past its end.
static Value packBytes(OpBuilder &b, Location loc, Value matrix) {
  auto type = cast<RankedTensorType>(matrix.getType());
  Type i8 = type.getElementType();
  int64_t depth = type.getDimSize(0), columns = type.getDimSize(1);
  int64_t groups = llvm::divideCeil(depth, kGroup);
  int64_t panels = llvm::divideCeil(columns, sdx::kPanelWidth);
  SmallVector<int64_t> whole = {groups * kGroup, panels * sdx::kPanelWidth};
  if (type.getShape() != ArrayRef(whole)) {
    Value zero = arith::ConstantOp::create(b, loc, b.getIntegerAttr(i8, 0));
    Value empty = tensor::EmptyOp::create(b, loc, whole, i8);
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
      RankedTensorType::get({groups, kGroup, panels, sdx::kPanelWidth}, i8),
      matrix, halves);
  Value empty = tensor::EmptyOp::create(
      b, loc, {panels, groups, sdx::kPanelWidth, kGroup}, i8);
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
    Value packed = packBytes(rewriter, op.getLoc(), op.getDpsInputs()[1]);
    rewriter.replaceOpWithNewOp<sdx::PackedMatmulOp>(
        op, op.getDpsInputs()[0], packed, op.getDpsInits()[0]);
    return success();
  }
};

} // namespace

void sardonyx::populatePackByteProductsPatterns(RewritePatternSet &patterns) {
  patterns.add<PackByteProduct>(patterns.getContext());
}
