//===- PackInterleaved.cpp - Panels of heads that lie beside each other ---===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An attention's keys and values have rows [heads, size of a head], and its
// products want the rows of each head together. Packing moves all numbers
// anyway: it takes them from where they are.
//
//===----------------------------------------------------------------------===//

#include "Layout/Layout.h"

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// Matrices [batch, rows, heads, columns] whose rows are those of a source of
/// packing, or (`flips`) its columns.
struct Interleaved {
  Value value;
  bool flips = false;
};

} // namespace

/// [rows, heads, columns], or [rows, heads * size], as [1, rows, heads,
/// columns].
static Value split(OpBuilder &b, Location loc, Value value, int64_t heads,
                   int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, value);
  SmallVector<OpFoldResult> all = {b.getIndexAttr(1), sizes[0]};
  SmallVector<int64_t> shape = {1, type.getDimSize(0)};
  SmallVector<ReassociationIndices> groups = {{0, 1}};
  if (type.getRank() == 2) {
    all.append({b.getIndexAttr(heads), b.getIndexAttr(size)});
    shape.append({heads, size});
    groups.push_back({2, 3});
  } else {
    all.append({sizes[1], sizes[2]});
    shape.append({type.getDimSize(1), type.getDimSize(2)});
    groups.append({{2}, {3}});
  }
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), value,
      groups, all);
}

/// Where the matrices of `source`, [batch, rows, columns], come from.
static FailureOr<Interleaved> findInterleaved(OpBuilder &b, Value source) {
  Location loc = source.getLoc();
  auto transposeOf = [](Value value) -> linalg::TransposeOp {
    auto op = value.getDefiningOp<linalg::TransposeOp>();
    return op && op->getNumResults() == 1 && isReadOnce(value)
               ? op
               : linalg::TransposeOp();
  };
  auto isOrder = [](linalg::TransposeOp op, ArrayRef<int64_t> order) {
    return op && op.getPermutation() == order;
  };
  if (auto op = transposeOf(source)) {
    if (isOrder(op, {1, 0, 2}))
      return Interleaved{split(b, loc, op.getInput(), 0, 0), false};
    return failure();
  }
  if (auto collapse = source.getDefiningOp<tensor::CollapseShapeOp>();
      collapse && isReadOnce(source)) {
    linalg::TransposeOp op = transposeOf(collapse.getSrc());
    if (collapse.getReassociationIndices() !=
        SmallVector<ReassociationIndices>{{0, 1}, {2}, {3}})
      return failure();
    if (isOrder(op, {0, 2, 1, 3}))
      return Interleaved{op.getInput(), false};
    return failure();
  }
  // A transpose of all heads' columns at once.
  if (auto expand = source.getDefiningOp<tensor::ExpandShapeOp>();
      expand && isReadOnce(source)) {
    linalg::TransposeOp op = transposeOf(expand.getSrc());
    auto type = cast<RankedTensorType>(expand.getType());
    if (isOrder(op, {1, 0}) && type.getRank() == 3 &&
        expand.getReassociationIndices() ==
            SmallVector<ReassociationIndices>{{0, 1}, {2}} &&
        !type.isDynamicDim(0) && !type.isDynamicDim(1))
      return Interleaved{
          split(b, loc, op.getInput(), type.getDimSize(0), type.getDimSize(1)),
          true};
  }
  return failure();
}

namespace {

struct PackInterleaved : OpRewritePattern<cpu::PackRhsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(cpu::PackRhsOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getSource().getType().getRank() != 3 || op.getScales() ||
        op->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "no batch of matrices");
    FailureOr<Interleaved> found = findInterleaved(rewriter, op.getSource());
    if (failed(found))
      return rewriter.notifyMatchFailure(op, "no rows of several heads");
    bool transposed = op.getTransposed() != found->flips;
    Location loc = op.getLoc();
    Value packed =
        packRhs(rewriter, loc, found->value, transposed, op.getPacking());
    // Sizes may be known better or less well from here.
    if (packed.getType() != op->getResult(0).getType())
      packed = tensor::CastOp::create(rewriter, loc, op->getResult(0).getType(),
                                      packed);
    rewriter.replaceOp(op, packed);
    return success();
  }
};

} // namespace

void cpu::populatePackInterleavedPatterns(RewritePatternSet &patterns) {
  patterns.add<PackInterleaved>(patterns.getContext());
}
