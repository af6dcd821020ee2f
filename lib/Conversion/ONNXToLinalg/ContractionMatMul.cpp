//===- ContractionMatMul.cpp - MatMul and Gemm ----------------------------===//

#include "Contraction.h"
#include "StructuredPatterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The onnx element types a product can be computed on: all floats but the
/// 8-bit and smaller ones, integers of at least 8 bits.
bool isProductType(Type onnxElementType) {
  if (auto floatType = dyn_cast<FloatType>(onnxElementType))
    return floatType.getWidth() >= 16;
  auto intType = dyn_cast<IntegerType>(onnxElementType);
  return intType && intType.getWidth() >= 8;
}

struct MatMulLowering : OnnxPattern<onnx::MatMulOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::MatMulOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type element = getOnnxElementType(op.getA());
    if (!element || !isProductType(element))
      return refuse(op, "element type has no product");
    TensorBuilder b(op.getLoc(), rewriter);
    Type stored = elementTypeOf(adaptor.getA());
    FailureOr<Value> product = createMatMul(b, convertFactor(b, adaptor.getA()),
                                            convertFactor(b, adaptor.getB()));
    if (failed(product))
      return refuse(op, "shapes do not multiply");
    return replace(rewriter, op, b.convertElements(*product, stored));
  }
};

/// Whether a factor can be applied to elements of this type: integers take
/// whole numbers only.
bool isApplicable(APFloat factor, Type onnxElementType) {
  return isa<FloatType>(onnxElementType) || factor.isInteger();
}

/// `value * factor`; the value itself when the factor is one.
Value scale(TensorBuilder &b, Value value, APFloat factor) {
  double number = factor.convertToFloat();
  return number == 1.0 ? value
                       : b.mul(value, b.scalar(value.getType(), number));
}

struct GemmLowering : OnnxPattern<onnx::GemmOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::GemmOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type element = getOnnxElementType(op.getA());
    if (!element || !isProductType(element))
      return refuse(op, "element type has no product");
    Value lhs = adaptor.getA(), rhs = adaptor.getB();
    if (rankedType(lhs).getRank() != 2 || rankedType(rhs).getRank() != 2)
      return refuse(op, "A and B must be matrices");
    TensorBuilder b(op.getLoc(), rewriter);
    Type stored = elementTypeOf(lhs), accumulator = getAccumulatorType(stored);
    if (!isApplicable(op.getAlpha(), element) ||
        !isApplicable(op.getBeta(), element))
      return refuse(op, "alpha and beta must be whole numbers for integers");

    lhs = convertFactor(b, lhs);
    rhs = convertFactor(b, rhs);
    if (op.getTransA())
      lhs = b.transpose(lhs, {1, 0});
    if (op.getTransB())
      rhs = b.transpose(rhs, {1, 0});
    FailureOr<Value> product = createMatMul(b, lhs, rhs);
    if (failed(product))
      return refuse(op, "shapes do not multiply");

    // Scaling, bias and rounding are one loop over the product, which becomes
    // the epilogue of its kernel.
    // As in BLAS, a C that counts for nothing is not read, whatever it holds.
    Value bias = op.getBeta().isZero() ? Value() : adaptor.getC();
    if (!bias && op.getAlpha().isExactlyValue(1.0) && stored == accumulator)
      return replace(rewriter, op, *product);
    if (bias &&
        failed(checkBroadcastsTo(b, op.getLoc(), bias, b.dims(*product))))
      return refuse(op, "C does not broadcast to A x B");
    Type accumulated = isa<FloatType>(element) ? accumulator : element;
    SmallVector<TypedTensor> inputs{{*product, accumulated}};
    if (bias)
      inputs.push_back({bias, element});
    FailureOr<Value> result = createElementwise(
        b, op.getLoc(), inputs, element, rankedType(*product).clone(stored),
        [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
          TensorBuilder s(loc, builder);
          Value value = scale(s, args[0], op.getAlpha());
          return bias ? s.add(value, scale(s, args[1], op.getBeta())) : value;
        });
    if (failed(result))
      return refuse(op, "C does not broadcast to A x B");
    return replace(rewriter, op, *result);
  }
};

} // namespace

void populateMatMulPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  patterns.add<MatMulLowering, GemmLowering>(converter, patterns.getContext());
}

} // namespace sardonyx
