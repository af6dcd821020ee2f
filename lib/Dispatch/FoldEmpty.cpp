//===- FoldEmpty.cpp - What has no elements computes nothing --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "dialects/SDX/SDX.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXFOLDEMPTY
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

static bool isEmpty(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && llvm::is_contained(type.getShape(), 0);
}

/// Whether a tensor is known to be empty where its type may leave that open.
static bool isEmptyBehindCasts(Value value) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>()) {
    if (isEmpty(value))
      return true;
    value = cast.getSource();
  }
  return isEmpty(value);
}

/// The sizes of `result`'s open dimensions, when they can be told without it.
static FailureOr<SmallVector<Value>> getOpenSizes(OpBuilder &b,
                                                  OpResult result) {
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<Value> sizes;
  if (type.hasStaticShape())
    return sizes;
  Location loc = result.getLoc();
  if (auto op = dyn_cast<DestinationStyleOpInterface>(result.getOwner())) {
    Value init = op.getTiedOpOperand(result)->get();
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(tensor::DimOp::create(b, loc, init, dim));
    return sizes;
  }
  ReifiedRankedShapedTypeDims reified;
  if (!isa<ReifyRankedShapedTypeOpInterface>(result.getOwner()) ||
      failed(reifyResultShapes(b, result.getOwner(), reified)))
    return failure();
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(getValueOrCreateConstantIndexOp(
          b, loc, reified[result.getResultNumber()][dim]));
  return sizes;
}

/// Whether `op` reads or writes no element at all, so that its results are its
/// inits.
static bool hasNoIterations(DestinationStyleOpInterface op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op.getOperation()))
    return llvm::is_contained(linalgOp.getStaticLoopRanges(), 0);
  auto dense = dyn_cast<sdx::DenseOpInterface>(op.getOperation());
  if (dense && dense.isRoot())
    return llvm::any_of(op.getDpsInputs(), isEmpty);
  return false;
}

/// A border around nothing.
static LogicalResult foldPad(RewriterBase &rewriter, tensor::PadOp pad) {
  Value value = pad.getConstantPaddingValue();
  if (!isEmpty(pad.getSource()) || !value)
    return failure();
  FailureOr<SmallVector<Value>> sizes =
      getOpenSizes(rewriter, cast<OpResult>(pad.getResult()));
  if (failed(sizes))
    return failure();
  Value empty = tensor::EmptyOp::create(
      rewriter, pad.getLoc(), pad.getResultType(), ValueRange(*sizes));
  rewriter.replaceOpWithNewOp<linalg::FillOp>(pad, value, empty);
  return success();
}

/// A part of nothing, or its elements in fewer dimensions, however many its
/// type allows for.
static LogicalResult foldView(RewriterBase &rewriter, Operation *view) {
  OpResult result = view->getResult(0);
  FailureOr<SmallVector<Value>> sizes = getOpenSizes(rewriter, result);
  if (failed(sizes))
    return failure();
  rewriter.replaceOpWithNewOp<tensor::EmptyOp>(view, result.getType(),
                                               ValueRange(*sizes));
  return success();
}

/// Gives those who use an empty result an empty tensor in its place.
static LogicalResult replaceEmptyResults(RewriterBase &rewriter,
                                         Operation *op) {
  bool changed = false;
  for (OpResult result : op->getResults()) {
    if (!isEmpty(result) || result.use_empty())
      continue;
    FailureOr<SmallVector<Value>> sizes = getOpenSizes(rewriter, result);
    if (failed(sizes))
      continue;
    auto type = cast<RankedTensorType>(result.getType());
    Value empty = tensor::EmptyOp::create(rewriter, op->getLoc(), type,
                                          ValueRange(*sizes));
    rewriter.replaceAllUsesWith(result, empty);
    changed = true;
  }
  if (changed && isOpTriviallyDead(op))
    rewriter.eraseOp(op);
  return success(changed);
}

static LogicalResult foldEmpty(RewriterBase &rewriter, Operation *op) {
  if (isa<tensor::EmptyOp>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return failure();
  rewriter.setInsertionPoint(op);
  auto onTensors = dyn_cast<DestinationStyleOpInterface>(op);
  if (onTensors && onTensors.hasPureTensorSemantics() &&
      hasNoIterations(onTensors)) {
    SmallVector<Value> inits(onTensors.getDpsInits());
    if (llvm::equal(ValueRange(inits).getTypes(), op->getResultTypes())) {
      rewriter.replaceOp(op, inits);
      return success();
    }
  }
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op);
      insert &&
      (isEmpty(insert.getSource()) || isEmptyBehindCasts(insert.getDest()))) {
    rewriter.replaceOp(op, insert.getDest());
    return success();
  }
  if (isa<tensor::ExtractSliceOp, tensor::CollapseShapeOp>(op) &&
      isEmptyBehindCasts(op->getOperand(0)) && !isEmpty(op->getResult(0)))
    return foldView(rewriter, op);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    if (succeeded(foldPad(rewriter, pad)))
      return success();
  return replaceEmptyResults(rewriter, op);
}

namespace {

struct FoldEmptyPass : sardonyx::impl::SDXFoldEmptyBase<FoldEmptyPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops)
      (void)foldEmpty(rewriter, op);
  }
};

struct FoldEmpty : RewritePattern {
  explicit FoldEmpty(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/100, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    return foldEmpty(rewriter, op);
  }
};

} // namespace

void sardonyx::populateFoldEmptyPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldEmpty>(patterns.getContext());
}
