//===- Quantized.cpp - Integers that stand for floats ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Quantized.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"

#include <cfloat>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace sardonyx;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

namespace {

/// The bytes of a constant, of one element if all are the same.
struct ConstantBytes {
  ShapedType type;
  ArrayRef<char> data;
  bool isSplat = false;

  static std::optional<ConstantBytes> get(Value value) {
    ElementsAttr attribute;
    if (!value || !matchPattern(value, m_Constant(&attribute)))
      return std::nullopt;
    Type element = attribute.getElementType();
    if (!element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8 != 0)
      return std::nullopt;
    if (auto dense = dyn_cast<DenseElementsAttr>(attribute))
      return ConstantBytes{dense.getType(), dense.getRawData(),
                           dense.isSplat()};
    auto resource = dyn_cast<DenseResourceElementsAttr>(attribute);
    AsmResourceBlob *blob =
        resource ? resource.getRawHandle().getBlob() : nullptr;
    if (!blob)
      return std::nullopt;
    ConstantBytes bytes{resource.getType(), blob->getData()};
    if (static_cast<int64_t>(bytes.data.size()) !=
        bytes.type.getNumElements() * bytes.getWidth())
      return std::nullopt;
    return bytes;
  }

  int64_t getWidth() const {
    return type.getElementType().getIntOrFloatBitWidth() / 8;
  }
};

} // namespace

bool sardonyx::isSameConstant(Value a, Value b) {
  if (a == b)
    return true;
  auto x = ConstantBytes::get(a), y = ConstantBytes::get(b);
  return x && y && x->type.getElementType() == y->type.getElementType() &&
         x->type.getNumElements() == y->type.getNumElements() &&
         x->data == y->data;
}

std::optional<SmallVector<float>> sardonyx::readFloats(Value constant) {
  auto bytes = ConstantBytes::get(constant);
  if (!bytes || !bytes->type.getElementType().isF32())
    return std::nullopt;
  SmallVector<float> floats(bytes->data.size() / sizeof(float));
  std::memcpy(floats.data(), bytes->data.data(), bytes->data.size());
  if (bytes->isSplat)
    floats.assign(bytes->type.getNumElements(), floats.front());
  return floats;
}

std::optional<SmallVector<int64_t>> sardonyx::readIntegers(Value constant) {
  auto bytes = ConstantBytes::get(constant);
  auto type = dyn_cast_if_present<IntegerType>(
      bytes ? bytes->type.getElementType() : Type());
  if (!type || type.getWidth() > 64)
    return std::nullopt;
  SmallVector<int64_t> integers;
  for (size_t at = 0; at < bytes->data.size(); at += bytes->getWidth()) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes->data.data() + at, bytes->getWidth());
    APInt value(type.getWidth(), bits);
    integers.push_back(type.isUnsigned()
                           ? static_cast<int64_t>(value.getZExtValue())
                           : value.getSExtValue());
  }
  return integers;
}

std::optional<int64_t> sardonyx::readInteger(Value constant) {
  auto integers = readIntegers(constant);
  auto type =
      dyn_cast_if_present<ShapedType>(constant ? constant.getType() : Type());
  if (!integers || integers->size() != 1 || !type || !type.hasStaticShape() ||
      type.getNumElements() != 1)
    return std::nullopt;
  return integers->front();
}

bool sardonyx::isZeroPointZero(Value zeroPoint) {
  if (!zeroPoint)
    return true;
  auto integers = readIntegers(zeroPoint);
  return integers &&
         llvm::all_of(*integers, [](int64_t number) { return number == 0; });
}

bool sardonyx::hasOneElement(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getNumElements() == 1;
}

//===----------------------------------------------------------------------===//
// Quantization
//===----------------------------------------------------------------------===//

static std::optional<Quantization> getQuantization(Value integers, Value floats,
                                                   Value scale, Value zeroPoint,
                                                   int64_t axis,
                                                   int64_t blockSize) {
  auto type = dyn_cast<RankedTensorType>(integers.getType());
  auto scaleType =
      scale ? dyn_cast<RankedTensorType>(scale.getType()) : RankedTensorType();
  auto integer =
      dyn_cast_if_present<IntegerType>(type ? type.getElementType() : Type());
  if (!integer || !scaleType || blockSize != 0 ||
      (integer.getWidth() != 8 && integer.getWidth() != 16) ||
      !scaleType.getElementType().isF32() ||
      !getElementTypeOrSelf(floats).isF32())
    return std::nullopt;
  if (zeroPoint && (!isa<RankedTensorType>(zeroPoint.getType()) ||
                    getElementTypeOrSelf(zeroPoint) != integer))
    return std::nullopt;
  Quantization result{scale, zeroPoint, integer, std::nullopt};
  if (hasOneElement(scale))
    return !zeroPoint || hasOneElement(zeroPoint) ? std::optional(result)
                                                  : std::nullopt;
  int64_t rank = type.getRank();
  if (scaleType.getRank() != 1 || axis < -rank || axis >= rank ||
      (zeroPoint && cast<RankedTensorType>(zeroPoint.getType()).getRank() != 1))
    return std::nullopt;
  result.axis = axis < 0 ? axis + rank : axis;
  return result;
}

std::optional<Quantization> Quantization::get(onnx::QuantizeLinearOp op) {
  // The quotient has the precision of f32.
  constexpr int64_t kOnnxFloat = 1;
  if (op.getPrecision() != 0 && op.getPrecision() != kOnnxFloat)
    return std::nullopt;
  return getQuantization(op.getY(), op.getX(), op.getYScale(),
                         op.getYZeroPoint(), op.getAxis(), op.getBlockSize());
}

std::optional<Quantization> Quantization::get(onnx::DequantizeLinearOp op) {
  return getQuantization(op.getX(), op.getY(), op.getXScale(),
                         op.getXZeroPoint(), op.getAxis(), op.getBlockSize());
}

std::optional<Quantization> Quantization::ofDequantized(Value value) {
  auto op = value.getDefiningOp<onnx::DequantizeLinearOp>();
  return op ? get(op) : std::nullopt;
}

bool Quantization::isSame(const Quantization &other) const {
  if (integer != other.integer || axis != other.axis ||
      !isSameConstant(scale, other.scale))
    return false;
  if (isZeroPointZero(zeroPoint) && isZeroPointZero(other.zeroPoint))
    return true;
  return zeroPoint && other.zeroPoint &&
         isSameConstant(zeroPoint, other.zeroPoint);
}

bool Quantization::isIncreasing() const {
  std::optional<SmallVector<float>> scales = readFloats(scale);
  return scales && llvm::all_of(*scales, [](float s) {
           return s >= FLT_MIN && s <= FLT_MAX / (2 << 16);
         });
}

bool Quantization::isInvertible() const {
  std::optional<SmallVector<float>> scales = readFloats(scale);
  return !scales || isIncreasing();
}

std::optional<float> Quantization::getScale() const {
  std::optional<SmallVector<float>> scales = readFloats(scale);
  return scales && scales->size() == 1 ? std::optional(scales->front())
                                       : std::nullopt;
}

std::optional<int64_t> Quantization::getZeroPoint() const {
  return zeroPoint ? readInteger(zeroPoint) : 0;
}

int64_t Quantization::getLowest() const {
  return integer.isUnsigned() ? 0 : -(int64_t(1) << (integer.getWidth() - 1));
}

int64_t Quantization::getHighest() const {
  return getLowest() + (int64_t(1) << integer.getWidth()) - 1;
}

std::optional<int64_t> Quantization::quantize(float x) const {
  std::optional<float> step = getScale();
  std::optional<int64_t> zero = getZeroPoint();
  if (!step || !zero || std::isnan(x) || std::isnan(x / *step))
    return std::nullopt;
  double rounded = std::nearbyint(x / *step);
  rounded = std::clamp(rounded + static_cast<double>(*zero),
                       static_cast<double>(getLowest()),
                       static_cast<double>(getHighest()));
  return static_cast<int64_t>(rounded);
}

std::optional<int64_t> Quantization::findExactly(float x) const {
  std::optional<int64_t> q = quantize(x);
  if (!q)
    return std::nullopt;
  float value = static_cast<float>(*q - *getZeroPoint()) * *getScale();
  return value == x ? q : std::nullopt;
}

Value Quantization::createInteger(OpBuilder &b, Location loc,
                                  int64_t value) const {
  APInt bits(integer.getWidth(), value, /*isSigned=*/false,
             /*implicitTrunc=*/true);
  return onnx::createConstant(
      b, loc, DenseElementsAttr::get(RankedTensorType::get({}, integer), bits));
}

static IntegerAttr getAxisAttr(OpBuilder &b, std::optional<int64_t> axis) {
  constexpr int64_t kDefault = 1;
  return b.getIntegerAttr(b.getIntegerType(64, /*isSigned=*/true),
                          axis.value_or(kDefault));
}

/// TensorProto.DataType of an integer of 8 or 16 bits.
static int64_t getOnnxType(IntegerType type) {
  constexpr int64_t kUint8 = 2, kInt8 = 3, kUint16 = 4, kInt16 = 5;
  if (type.getWidth() == 8)
    return type.isUnsigned() ? kUint8 : kInt8;
  return type.isUnsigned() ? kUint16 : kInt16;
}

Value Quantization::createQuantize(OpBuilder &b, Location loc, Value x) const {
  auto type = cast<TensorType>(x.getType()).clone(integer);
  IntegerAttr dtype;
  if (!zeroPoint)
    dtype = b.getIntegerAttr(b.getIntegerType(64, /*isSigned=*/true),
                             getOnnxType(integer));
  return onnx::QuantizeLinearOp::create(b, loc, type, x, scale, zeroPoint,
                                        getAxisAttr(b, axis),
                                        /*block_size=*/nullptr, dtype);
}

Value Quantization::createDequantize(OpBuilder &b, Location loc,
                                     Value x) const {
  auto type = cast<TensorType>(x.getType()).clone(b.getF32Type());
  return onnx::DequantizeLinearOp::create(b, loc, type, x, scale, zeroPoint,
                                          getAxisAttr(b, axis));
}

//===----------------------------------------------------------------------===//
// Biases
//===----------------------------------------------------------------------===//

Value sardonyx::getIntegerBias(Value bias, Value lhs, Value rhs) {
  auto op = bias ? bias.getDefiningOp<onnx::DequantizeLinearOp>()
                 : onnx::DequantizeLinearOp();
  if (!op || op.getBlockSize() != 0 ||
      !getElementTypeOrSelf(op.getX()).isInteger(32) ||
      !isZeroPointZero(op.getXZeroPoint()))
    return {};
  auto own = readFloats(op.getXScale());
  auto left = readFloats(lhs), right = readFloats(rhs);
  if (!own || !left || !right || left->empty() || right->empty())
    return {};
  size_t count = std::max({own->size(), left->size(), right->size()});
  auto at = [count](ArrayRef<float> scales, size_t i) -> std::optional<float> {
    if (scales.size() != 1 && scales.size() != count)
      return std::nullopt;
    return scales[scales.size() == 1 ? 0 : i];
  };
  for (size_t i = 0; i < count; ++i) {
    auto wanted = at(*own, i), a = at(*left, i), b = at(*right, i);
    if (!wanted || !a || !b || *wanted != *a * *b)
      return {};
  }
  return op.getX();
}
