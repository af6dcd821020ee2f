//===- MatMulNBits.cpp - Products with weights of a few bits --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// com.microsoft's MatMulNBits.
//
//===----------------------------------------------------------------------===//

#include "Contraction/DequantizedWeights.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// A matrix [n, k], quantized in blocks along k.
struct Blocks {
  int64_t n, k, bits, size;

  int64_t count() const { return llvm::divideCeil(k, size); }
};

/// A constant in another shape. Null if it is known that it doesn't fit.
Value shapeAs(TensorBuilder &b, Value tensor, ArrayRef<int64_t> shape) {
  Sizes sizes;
  for (int64_t size : shape)
    sizes.push_back(b.size(size));
  if (!b.sameSize(b.product(b.dims(tensor)), b.product(sizes),
                  "quantized weights have other sizes than N, K and "
                  "block_size say"))
    return nullptr;
  return b.reshape(tensor, sizes);
}

/// The type that A may be rounded to; null: none. Levels 1 and 2 stand for f32
/// and f16, which lose less than is worth another kernel.
Type getRoundedType(onnx::MSMatMulNBitsOp op) {
  constexpr int64_t kBf16 = 3, kInt8 = 4;
  const auto level = int64_t(op.getAccuracyLevel());
  Builder b(op.getContext());
  return level == kBf16   ? Type(b.getBF16Type())
         : level == kInt8 ? b.getI8Type()
                          : Type();
}

/// [..., K] times the transpose of the matrix: [..., N] of f32.
FailureOr<Value> multiply(Lowering<onnx::MSMatMulNBitsOp> &b,
                          const Blocks &blocks) {
  RankedTensorType lhs = rankedType(b.in.getA());
  if (lhs.getRank() == 0 || (!ShapedType::isDynamic(lhs.getShape().back()) &&
                             lhs.getShape().back() != blocks.k))
    return b.refuse("A has not as many columns as K says");
  DequantizedWeights weights;
  weights.k = blocks.k;
  weights.bits = blocks.bits;
  weights.block = blocks.size;
  weights.bytes =
      shapeAs(b, b.in.getB(),
              {blocks.n, blocks.count(), blocks.size * blocks.bits / 8});
  weights.scales = shapeAs(b, b.in.getScales(), {blocks.n, blocks.count()});
  Value zeroPoints = b.in.getZeroPoints();
  if (zeroPoints) {
    bool isFloat = isa<FloatType>(elementTypeOf(zeroPoints));
    int64_t perRow = isFloat
                         ? blocks.count()
                         : llvm::divideCeil(blocks.count() * blocks.bits, 8);
    weights.zeroPoints = shapeAs(b, zeroPoints, {blocks.n, perRow});
  }
  if (!weights.bytes || !weights.scales || (zeroPoints && !weights.zeroPoints))
    return b.refuse("B, scales or zero_points have other sizes than N, K and "
                    "block_size say");
  Value product =
      multiplyByDequantized(b, b.in.getA(), weights, getRoundedType(b.op));
  if (!product)
    return b.refuse("A has not as many columns as K says");
  return product;
}

LogicalResult lowerMatMulNBits(Lowering<onnx::MSMatMulNBitsOp> &b) {
  if (b.in.getGIdx())
    return b.refuseAlways("its input 'g_idx' is not supported");
  if (b.op.getWeightPrepacked() != 0)
    return b.refuseAlways("its weights are packed for another library");
  Blocks blocks = {int64_t(b.op.getN()), int64_t(b.op.getK()),
                   int64_t(b.op.getBits()), int64_t(b.op.getBlockSize())};
  constexpr int64_t limit = int64_t(1) << 31;
  for (int64_t size : {blocks.n, blocks.k, blocks.size})
    if (size < 1 || size > limit)
      return b.refuse("its sizes cannot be");
  if (blocks.bits != 2 && blocks.bits != 4 && blocks.bits != 8)
    return b.refuseAlways("numbers of " + Twine(blocks.bits) +
                          " bits are not supported");
  if (blocks.size * blocks.bits % 8 != 0)
    return b.refuseAlways("its blocks are no whole bytes");
  FailureOr<Value> product = multiply(b, blocks);
  if (failed(product))
    return failure();
  Type stored = elementTypeOf(b.in.getA());
  Value bias = b.in.getBias();
  if (!bias)
    return b.replace(b.convertElements(*product, stored));
  Type element = getOnnxElementType(b.op.getA());
  FailureOr<Value> result = createElementwise(
      b, b.getLoc(), {{*product, b.getF32Type()}, {bias, element}}, element,
      rankedType(*product).clone(stored),
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        return s.add(args[0], s.convert(args[1], args[0].getType()));
      });
  if (failed(result))
    return b.refuse("the bias does not broadcast to the product");
  return b.replace(*result);
}

} // namespace

void populateMatMulNBitsPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  addLowering<onnx::MSMatMulNBitsOp, lowerMatMulNBits>(patterns, converter);
}

} // namespace sardonyx
