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
// order.
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/NarrowBytes.h"
#include "MicroKernels/VectorOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Registers that become one.
static constexpr int64_t kTogether = 4;
/// Integers in 128 bits.
static constexpr int64_t kPart = 4;

static int64_t getRegisterWidth(TargetAttr target, int64_t width) {
  return std::min(target.getLanes(), width);
}

bool cpu::canNarrowBytes(TargetAttr target, int64_t width) {
  return target.has(TargetTraits::SaturatesBytes) && width >= kPart &&
         llvm::isPowerOf2_64(width);
}

int64_t cpu::countNarrowedTogether(TargetAttr target, int64_t width) {
  const int64_t registers = width / getRegisterWidth(target, width);
  return std::max<int64_t>(kTogether / registers, 1);
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

/// Four registers of i32 as one of bytes.
static Value emitNarrow(ImplicitLocOpBuilder &b, ArrayRef<Value> registers,
                        bool isUnsigned) {
  Value low = emitPack(b, registers[0], registers[1], false, false);
  Value high = emitPack(b, registers[2], registers[3], false, false);
  Value bytes = emitPack(b, low, high, true, isUnsigned);
  const int64_t count =
      cast<VectorType>(registers[0].getType()).getNumElements();
  const int64_t parts = count / kPart;
  if (parts == 1)
    return bytes;
  SmallVector<int64_t> order;
  for (int64_t r = 0; r < kTogether; ++r)
    for (int64_t part = 0; part < parts; ++part)
      order.push_back(part * kTogether + r);
  Value groups = vector::BitCastOp::create(
      b, VectorType::get({count}, b.getI32Type()), bytes);
  groups = vector::ShuffleOp::create(b, groups, groups, order);
  return vector::BitCastOp::create(b, bytes.getType(), groups);
}

SmallVector<Value> cpu::emitNarrowBytes(ImplicitLocOpBuilder &b,
                                        TargetAttr target, ValueRange vectors,
                                        bool isUnsigned) {
  const int64_t width =
      cast<VectorType>(vectors.front().getType()).getNumElements();
  const int64_t lanes = getRegisterWidth(target, width);
  const int64_t perVector = width / lanes;
  SmallVector<Value> registers;
  for (Value vector : vectors)
    for (int64_t i = 0; i < perVector; ++i)
      registers.push_back(
          extractLanes(b, b.getLoc(), vector, i * lanes, lanes));
  SmallVector<Value> pieces;
  for (size_t i = 0; i < registers.size(); i += kTogether) {
    SmallVector<Value> four;
    for (size_t j = 0; j < kTogether; ++j)
      four.push_back(registers[std::min(i + j, registers.size() - 1)]);
    Value bytes = emitNarrow(b, four, isUnsigned);
    for (int64_t j = 0; j < kTogether; ++j)
      pieces.push_back(extractLanes(b, b.getLoc(), bytes, j * lanes, lanes));
  }
  SmallVector<Value> result;
  for (size_t i = 0; i < vectors.size(); ++i)
    result.push_back(emitConcatenation(
        b,
        SmallVector<Value>(ArrayRef(pieces).slice(i * perVector, perVector))));
  return result;
}
