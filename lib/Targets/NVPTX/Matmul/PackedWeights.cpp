//===- PackedWeights.cpp - Weights of a few bits in registers -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/PackedWeights.h"

#include "Kernel/Block.h"

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Bytes that a thread reads at a time, and those of a word.
static constexpr int64_t kMostBytes = 16, kWord = 4;
/// The bits of 2^23: below, the mantissa counts ones.
static constexpr int64_t kMagic = 0x4B000000;
static constexpr double kMagicValue = 8388608.0;
/// Those of 2^10 in f16, twice, and the bits of a word's half that a mantissa
/// takes where numbers stay in their places.
static constexpr int64_t kPairMagic = 0x64006400, kPairBits = 8;
static constexpr double kPairMagicValue = 1024.0;

bool nv::canUnpack(sdx::DequantMatmulOp op) {
  return !op.getElement() && op.getBlock() * op.getBits() / 8 % kWord == 0;
}

PackedWeights::PackedWeights(sdx::DequantMatmulOp op, KernelBody &body,
                             int64_t mostValues)
    : bits(op.getBits()), blockBytes(op.getBlock() * op.getBits() / 8),
      blocks(op.getScales().getType().getDimSize(1)),
      weights(body.getBuffer(op.getWeights())),
      scales(body.getBuffer(op.getScales())) {
  if (op.getZeroPoints())
    zeros = body.getBuffer(op.getZeroPoints());
  bytes = std::min(kMostBytes, std::max(kWord, mostValues * bits / 8));
  while (blockBytes % bytes)
    bytes /= 2;
  numPieces = blocks * blockBytes / bytes;
}

SmallVector<Type> PackedWeights::types(ImplicitLocOpBuilder &b) const {
  SmallVector<Type> types(bytes / kWord, b.getI32Type());
  types.push_back(b.getF32Type());
  if (zeros)
    types.push_back(b.getF32Type());
  return types;
}

void PackedWeights::prefetchPiece(ImplicitLocOpBuilder &b, Value row,
                                  Value piece) const {
  Indices i(b);
  prefetch(b, weights, i.mul(i.add(i.mul(row, numPieces), piece), bytes));
}

SmallVector<Value> PackedWeights::load(ImplicitLocOpBuilder &b, Value row,
                                       Value piece, Value exists) const {
  Indices i(b);
  Value first = i.constant(0);
  piece = b.createOrFold<arith::SelectOp>(exists, piece, first);
  Value at = i.mul(i.add(i.mul(row, numPieces), piece), bytes);
  const int64_t words = bytes / kWord;
  Type i32 = b.getI32Type();
  Type type = words == 1 ? i32 : VectorType::get({words}, i32);
  Value loaded = LLVM::LoadOp::create(b, type, addressOf(b, weights, at),
                                      static_cast<unsigned>(bytes));
  SmallVector<Value> result;
  for (int64_t word = 0; word < words; ++word)
    result.push_back(
        words == 1 ? loaded
                   : LLVM::ExtractElementOp::create(
                         b, loaded, LLVM::ConstantOp::create(b, i32, word)));
  Value block = i.div(piece, blockBytes / bytes);
  Value scale = convertToF32(
      b, memref::LoadOp::create(b, scales, ValueRange{row, block}));
  Value none = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  result.push_back(b.createOrFold<arith::SelectOp>(exists, scale, none));
  if (zeros)
    result.push_back(loadZero(b, row, block));
  return result;
}

Value PackedWeights::loadZero(ImplicitLocOpBuilder &b, Value row,
                              Value block) const {
  Indices i(b);
  if (isa<FloatType>(cast<MemRefType>(zeros.getType()).getElementType()))
    return convertToF32(
        b, memref::LoadOp::create(b, zeros, ValueRange{row, block}));
  Type i32 = b.getI32Type();
  const int64_t perByte = 8 / bits;
  Value byte =
      memref::LoadOp::create(b, zeros, ValueRange{row, i.div(block, perByte)});
  Value word = arith::ExtUIOp::create(b, i32, byte);
  Value shift =
      arith::IndexCastOp::create(b, i32, i.mul(i.rem(block, perByte), bits));
  Value mask = arith::ConstantIntOp::create(b, i32, (1 << bits) - 1);
  word = arith::AndIOp::create(b, arith::ShRUIOp::create(b, word, shift), mask);
  return arith::UIToFPOp::create(b, b.getF32Type(), word);
}

Value PackedWeights::unpack(ImplicitLocOpBuilder &b, ValueRange loaded,
                            int64_t i) const {
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  };
  const int64_t perWord = 32 / bits, exponent = exponentOf(i);
  Value word = loaded[i / perWord];
  if (i % perWord >= perWord / 2)
    word = arith::ShRUIOp::create(b, word,
                                  arith::ConstantIntOp::create(b, i32, 16));
  Value mask = arith::ConstantIntOp::create(
      b, i32, ((int64_t(1) << bits) - 1) << exponent);
  word = arith::OrIOp::create(b, arith::AndIOp::create(b, word, mask),
                              arith::ConstantIntOp::create(b, i32, kMagic));
  Value value = arith::BitcastOp::create(b, f32, word);
  const double factor = double(int64_t(1) << exponent);
  if (!zeros) {
    double zero = double(int64_t(1) << (bits - 1)) * factor;
    return arith::SubFOp::create(b, value, number(kMagicValue + zero));
  }
  Value zero = arith::MulFOp::create(b, loaded.back(), number(factor));
  // Sums of integers below 2^24 are exact.
  if (!isa<FloatType>(cast<MemRefType>(zeros.getType()).getElementType()))
    return arith::SubFOp::create(
        b, value, arith::AddFOp::create(b, zero, number(kMagicValue)));
  value = arith::SubFOp::create(b, value, number(kMagicValue));
  return arith::SubFOp::create(b, value, zero);
}

Value PackedWeights::inverseFactor(ImplicitLocOpBuilder &b, Value i) const {
  Indices index(b);
  Type i32 = b.getI32Type();
  constexpr int64_t bias = 127, mantissa = 23;
  Value exponent = arith::IndexCastOp::create(
      b, i32, index.mul(index.rem(i, 16 / bits), bits));
  exponent = arith::SubIOp::create(
      b, arith::ConstantIntOp::create(b, i32, bias), exponent);
  Value word = arith::ShLIOp::create(
      b, exponent, arith::ConstantIntOp::create(b, i32, mantissa));
  return arith::BitcastOp::create(b, b.getF32Type(), word);
}

bool PackedWeights::hasPairs() const {
  return !zeros ||
         !isa<FloatType>(cast<MemRefType>(zeros.getType()).getElementType());
}

int64_t PackedWeights::pairExponent() const {
  return bits + llvm::Log2_64_Ceil(countValues() / 2);
}

Value PackedWeights::unpackPair(ImplicitLocOpBuilder &b, ValueRange loaded,
                                int64_t pair) const {
  Type i32 = b.getI32Type(), f16 = b.getF16Type();
  auto two = VectorType::get({2}, f16);
  const int64_t perHalf = 16 / bits, bit = pair % perHalf * bits;
  const int64_t exponent = bit % kPairBits;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, i32, value);
  };
  Value word = loaded[pair / perHalf];
  if (bit != exponent)
    word = arith::ShRUIOp::create(b, word, constant(bit - exponent));
  const int64_t mask = ((int64_t(1) << bits) - 1) << exponent;
  word = arith::AndIOp::create(b, word, constant(mask << 16 | mask));
  word = arith::OrIOp::create(b, word, constant(kPairMagic));
  Value numbers = LLVM::BitcastOp::create(b, two, word);
  // (2^10 + number 2^exponent) factor less what makes the zero point 0: all of
  // it is exact.
  const double unit = 1.0 / double(int64_t(1) << pairExponent());
  const double factor = unit / double(int64_t(1) << exponent);
  Value factors = arith::ConstantOp::create(
      b, DenseElementsAttr::get(two, b.getFloatAttr(f16, factor)));
  Value less;
  if (zeros) {
    auto number = [&](double value) -> Value {
      return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
    };
    Value one = math::FmaOp::create(b, loaded.back(), number(-unit),
                                    number(-kPairMagicValue * factor));
    one = arith::TruncFOp::create(b, f16, one);
    less = LLVM::PoisonOp::create(b, two);
    for (int64_t j = 0; j < 2; ++j)
      less = LLVM::InsertElementOp::create(b, less, one, constant(j));
  } else {
    const double zero = double(int64_t(1) << (bits - 1)) * unit;
    less = arith::ConstantOp::create(
        b, DenseElementsAttr::get(
               two, b.getFloatAttr(f16, -zero - kPairMagicValue * factor)));
  }
  return math::FmaOp::create(b, numbers, factors, less);
}

Value PackedWeights::placeInPairs(ImplicitLocOpBuilder &b, Value i) const {
  Indices index(b);
  const int64_t perHalf = 16 / bits;
  Value inWord = index.rem(i, 2 * perHalf);
  Value place = index.add(index.mul(index.rem(inWord, perHalf), 2),
                          index.div(inWord, perHalf));
  return index.add(index.mul(index.div(i, 2 * perHalf), 2 * perHalf), place);
}
