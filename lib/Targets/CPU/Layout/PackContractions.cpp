//===- PackContractions.cpp - Matrix products by packed matrices ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the right-hand side of each sdx.matmul of f32 lies in memory: in panels,
// as one panel of all its columns, in the place of the left-hand side, or in
// fewer bits; and which products may go by Strassen's algorithm.
//
//===----------------------------------------------------------------------===//

#include "Layout/ChosenSlice.h"
#include "Layout/ConstantColumns.h"
#include "Layout/Layout.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#include <map>

namespace sardonyx {
#define GEN_PASS_DEF_CPUPACKCONTRACTIONS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

Value cpu::packRhs(OpBuilder &b, Location loc, Value matrix, bool transposed,
                   PackingAttr packing) {
  const int64_t width = packing.getPanel();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, matrix);
  size_t rank = sizes.size(), last = rank - 1, row = rank == 4 ? 1 : rank - 2;
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  SmallVector<OpFoldResult> packed;
  if (rank == 3)
    packed.push_back(sizes[0]);
  if (rank == 4)
    packed.push_back(affine::makeComposedFoldedAffineApply(
        b, loc, d0 * d1, {sizes[0], sizes[2]}));
  packed.push_back(affine::makeComposedFoldedAffineApply(
      b, loc, d0.ceilDiv(width), {sizes[transposed ? row : last]}));
  packed.append({affine::makeComposedFoldedAffineApply(
                     b, loc, d0.ceilDiv(packing.getDepthGroup()),
                     {sizes[transposed ? last : row]}),
                 b.getIndexAttr(packing.getRowSize())});
  Value empty =
      tensor::EmptyOp::create(b, loc, packed, packing.getStoredType());
  return PackRhsOp::create(b, loc, matrix, /*scales=*/Value(), empty,
                           transposed, packing)
      .getResult();
}

/// `matrix` [(B,) K, N] as one panel of all its columns, which costs nothing;
/// null where it has many, or has to be packed for more than few rows of `lhs`.
static Value viewAsPanel(OpBuilder &b, Location loc, Value lhs, Value matrix) {
  constexpr int64_t kMaxColumns = 8 * cpu::kPanelWidth;
  auto left = cast<RankedTensorType>(lhs.getType());
  auto type = cast<RankedTensorType>(matrix.getType());
  int64_t rank = type.getRank(), columns = type.getShape().back();
  int64_t rows = left.getDimSize(left.getRank() - 2);
  if (ShapedType::isDynamic(rows) || rows > kFewRows ||
      ShapedType::isDynamic(columns) || columns > kMaxColumns || columns == 0 ||
      columns % cpu::kPanelWidth)
    return nullptr;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, matrix);
  SmallVector<int64_t> shape(type.getShape());
  sizes.insert(sizes.end() - 2, b.getIndexAttr(1));
  shape.insert(shape.end() - 2, 1);
  SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
  if (rank == 3)
    groups = {{0}, {1, 2}, {3}};
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), matrix,
      groups, sizes);
}

/// `lhs` [(B,) M, K] times the transpose of `matrix` [(B,) N, K] as the
/// transpose of `matrix` times that of `lhs`, which is the smaller one to pack;
/// null where `lhs` has more than few rows, or `matrix` has few.
static Value multiplySwapped(OpBuilder &b, Location loc, Value lhs,
                             Value matrix) {
  constexpr int64_t kMinColumns = 2 * cpu::kPanelWidth;
  auto left = cast<RankedTensorType>(lhs.getType());
  auto right = cast<RankedTensorType>(matrix.getType());
  int64_t rank = left.getRank(), rows = left.getDimSize(rank - 2);
  int64_t columns = right.getDimSize(right.getRank() - 2);
  if (right.getRank() != rank || ShapedType::isDynamic(rows) || rows < 1 ||
      rows > kFewRows ||
      (!ShapedType::isDynamic(columns) && columns < kMinColumns))
    return nullptr;
  constexpr int64_t kNarrowest = 4;
  int64_t width = std::max<int64_t>(kNarrowest, llvm::PowerOf2Ceil(rows));
  auto packing = PackingAttr::getF32(b.getContext(), width);
  Value packed = packRhs(b, loc, lhs, /*transposed=*/true, packing);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, matrix);
  sizes.back() = b.getIndexAttr(rows);
  Value product = PackedMatmulOp::create(
                      b, loc, matrix, packed,
                      createZeros(b, loc, sizes, b.getF32Type()), packing)
                      .getResult();
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[rank - 1], order[rank - 2]);
  return createTranspose(b, loc, product, order);
}

/// `lhs` [(B,) M, K] times a column, `matrix` [(B,) K, 1] or its transpose, as
/// sums of rows: a panel would multiply by zeros for the most part, where each
/// element of `lhs` counts once. Null where `matrix` has more columns.
static Value multiplyByColumn(OpBuilder &b, Location loc, Value lhs,
                              Value matrix, bool transposed, Value init) {
  auto left = cast<RankedTensorType>(lhs.getType());
  auto right = cast<RankedTensorType>(matrix.getType());
  const int64_t rank = left.getRank();
  if (right.getRank() != rank ||
      right.getDimSize(transposed ? rank - 2 : rank - 1) != 1)
    return nullptr;
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < rank - 1; ++d)
    groups.push_back({d});
  groups.back().push_back(rank - 1);
  Value column = tensor::CollapseShapeOp::create(b, loc, matrix, groups);
  Value sums = tensor::CollapseShapeOp::create(b, loc, init, groups);
  // The loops are (b,) m and k.
  const unsigned m = rank - 2, k = rank - 1;
  AffineMap all = b.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  auto product = linalg::GenericOp::create(
      b, loc, TypeRange{sums.getType()}, ValueRange{lhs, column},
      ValueRange{sums}, {all, all.dropResult(m), all.dropResult(k)}, iterators,
      [](OpBuilder &body, Location at, ValueRange args) {
        Value term = arith::MulFOp::create(body, at, args[0], args[1]);
        linalg::YieldOp::create(
            body, at,
            arith::AddFOp::create(body, at, args[2], term).getResult());
      });
  return tensor::ExpandShapeOp::create(b, loc, init.getType(),
                                       product.getResult(0), groups,
                                       tensor::getMixedSizes(b, loc, init));
}

namespace {

/// What is found out of weights by reading them: once, however many products
/// they have.
class WeightSurveys {
public:
  WeightSurveys(MLIRContext *context, const CompressionLimits &limits)
      : context(context), limits(limits) {}

  /// See chooseCompression().
  const std::optional<CompressedWeights> &
  getCompression(const ConstantColumns &columns) {
    return find(compressWeights, columns, [&] {
      return chooseCompression(columns, cpu::kPanelWidth, context, limits);
    });
  }
  /// See chooseStrassenDepth().
  int64_t getStrassenDepth(const ConstantColumns &columns) {
    return find(strassenDepths, columns,
                [&] { return chooseStrassenDepth(columns, cpu::kPanelWidth); });
  }

private:
  using Place = decltype(std::declval<ConstantColumns>().place());
  template <typename Fact, typename Read>
  static const Fact &find(std::map<Place, Fact> &known,
                          const ConstantColumns &columns, Read read) {
    auto it = known.find(columns.place());
    if (it == known.end())
      it = known.emplace(columns.place(), read()).first;
    return it->second;
  }

  MLIRContext *context;
  CompressionLimits limits;
  std::map<Place, std::optional<CompressedWeights>> compressWeights;
  std::map<Place, int64_t> strassenDepths;
};

} // namespace

/// `lhs` times `matrix` [K,N], or [N,K] if `transposed`, whose numbers are kept
/// in fewer than four bytes; null where they cannot be, or have more use as
/// they are.
static Value multiplyCompressed(PatternRewriter &rewriter, Location loc,
                                Value lhs, Value matrix, bool transposed,
                                Value init, WeightSurveys &surveys) {
  auto left = cast<RankedTensorType>(lhs.getType());
  if (left.getRank() != 2 || !left.hasStaticShape() ||
      left.getDimSize(0) > kFewRows)
    return nullptr;
  std::optional<ConstantColumns> columns = findColumns(matrix, transposed);
  if (!columns)
    return nullptr;
  const std::optional<CompressedWeights> &chosen =
      surveys.getCompression(*columns);
  if (!chosen)
    return nullptr;
  int64_t depth = left.getDimSize(1);
  Value scales = arith::ConstantOp::create(rewriter, loc, chosen->scales);
  auto packing = PackingAttr::get(
      rewriter.getContext(),
      chosen->areW21 ? PackedElement::W21 : PackedElement::W24, kPanelWidth);
  SmallVector<int64_t> sizes = {chosen->scales.getType().getDimSize(0),
                                packing.getPackedDepth(depth),
                                packing.getRowSize()};
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, sizes, packing.getStoredType());
  Value packed = PackRhsOp::create(rewriter, loc, matrix, scales, empty,
                                   transposed, packing)
                     .getResult();
  return PackedMatmulOp::create(rewriter, loc, lhs, packed, scales, depth, init,
                                packing)
      .getResult();
}

/// The ranges of k in which `lhs` times `matrix` may go by Strassen's
/// algorithm; 0: none.
static int64_t findStrassenDepth(Value lhs, Value matrix, bool transposed,
                                 WeightSurveys &surveys) {
  auto left = cast<RankedTensorType>(lhs.getType());
  if (left.getRank() != 2 ||
      (!left.isDynamicDim(0) && left.getDimSize(0) < cpu::kMinStrassenRows))
    return 0;
  std::optional<ConstantColumns> columns = findColumns(matrix, transposed);
  return columns ? surveys.getStrassenDepth(*columns) : 0;
}

namespace {

struct PackContraction : OpRewritePattern<sdx::MatmulOp> {
  PackContraction(MLIRContext *context, WeightSurveys &surveys, bool compresses,
                  int64_t longLoopWeights, bool useStrassen)
      : OpRewritePattern(context), surveys(surveys), compresses(compresses),
        longLoopWeights(longLoopWeights), useStrassen(useStrassen) {}

  LogicalResult matchAndRewrite(sdx::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    for (Type type : op->getOperandTypes())
      if (!getElementTypeOrSelf(type).isF32())
        return rewriter.notifyMatchFailure(op, "not all of f32");
    rewriter.replaceOp(op, multiply(op, rewriter));
    return success();
  }

private:
  Value multiply(sdx::MatmulOp op, PatternRewriter &rewriter) const {
    Location loc = op.getLoc();
    Value left = op.getLhs(), matrix = op.getRhs(), init = op.getInit();
    const bool transposed = op.getTransposed();
    if (Value result =
            multiplyByColumn(rewriter, loc, left, matrix, transposed, init))
      return result;
    if (compresses && !staysInCache(op, matrix))
      if (Value result = multiplyCompressed(rewriter, loc, left, matrix,
                                            transposed, init, surveys))
        return result;
    Value right;
    if (std::optional<ChosenSlice> slice = findChosenSlice(matrix)) {
      auto one = cast<RankedTensorType>(matrix.getType());
      if (one.getRank() == 2)
        right = slice->takeFrom(
            rewriter, loc,
            packRhs(rewriter, loc,
                    slice->getBatch(rewriter, loc, one.getShape()), transposed,
                    PackingAttr::getF32(rewriter.getContext(), kPanelWidth)));
    } else if (!isWeight(matrix)) {
      if (transposed)
        if (Value result = multiplySwapped(rewriter, loc, left, matrix))
          return result;
      if (!transposed)
        right = viewAsPanel(rewriter, loc, left, matrix);
    }
    if (!right)
      right = packRhs(rewriter, loc, matrix, transposed,
                      PackingAttr::getF32(rewriter.getContext(), kPanelWidth));
    auto packing = PackingAttr::getF32(
        rewriter.getContext(),
        cast<ShapedType>(right.getType()).getShape().back());
    auto product =
        PackedMatmulOp::create(rewriter, loc, left, right, init, packing);
    if (int64_t depth =
            useStrassen ? findStrassenDepth(left, matrix, transposed, surveys)
                        : 0)
      product.setStrassen(depth);
    return product.getResult();
  }

  /// Whether a loop multiplies by a constant matrix so small that it is in a
  /// cache from the second time on that gives it faster than it is unpacked.
  bool staysInCache(Operation *op, Value matrix) const {
    auto type = cast<RankedTensorType>(matrix.getType());
    return longLoopWeights && op->getParentOfType<LoopLikeOpInterface>() &&
           type.hasStaticShape() &&
           type.getNumElements() * int64_t(sizeof(float)) <= longLoopWeights;
  }

  WeightSurveys &surveys;
  bool compresses;
  int64_t longLoopWeights;
  bool useStrassen;
};

struct PackContractionsPass
    : sardonyx::impl::CPUPackContractionsBase<PackContractionsPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    cpu::TargetAttr target = cpu::getTargetOrDefault(getOperation());
    // Narrower vectors compute longer than memory takes, and have too few
    // registers.
    bool hasWideVectors = target.getVectorBits() >= 256;
    const bool isExact = numerics == Numerics::Exact;
    const bool isFast = numerics == Numerics::Fast;
    int64_t shortBytes =
        !isExact && target.has(cpu::TargetTraits::ShufflesBytes)
            ? minCompressedBytes
            : 0;
    CompressionLimits limits{shortBytes, hasWideVectors, /*losesMore=*/isFast};
    WeightSurveys surveys(&getContext(), limits);
    patterns.add<PackContraction>(
        &getContext(), surveys, shortBytes != 0,
        std::max(target.getBytesOfFastL3(), target.getL2Bytes() / 4 * 3),
        !isExact && hasWideVectors);
    if (isFast && target.getF32() == cpu::F32Product::AmxBf16x6)
      populateBf16x2WeightsPatterns(patterns);
    populatePackNarrowProductsPatterns(patterns, target);
    populatePackInterleavedPatterns(patterns);
    // Afterwards: a transpose of fewer dimensions is no longer one of matrices.
    RewritePatternSet transposes(&getContext());
    populateSimplifyTransposesPatterns(transposes);
    rewriteGreedily(getOperation(), std::move(patterns));
    rewriteGreedily(getOperation(), std::move(transposes));
    copyEarly(getOperation());
  }
};

} // namespace
