//===- MatMul.cpp - MatMul and Gemm ---------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/DequantizedWeights.h"
#include "Contraction/Products.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
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

LogicalResult lowerMatMul(Lowering<onnx::MatMulOp> &b) {
  Type element = getOnnxElementType(b.op.getA());
  if (!element || !isProductType(element))
    return b.refuseAlways("element type has no product");
  Type stored = elementTypeOf(b.in.getA());
  FailureOr<Value> product;
  if (auto weights = findDequantizedWeights(b, b.rewriter, b.op.getA(),
                                            b.op.getB(), /*transposed=*/false))
    product = multiplyByDequantized(b, b.in.getA(), *weights);
  else
    product = createMatMul(b, convertFactor(b, b.in.getA()),
                           convertFactor(b, b.in.getB()));
  if (failed(product) || !*product)
    return b.refuse("shapes do not multiply");
  return b.replace(b.convertElements(*product, stored));
}

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

LogicalResult lowerGemm(Lowering<onnx::GemmOp> &b) {
  Type element = getOnnxElementType(b.op.getA());
  if (!element || !isProductType(element))
    return b.refuseAlways("element type has no product");
  Value lhs = b.in.getA(), rhs = b.in.getB();
  if (b.rank(lhs) != 2 || b.rank(rhs) != 2)
    return b.refuse("A and B must be matrices");
  Type stored = elementTypeOf(lhs), accumulator = getAccumulatorType(stored);
  if (!isApplicable(b.op.getAlpha(), element) ||
      !isApplicable(b.op.getBeta(), element))
    return b.refuseAlways("alpha and beta must be whole numbers for integers");

  lhs = convertFactor(b, lhs);
  if (b.op.getTransA())
    lhs = b.transpose(lhs, {1, 0});
  FailureOr<Value> product;
  if (auto weights = findDequantizedWeights(
          b, b.rewriter, b.op.getA(), b.op.getB(), b.op.getTransB() != 0)) {
    product = multiplyByDequantized(b, lhs, *weights);
  } else {
    rhs = convertFactor(b, rhs);
    if (b.op.getTransB())
      rhs = b.transpose(rhs, {1, 0});
    product = createMatMul(b, lhs, rhs);
  }
  if (failed(product) || !*product)
    return b.refuse("shapes do not multiply");

  // Scaling, bias and rounding are one loop over the product, which becomes
  // the epilogue of its kernel.
  // As in BLAS, a C that counts for nothing is not read, whatever it holds.
  Value bias = b.op.getBeta().isZero() ? Value() : b.in.getC();
  if (!bias && b.op.getAlpha().isExactlyValue(1.0) && stored == accumulator)
    return b.replace(*product);
  if (bias && failed(checkBroadcastsTo(b, b.getLoc(), bias, b.dims(*product))))
    return b.refuse("C does not broadcast to A x B");
  Type accumulated = isa<FloatType>(element) ? accumulator : element;
  SmallVector<TypedTensor> inputs{{*product, accumulated}};
  if (bias)
    inputs.push_back({bias, element});
  FailureOr<Value> result = createElementwise(
      b, b.getLoc(), inputs, element, rankedType(*product).clone(stored),
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        Value value = scale(s, args[0], b.op.getAlpha());
        return bias ? s.add(value, scale(s, args[1], b.op.getBeta())) : value;
      });
  if (failed(result))
    return b.refuse("C does not broadcast to A x B");
  return b.replace(*result);
}

} // namespace

void populateMatMulPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::MatMulOp, lowerMatMul>(patterns, converter);
  addLowering<onnx::GemmOp, lowerGemm>(patterns, converter);
}

} // namespace sardonyx
