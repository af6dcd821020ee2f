//===- ContractionInteger.cpp - MatMulInteger and QLinearMatMul -----------===//

#include "Contraction.h"
#include "StructuredPatterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// A scale or zero point of the left-hand side or the result. One per row is
/// given as [M], which broadcasts as [M,1].
TypedTensor getRowParameter(TensorBuilder &b, Value original, Value converted) {
  if (!converted)
    return {Value(), Type()};
  TypedTensor parameter = getTyped(original, converted);
  RankedTensorType type = rankedType(converted);
  if (type.getRank() == 1 && type.getDimSize(0) != 1)
    parameter.value = unsqueeze(b, b.getLoc(), converted, {1});
  return parameter;
}

TypedTensor getColumnParameter(Value original, Value converted) {
  return converted ? getTyped(original, converted)
                   : TypedTensor{Value(), Type()};
}

struct MatMulIntegerLowering : OnnxPattern<onnx::MatMulIntegerOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::MatMulIntegerOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TensorBuilder b(op.getLoc(), rewriter);
    FailureOr<Value> lhs = subtractZeroPoint(
        b, getTyped(op.getA(), adaptor.getA()),
        getRowParameter(b, op.getAZeroPoint(), adaptor.getAZeroPoint()));
    FailureOr<Value> rhs = subtractZeroPoint(
        b, getTyped(op.getB(), adaptor.getB()),
        getColumnParameter(op.getBZeroPoint(), adaptor.getBZeroPoint()));
    if (failed(lhs) || failed(rhs))
      return rewriter.notifyMatchFailure(op, "zero point does not broadcast");
    FailureOr<Value> product = createMatMul(b, *lhs, *rhs, "MatMulInteger");
    if (failed(product))
      return rewriter.notifyMatchFailure(op, "shapes do not multiply");
    return replace(rewriter, op, *product);
  }
};

struct QLinearMatMulLowering : OnnxPattern<onnx::QLinearMatMulOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::QLinearMatMulOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type lhsElement = getOnnxElementType(op.getA());
    Type resultElement = getOnnxElementType(op.getYZeroPoint());
    if (!isa_and_nonnull<IntegerType>(lhsElement) ||
        !isa_and_nonnull<IntegerType>(resultElement))
      return rewriter.notifyMatchFailure(op, "only integers are quantised");
    TensorBuilder b(op.getLoc(), rewriter);
    FailureOr<Value> lhs = subtractZeroPoint(
        b, getTyped(op.getA(), adaptor.getA()),
        getRowParameter(b, op.getAZeroPoint(), adaptor.getAZeroPoint()));
    FailureOr<Value> rhs = subtractZeroPoint(
        b, getTyped(op.getB(), adaptor.getB()),
        getColumnParameter(op.getBZeroPoint(), adaptor.getBZeroPoint()));
    if (failed(lhs) || failed(rhs))
      return rewriter.notifyMatchFailure(op, "zero point does not broadcast");
    FailureOr<Value> product = createMatMul(b, *lhs, *rhs, "QLinearMatMul");
    if (failed(product))
      return rewriter.notifyMatchFailure(op, "shapes do not multiply");

    Type i32 = b.getI32Type(), f32 = b.getF32Type();
    SmallVector<TypedTensor> inputs{
        {*product, i32},
        getRowParameter(b, op.getAScale(), adaptor.getAScale()),
        getColumnParameter(op.getBScale(), adaptor.getBScale()),
        getRowParameter(b, op.getYScale(), adaptor.getYScale()),
        getRowParameter(b, op.getYZeroPoint(), adaptor.getYZeroPoint())};
    FailureOr<Value> result = createElementwise(
        b, op.getLoc(), inputs, resultElement,
        rankedType(*product).clone(convertElementType(resultElement)),
        [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
          TensorBuilder s(loc, builder);
          Value scale =
              arith::DivFOp::create(s, s.mul(args[1], args[2]), args[3]);
          Value value = castScalar(s, loc, args[0], i32, f32);
          return requantize(s, loc, s.mul(value, scale), args[4],
                            resultElement);
        });
    if (failed(result))
      return rewriter.notifyMatchFailure(op, "scales do not broadcast");
    return replace(rewriter, op, *result);
  }
};

} // namespace

void populateIntegerMatMulPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<MatMulIntegerLowering, QLinearMatMulLowering>(
      converter, patterns.getContext());
}

} // namespace sardonyx
