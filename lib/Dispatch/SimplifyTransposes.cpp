//===- SimplifyTransposes.cpp - Transposes of the fewest dimensions -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dimensions of size 1 and dimensions that stay neighbours do not matter to a
// transpose. What is left of many is a reshape, which costs nothing; of the
// others, fewer kinds of kernels.
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXSIMPLIFYTRANSPOSES
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// A linalg.generic that only permutes, as a linalg.transpose.
struct GenericToTranspose : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
        op.getNumDpsInits() != 1 ||
        op.getNumParallelLoops() != op.getNumLoops())
      return rewriter.notifyMatchFailure(op, "not a unary elementwise op");
    Block *body = op.getBody();
    if (!llvm::hasSingleElement(*body) ||
        body->getTerminator()->getOperand(0) != body->getArgument(0))
      return rewriter.notifyMatchFailure(op, "computes something");
    AffineMap in = op.getIndexingMapsArray()[0];
    AffineMap out = op.getIndexingMapsArray()[1];
    if (!in.isPermutation() || !out.isPermutation() || in == out)
      return rewriter.notifyMatchFailure(op, "does not permute");
    // Result dimension i runs over loop out(i), which is source dimension
    // in^-1(out(i)).
    AffineMap inverse = inversePermutation(in);
    SmallVector<int64_t> permutation;
    for (unsigned i = 0; i < out.getNumResults(); ++i)
      permutation.push_back(inverse.getDimPosition(out.getDimPosition(i)));
    rewriter.replaceOpWithNewOp<linalg::TransposeOp>(
        op, op.getDpsInputs()[0], op.getDpsInits()[0], permutation);
    return success();
  }
};

/// A shape whose dimensions are gathered into groups of neighbours.
struct Grouping {
  SmallVector<ReassociationIndices> groups;

  /// Dimensions in order; `startsGroup` says whether a dimension that counts
  /// begins a new one. Those of size 1 go with what is before them.
  static Grouping make(ArrayRef<int64_t> shape,
                       llvm::function_ref<bool(int64_t)> startsGroup) {
    Grouping result;
    ReassociationIndices leading;
    for (int64_t i = 0, e = shape.size(); i < e; ++i) {
      if (shape[i] == 1) {
        (result.groups.empty() ? leading : result.groups.back()).push_back(i);
        continue;
      }
      if (result.groups.empty() || startsGroup(i)) {
        result.groups.push_back(leading);
        leading.clear();
      }
      result.groups.back().push_back(i);
    }
    return result;
  }

  SmallVector<int64_t> collapse(ArrayRef<int64_t> shape) const {
    SmallVector<int64_t> collapsed;
    for (const ReassociationIndices &group : groups) {
      int64_t size = 1;
      for (int64_t i : group)
        size = ShapedType::isDynamic(size) || ShapedType::isDynamic(shape[i])
                   ? ShapedType::kDynamic
                   : size * shape[i];
      collapsed.push_back(size);
    }
    return collapsed;
  }
};

struct ReduceTranspose : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    if (op->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "not on tensors");
    auto inType = cast<RankedTensorType>(op.getInput().getType());
    auto outType = cast<RankedTensorType>(op->getResult(0).getType());
    ArrayRef<int64_t> permutation = op.getPermutation();
    ArrayRef<int64_t> shape = inType.getShape();
    // The source dimensions that count, in the result's order, and the place
    // of each.
    SmallVector<int64_t> order;
    DenseMap<int64_t, int64_t> place;
    for (int64_t dim : permutation)
      if (shape[dim] != 1) {
        place[dim] = order.size();
        order.push_back(dim);
      }
    if (order.empty())
      return rewriter.notifyMatchFailure(op, "has one element");
    int64_t previous = -1;
    Grouping source = Grouping::make(shape, [&](int64_t dim) {
      // Continues if it follows the one before in the result, too.
      for (previous = dim - 1; shape[previous] == 1;)
        --previous;
      return place[dim] != place[previous] + 1;
    });
    Grouping result = Grouping::make(outType.getShape(), [&](int64_t i) {
      int64_t at = place[permutation[i]];
      int64_t before = order[at - 1];
      for (int64_t dim = before + 1; dim < permutation[i]; ++dim)
        if (shape[dim] != 1)
          return true;
      return before > permutation[i];
    });
    if (source.groups.size() == shape.size())
      return rewriter.notifyMatchFailure(op, "is as small as it can be");

    // Each group's place, by its first dimension that counts.
    SmallVector<std::pair<int64_t, int64_t>> starts;
    for (auto [g, group] : llvm::enumerate(source.groups))
      for (int64_t dim : group)
        if (shape[dim] != 1) {
          starts.emplace_back(place[dim], g);
          break;
        }
    llvm::sort(starts);
    SmallVector<int64_t> reduced;
    for (auto [at, group] : starts)
      reduced.push_back(group);

    Location loc = op.getLoc();
    Type element = inType.getElementType();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, op.getInput());
    SmallVector<OpFoldResult> outSizes;
    for (int64_t dim : permutation)
      outSizes.push_back(sizes[dim]);
    Value value = tensor::CollapseShapeOp::create(
        rewriter, loc, RankedTensorType::get(source.collapse(shape), element),
        op.getInput(), source.groups);
    SmallVector<int64_t> collapsedOut = result.collapse(outType.getShape());
    if (!llvm::is_sorted(reduced)) {
      SmallVector<OpFoldResult> small =
                                    tensor::getMixedSizes(rewriter, loc, value),
                                permuted;
      for (int64_t group : reduced)
        permuted.push_back(small[group]);
      SmallVector<Value> dynamic;
      for (auto [size, shaped] : llvm::zip(permuted, collapsedOut))
        if (ShapedType::isDynamic(shaped))
          dynamic.push_back(
              getValueOrCreateConstantIndexOp(rewriter, loc, size));
      Value empty = tensor::EmptyOp::create(rewriter, loc, collapsedOut,
                                            element, dynamic);
      value = linalg::TransposeOp::create(rewriter, loc, value, empty, reduced)
                  ->getResult(0);
    }
    value = tensor::ExpandShapeOp::create(rewriter, loc, outType, value,
                                          result.groups, outSizes);
    rewriter.replaceOp(op, value);
    return success();
  }
};

struct SimplifyTransposesPass
    : sardonyx::impl::SDXSimplifyTransposesBase<SimplifyTransposesPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateSimplifyTransposesPatterns(patterns);
    rewriteGreedily(getOperation(), std::move(patterns));
  }
};

} // namespace

void sardonyx::populateGenericToTransposePatterns(RewritePatternSet &patterns) {
  patterns.add<GenericToTranspose>(patterns.getContext());
}

void sardonyx::populateSimplifyTransposesPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  populateGenericToTransposePatterns(patterns);
  patterns.add<ReduceTranspose>(context);
  linalg::TransposeOp::getCanonicalizationPatterns(patterns, context);
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
}
