//===- MatMulNBits.cpp - Products with weights of a few bits --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// com.microsoft's MatMulNBits. No linalg operation multiplies integers that
// share a byte, so that the product is packed here already: its weights are
// never numbers in memory.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "Support/Lowering.h"
#include "dialects/ONNX/ONNX.h"
#include "dialects/SDX/SDX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// A matrix [n, k], quantized in blocks along k.
struct Blocks {
  int64_t n, k, bits, size;

  int64_t count() const { return llvm::divideCeil(k, size); }
  int64_t panels() const { return llvm::divideCeil(n, sdx::kPanelWidth); }
};

/// Integer number `index` of those that lie packed in the bytes of a tensor's
/// last dimension, the lowest bits first; the other indices are `at`.
Value extractBits(TensorBuilder &b, Value bytes, SmallVector<Value> at,
                  Value index, int64_t bits) {
  Type i32 = b.getI32Type();
  Value bit = b.mul(index, b.index(bits)), eight = b.index(8);
  at.push_back(arith::DivUIOp::create(b, bit, eight));
  Value shift = b.convert(arith::RemUIOp::create(b, bit, eight), i32);
  Value byte = b.convert(b.extract(bytes, at), i32, /*isUnsigned=*/true);
  return arith::AndIOp::create(b, arith::ShRUIOp::create(b, byte, shift),
                               b.integer(i32, (1 << bits) - 1));
}

/// `value` of column `column`, or zero past the last one.
Value whereColumn(TensorBuilder &b, Value column, const Blocks &blocks,
                  function_ref<Value(Value column)> value) {
  Value last = b.index(blocks.n - 1);
  Value isThere = b.compare(arith::CmpIPredicate::sle, column, last);
  Value inside = value(b.minimum(column, last));
  return b.select(isThere, inside, b.zero(inside.getType()));
}

/// The integers of `bytes` [n, blocks, bytes of a block] as sdx.packed_matmul
/// takes them.
Value packIntegers(TensorBuilder &b, Value bytes, const Blocks &blocks) {
  int64_t perByte = 8 / blocks.bits, width = sdx::kPanelWidth / perByte;
  Type i8 = b.getI8Type(), i32 = b.getI32Type();
  auto body = [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
    Value first =
        s.add(s.mul(linalg::IndexOp::create(s, 0), s.index(sdx::kPanelWidth)),
              linalg::IndexOp::create(s, 2));
    Value k = linalg::IndexOp::create(s, 1), size = s.index(blocks.size);
    Value block = arith::DivUIOp::create(s, k, size);
    Value inBlock = arith::RemUIOp::create(s, k, size);
    Value byte = s.integer(i32, 0);
    for (int64_t j = 0; j < perByte; ++j) {
      Value number = whereColumn(
          s, s.add(first, s.index(j * width)), blocks, [&](Value column) {
            return extractBits(s, bytes, {column, block}, inBlock, blocks.bits);
          });
      byte = arith::OrIOp::create(
          s, byte,
          arith::ShLIOp::create(s, number, s.integer(i32, j * blocks.bits)));
    }
    return {s.convert(byte, i8)};
  };
  Sizes sizes = {b.size(blocks.panels()), b.size(blocks.k), b.size(width)};
  return b.elementwise(sizes, {}, {}, {i8}, body).front();
}

/// Scales [n, blocks] and, where there are zero points, offsets. Zero points
/// are integers of the same bits, or floats.
Value packScales(TensorBuilder &b, Value scales, Value zeroPoints,
                 const Blocks &blocks) {
  Type f32 = b.getF32Type();
  auto offset = [&](TensorBuilder &s, Value scale, Value column, Value block) {
    Value zero;
    if (isa<FloatType>(elementTypeOf(zeroPoints)))
      zero = s.convert(s.extract(zeroPoints, {column, block}), f32);
    else
      zero = s.convert(extractBits(s, zeroPoints, {column}, block, blocks.bits),
                       f32);
    return arith::NegFOp::create(s, s.mul(scale, zero));
  };
  auto body = [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
    Value block = linalg::IndexOp::create(s, 1);
    Value isScale =
        s.compare(arith::CmpIPredicate::eq, linalg::IndexOp::create(s, 2),
                  s.index(int64_t(0)));
    Value column =
        s.add(s.mul(linalg::IndexOp::create(s, 0), s.index(sdx::kPanelWidth)),
              linalg::IndexOp::create(s, 3));
    return {whereColumn(s, column, blocks, [&](Value column) {
      Value scale = s.convert(s.extract(scales, {column, block}), f32);
      return zeroPoints
                 ? s.select(isScale, scale, offset(s, scale, column, block))
                 : scale;
    })};
  };
  Sizes sizes = {b.size(blocks.panels()), b.size(blocks.count()),
                 b.size(zeroPoints ? 2 : 1), b.size(sdx::kPanelWidth)};
  return b.elementwise(sizes, {}, {}, {f32}, body).front();
}

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

/// [..., K] times the transpose of the matrix: [..., N] of f32.
FailureOr<Value> multiply(Lowering<onnx::MSMatMulNBitsOp> &b,
                          const Blocks &blocks) {
  Value lhs = b.convertElements(b.in.getA(), b.getF32Type());
  Sizes sizes = b.dims(lhs);
  if (sizes.empty() || !b.sameSize(sizes.back(), b.size(blocks.k),
                                   "A has not as many columns as K says"))
    return b.refuse("A has not as many columns as K says");
  SmallVector<int64_t> shape(rankedType(lhs).getShape());
  shape.back() = blocks.k;
  lhs = b.cast(lhs, rankedType(lhs).clone(shape));
  OpFoldResult rows = b.product(ArrayRef(sizes).drop_back());
  lhs = b.reshape(lhs, {rows, b.size(blocks.k)});

  Value bytes =
      shapeAs(b, b.in.getB(),
              {blocks.n, blocks.count(), blocks.size * blocks.bits / 8});
  Value scales = shapeAs(b, b.in.getScales(), {blocks.n, blocks.count()});
  Value zeroPoints = b.in.getZeroPoints();
  bool hasZeroPoints = zeroPoints != nullptr;
  if (hasZeroPoints) {
    bool isFloat = isa<FloatType>(elementTypeOf(zeroPoints));
    int64_t perRow = isFloat
                         ? blocks.count()
                         : llvm::divideCeil(blocks.count() * blocks.bits, 8);
    zeroPoints = shapeAs(b, zeroPoints, {blocks.n, perRow});
  }
  if (!bytes || !scales || (hasZeroPoints && !zeroPoints))
    return b.refuse("B, scales or zero_points have other sizes than N, K and "
                    "block_size say");
  Value integers = packIntegers(b, bytes, blocks);
  Value factors = packScales(b, scales, zeroPoints, blocks);
  Value zeros = b.zeros({rows, b.size(blocks.n)}, b.getF32Type());
  Value product =
      sdx::PackedMatmulOp::create(b, lhs, integers, factors, blocks.size, zeros)
          .getResult();
  sizes.back() = b.size(blocks.n);
  return b.reshape(product, sizes);
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
