//===- DequantizedWeights.cpp - Weights of a few bits ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Integers and floats of a few bits with scales for the whole, for columns or
// for blocks along K, in any order of dimensions. Where they lie in the file as
// sdx.dequant_matmul has them they are read from there; others are put into its
// order, once, when the session is made.
//
//===----------------------------------------------------------------------===//

#include "Contraction/DequantizedWeights.h"
#include "Support/Common.h"
#include "Support/PackedConstants.h"
#include "dialects/ONNX/ONNX.h"
#include "dialects/SDX/RoundedType.h"
#include "dialects/SDX/SDX.h"

using namespace mlir;

namespace sardonyx {

Value multiplyByDequantized(TensorBuilder &b, Value lhs,
                            const DequantizedWeights &weights, Type rounded) {
  lhs = b.convertElements(lhs, b.getF32Type());
  Sizes sizes = b.dims(lhs);
  if (sizes.empty() || !b.sameSize(sizes.back(), b.size(weights.k),
                                   "A has not as many columns as K says"))
    return nullptr;
  SmallVector<int64_t> shape(rankedType(lhs).getShape());
  shape.back() = weights.k;
  lhs = b.cast(lhs, rankedType(lhs).clone(shape));
  OpFoldResult rows = b.product(ArrayRef(sizes).drop_back());
  OpFoldResult columns = b.size(rankedType(weights.bytes).getDimSize(0));
  lhs = b.reshape(lhs, {rows, b.size(weights.k)});
  auto product = sdx::DequantMatmulOp::create(
      b, lhs, weights.bytes, weights.scales, weights.zeroPoints,
      b.zeros({rows, columns}, b.getF32Type()), weights.bits, weights.block,
      weights.element);
  if (rounded)
    product->setAttr(sdx::kRoundedAttr, TypeAttr::get(rounded));
  Value result = product.getResult();
  if (weights.factor)
    result = b.elementwise(
        {rows, columns}, {result, weights.factor},
        {b.identityMap(2), b.dimsMap(2, {})}, {b.getF32Type()},
        [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
          return {s.mul(args[0], s.convert(args[1], s.getF32Type()))};
        })[0];
  sizes.back() = columns;
  return b.reshape(result, sizes);
}

static bool isSingle(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getNumElements() == 1;
}

/// Whether `value` is computed from constants, by few operations.
static bool isFromConstants(Value value, int64_t depth = 4) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<onnx::ConstantOp>(op))
    return op != nullptr;
  return depth > 0 && op->getNumRegions() == 0 &&
         isa<onnx::DequantizeLinearOp, onnx::CastOp, onnx::MulOp,
             onnx::ReshapeOp, onnx::TransposeOp, onnx::IdentityOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return !operand || isa<NoneType>(operand.getType()) ||
                  isFromConstants(operand, depth - 1);
         });
}

namespace {

/// A constant matrix, of which element (n, c) is number n * ofN + c * ofColumn.
struct Strided {
  PackedConstant constant;
  int64_t ofN = 0, ofColumn = 0;
};

/// What is known of a right-hand side before anything is made.
class Matcher {
public:
  Matcher(TensorBuilder &b, ConversionPatternRewriter &rewriter)
      : b(b), rewriter(rewriter) {}

  bool match(Value lhs, Value rhs, bool isTransposed);
  std::optional<DequantizedWeights> build();

private:
  bool matchType();
  bool matchBlocks();
  int64_t countBlocks() const { return llvm::divideCeil(k, block); }
  std::optional<Strided> getNumbers();
  std::optional<Strided> getZeroPoints();
  Value pack(const Strided &numbers, ArrayRef<int64_t> shape, int64_t columns);
  Value makeScales(Value &factor);
  Value leaveOutNaN(Value scales, Value bytes);

  TensorBuilder &b;
  ConversionPatternRewriter &rewriter;
  onnx::DequantizeLinearOp op;
  onnx::ConstantOp constant;
  /// Whether what is dequantised is [N,K], and whether the constant is its
  /// transpose.
  bool transposed = false, isStoredTransposed = false;
  bool hasScaleOfBlock = false;
  int64_t n = 0, k = 0, bits = 0, block = 0;
  Type element;
};

} // namespace

/// The operand of a transpose of a matrix, or the value itself.
static Value stripTranspose(Value value, bool &isTransposed) {
  auto transpose = value.getDefiningOp<onnx::TransposeOp>();
  auto type = transpose
                  ? dyn_cast<RankedTensorType>(transpose.getData().getType())
                  : RankedTensorType();
  if (!type || type.getRank() != 2)
    return value;
  auto order = transpose.getPerm();
  if (order && (*order)[0] != 1)
    return transpose.getData();
  isTransposed = !isTransposed;
  return transpose.getData();
}

static bool isZero(Value value) {
  auto constant = value.getDefiningOp<onnx::ConstantOp>();
  auto dense = constant ? constant->getAttrOfType<DenseElementsAttr>("value")
                        : DenseElementsAttr();
  return dense && dense.isSplat() && isa<FloatType>(dense.getElementType()) &&
         dense.getSplatValue<APFloat>().isZero();
}

/// Whether there is a kernel for such numbers.
bool Matcher::matchType() {
  if (isa<Float4E2M1FNType, Float8E4M3FNType, Float8E5M2Type>(element))
    return !op.getXZeroPoint() || isZero(op.getXZeroPoint());
  auto integer = dyn_cast<IntegerType>(element);
  return integer && llvm::is_contained({2, 4, 8}, integer.getWidth());
}

/// Whether each column is of blocks that have one scale.
bool Matcher::matchBlocks() {
  auto scale = dyn_cast<RankedTensorType>(op.getXScale().getType());
  if (!scale || !scale.hasStaticShape() || !isFromConstants(op.getXScale()))
    return false;
  if (Value zero = op.getXZeroPoint(); zero && isa<IntegerType>(element)) {
    auto type = dyn_cast<RankedTensorType>(zero.getType());
    if (!type || type.getElementType() != element ||
        !zero.getDefiningOp<onnx::ConstantOp>() ||
        (type.getShape() != scale.getShape() &&
         (type.getNumElements() != 1 || scale.getNumElements() != 1)))
      return false;
  }
  const int64_t along = transposed ? 1 : 0, given = op.getBlockSize();
  const int64_t axis = op.getAxis() < 0 ? op.getAxis() + 2 : op.getAxis();
  const int64_t perByte = 8 / bits;
  hasScaleOfBlock = given > 0 && scale.getRank() == 2;
  if (hasScaleOfBlock) {
    SmallVector<int64_t> wanted = {n, n};
    wanted[along] = llvm::divideCeil(k, given);
    block = given;
    return axis == along && scale.getShape() == ArrayRef(wanted) &&
           block % perByte == 0;
  }
  const bool isPerColumn =
      scale.getRank() == 1 && axis == 1 - along && scale.getDimSize(0) == n;
  block = llvm::alignTo(k, perByte);
  return given == 0 && (isPerColumn || scale.getNumElements() == 1);
}

bool Matcher::match(Value lhs, Value rhs, bool isTransposed) {
  transposed = isTransposed;
  rhs = stripTranspose(rhs, transposed);
  op = rhs.getDefiningOp<onnx::DequantizeLinearOp>();
  if (!op)
    return false;
  Value x = stripTranspose(op.getX(), isStoredTransposed);
  constant = x.getDefiningOp<onnx::ConstantOp>();
  auto matrix = dyn_cast<RankedTensorType>(op.getX().getType());
  if (!constant || !matrix || matrix.getRank() != 2 ||
      !matrix.hasStaticShape() || matrix.getNumElements() == 0)
    return false;
  element = matrix.getElementType();
  if (!matchType())
    return false;
  bits = element.getIntOrFloatBitWidth();
  // Rows that are bytes themselves multiply bytes as such.
  constexpr int64_t kByte = 8;
  if (bits == kByte && isa<IntegerType>(element) &&
      lhs.getDefiningOp<onnx::DequantizeLinearOp>())
    return false;
  n = matrix.getDimSize(transposed ? 0 : 1);
  k = matrix.getDimSize(transposed ? 1 : 0);
  return matchBlocks();
}

std::optional<Strided> Matcher::getNumbers() {
  std::optional<PackedConstant> numbers = createPackedConstant(b, constant);
  if (!numbers)
    return std::nullopt;
  const bool hasColumns = transposed != isStoredTransposed;
  return Strided{*numbers, hasColumns ? k : 1, hasColumns ? 1 : n};
}

std::optional<Strided> Matcher::getZeroPoints() {
  auto constant = op.getXZeroPoint().getDefiningOp<onnx::ConstantOp>();
  std::optional<PackedConstant> zeros = createPackedConstant(b, constant);
  if (!zeros)
    return std::nullopt;
  auto type = cast<RankedTensorType>(constant.getType());
  if (hasScaleOfBlock)
    return Strided{*zeros, transposed ? countBlocks() : 1, transposed ? 1 : n};
  return Strided{*zeros, type.getNumElements() == 1 ? 0 : 1, 0};
}

/// The first `columns` numbers of each n in bytes of `shape` [n, ..., bytes],
/// unsigned ones; after the last is that again.
Value Matcher::pack(const Strided &numbers, ArrayRef<int64_t> shape,
                    int64_t columns) {
  const int64_t perByte = 8 / bits, rank = shape.size();
  const bool isSigned =
      isa<IntegerType>(element) && !element.isUnsignedInteger();
  const int64_t whole = ShapedType::getNumElements(shape.drop_front());
  Sizes sizes;
  for (int64_t size : shape)
    sizes.push_back(b.size(size));
  if (!isSigned && numbers.constant.step == bits && numbers.ofColumn == 1 &&
      numbers.ofN == columns && columns == whole * perByte)
    return b.reshape(numbers.constant.bytes, sizes);
  return b.elementwise(
      sizes, {}, {}, {b.getI8Type()},
      [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
        auto index = [&](int64_t dim) -> Value {
          return linalg::IndexOp::create(s, dim);
        };
        auto times = [&](Value value, int64_t factor) {
          return s.mul(value, s.index(factor));
        };
        Value place = index(1);
        for (int64_t dim = 2; dim < rank; ++dim)
          place = s.add(times(place, shape[dim]), index(dim));
        Type i32 = s.getI32Type();
        Value byte;
        for (int64_t i = 0; i < perByte; ++i) {
          Value column = s.add(times(place, perByte), s.index(i));
          if (columns < whole * perByte)
            column = s.minimum(column, s.index(columns - 1));
          Value number = numbers.constant.extract(
              s, s.add(times(index(0), numbers.ofN),
                       times(column, numbers.ofColumn)));
          if (isSigned)
            number = arith::XOrIOp::create(
                s, number, s.integer(i32, int64_t(1) << (bits - 1)));
          number = arith::ShLIOp::create(s, number, s.integer(i32, i * bits));
          byte = byte ? Value(arith::OrIOp::create(s, byte, number)) : number;
        }
        return {arith::TruncIOp::create(s, s.getI8Type(), byte)};
      })[0];
}

/// [N,blocks] of floats, of 16 bits where these have what is given.
Value Matcher::makeScales(Value &factor) {
  Value given = op.getXScale();
  // Numbers of 8 bits times one for all, which multiplies the product.
  auto dequantize = given.getDefiningOp<onnx::DequantizeLinearOp>();
  if (hasScaleOfBlock && dequantize && !dequantize.getXZeroPoint() &&
      isa<Float8E4M3FNType, Float8E5M2Type>(
          getElementTypeOrSelf(dequantize.getX())) &&
      isSingle(dequantize.getXScale())) {
    given = dequantize.getX();
    factor = rewriter.getRemappedValue(dequantize.getXScale());
    factor = factor ? b.reshape(factor, {}) : factor;
    if (!factor)
      return nullptr;
  }
  Type type = getElementTypeOrSelf(given.getType());
  Value scale = rewriter.getRemappedValue(given);
  if (!scale)
    return nullptr;
  const Type result = type.isF32() || type.isF16() ? type : b.getBF16Type();
  SmallVector<int64_t> dims;
  if (hasScaleOfBlock)
    dims.append({transposed ? 0 : 1, transposed ? 1 : 0});
  else if (rankedType(scale).getNumElements() == 1)
    scale = b.reshape(scale, {});
  else
    dims.push_back(0);
  return createMapped(b, b.getLoc(), {{scale, type}}, {b.dimsMap(2, dims)},
                      {b.size(n), b.size(countBlocks())}, result,
                      [&](OpBuilder &s, Location loc, ValueRange args) {
                        return castScalar(s, loc, args[0], type, result);
                      });
}

/// Sums with a NaN are NaN whatever it is multiplied by: blocks with one have
/// it as their scale, as kernels take the code for a number.
Value Matcher::leaveOutNaN(Value scales, Value bytes) {
  constexpr int64_t kNaN = 0x7f;
  Type i8 = b.getI8Type();
  using utils::IteratorType;
  Value flags = b.generic(
      bytes, b.zeros({b.size(n), b.size(countBlocks())}, i8),
      {b.identityMap(3), b.dimsMap(3, {0, 1})},
      {IteratorType::parallel, IteratorType::parallel, IteratorType::reduction},
      [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
        Value code = arith::AndIOp::create(s, args[0], s.integer(i8, kNaN));
        Value isNaN =
            s.compare(arith::CmpIPredicate::eq, code, s.integer(i8, kNaN));
        return {arith::OrIOp::create(s, args[1],
                                     arith::ExtUIOp::create(s, i8, isNaN))};
      })[0];
  Type type = elementTypeOf(scales);
  return b.map(
      {scales, flags}, type,
      [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
        Value isNaN =
            s.compare(arith::CmpIPredicate::ne, args[1], s.integer(i8, 0));
        return {s.select(isNaN, s.scalar(type, std::nan("")), args[0])};
      });
}

std::optional<DequantizedWeights> Matcher::build() {
  DequantizedWeights weights;
  weights.k = k;
  weights.bits = bits;
  weights.block = block;
  if (isa<FloatType>(element))
    weights.element = element;
  std::optional<Strided> numbers = getNumbers();
  weights.scales = makeScales(weights.factor);
  if (!numbers || !weights.scales)
    return std::nullopt;
  weights.bytes = pack(*numbers, {n, countBlocks(), block * bits / 8}, k);
  if (isa<Float8E4M3FNType>(element))
    weights.scales = leaveOutNaN(weights.scales, weights.bytes);
  if (weights.element)
    return weights;
  const int64_t bytes = llvm::divideCeil(countBlocks() * bits, 8);
  if (op.getXZeroPoint()) {
    std::optional<Strided> zeros = getZeroPoints();
    if (!zeros)
      return std::nullopt;
    weights.zeroPoints = pack(*zeros, {n, bytes}, countBlocks());
  } else if (element.isUnsignedInteger()) {
    weights.zeroPoints = b.zeros({b.size(n), b.size(bytes)}, b.getI8Type());
  }
  return weights;
}

std::optional<DequantizedWeights>
findDequantizedWeights(TensorBuilder &b, ConversionPatternRewriter &rewriter,
                       Value lhs, Value rhs, bool transposed) {
  Matcher matcher(b, rewriter);
  if (!matcher.match(lhs, rhs, transposed))
    return std::nullopt;
  return matcher.build();
}

} // namespace sardonyx
