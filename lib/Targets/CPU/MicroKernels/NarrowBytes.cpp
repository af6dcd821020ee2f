//===- NarrowBytes.cpp - Integers as bytes --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// x86 packs two registers into one with saturation, in parts of 128 bits:
// twice, and four registers r0 to r3 are one whose part l holds parts l of r0,
// r1, r2 and r3, four bytes each. One permutation of these brings them in
// order. Once, and parts l of two registers are integers of 16 bits side by
// side.
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/NarrowBytes.h"
#include "MicroKernels/VectorOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Integers in 128 bits.
static constexpr int64_t kPart = 4;

static int64_t getRegisterWidth(TargetAttr target, int64_t width) {
  return std::min(target.getLanes(), width);
}

bool cpu::canNarrowBytes(TargetAttr target, int64_t width) {
  return target.has(TargetTraits::SaturatesBytes) && width >= kPart &&
         llvm::isPowerOf2_64(width);
}

/// Registers that become one of integers of `bits`.
static int64_t countTogether(unsigned bits) { return 32 / bits; }

int64_t cpu::countNarrowedTogether(TargetAttr target, int64_t width,
                                   unsigned bits) {
  const int64_t registers = width / getRegisterWidth(target, width);
  return std::max<int64_t>(countTogether(bits) / registers, 1);
}

/// x and y as integers of half of their width, with saturation.
static Value emitPack(ImplicitLocOpBuilder &b, Value x, Value y, bool toBytes,
                      bool isUnsigned) {
  auto type = cast<VectorType>(x.getType());
  const unsigned bits = type.getElementTypeBitWidth();
  const int64_t width = type.getNumElements() * bits;
  std::string name = width == 512   ? "llvm.x86.avx512."
                     : width == 256 ? "llvm.x86.avx2."
                                    : "llvm.x86.sse2.";
  name += !toBytes ? "packssdw" : isUnsigned ? "packuswb" : "packsswb";
  if (width != 256)
    name += "." + std::to_string(width);
  auto result =
      VectorType::get({type.getNumElements() * 2}, b.getIntegerType(bits / 2));
  return LLVM::CallIntrinsicOp::create(b, result, b.getStringAttr(name),
                                       ValueRange{x, y})
      .getResult(0);
}

/// Four registers of i32 as one of bytes, or two as one of 16 bits. Zeros are
/// added where sums saturate: a float that is no i32 became the least one.
static Value emitNarrow(ImplicitLocOpBuilder &b, ArrayRef<Value> registers,
                        ArrayRef<Value> zeros, bool isUnsigned) {
  const int64_t together = registers.size();
  constexpr int64_t kPair = 2;
  SmallVector<Value, 2> words;
  for (int64_t i = 0; i < together; i += kPair) {
    Value word = emitPack(b, registers[i], registers[i + 1], false, false);
    if (!zeros.empty())
      word = LLVM::SAddSat::create(
          b, word, emitPack(b, zeros[i], zeros[i + 1], false, false));
    words.push_back(word);
  }
  Value narrow = words[0];
  if (together > kPair) {
    narrow = emitPack(b, words[0], words[1], true, isUnsigned);
  } else {
    Value least = emitSplat(b, narrow.getType(), isUnsigned ? 0 : INT8_MIN);
    narrow = arith::MaxSIOp::create(b, narrow, least);
  }
  const int64_t count =
      cast<VectorType>(registers[0].getType()).getNumElements();
  const int64_t parts = count / kPart;
  if (parts == 1)
    return narrow;
  SmallVector<int64_t> order;
  for (int64_t r = 0; r < together; ++r)
    for (int64_t part = 0; part < parts; ++part)
      order.push_back(part * together + r);
  Value groups = vector::BitCastOp::create(
      b, VectorType::get({parts * together}, b.getIntegerType(128 / together)),
      narrow);
  groups = vector::ShuffleOp::create(b, groups, groups, order);
  return vector::BitCastOp::create(b, narrow.getType(), groups);
}

SmallVector<Value> cpu::emitNarrowBytes(ImplicitLocOpBuilder &b,
                                        TargetAttr target, ValueRange vectors,
                                        ValueRange zeros, bool isUnsigned,
                                        unsigned bits) {
  const int64_t width =
      cast<VectorType>(vectors.front().getType()).getNumElements();
  const int64_t lanes = getRegisterWidth(target, width);
  const int64_t perVector = width / lanes;
  auto split = [&](ValueRange values) {
    SmallVector<Value> registers;
    for (Value vector : values)
      for (int64_t i = 0; i < perVector; ++i)
        registers.push_back(
            extractLanes(b, b.getLoc(), vector, i * lanes, lanes));
    return registers;
  };
  const size_t together = countTogether(bits);
  // The last one again where there are too few.
  auto take = [&](ArrayRef<Value> registers, size_t first) {
    SmallVector<Value> some;
    for (size_t i = first; !registers.empty() && i < first + together; ++i)
      some.push_back(registers[std::min(i, registers.size() - 1)]);
    return some;
  };
  SmallVector<Value> registers = split(vectors), zeroRegisters = split(zeros);
  SmallVector<Value> pieces;
  for (size_t i = 0; i < registers.size(); i += together) {
    Value narrow =
        emitNarrow(b, take(registers, i), take(zeroRegisters, i), isUnsigned);
    for (size_t j = 0; j < together; ++j)
      pieces.push_back(extractLanes(b, b.getLoc(), narrow, j * lanes, lanes));
  }
  SmallVector<Value> result;
  for (size_t i = 0; i < vectors.size(); ++i)
    result.push_back(emitConcatenation(
        b,
        SmallVector<Value>(ArrayRef(pieces).slice(i * perVector, perVector))));
  return result;
}
