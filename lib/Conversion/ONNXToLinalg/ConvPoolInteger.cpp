//===- ConvPoolInteger.cpp - ConvInteger and QLinearConv ------------------===//

#include "Contraction.h"
#include "ConvPool.h"
#include "StructuredPatterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// Operands of an integer convolution: original and converted.
struct IntegerConv {
  TypedTensor input, weights;
  TypedTensor inputZero{Value(), Type()}, weightZero{Value(), Type()};
};

/// The exact convolution in i32 of differences to the zero points. Border
/// positions hold the input's zero point, so their difference is zero.
FailureOr<Value> createIntegerConv(TensorBuilder &b, IntegerConv conv,
                                   WindowAttributes attributes,
                                   std::optional<ArrayRef<int64_t>> kernelShape,
                                   int64_t group, StringRef opName) {
  FailureOr<SmallVector<int64_t>> kernel =
      getKernelShape(b, conv.weights.value, kernelShape);
  if (failed(kernel))
    return failure();
  attributes.kernel = *kernel;
  FailureOr<Window> window = getWindow(b, conv.input.value, attributes);
  if (failed(window))
    return failure();
  // One zero point per output channel stands along dimension 0 of the weights.
  if (conv.weightZero.value)
    conv.weightZero.value =
        alignChannels(b, conv.weightZero.value, window->rank() + 1);
  FailureOr<Value> input = subtractZeroPoint(b, conv.input, conv.inputZero);
  FailureOr<Value> weights =
      subtractZeroPoint(b, conv.weights, conv.weightZero);
  if (failed(input) || failed(weights))
    return failure();
  return createConv(b, *input, *weights, *window, group, opName);
}

struct ConvIntegerLowering : OnnxPattern<onnx::ConvIntegerOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::ConvIntegerOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TensorBuilder b(op.getLoc(), rewriter);
    IntegerConv conv{getTyped(op.getX(), adaptor.getX()),
                     getTyped(op.getW(), adaptor.getW())};
    if (adaptor.getXZeroPoint())
      conv.inputZero = getTyped(op.getXZeroPoint(), adaptor.getXZeroPoint());
    if (adaptor.getWZeroPoint())
      conv.weightZero = getTyped(op.getWZeroPoint(), adaptor.getWZeroPoint());
    FailureOr<Value> result =
        createIntegerConv(b, conv, getWindowAttributes(op), op.getKernelShape(),
                          op.getGroup(), "ConvInteger");
    if (failed(result))
      return rewriter.notifyMatchFailure(op, "shapes or attributes do not fit");
    return replace(rewriter, op, *result);
  }
};

struct QLinearConvLowering : OnnxPattern<onnx::QLinearConvOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::QLinearConvOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TensorBuilder b(op.getLoc(), rewriter);
    Type resultElement = getOnnxElementType(op.getYZeroPoint());
    IntegerConv conv{getTyped(op.getX(), adaptor.getX()),
                     getTyped(op.getW(), adaptor.getW()),
                     getTyped(op.getXZeroPoint(), adaptor.getXZeroPoint()),
                     getTyped(op.getWZeroPoint(), adaptor.getWZeroPoint())};
    FailureOr<Value> product =
        createIntegerConv(b, conv, getWindowAttributes(op), op.getKernelShape(),
                          op.getGroup(), "QLinearConv");
    if (failed(product))
      return rewriter.notifyMatchFailure(op, "shapes or attributes do not fit");

    Type i32 = b.getI32Type(), f32 = b.getF32Type();
    int64_t spatial = rankedType(*product).getRank() - 2;
    SmallVector<TypedTensor> inputs{
        {*product, i32},
        {adaptor.getXScale(), f32},
        {alignChannels(b, adaptor.getWScale(), spatial), f32},
        {adaptor.getYScale(), f32},
        getTyped(op.getYZeroPoint(), adaptor.getYZeroPoint())};
    if (adaptor.getB())
      inputs.push_back({alignChannels(b, adaptor.getB(), spatial), i32});
    FailureOr<Value> result = createElementwise(
        b, op.getLoc(), inputs, resultElement,
        rankedType(*product).clone(convertElementType(resultElement)),
        [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
          TensorBuilder s(loc, builder);
          Value sum = args.size() > 5 ? s.add(args[0], args[5]) : args[0];
          Value scale =
              arith::DivFOp::create(s, s.mul(args[1], args[2]), args[3]);
          Value value = castScalar(s, loc, sum, i32, f32);
          return requantize(s, loc, s.mul(value, scale), args[4],
                            resultElement);
        });
    if (failed(result))
      return rewriter.notifyMatchFailure(op, "scales do not broadcast");
    return replace(rewriter, op, *result);
  }
};

} // namespace

void populateIntegerConvPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<ConvIntegerLowering, QLinearConvLowering>(converter,
                                                         patterns.getContext());
}

} // namespace sardonyx
