//===- Cast.cpp - Conversions between element types -----------------------===//

#include "ShapeArithmetic.h"
#include "SmallFloats.h"
#include "Strings.h"

#include "dialects/ONNX/ONNX.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;

namespace sardonyx {

namespace {

/// Cast and CastLike: the result's type says what to convert to.
template <typename OpT> struct CastPattern : OnnxPattern<OpT> {
  using OnnxPattern<OpT>::OnnxPattern;
  LogicalResult
  matchAndRewrite(OpT op, typename OnnxPattern<OpT>::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type from = getOnnxElementType(op->getOperand(0));
    Type to = getOnnxElementType(op->getResult(0));
    Value input = adaptor.getOperands().front();
    if (!convertElementType(from) || !convertElementType(to))
      return refuse(op, "a cast from " + debugString(from) + " to " +
                            debugString(to) + " is not supported");
    if (from == to)
      return this->replace(rewriter, op, input);
    if (isStringType(from) || isStringType(to)) {
      TensorBuilder b(op.getLoc(), rewriter);
      if (Value result = castStrings(b, input, from, to))
        return this->replace(rewriter, op, result);
      return refuse(op, "a cast from " + debugString(from) + " to " +
                            debugString(to) + " is not supported");
    }
    auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
      return castScalar(b, loc, args[0], from, to);
    };
    TypedTensor typed{input, from};
    if (isSmallFloat(to)) {
      // The op says how to round: the body makes the stored byte itself.
      bool saturate = op.getSaturate();
      StringRef roundMode = op.getRoundMode();
      Type byte = rewriter.getI8Type();
      FailureOr<Value> bytes = createElementwise(
          rewriter, op.getLoc(), typed, byte,
          getConvertedType(op->getResult(0)),
          [&](OpBuilder &b, Location loc, ValueRange args) {
            Value value = castScalar(b, loc, args[0], from, to);
            return encodeSmallFloat(b, loc, value, to, saturate, roundMode);
          });
      if (failed(bytes))
        return refuse(op, "its shapes don't agree");
      return this->replace(rewriter, op, *bytes);
    }
    if (Value small =
            scalariseElementwise(rewriter, op.getLoc(), typed, to, body))
      return this->replace(rewriter, op, small);
    FailureOr<Value> result =
        createElementwise(rewriter, op.getLoc(), typed, to,
                          getConvertedType(op->getResult(0)), body);
    if (failed(result))
      return refuse(op, "its shapes don't agree");
    return this->replace(rewriter, op, *result);
  }
};

} // namespace

void populateCastPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns) {
  patterns.add<CastPattern<onnx::CastOp>, CastPattern<onnx::CastLikeOp>>(
      converter, patterns.getContext());
}

} // namespace sardonyx
