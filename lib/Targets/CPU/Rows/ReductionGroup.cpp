//===- ReductionGroup.cpp - Operations that share one loop nest -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/ReductionGroup.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace sardonyx::cpu {

int64_t ReductionGroup::getStaticSize(unsigned d) const {
  return getConstantIntValue(sizes[d]).value_or(-1);
}

llvm::SmallBitVector getWholeResults(AffineMap map) {
  llvm::SmallBitVector whole(map.getNumResults());
  for (auto [i, expr] : llvm::enumerate(map.getResults()))
    whole[i] = isa<AffineDimExpr>(expr);
  return whole;
}

FailureOr<ReductionGroup> buildGroup(OpBuilder &b, linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op->getNumRegions() != 1 ||
      !op->getRegion(0).hasOneBlock())
    return failure();
  ReductionGroup group{op.getLoc(), {}, {}, {}};
  unsigned numLoops = op.getNumLoops();
  RowStage stage;
  stage.body = op.getBlock();
  stage.numInputs = op.getNumDpsInputs();
  stage.isReduction = op.getNumReductionLoops() > 0;
  stage.domain.resize(numLoops, true);
  group.reduced.resize(numLoops);
  for (auto [i, type] : llvm::enumerate(op.getIteratorTypesArray())) {
    stage.dims.push_back(i);
    if (type != utils::IteratorType::parallel)
      group.reduced.set(i);
  }
  for (OpOperand &operand : op->getOpOperands()) {
    RowAccess access;
    BlockArgument arg = op.getMatchingBlockArgument(&operand);
    access.value = operand.get();
    access.map = op.getMatchingIndexingMap(&operand);
    access.whole = getWholeResults(access.map);
    access.kind = isa<MemRefType>(access.value.getType()) ? RowAccess::Memory
                                                          : RowAccess::Scalar;
    if (access.kind == RowAccess::Scalar &&
        !access.value.getType().isIntOrIndexOrFloat())
      return failure();
    if (op.isDpsInit(&operand)) {
      if (!access.map.isProjectedPermutation())
        return failure();
      stage.stores.push_back(access);
      stage.resultTypes.push_back(arg.getType());
    }
    if (arg.use_empty())
      access = RowAccess();
    stage.args.push_back(access);
  }
  group.stages.push_back(std::move(stage));
  for (Range range : op.createLoopRanges(b, op.getLoc()))
    group.sizes.push_back(range.size);
  return group;
}

//===----------------------------------------------------------------------===//
// Merging dimensions
//===----------------------------------------------------------------------===//

/// Whether dimensions `d` and `d + 1` of `access` can be walked as one.
static bool canMerge(const RowAccess &access, unsigned d) {
  if (access.kind != RowAccess::Memory)
    return true;
  ArrayRef<AffineExpr> results = access.map.getResults();
  for (unsigned i = 0; i < results.size(); ++i) {
    if (!results[i].isFunctionOfDim(d) && !results[i].isFunctionOfDim(d + 1))
      continue;
    if (results[i] != getAffineDimExpr(d, results[i].getContext()) ||
        i + 1 == results.size() ||
        results[i + 1] != getAffineDimExpr(d + 1, results[i].getContext()))
      return false;
    // From the end of a part of a row it is further than one element to the
    // next row.
    if (!access.whole[i + 1])
      return false;
    if (!cast<MemRefType>(access.value.getType()).getLayout().isIdentity())
      return false;
    ++i;
  }
  return true;
}

/// Buffers whose dimensions are merged, so that one buffer stays one value.
using MergedBuffers = llvm::SmallDenseMap<Value, Value>;

static void mergeAccess(OpBuilder &b, Location loc, RowAccess &access,
                        unsigned d, unsigned numDims, MergedBuffers &merged) {
  if (access.kind != RowAccess::Memory)
    return;
  MLIRContext *context = b.getContext();
  // Dimensions above the merged pair move down by one.
  SmallVector<AffineExpr> replacements;
  for (unsigned i = 0; i < numDims; ++i)
    replacements.push_back(getAffineDimExpr(i > d ? i - 1 : i, context));
  SmallVector<AffineExpr> results;
  SmallVector<ReassociationIndices> groups;
  llvm::SmallBitVector whole;
  bool merges = false;
  for (unsigned i = 0, e = access.map.getNumResults(); i < e; ++i) {
    AffineExpr expr = access.map.getResult(i);
    whole.push_back(access.whole[i]);
    bool first = expr == getAffineDimExpr(d, context);
    groups.push_back({static_cast<int64_t>(i)});
    results.push_back(expr.replaceDims(replacements));
    if (first) {
      groups.back().push_back(++i);
      merges = true;
    }
  }
  access.map = AffineMap::get(numDims - 1, 0, results, context);
  access.whole = whole;
  if (!merges)
    return;
  // A dimension that is the first of two in one map may be one by itself in
  // another: the map's groups are what the buffer is known by.
  Value &known = merged[access.value];
  if (!known || known.getDefiningOp<memref::CollapseShapeOp>()
                        .getReassociationIndices() != groups)
    known = memref::CollapseShapeOp::create(b, loc, access.value, groups);
  access.value = known;
}

void collapseDims(OpBuilder &b, ReductionGroup &group) {
  for (int64_t d = static_cast<int64_t>(group.getNumDims()) - 2; d >= 0; --d) {
    bool allowed = group.reduced[d] == group.reduced[d + 1];
    for (RowStage &stage : group.stages) {
      if (!allowed)
        break;
      allowed &= stage.domain[d] == stage.domain[d + 1];
      allowed &=
          llvm::all_of(stage.args, [&](auto &a) { return canMerge(a, d); });
      allowed &=
          llvm::all_of(stage.stores, [&](auto &a) { return canMerge(a, d); });
      // The position along a merged dimension would have to be divided again.
      stage.body->walk([&](linalg::IndexOp index) {
        int64_t dim = stage.dims[index.getDim()];
        allowed &= dim != d && dim != d + 1;
      });
    }
    if (!allowed)
      continue;
    unsigned numDims = group.getNumDims();
    auto s0 = getAffineSymbolExpr(0, b.getContext());
    auto s1 = getAffineSymbolExpr(1, b.getContext());
    group.sizes[d] = affine::makeComposedFoldedAffineApply(
        b, group.loc, s0 * s1, {group.sizes[d], group.sizes[d + 1]});
    group.sizes.erase(group.sizes.begin() + d + 1);
    auto removeBit = [&](llvm::SmallBitVector &bits) {
      llvm::SmallBitVector smaller(numDims - 1);
      for (unsigned i = 0; i + 1 < numDims; ++i)
        smaller[i] = bits[static_cast<int64_t>(i) > d ? i + 1 : i];
      bits = smaller;
    };
    removeBit(group.reduced);
    MergedBuffers merged;
    for (RowStage &stage : group.stages) {
      removeBit(stage.domain);
      for (RowAccess &access : stage.args)
        mergeAccess(b, group.loc, access, d, numDims, merged);
      for (RowAccess &access : stage.stores)
        mergeAccess(b, group.loc, access, d, numDims, merged);
      for (int64_t &dim : stage.dims)
        if (dim > d)
          --dim;
    }
  }
}

} // namespace sardonyx::cpu
