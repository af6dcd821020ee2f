//===- RecomposeLowBits.cpp - Products with dequantised weights -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights of 2, 4 or 8 bits that are dequantised and then multiplied by become
// com.microsoft's MatMulNBits, which reads them packed: its blocks lie along k,
// one column after the other, and its integers are unsigned. Weights of 8 bits
// stay floats where many rows are known to be multiplied: unpacking them in
// each run would cost more than reading them.
//
//===----------------------------------------------------------------------===//

#include "Recompose.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// Values of TensorProto.DataType.
constexpr int64_t kOnnxFloat = 1, kOnnxUint8 = 2, kOnnxInt32 = 6,
                  kOnnxFloat16 = 10, kOnnxBFloat16 = 16;

int64_t onnxTypeOf(Type type) {
  return type.isF16()    ? kOnnxFloat16
         : type.isBF16() ? kOnnxBFloat16
                         : kOnnxFloat;
}

/// Whether a value is a constant, or its transpose.
bool isConstant(Value value) {
  if (auto transpose = value.getDefiningOp<onnx::TransposeOp>())
    value = transpose.getData();
  return matchPattern(value, m_Constant());
}

/// A matrix of weights of a few bits.
struct LowBitWeights {
  onnx::DequantizeLinearOp op;
  /// Whether it is [N,K].
  bool transposed;
  int64_t n = 0, k = 0, bits = 0, block = 0;
  bool isSigned = false;

  static std::optional<LowBitWeights> match(Value value, bool transposed,
                                            Value lhs);
  /// The product of `lhs` and the matrix, of `type`.
  Value multiply(ImplicitLocOpBuilder &b, Value lhs, Type type);

private:
  int64_t blocks() { return k / block; }
  bool matchBlocks(RankedTensorType matrix);
  Value makeUnsigned(ImplicitLocOpBuilder &b, Value numbers);
  Value packIntegers(ImplicitLocOpBuilder &b);
  Value getParameter(ImplicitLocOpBuilder &b, Value given, Type number,
                     int64_t onnxType);
  Value getZeroPoints(ImplicitLocOpBuilder &b);
};

} // namespace

static Value transposeMatrix(ImplicitLocOpBuilder &b, Value matrix) {
  auto type = cast<RankedTensorType>(matrix.getType());
  return onnx::TransposeOp::create(
      b, type.clone({type.getDimSize(1), type.getDimSize(0)}), matrix,
      b.getDenseI64ArrayAttr({1, 0}));
}

static Value castTo(ImplicitLocOpBuilder &b, Value value, Type type,
                    int64_t onnxType) {
  auto from = cast<RankedTensorType>(value.getType());
  if (from.getElementType() == type)
    return value;
  return onnx::CastOp::create(b, from.clone(type), value, /*round_mode=*/"up",
                              /*saturate=*/1, onnxType);
}

static Value makeConstant(ImplicitLocOpBuilder &b, ArrayRef<int64_t> shape,
                          ArrayRef<int32_t> values) {
  auto type = RankedTensorType::get(shape, b.getI32Type());
  return onnx::createConstant(b, b.getLoc(),
                              DenseElementsAttr::get(type, values));
}

static Value reshapeTo(ImplicitLocOpBuilder &b, Value value,
                       ArrayRef<int64_t> shape) {
  auto list = RankedTensorType::get({static_cast<int64_t>(shape.size())},
                                    b.getI64Type());
  Value sizes =
      onnx::createConstant(b, b.getLoc(), DenseElementsAttr::get(list, shape));
  auto type = cast<RankedTensorType>(value.getType()).clone(shape);
  return onnx::ReshapeOp::create(b, type, value, sizes, /*allowzero=*/0);
}

/// Whether each column is of whole blocks that have one scale.
bool LowBitWeights::matchBlocks(RankedTensorType matrix) {
  auto scale = dyn_cast<RankedTensorType>(op.getXScale().getType());
  Value zero = op.getXZeroPoint();
  if (!scale || !scale.hasStaticShape())
    return false;
  if (zero) {
    auto type = dyn_cast<RankedTensorType>(zero.getType());
    if (!type || type.getElementType() != matrix.getElementType() ||
        !isConstant(zero) || !type.hasStaticShape() ||
        (type.getShape() != scale.getShape() &&
         (type.getNumElements() != 1 || scale.getNumElements() != 1)))
      return false;
  }
  int64_t along = transposed ? 1 : 0;
  int64_t axis = op.getAxis() < 0 ? op.getAxis() + 2 : op.getAxis();
  int64_t given = op.getBlockSize();
  if (given > 0 && scale.getRank() == 2) {
    SmallVector<int64_t> wanted = {n, n};
    wanted[along] = k / given;
    if (axis != along || k % given != 0 || scale.getShape() != ArrayRef(wanted))
      return false;
    block = given;
  } else {
    bool perColumn =
        scale.getRank() == 1 && axis == 1 - along && scale.getDimSize(0) == n;
    if (given != 0 || (!perColumn && scale.getNumElements() != 1))
      return false;
    block = k;
  }
  return block * bits % 8 == 0;
}

/// Whether a product of `lhs` by bytes is better off with floats or integers:
/// its rows are many, or dequantised themselves.
static bool prefersOther(Value lhs) {
  auto type = dyn_cast<RankedTensorType>(lhs.getType());
  constexpr int64_t kFewRows = 8;
  int64_t rows = 1;
  if (type && type.getRank() > 0)
    for (int64_t size : type.getShape().drop_back())
      rows *= ShapedType::isDynamic(size) ? 1 : size;
  return rows > kFewRows || lhs.getDefiningOp<onnx::DequantizeLinearOp>();
}

std::optional<LowBitWeights> LowBitWeights::match(Value value, bool transposed,
                                                  Value lhs) {
  if (auto transpose = value.getDefiningOp<onnx::TransposeOp>()) {
    auto order = transpose.getPerm();
    auto type = dyn_cast<RankedTensorType>(transpose.getData().getType());
    if (!type || type.getRank() != 2 || (order && (*order)[0] != 1))
      return std::nullopt;
    value = transpose.getData();
    transposed = !transposed;
  }
  LowBitWeights weights{value.getDefiningOp<onnx::DequantizeLinearOp>(),
                        transposed};
  if (!weights.op || !isConstant(weights.op.getX()) ||
      !isConstant(weights.op.getXScale()))
    return std::nullopt;
  auto matrix = dyn_cast<RankedTensorType>(weights.op.getX().getType());
  auto element = dyn_cast_if_present<IntegerType>(
      matrix ? matrix.getElementType() : Type());
  Type number = getElementTypeOrSelf(weights.op.getType());
  if (!element || matrix.getRank() != 2 || !matrix.hasStaticShape() ||
      matrix.getNumElements() == 0 ||
      !llvm::is_contained({2, 4, 8}, element.getWidth()) ||
      number != getElementTypeOrSelf(weights.op.getXScale()) ||
      !(number.isF32() || number.isF16() || number.isBF16()))
    return std::nullopt;
  weights.bits = element.getWidth();
  weights.isSigned = !element.isUnsigned();
  constexpr int64_t kByte = 8;
  if (weights.bits == kByte && prefersOther(lhs))
    return std::nullopt;
  weights.n = matrix.getDimSize(transposed ? 0 : 1);
  weights.k = matrix.getDimSize(transposed ? 1 : 0);
  if (!weights.matchBlocks(matrix))
    return std::nullopt;
  return weights;
}

/// `numbers` [..., C] of i32 as bytes [..., C * bits / 8], the lowest bits
/// first.
static Value packBytes(ImplicitLocOpBuilder &b, Value numbers, int64_t bits) {
  const int64_t perByte = 8 / bits;
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(numbers.getType()).getShape());
  shape.back() /= perByte;
  shape.push_back(perByte);
  numbers = reshapeTo(b, numbers, shape);
  auto type = cast<RankedTensorType>(numbers.getType());
  SmallVector<int32_t> weights;
  for (int64_t j = 0; j < perByte; ++j)
    weights.push_back(1 << (j * bits));
  numbers = onnx::MulOp::create(b, type, numbers,
                                makeConstant(b, {perByte}, weights));
  auto list = RankedTensorType::get({1}, b.getI64Type());
  Value last = onnx::createConstant(
      b, b.getLoc(),
      DenseElementsAttr::get(list, static_cast<int64_t>(shape.size()) - 1));
  Value bytes = onnx::ReduceSumOp::create(
      b, type.clone(ArrayRef(shape).drop_back()), numbers, last,
      /*keepdims=*/0, /*noop_with_empty_axes=*/0);
  return castTo(b, bytes, b.getIntegerType(8, /*isSigned=*/false), kOnnxUint8);
}

/// Integers of i32 as unsigned ones.
Value LowBitWeights::makeUnsigned(ImplicitLocOpBuilder &b, Value numbers) {
  if (!isSigned)
    return numbers;
  return onnx::AddOp::create(b, numbers.getType(), numbers,
                             makeConstant(b, {}, {1 << (bits - 1)}));
}

/// The integers as [N, blocks, bytes of a block], the lowest bits first.
Value LowBitWeights::packIntegers(ImplicitLocOpBuilder &b) {
  Value numbers = transposed ? op.getX() : transposeMatrix(b, op.getX());
  numbers = castTo(b, numbers, b.getI32Type(), kOnnxInt32);
  numbers = reshapeTo(b, numbers, {n, blocks(), block});
  return packBytes(b, makeUnsigned(b, numbers), bits);
}

/// A scale or zero point as [N, blocks], as numbers of `type`.
Value LowBitWeights::getParameter(ImplicitLocOpBuilder &b, Value given,
                                  Type number, int64_t onnxType) {
  Value value = castTo(b, given, number, onnxType);
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == 2 && op.getBlockSize() > 0)
    return transposed ? value : transposeMatrix(b, value);
  if (type.getNumElements() == n)
    return reshapeTo(b, value, {n, 1});
  auto list = RankedTensorType::get({2}, b.getI64Type());
  Value shape = onnx::createConstant(
      b, b.getLoc(),
      DenseElementsAttr::get(list, ArrayRef<int64_t>{n, blocks()}));
  return onnx::ExpandOp::create(b, type.clone({n, blocks()}),
                                reshapeTo(b, value, {1, 1}), shape);
}

/// Zero points of the unsigned integers, in bytes as these, [N, bytes of all
/// blocks]; null for the middle, which is 0 of signed ones.
Value LowBitWeights::getZeroPoints(ImplicitLocOpBuilder &b) {
  if (!op.getXZeroPoint() && isSigned)
    return nullptr;
  const int64_t perByte = 8 / bits;
  const int64_t whole = llvm::alignTo(blocks(), perByte);
  auto zeros = [&](int64_t count) {
    auto type = RankedTensorType::get({n, count}, b.getI32Type());
    return onnx::createConstant(b, b.getLoc(),
                                DenseElementsAttr::get(type, int32_t(0)));
  };
  if (!op.getXZeroPoint())
    return packBytes(b, zeros(whole), bits);
  Value zero = makeUnsigned(
      b, getParameter(b, op.getXZeroPoint(), b.getI32Type(), kOnnxInt32));
  if (whole > blocks())
    zero = onnx::ConcatOp::create(
        b, RankedTensorType::get({n, whole}, b.getI32Type()),
        ValueRange{zero, zeros(whole - blocks())}, /*axis=*/1);
  return packBytes(b, zero, bits);
}

Value LowBitWeights::multiply(ImplicitLocOpBuilder &b, Value lhs, Type type) {
  const Type number = getElementTypeOrSelf(op.getXScale());
  return onnx::MSMatMulNBitsOp::create(
      b, type, lhs, packIntegers(b),
      getParameter(b, op.getXScale(), number, onnxTypeOf(number)),
      getZeroPoints(b), /*g_idx=*/Value(), /*bias=*/Value(), k, n,
      /*accuracy_level=*/0, bits, block);
}

namespace {

struct LowBitMatMul : OpRewritePattern<onnx::MatMulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::MatMulOp op,
                                PatternRewriter &rewriter) const override {
    auto weights =
        LowBitWeights::match(op.getB(), /*transposed=*/false, op.getA());
    auto lhs = dyn_cast<RankedTensorType>(op.getA().getType());
    if (!weights || !lhs || lhs.getRank() == 0 ||
        !isa<RankedTensorType>(op.getType()))
      return rewriter.notifyMatchFailure(op, "no weights of a few bits");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, weights->multiply(b, op.getA(), op.getType()));
    return success();
  }
};

struct LowBitGemm : OpRewritePattern<onnx::GemmOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::GemmOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getTransA() || !op.getAlpha().isExactlyValue(1.0f) ||
        (op.getC() && !op.getBeta().isExactlyValue(1.0f)) ||
        !isa<RankedTensorType>(op.getType()) ||
        !isa<RankedTensorType>(op.getA().getType()))
      return rewriter.notifyMatchFailure(op, "is no plain product");
    auto weights = LowBitWeights::match(op.getB(), op.getTransB(), op.getA());
    if (!weights)
      return rewriter.notifyMatchFailure(op, "no weights of a few bits");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value result = weights->multiply(b, op.getA(), op.getType());
    if (op.getC())
      result = onnx::AddOp::create(b, op.getType(), result, op.getC());
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void sardonyx::populateRecomposeLowBitsPatterns(RewritePatternSet &patterns) {
  patterns.add<LowBitMatMul, LowBitGemm>(patterns.getContext());
}
