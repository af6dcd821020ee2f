//===- ElementKeys.cpp - Keys that order elements -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ordering/ElementKeys.h"

using namespace mlir;

namespace sardonyx {

ElementKeys::ElementKeys(Type onnxType, bool largest,
                         std::optional<int64_t> size)
    : onnxType(onnxType), largest(largest),
      isPacked(
          size.value_or(0) <= kMostPacked &&
          (isBoolType(onnxType) || (onnxType.isIntOrFloat() &&
                                    onnxType.getIntOrFloatBitWidth() <= 32))) {}

Type ElementKeys::rankType(TensorBuilder &b) const {
  return isPacked ? b.getI32Type() : b.getI64Type();
}

/// The number of a float or an integer as an integer of `type` that is larger
/// where it is. Zeros are equal, and NaN is the largest.
static Value toOrderedInteger(TensorBuilder &b, Value value, bool isUnsigned,
                              IntegerType type) {
  const unsigned width = type.getWidth();
  Value least = b.lowest(type, /*isUnsigned=*/false);
  if (auto given = dyn_cast<IntegerType>(value.getType())) {
    if (given.getWidth() < width)
      return b.convert(value, type, isUnsigned);
    return isUnsigned ? Value(arith::XOrIOp::create(b, value, least)) : value;
  }
  if (value.getType().getIntOrFloatBitWidth() < width)
    value =
        b.convert(value, width == 64 ? Type(b.getF64Type()) : b.getF32Type());
  Value isNaN =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  Value most = b.integer(type, llvm::maxIntN(width));
  // -0 + 0 = 0.
  value = arith::AddFOp::create(b, value, b.zero(value.getType()));
  Value bits = arith::BitcastOp::create(b, type, value);
  // Of negative numbers the larger has the smaller bits.
  Value sign = arith::ShRSIOp::create(b, bits, b.integer(type, width - 1));
  Value flipped = arith::AndIOp::create(b, sign, most);
  Value ordered = arith::XOrIOp::create(b, bits, flipped);
  return b.select(isNaN, most, ordered);
}

Value ElementKeys::rank(TensorBuilder &b, Value stored) const {
  Value value = loadScalar(b, b.getLoc(), stored, onnxType);
  const bool isUnsigned = isUnsignedType(onnxType) || isBoolType(onnxType);
  auto type = cast<IntegerType>(rankType(b));
  Value ordered = toOrderedInteger(b, value, isUnsigned, type);
  return largest ? ordered
                 : arith::XOrIOp::create(b, ordered, b.integer(type, -1));
}

KeyList ElementKeys::makeList(TensorBuilder &b, OpFoldResult capacity) const {
  return KeyList::make(b, capacity, isPacked ? 32 : 0, !isPacked);
}

Values ElementKeys::entry(TensorBuilder &b, Value rank, Value index) const {
  Type i64 = b.getI64Type();
  index = b.convert(index, i64);
  if (!isPacked)
    return {rank, index};
  Value high =
      arith::ShLIOp::create(b, b.convert(rank, i64), b.integer(i64, 32));
  Value low = arith::XOrIOp::create(b, index, b.integer(i64, UINT32_MAX));
  return {arith::OrIOp::create(b, high, low)};
}

Value ElementKeys::index(TensorBuilder &b, ValueRange entry) const {
  if (!isPacked)
    return entry[1];
  Value mask = b.integer(b.getI64Type(), UINT32_MAX);
  return arith::XOrIOp::create(b, arith::AndIOp::create(b, entry[0], mask),
                               mask);
}

} // namespace sardonyx
