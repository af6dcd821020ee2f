//===- Scalars.cpp - Element types, scalars and constants -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Common.h"
#include "Support/SmallFloats.h"
#include "dialects/ONNX/ONNX.h"
#include "sardonyx/Conversion/ONNXToLinalg.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

bool isStringType(Type type) { return isa_and_nonnull<onnx::StringType>(type); }

int64_t StringLiterals::handleOf(StringRef text) {
  if (text.empty())
    return 0;
  auto [entry, isNew] = handles.try_emplace(text, texts.size() + 1);
  if (isNew)
    texts.push_back(StringAttr::get(context, text));
  return entry->second;
}

Type convertElementType(Type type) {
  MLIRContext *ctx = type.getContext();
  if (isStringType(type))
    return IntegerType::get(ctx, 64);
  if (type.isF16() || type.isBF16() || type.isF32() || type.isF64())
    return type;
  if (isSmallFloat(type))
    return IntegerType::get(ctx, 8);
  if (auto complex = dyn_cast<ComplexType>(type))
    return IntegerType::get(ctx, complex.getElementType().isF64() ? 128 : 64);
  if (auto intType = dyn_cast<IntegerType>(type)) {
    switch (intType.getWidth()) {
    case 1:
    case 2:
    case 4:
      return IntegerType::get(ctx, 8);
    case 8:
    case 16:
    case 32:
    case 64:
    case 128: // a complex number's bits
      return IntegerType::get(ctx, intType.getWidth());
    default:
      return {};
    }
  }
  return {};
}

/// A map whose keys and values have lowerings.
static bool isStoredMap(Type type) {
  auto map = dyn_cast_or_null<onnx::MapType>(type);
  auto values = map ? dyn_cast<TensorType>(map.getValueType()) : TensorType();
  if (!values)
    return false;
  auto isKey = [](Type type) {
    return type.isSignlessInteger(64) || isStringType(type);
  };
  Type value = values.getElementType();
  return isKey(map.getKeyType()) &&
         (isKey(value) || value.isF32() || value.isF64());
}

/// A sequence or an optional of tensors that are stored, or an optional of such
/// a sequence; a map, or a sequence of maps.
static bool isList(Type type) {
  auto ofMaps = dyn_cast<onnx::SeqType>(type);
  if (isStoredMap(ofMaps ? ofMaps.getElementType() : type))
    return true;
  if (auto optional = dyn_cast<onnx::OptType>(type))
    if (isa<onnx::SeqType>(optional.getElementType()))
      type = optional.getElementType();
  Type element;
  if (auto sequence = dyn_cast<onnx::SeqType>(type))
    element = sequence.getElementType();
  else if (auto optional = dyn_cast<onnx::OptType>(type))
    element = optional.getElementType();
  auto tensor = dyn_cast_or_null<TensorType>(element);
  return tensor && convertElementType(tensor.getElementType());
}

static RankedTensorType convertValueType(Type type) {
  if (isList(type))
    return RankedTensorType::get({}, IntegerType::get(type.getContext(), 64));
  auto tensorType = dyn_cast<RankedTensorType>(type);
  if (!tensorType)
    return {};
  Type element = convertElementType(tensorType.getElementType());
  if (!element)
    return {};
  return RankedTensorType::get(tensorType.getShape(), element);
}

bool hasLinalgType(Type type) {
  if (auto tensor = dyn_cast<TensorType>(type))
    return bool(convertElementType(tensor.getElementType()));
  return bool(convertValueType(type));
}

ONNXTypeConverter::ONNXTypeConverter() {
  addConversion([](Type type) -> std::optional<Type> {
    return isa<IndexType>(type) ? type : Type(convertValueType(type));
  });
  auto cast = [](OpBuilder &b, Type type, ValueRange inputs,
                 Location loc) -> Value {
    if (inputs.size() != 1)
      return {};
    if (isa<RankedTensorType>(type) &&
        tensor::CastOp::areCastCompatible(inputs[0].getType(), type))
      return tensor::CastOp::create(b, loc, type, inputs[0]);
    return UnrealizedConversionCastOp::create(b, loc, type, inputs)
        .getResult(0);
  };
  addSourceMaterialization(cast);
  addTargetMaterialization(cast);
}

Type getOnnxElementType(Value original) {
  if (!original)
    return {};
  auto type = dyn_cast<ShapedType>(original.getType());
  return type ? type.getElementType() : Type();
}

bool isBoolType(Type type) { return type && type.isInteger(1); }

bool isUnsignedType(Type type) {
  return type && type.isUnsignedInteger() && !isBoolType(type);
}

/// Integers of 2 and 4 bits: stored in the low bits of a byte, computed as i8.
static bool isSmallInteger(Type type) {
  return type && (type.isInteger(2) || type.isInteger(4));
}

Type getComputeType(Type type) {
  if (type.isF16() || type.isBF16() || isSmallFloat(type))
    return Float32Type::get(type.getContext());
  if (isBoolType(type))
    return IntegerType::get(type.getContext(), 1);
  return convertElementType(type);
}

RankedTensorType getConvertedType(Value original) {
  return convertValueType(original.getType());
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Extends the low bits of an i8 to all of it, by the sign if there is one.
static Value extendLowBits(OpBuilder &b, Location loc, Value byte, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  if (type.isUnsignedInteger())
    return arith::AndIOp::create(
        b, loc, byte,
        createIntConstant(b, loc, byte.getType(), (1 << width) - 1));
  Value shift = createIntConstant(b, loc, byte.getType(), 8 - width);
  Value high = arith::ShLIOp::create(b, loc, byte, shift);
  return arith::ShRSIOp::create(b, loc, high, shift);
}

Value loadScalar(OpBuilder &b, Location loc, Value stored, Type onnxType) {
  if (isBoolType(onnxType)) {
    Value zero = createIntConstant(b, loc, stored.getType(), 0);
    return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, stored,
                                         zero);
  }
  if (onnxType && (onnxType.isF16() || onnxType.isBF16()))
    return b.createOrFold<arith::ExtFOp>(loc, b.getF32Type(), stored);
  if (isSmallFloat(onnxType))
    return decodeSmallFloat(b, loc, stored, onnxType);
  if (isSmallInteger(onnxType))
    return extendLowBits(b, loc, stored, onnxType);
  return stored;
}

Value storeScalar(OpBuilder &b, Location loc, Value computed, Type onnxType) {
  if (isBoolType(onnxType))
    return b.createOrFold<arith::ExtUIOp>(loc, b.getI8Type(), computed);
  if (onnxType && (onnxType.isF16() || onnxType.isBF16()))
    return b.createOrFold<arith::TruncFOp>(loc, onnxType, computed);
  if (isSmallFloat(onnxType))
    return encodeSmallFloat(b, loc, computed, onnxType);
  if (isSmallInteger(onnxType)) {
    int64_t mask = (1 << onnxType.getIntOrFloatBitWidth()) - 1;
    return arith::AndIOp::create(
        b, loc, computed, createIntConstant(b, loc, computed.getType(), mask));
  }
  return computed;
}

Value createConstant(OpBuilder &b, Location loc, Type type, double value) {
  if (auto floatType = dyn_cast<FloatType>(type)) {
    APFloat number(value);
    bool losesInfo;
    number.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    return arith::ConstantOp::create(b, loc, FloatAttr::get(type, number));
  }
  return createIntConstant(b, loc, type, static_cast<int64_t>(value));
}

Value createIntConstant(OpBuilder &b, Location loc, Type type, int64_t value) {
  if (isa<FloatType>(type))
    return createConstant(b, loc, type, static_cast<double>(value));
  if (type.isIndex())
    return createIndex(b, loc, value);
  unsigned width = cast<IntegerType>(type).getWidth();
  APInt bits = APInt(64, static_cast<uint64_t>(value)).sextOrTrunc(width);
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, bits));
}

Value createIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

static Value createLimit(OpBuilder &b, Location loc, Type onnxType,
                         bool highest) {
  Type type = getComputeType(onnxType);
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(
        b, loc,
        FloatAttr::get(type, APFloat::getInf(floatType.getFloatSemantics(),
                                             /*Negative=*/!highest)));
  unsigned width = cast<IntegerType>(type).getWidth();
  APInt bits;
  if (isBoolType(onnxType) || isUnsignedType(onnxType))
    bits = highest ? APInt::getMaxValue(width) : APInt::getMinValue(width);
  else
    bits = highest ? APInt::getSignedMaxValue(width)
                   : APInt::getSignedMinValue(width);
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, bits));
}

Value createLowest(OpBuilder &b, Location loc, Type onnxType) {
  return createLimit(b, loc, onnxType, /*highest=*/false);
}

Value createHighest(OpBuilder &b, Location loc, Type onnxType) {
  return createLimit(b, loc, onnxType, /*highest=*/true);
}

/// Float to integer without poison: what lies outside saturates at 32 or 64
/// bits, NaN gives 0; narrower types then keep the low bits, as in C.
static Value floatToInt(OpBuilder &b, Location loc, Value value,
                        Type onnxType) {
  auto floatType = cast<FloatType>(value.getType());
  unsigned width = onnxType.getIntOrFloatBitWidth();
  bool isUnsigned = isUnsignedType(onnxType) && width >= 64;
  unsigned wide =
      width > 32 || (isUnsignedType(onnxType) && width == 32) ? 64 : 32;
  Type intType = b.getIntegerType(wide);
  double low = isUnsigned ? -1.0 : -std::ldexp(1.0, wide - 1);
  double high = std::ldexp(1.0, isUnsigned ? wide : wide - 1);
  Value lowest = createConstant(b, loc, floatType, low);
  Value bound = createConstant(b, loc, floatType, high);
  Value zero = createConstant(b, loc, floatType, 0);
  // Values in (low, -2^n) truncate to a representable value only when the bound
  // is exclusive; -2^(n-1) itself is representable, hence OGE for signed.
  Value aboveLow = arith::CmpFOp::create(b, loc,
                                         isUnsigned ? arith::CmpFPredicate::OGT
                                                    : arith::CmpFPredicate::OGE,
                                         value, lowest);
  Value belowHigh =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, value, bound);
  Value inside = arith::AndIOp::create(b, loc, aboveLow, belowHigh);
  Value safe = arith::SelectOp::create(b, loc, inside, value, zero);
  Value result =
      isUnsigned ? arith::FPToUIOp::create(b, loc, intType, safe).getResult()
                 : arith::FPToSIOp::create(b, loc, intType, safe).getResult();
  APInt maxBits =
      isUnsigned ? APInt::getMaxValue(wide) : APInt::getSignedMaxValue(wide);
  APInt minBits =
      isUnsigned ? APInt::getMinValue(wide) : APInt::getSignedMinValue(wide);
  Value maxValue =
      arith::ConstantOp::create(b, loc, b.getIntegerAttr(intType, maxBits));
  Value minValue =
      arith::ConstantOp::create(b, loc, b.getIntegerAttr(intType, minBits));
  Value tooHigh =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, value, bound);
  Value tooLow = arith::CmpFOp::create(b, loc,
                                       isUnsigned ? arith::CmpFPredicate::OLE
                                                  : arith::CmpFPredicate::OLT,
                                       value, lowest);
  result = arith::SelectOp::create(b, loc, tooHigh, maxValue, result);
  result = arith::SelectOp::create(b, loc, tooLow, minValue, result);
  if (width < wide)
    result = arith::TruncIOp::create(b, loc, getComputeType(onnxType), result);
  return isSmallInteger(onnxType) ? extendLowBits(b, loc, result, onnxType)
                                  : result;
}

/// f64 -> f32 rounded to odd, so that rounding once more to f16 or bf16 gives
/// what rounding the f64 directly would.
static Value truncToOdd(OpBuilder &b, Location loc, Value value) {
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  Value rounded = arith::TruncFOp::create(b, loc, f32, value);
  Value back = arith::ExtFOp::create(b, loc, value.getType(), rounded);
  Value bits = arith::BitcastOp::create(b, loc, i32, rounded);
  Value one = createIntConstant(b, loc, i32, 1);
  Value low = arith::AndIOp::create(b, loc, bits, one);
  Value isEven = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, low,
                                       createIntConstant(b, loc, i32, 0));
  Value inexact =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, back, value);
  Value isTooBig = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                         math::AbsFOp::create(b, loc, back),
                                         math::AbsFOp::create(b, loc, value));
  Value down = arith::SubIOp::create(b, loc, bits, one);
  Value up = arith::AddIOp::create(b, loc, bits, one);
  Value odd = arith::SelectOp::create(b, loc, isTooBig, down, up);
  Value change = arith::AndIOp::create(b, loc, isEven, inexact);
  Value chosen = arith::SelectOp::create(b, loc, change, odd, bits);
  return arith::BitcastOp::create(b, loc, f32, chosen);
}

Value castScalar(OpBuilder &b, Location loc, Value value, Type from, Type to) {
  Type source = value.getType(), target = getComputeType(to);
  bool fromFloat = isa<FloatType>(source), toFloat = isa<FloatType>(target);
  if (from == to)
    return value;
  if (isBoolType(to)) {
    if (fromFloat)
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, value,
                                   createConstant(b, loc, source, 0));
    if (source == target)
      return value;
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value,
                                 createIntConstant(b, loc, source, 0));
  }
  if (fromFloat && toFloat) {
    if (source == target)
      return value;
    if (source.getIntOrFloatBitWidth() < target.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(b, loc, target, value);
    if (!to.isF32())
      return truncToOdd(b, loc, value);
    return arith::TruncFOp::create(b, loc, target, value);
  }
  if (fromFloat)
    return floatToInt(b, loc, value, to);
  bool zeroExtend = isBoolType(from) || isUnsignedType(from);
  if (toFloat) {
    if (zeroExtend)
      return arith::UIToFPOp::create(b, loc, target, value);
    return arith::SIToFPOp::create(b, loc, target, value);
  }
  unsigned sourceWidth = source.getIntOrFloatBitWidth();
  unsigned targetWidth = target.getIntOrFloatBitWidth();
  if (sourceWidth > targetWidth)
    value = arith::TruncIOp::create(b, loc, target, value);
  if (isSmallInteger(to))
    return extendLowBits(b, loc, value, to);
  if (sourceWidth >= targetWidth)
    return value;
  if (zeroExtend)
    return arith::ExtUIOp::create(b, loc, target, value);
  return arith::ExtSIOp::create(b, loc, target, value);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

ElementsAttr getConstantElements(Value value) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  while (op && isa<tensor::CastOp>(op))
    op = op->getOperand(0).getDefiningOp();
  if (!op)
    return {};
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return dyn_cast<ElementsAttr>(constant.getValue());
  if (op->getName().getStringRef() == "onnx.Constant")
    return op->getAttrOfType<ElementsAttr>("value");
  return {};
}

/// Calls `add` with the bits of each element; false when they can't be read.
static bool forEachElement(ElementsAttr attr, int64_t limit,
                           function_ref<void(APInt)> add) {
  int64_t count = attr.getNumElements();
  if (count > limit)
    return false;
  Type type = attr.getElementType();
  if (!type.isIntOrIndexOrFloat())
    return false;
  if (auto dense = dyn_cast<DenseIntOrFPElementsAttr>(attr)) {
    if (isa<FloatType>(type)) {
      for (APFloat number : dense.getValues<APFloat>())
        add(number.bitcastToAPInt());
    } else {
      for (APInt number : dense.getValues<APInt>())
        add(number);
    }
    return true;
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(attr);
  if (!resource || type.isIndex())
    return false;
  AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  if (!blob)
    return false;
  // Sub-byte elements (bool among them) are stored as one byte each.
  unsigned width = type.getIntOrFloatBitWidth();
  unsigned bytes = (width + 7) / 8;
  if (bytes > 8 || blob->getData().size() != size_t(count) * bytes)
    return false;
  const char *data = blob->getData().data();
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    for (unsigned k = 0; k < bytes; ++k)
      bits |= uint64_t(uint8_t(data[i * bytes + k])) << (8 * k);
    add(APInt(64, bits).trunc(width));
  }
  return true;
}

std::optional<SmallVector<int64_t>> getConstantInts(Value value,
                                                    int64_t limit) {
  SmallVector<int64_t> result;
  if (ElementsAttr attr = getConstantElements(value)) {
    Type type = attr.getElementType();
    if (!type.isIntOrIndex())
      return std::nullopt;
    bool zeroExtend = isBoolType(type) || isUnsignedType(type);
    if (!forEachElement(attr, limit, [&](APInt bits) {
          result.push_back(zeroExtend ? bits.getZExtValue()
                                      : bits.getSExtValue());
        }))
      return std::nullopt;
    return result;
  }
  auto elements =
      value ? value.getDefiningOp<tensor::FromElementsOp>() : nullptr;
  if (!elements)
    return std::nullopt;
  for (Value element : elements.getElements()) {
    std::optional<int64_t> known = getConstantIntValue(element);
    if (!known)
      return std::nullopt;
    result.push_back(*known);
  }
  return result;
}

std::optional<SmallVector<double>> getConstantFloats(Value value,
                                                     int64_t limit) {
  ElementsAttr attr = getConstantElements(value);
  if (!attr)
    return std::nullopt;
  SmallVector<double> result;
  if (auto floatType = dyn_cast<FloatType>(attr.getElementType())) {
    if (!forEachElement(attr, limit, [&](APInt bits) {
          APFloat number(floatType.getFloatSemantics(), bits);
          bool losesInfo;
          number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                         &losesInfo);
          result.push_back(number.convertToDouble());
        }))
      return std::nullopt;
    return result;
  }
  std::optional<SmallVector<int64_t>> ints = getConstantInts(value, limit);
  if (!ints)
    return std::nullopt;
  result.assign(ints->begin(), ints->end());
  return result;
}

TypedAttr getConstantSplat(Value value) {
  ElementsAttr attr = getConstantElements(value);
  if (!attr || attr.getNumElements() == 0)
    return {};
  Type type = attr.getElementType();
  if (auto dense = dyn_cast<DenseElementsAttr>(attr))
    return dense.isSplat()
               ? dyn_cast<TypedAttr>(dense.getSplatValue<Attribute>())
               : TypedAttr();
  APInt only;
  if (!forEachElement(attr, 1, [&](APInt bits) { only = bits; }))
    return {};
  if (auto floatType = dyn_cast<FloatType>(type))
    return FloatAttr::get(type, APFloat(floatType.getFloatSemantics(), only));
  return IntegerAttr::get(type, only);
}

} // namespace sardonyx
