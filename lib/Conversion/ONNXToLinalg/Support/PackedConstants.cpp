//===- PackedConstants.cpp - Constants as the bytes they lie in -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/PackedConstants.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace sardonyx {

static constexpr int64_t kByte = 8;

/// Bits of the elements of a constant; 0 where they are no numbers of 2, 4 or
/// 8 bits.
static int64_t countBits(ElementsAttr value) {
  Type type = value.getElementType();
  if (!type.isIntOrFloat())
    return 0;
  const int64_t bits = type.getIntOrFloatBitWidth();
  return llvm::is_contained({2, 4, 8}, bits) ? bits : 0;
}

static ElementsAttr getValue(onnx::ConstantOp op) {
  return op->getAttrOfType<ElementsAttr>("value");
}

/// How many bytes a resource has; none where nobody knows.
static std::optional<int64_t> countBytes(onnx::ConstantOp op) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(getValue(op));
  if (!resource)
    return std::nullopt;
  if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
    return blob->getData().size();
  auto source = op->getAttrOfType<DictionaryAttr>("sdx.source");
  auto length = source ? source.getAs<IntegerAttr>("length") : IntegerAttr();
  return length ? std::optional(length.getInt()) : std::nullopt;
}

bool isPacked(onnx::ConstantOp op) {
  ElementsAttr value = getValue(op);
  const int64_t bits = value ? countBits(value) : 0;
  return bits && bits < kByte &&
         countBytes(op) ==
             int64_t(llvm::divideCeil(value.getNumElements() * bits, kByte));
}

std::optional<PackedConstant> createPackedConstant(TensorBuilder &b,
                                                   onnx::ConstantOp op) {
  ElementsAttr value = getValue(op);
  PackedConstant constant;
  constant.bits = value ? countBits(value) : 0;
  if (!constant.bits)
    return std::nullopt;
  if (isPacked(op))
    constant.step = constant.bits;
  const int64_t size =
      llvm::divideCeil(value.getNumElements() * constant.step, kByte);
  auto type = RankedTensorType::get({size}, b.getI8Type());
  ElementsAttr bytes;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    if (countBytes(op) != size)
      return std::nullopt;
    bytes = DenseResourceElementsAttr::get(type, resource.getRawHandle());
  } else if (auto dense = dyn_cast<DenseIntOrFPElementsAttr>(value)) {
    SmallVector<APInt> numbers;
    if (isa<FloatType>(value.getElementType())) {
      for (const APFloat &number : dense.getValues<APFloat>())
        numbers.push_back(number.bitcastToAPInt().zext(kByte));
    } else {
      for (const APInt &number : dense.getValues<APInt>())
        numbers.push_back(number.zext(kByte));
    }
    bytes = DenseElementsAttr::get(type, numbers);
  } else {
    return std::nullopt;
  }
  auto result = arith::ConstantOp::create(b, type, cast<TypedAttr>(bytes));
  if (Attribute source = op->getAttr("sdx.source"))
    result->setAttr("sdx.source", source);
  constant.bytes = result;
  return constant;
}

Value PackedConstant::extract(TensorBuilder &b, Value at) const {
  Type i32 = b.getI32Type();
  const int64_t perByte = kByte / step;
  Value byte = at, shift;
  if (perByte > 1) {
    Value count = b.index(perByte);
    byte = arith::DivUIOp::create(b, at, count);
    shift = b.mul(b.convert(arith::RemUIOp::create(b, at, count), i32),
                  b.integer(i32, step));
  }
  Value number = arith::ExtUIOp::create(b, i32, b.extract(bytes, byte));
  if (shift)
    number = arith::ShRUIOp::create(b, number, shift);
  if (bits < kByte)
    number = arith::AndIOp::create(b, number,
                                   b.integer(i32, (int64_t(1) << bits) - 1));
  return number;
}

} // namespace sardonyx
