//===- SplitFloats.cpp - f32 as the sum of two bf16 -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/SplitFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Bits of both bf16 of a word. An infinity with one of its exponent's bits
/// flipped is 1, with two others 2^119.
static constexpr int64_t kOneBits = 0x40004000, kLargeBits = 0x04800480;
static constexpr int64_t kUpperHalf = 0xffff0000;

static Value roundPair(ImplicitLocOpBuilder &b, Value first, Value second) {
  return NVVM::ConvertF32x2ToBF16x2Op::create(
      b, VectorType::get({2}, b.getBF16Type()), second, first,
      /*random_bits=*/Value(), NVVM::FPRoundingMode::RN,
      NVVM::SaturationMode::NONE, /*relu=*/false);
}

SplitPair nv::splitPair(ImplicitLocOpBuilder &b, Value first, Value second) {
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  auto constant = [&](int64_t bits) -> Value {
    return arith::ConstantIntOp::create(b, static_cast<int32_t>(bits), 32);
  };
  auto asWord = [&](Value pair) -> Value {
    return LLVM::BitcastOp::create(b, i32, pair);
  };
  Value rounded = roundPair(b, first, second);
  // NaN, all of whose exponent's bits are ones, of an infinity and of NaN; else
  // 0.
  Value zero = LLVM::ConstantOp::create(b, rounded.getType(),
                                        b.getZeroAttr(rounded.getType()));
  Value special =
      asWord(LLVM::FMAOp::create(b, rounded.getType(), rounded, zero, zero));
  Value word = asWord(rounded);
  auto flip = [&](int64_t bits) -> Value {
    return arith::XOrIOp::create(
        b, word, arith::AndIOp::create(b, special, constant(bits)));
  };
  // What is left of a number that was rounded to an infinity is taken from
  // 2^119, and is finite in bf16.
  Value taken = flip(kLargeBits);
  auto left = [&](Value number, Value bits) -> Value {
    return arith::SubFOp::create(b, number,
                                 LLVM::BitcastOp::create(b, f32, bits));
  };
  Value firstLeft = left(first, arith::ShLIOp::create(b, taken, constant(16)));
  Value secondLeft =
      left(second, arith::AndIOp::create(b, taken, constant(kUpperHalf)));
  return {flip(kOneBits), asWord(roundPair(b, firstLeft, secondLeft))};
}
