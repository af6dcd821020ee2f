//===- FoldEmpty.cpp - What has no elements computes nothing --------------===//

#include "dialects/SDX/SDX.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

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
  if (isa<sdx::ConvOp, sdx::PackedMatmulOp>(op))
    return llvm::any_of(op.getDpsInputs(), isEmpty);
  return false;
}

namespace {

struct FoldEmptyPass : sardonyx::impl::SDXFoldEmptyBase<FoldEmptyPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops)
      fold(rewriter, op);
  }

private:
  void fold(IRRewriter &rewriter, Operation *op) {
    if (isa<tensor::EmptyOp>(op) || op->hasTrait<OpTrait::IsTerminator>())
      return;
    rewriter.setInsertionPoint(op);
    auto onTensors = dyn_cast<DestinationStyleOpInterface>(op);
    if (onTensors && onTensors.hasPureTensorSemantics() &&
        hasNoIterations(onTensors)) {
      SmallVector<Value> inits(onTensors.getDpsInits());
      if (llvm::all_of(llvm::zip(inits, op->getResultTypes()), [](auto pair) {
            return std::get<0>(pair).getType() == std::get<1>(pair);
          }))
        return rewriter.replaceOp(op, inits);
    }
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(op);
        insert && isEmpty(insert.getSource()))
      return rewriter.replaceOp(op, insert.getDest());
    if (auto pad = dyn_cast<tensor::PadOp>(op))
      if (foldPad(rewriter, pad))
        return;
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
    }
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
  }

  /// A border around nothing.
  bool foldPad(IRRewriter &rewriter, tensor::PadOp pad) {
    Value value = pad.getConstantPaddingValue();
    if (!isEmpty(pad.getSource()) || !value)
      return false;
    FailureOr<SmallVector<Value>> sizes =
        getOpenSizes(rewriter, cast<OpResult>(pad.getResult()));
    if (failed(sizes))
      return false;
    Value empty = tensor::EmptyOp::create(
        rewriter, pad.getLoc(), pad.getResultType(), ValueRange(*sizes));
    rewriter.replaceOpWithNewOp<linalg::FillOp>(pad, value, empty);
    return true;
  }
};

} // namespace
