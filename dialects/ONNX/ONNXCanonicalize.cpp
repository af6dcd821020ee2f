//===- ONNXCanonicalize.cpp - Canonical forms -----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNX.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sardonyx::onnx;

namespace {

/// `value_int = 3` and its like become `value = dense<3>`, so that readers of
/// constants know one form.
struct ConstantToValue : OpRewritePattern<ConstantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConstantOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getValueAttr() || op.getSparseValueAttr())
      return rewriter.notifyMatchFailure(op, "has a tensor value already");
    SmallVector<OpFoldResult> folded;
    if (failed(op->fold(folded)))
      return rewriter.notifyMatchFailure(op, "has no value");
    auto value = cast<ElementsAttr>(cast<Attribute>(folded.front()));
    if (value.getShapedType().getElementType() !=
        cast<TensorType>(op.getOutput().getType()).getElementType())
      return rewriter.notifyMatchFailure(op, "value and result type differ");
    OperationState state(op.getLoc(), ConstantOp::getOperationName());
    state.addTypes(op.getType());
    state.addAttribute("value", value);
    state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
    rewriter.replaceOp(op, rewriter.create(state));
    return success();
  }
};

/// Outside training Dropout returns its input, and a mask of ones.
struct RemoveInferenceDropout : OpRewritePattern<DropoutOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DropoutOp op,
                                PatternRewriter &rewriter) const override {
    if (Value training = op.getTrainingMode()) {
      DenseElementsAttr value;
      if (!matchPattern(training, m_Constant(&value)) || !value.isSplat() ||
          !value.getElementType().isInteger(1) || value.getSplatValue<bool>())
        return rewriter.notifyMatchFailure(op, "may be in training mode");
    }
    if (op.getMask() && !op.getMask().use_empty())
      return rewriter.notifyMatchFailure(op, "its mask is used");
    if (op.getData().getType() != op.getOutput().getType())
      return rewriter.notifyMatchFailure(op, "result type is less precise");
    rewriter.replaceAllUsesWith(op.getOutput(), op.getData());
    rewriter.eraseOp(op);
    return success();
  }
};

/// The permutation of a Transpose, the schema's default included; nothing if
/// the rank is not known.
std::optional<SmallVector<int64_t>> getPermutation(TransposeOp op) {
  if (op.getPerm())
    return llvm::to_vector(*op.getPerm());
  auto type = dyn_cast<RankedTensorType>(op.getData().getType());
  if (!type)
    return std::nullopt;
  return llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, type.getRank())));
}

struct TransposeOfTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto producer = op.getData().getDefiningOp<TransposeOp>();
    if (!producer)
      return rewriter.notifyMatchFailure(op, "not of a Transpose");
    auto outer = getPermutation(op), inner = getPermutation(producer);
    if (!outer || !inner || outer->size() != inner->size())
      return rewriter.notifyMatchFailure(op, "permutations are not known");
    SmallVector<int64_t> both;
    for (int64_t p : *outer) {
      if (p < 0 || p >= static_cast<int64_t>(inner->size()))
        return rewriter.notifyMatchFailure(op, "is no permutation");
      both.push_back((*inner)[p]);
    }
    rewriter.replaceOpWithNewOp<TransposeOp>(
        op, op.getType(), producer.getData(),
        rewriter.getDenseI64ArrayAttr(both));
    return success();
  }
};

/// A Reshape does not look at the shape of its input, unless its target copies
/// sizes (0) from it.
struct ReshapeOfReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto producer = op.getData().getDefiningOp<ReshapeOp>();
    if (!producer)
      return rewriter.notifyMatchFailure(op, "not of a Reshape");
    if (!op.getAllowzero()) {
      DenseIntElementsAttr shape;
      if (!matchPattern(op.getShape(), m_Constant(&shape)) ||
          llvm::any_of(shape.getValues<APInt>(),
                       [](const APInt &size) { return size.isZero(); }))
        return rewriter.notifyMatchFailure(op, "may copy sizes of its input");
    }
    rewriter.modifyOpInPlace(
        op, [&]() { op.getDataMutable().assign(producer.getData()); });
    return success();
  }
};

} // namespace

void ConstantOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                             MLIRContext *context) {
  patterns.add<ConstantToValue>(context);
}

void DropoutOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<RemoveInferenceDropout>(context);
}

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<TransposeOfTranspose>(context);
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<ReshapeOfReshape>(context);
}
