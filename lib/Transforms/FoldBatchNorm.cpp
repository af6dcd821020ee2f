//===- FoldBatchNorm.cpp - BatchNormalization into Conv's weights ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Transforms/ConstantOnly.h"
#include "sardonyx/Transforms/Passes.h"

#include "dialects/SDX/SDX.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXFOLDBATCHNORM
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// Whether `value` is a constant, or what a few steps make of constants. Steps
/// that contract or dequantize are none: these are recognised as they are.
bool isMadeInFewSteps(Value value) {
  constexpr size_t kMostSteps = 256;
  SetVector<Operation *> makers;
  auto isStep = [](Operation *op) {
    return op->hasTrait<onnx::Elementwise>() || op->hasTrait<onnx::MovesData>();
  };
  return collectConstantMakers(value, makers, isStep, kMostSteps);
}

/// Conv and ConvTranspose differ in where the output channels of the weights
/// are.
template <typename ConvOp>
struct FoldIntoConv : OpRewritePattern<onnx::BatchNormalizationOp> {
  using OpRewritePattern::OpRewritePattern;
  static constexpr bool transposed =
      std::is_same_v<ConvOp, onnx::ConvTransposeOp>;

  LogicalResult matchAndRewrite(onnx::BatchNormalizationOp norm,
                                PatternRewriter &rewriter) const override {
    auto conv = norm.getX().getDefiningOp<ConvOp>();
    if (!conv)
      return rewriter.notifyMatchFailure(norm, "not after a convolution");
    if (failed(match(norm, conv, rewriter)))
      return failure();
    rewrite(norm, conv, rewriter);
    return success();
  }

private:
  LogicalResult match(onnx::BatchNormalizationOp norm, ConvOp conv,
                      PatternRewriter &rewriter) const {
    if (!sdx::hasOneReader(conv->getResult(0)))
      return rewriter.notifyMatchFailure(norm, "the convolution is used twice");
    if (norm.getTrainingMode() != 0 || norm.getRunningMean() ||
        norm.getRunningVar())
      return rewriter.notifyMatchFailure(norm, "is in training mode");
    if (transposed && conv.getGroup() != 1)
      return rewriter.notifyMatchFailure(norm, "grouped ConvTranspose");
    auto weights = dyn_cast<RankedTensorType>(conv.getW().getType());
    if (!weights || weights.getRank() < 3)
      return rewriter.notifyMatchFailure(norm, "weights of unknown rank");
    SmallVector<Value> inputs = {norm.getScale(), norm.getB(),
                                 norm.getInputMean(), norm.getInputVar()};
    if (conv.getB())
      inputs.push_back(conv.getB());
    int64_t channels = weights.getDimSize(transposed ? 1 : 0);
    auto vector = RankedTensorType::get({channels}, weights.getElementType());
    for (Value input : inputs)
      if (input.getType() != vector)
        return rewriter.notifyMatchFailure(norm, "types differ");
    if (!isa<FloatType>(weights.getElementType()) ||
        ShapedType::isDynamic(channels))
      return rewriter.notifyMatchFailure(norm, "not a float type and size");
    inputs.push_back(conv.getW());
    if (!llvm::all_of(inputs, isMadeInFewSteps))
      return rewriter.notifyMatchFailure(norm, "weights are computed");
    return success();
  }

  void rewrite(onnx::BatchNormalizationOp norm, ConvOp conv,
               PatternRewriter &rewriter) const {
    Location loc = norm.getLoc();
    auto weights = cast<RankedTensorType>(conv.getW().getType());
    auto vector = cast<RankedTensorType>(norm.getScale().getType());
    auto scalar = RankedTensorType::get({}, weights.getElementType());
    APFloat epsilon = norm.getEpsilon();
    bool ignored;
    epsilon.convert(
        cast<FloatType>(weights.getElementType()).getFloatSemantics(),
        APFloat::rmNearestTiesToEven, &ignored);

    // scale / sqrt(var + epsilon)
    Value factor = onnx::createConstant(
        rewriter, loc, DenseElementsAttr::get(scalar, epsilon));
    factor =
        onnx::AddOp::create(rewriter, loc, vector, norm.getInputVar(), factor);
    factor = onnx::SqrtOp::create(rewriter, loc, vector, factor);
    factor =
        onnx::DivOp::create(rewriter, loc, vector, norm.getScale(), factor);

    // Weights times factor, by output channel.
    SmallVector<int64_t> shape(weights.getRank(), 1);
    shape[transposed ? 1 : 0] = vector.getDimSize(0);
    auto shapeType =
        RankedTensorType::get({weights.getRank()}, rewriter.getI64Type());
    Value target = onnx::createConstant(
        rewriter, loc, DenseElementsAttr::get(shapeType, ArrayRef(shape)));
    Value spread = onnx::ReshapeOp::create(
        rewriter, loc, RankedTensorType::get(shape, weights.getElementType()),
        factor, target, /*allowzero=*/0);
    Value scaled =
        onnx::MulOp::create(rewriter, loc, weights, conv.getW(), spread);

    // (bias - mean) * factor + b
    Value bias = norm.getInputMean();
    if (conv.getB())
      bias = onnx::SubOp::create(rewriter, loc, vector, conv.getB(), bias);
    else
      bias = onnx::NegOp::create(rewriter, loc, vector, bias);
    bias = onnx::MulOp::create(rewriter, loc, vector, bias, factor);
    bias = onnx::AddOp::create(rewriter, loc, vector, bias, norm.getB());

    OperationState state(rewriter.getFusedLoc({conv.getLoc(), loc}),
                         ConvOp::getOperationName());
    state.addOperands({conv.getX(), scaled, bias});
    state.addTypes(norm.getY().getType());
    state.addAttributes(conv->getAttrs());
    rewriter.setInsertionPoint(norm);
    rewriter.replaceOp(norm, rewriter.create(state));
    if (conv->use_empty()) // it may be observed
      rewriter.eraseOp(conv);
  }
};

struct OnnxFoldBatchNormPass
    : sardonyx::impl::OnnxFoldBatchNormBase<OnnxFoldBatchNormPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns
        .add<FoldIntoConv<onnx::ConvOp>, FoldIntoConv<onnx::ConvTransposeOp>>(
            &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
