//===- TensorMap.cpp - What copies by hardware go by ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/TensorMap.h"

#include "sardonyx-c/RuntimeABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;

static int64_t typeWord(nv::TensorMapOp map) {
  const Type element = map.getSource().getType().getElementType();
  if (element.isF16())
    return SDX_RT_MAP_F16;
  if (element.isBF16())
    return SDX_RT_MAP_BF16;
  if (element.isF32())
    return map.getTf32() ? SDX_RT_MAP_TF32 : SDX_RT_MAP_F32;
  return element.isInteger(32) ? SDX_RT_MAP_I32 : SDX_RT_MAP_U8;
}

/// `bits` of each number, the first in the lowest.
static int64_t pack(ArrayRef<int64_t> numbers, unsigned bits) {
  uint64_t packed = 0;
  const uint64_t mask = (uint64_t(1) << bits) - 1;
  for (auto [i, number] : llvm::enumerate(numbers))
    packed |= (static_cast<uint64_t>(number) & mask) << bits * i;
  return static_cast<int64_t>(packed);
}

Value nv::describeTensor(OpBuilder &b, TensorMapOp map) {
  Location loc = map.getLoc();
  Type i64 = b.getI64Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, i64, value);
  };
  const int64_t rank = map.getSizes().size();
  SmallVector<Value> words(SDX_RT_MAP_WORDS, constant(0));
  words[SDX_RT_MAP_ADDRESS] = arith::IndexCastOp::create(
      b, loc, i64,
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, map.getSource()));
  words[SDX_RT_MAP_FORM] = constant(
      typeWord(map) | rank << 8 | static_cast<int64_t>(map.getSwizzle()) << 16 |
      (map.isImage() ? SDX_RT_MAP_IMAGE : 0));
  const Type element = map.getSource().getType().getElementType();
  Value stride = constant(element.getIntOrFloatBitWidth() / 8);
  for (int64_t i = 0; i < rank; ++i) {
    Value size =
        b.createOrFold<arith::IndexCastOp>(loc, i64, map.getSizes()[i]);
    words[SDX_RT_MAP_SIZES + i] = size;
    if (i > 0)
      words[SDX_RT_MAP_STRIDES + i - 1] = stride;
    stride = b.createOrFold<arith::MulIOp>(loc, stride, size);
  }
  for (auto [i, size] : llvm::enumerate(map.getBox()))
    words[SDX_RT_MAP_BOX + i] = constant(size);
  if (map.isImage()) {
    words[SDX_RT_MAP_LOWER] = constant(pack(*map.getLower(), 16));
    words[SDX_RT_MAP_UPPER] = constant(pack(*map.getUpper(), 16));
    words[SDX_RT_MAP_STEPS] = constant(pack(*map.getSteps(), 8));
  }
  return vector::FromElementsOp::create(
      b, loc, VectorType::get({SDX_RT_MAP_WORDS}, i64), words);
}
