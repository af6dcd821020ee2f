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

/// Into how many equal parts the summation has to be cut so that each is exact
/// in f32; 0 when that would not pay.
int64_t getExactParts(int64_t depth) {
  if (ShapedType::isDynamic(depth) || depth < 1)
    return 0;
  constexpr int64_t kLeastPart = 64;
  for (int64_t parts = llvm::divideCeil(depth, kExactProducts);
       parts == 1 || depth / parts >= kLeastPart; ++parts)
    if (depth % parts == 0)
      return parts;
  return 0;
}

Value toInt32(TensorBuilder &b, Value tensor) {
  return b.map(tensor, b.getI32Type(),
               [](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                 return {arith::FPToSIOp::create(s, s.getI32Type(), args[0])};
               });
}

/// [M,K] x [K,N] of whole numbers in f32 as i32, K in `parts` parts.
Value createExactProduct(TensorBuilder &b, Value lhs, Value rhs,
                         int64_t parts) {
  if (parts == 1)
    return toInt32(b, createMatMul2D(b, lhs, rhs));
  OpFoldResult rows = b.dim(lhs, 0), columns = b.dim(rhs, 1);
  OpFoldResult part = b.size(rankedType(rhs).getDimSize(0) / parts);
  lhs = b.expand(lhs, {{0}, {1, 2}}, {rows, b.size(parts), part});
  lhs = b.transpose(lhs, {1, 0, 2});
  rhs = b.expand(rhs, {{0, 1}, {2}}, {b.size(parts), part, columns});
  FailureOr<Value> products = createMatMul(b, lhs, rhs);
  Type i32 = b.getI32Type();
  // Sizes agree by construction; the parts are added as integers.
  return b
      .generic(*products, b.zeros({rows, columns}, i32),
               {b.dimsMap(3, {2, 0, 1}), b.dimsMap(3, {0, 1})},
               {utils::IteratorType::parallel, utils::IteratorType::parallel,
                utils::IteratorType::reduction},
               [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                 Value sum = arith::FPToSIOp::create(s, i32, args[0]);
                 return {s.add(args[1], sum)};
               })
      .front();
}

/// The exact i32 product of differences to zero points. With 8-bit operands and
/// one right-hand side for all batches it is made of f32 products.
FailureOr<Value> createIntegerProduct(TensorBuilder &b, TypedTensor lhs,
                                      TypedTensor lhsZero, TypedTensor rhs,
                                      TypedTensor rhsZero) {
  RankedTensorType lhsType = rankedType(lhs.value);
  RankedTensorType rhsType = rankedType(rhs.value);
  int64_t parts = 0;
  if (isExactInF32(lhs.onnxElementType, rhs.onnxElementType) &&
      lhsType.getRank() >= 2 && rhsType.getRank() == 2 &&
      lhsType.getShape().back() == rhsType.getDimSize(0))
    parts = getExactParts(rhsType.getDimSize(0));
  Type type = parts ? Type(b.getF32Type()) : b.getI32Type();
  FailureOr<Value> left = subtractZeroPoint(b, lhs, lhsZero, type);
  FailureOr<Value> right = subtractZeroPoint(b, rhs, rhsZero, type);
  if (failed(left) || failed(right))
    return failure();
  if (!parts)
    return createMatMul(b, *left, *right);
  Sizes sizes = b.dims(*left);
  sizes.back() = b.dim(*right, 1);
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, sizes.size() - 1);
  appendGroup(groups, sizes.size() - 1, 1);
  Value product =
      createExactProduct(b, b.collapse(*left, groups), *right, parts);
  return b.expand(product, groups, sizes);
}

struct MatMulIntegerLowering : OnnxPattern<onnx::MatMulIntegerOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::MatMulIntegerOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TensorBuilder b(op.getLoc(), rewriter);
    FailureOr<Value> product = createIntegerProduct(
        b, getTyped(op.getA(), adaptor.getA()),
        getRowParameter(b, op.getAZeroPoint(), adaptor.getAZeroPoint()),
        getTyped(op.getB(), adaptor.getB()),
        getColumnParameter(op.getBZeroPoint(), adaptor.getBZeroPoint()));
    if (failed(product))
      return rewriter.notifyMatchFailure(op,
                                         "shapes or zero points do not fit");
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
    FailureOr<Value> product = createIntegerProduct(
        b, getTyped(op.getA(), adaptor.getA()),
        getRowParameter(b, op.getAZeroPoint(), adaptor.getAZeroPoint()),
        getTyped(op.getB(), adaptor.getB()),
        getColumnParameter(op.getBZeroPoint(), adaptor.getBZeroPoint()));
    if (failed(product))
      return rewriter.notifyMatchFailure(op,
                                         "shapes or zero points do not fit");

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
