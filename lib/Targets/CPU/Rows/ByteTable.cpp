//===- ByteTable.cpp - Bytes picked from a table in registers -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/ByteTable.h"

#include "MicroKernels/VectorOps.h"
#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Elements of a table, and of the parts that pshufb picks from.
static constexpr int64_t kTable = 256, kPart = 16;

bool cpu::isByteTable(tensor::ExtractOp op) {
  auto type = cast<RankedTensorType>(op.getTensor().getType());
  if (type.getShape() != ArrayRef(kTable) ||
      !type.getElementType().isInteger(8))
    return false;
  auto place = op.getIndices().front().getDefiningOp<arith::IndexCastUIOp>();
  return place && place.getIn().getType().isInteger(8);
}

static VectorType getBytes(OpBuilder &b, int64_t count) {
  return VectorType::get(count, b.getI8Type());
}

static Value createSplat(OpBuilder &b, Location loc, VectorType type,
                         int8_t value) {
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, b.getI8IntegerAttr(value)));
}

static Value callIntrinsic(OpBuilder &b, Location loc, const Twine &name,
                           ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, operands.back().getType(),
                                       b.getStringAttr(name), operands)
      .getResult(0);
}

ByteTable::ByteTable(OpBuilder &b, Location loc, Value memref)
    : memref(memref) {
  TargetAttr target = getTargetOrDefault(b.getInsertionBlock()->getParentOp());
  llvm::Triple triple(target.getTriple());
  if (triple.isAArch64())
    form = Parts64;
  else if (triple.isX86() && target.has(TargetTraits::PermutesBytes))
    form = Parts128;
  else if (triple.isX86() && target.has(TargetTraits::ShufflesBytes))
    form = Parts16;
  if (form == Loads)
    return;
  width = form == Parts64 ? 16 : target.getVectorBits() / 8;
  int64_t length = form == Parts16 ? kPart : width;
  VectorType type = getBytes(b, length);
  Value before;
  for (int64_t first = 0; first < kTable; first += length) {
    Value index = arith::ConstantIndexOp::create(b, loc, first);
    Value part = vector::LoadOp::create(b, loc, type, memref, index);
    if (form == Parts16) {
      Value difference = part;
      if (first % (kTable / 2) != 0)
        difference = arith::XOrIOp::create(b, loc, part, before);
      before = part;
      SmallVector<int64_t> repeated;
      for (int64_t lane = 0; lane < width; ++lane)
        repeated.push_back(lane % kPart);
      part =
          vector::ShuffleOp::create(b, loc, difference, difference, repeated);
    }
    parts.push_back(part);
  }
}

/// A lane of pshufb is 0 where the byte that picks is negative, and else the
/// one of 16 that its four low bits say. Of what the byte is less 16, 32, ...
/// the first ones are not negative: together they pick all differences up to
/// the part that the byte is in, and so that part's byte. Bytes from 128 on are
/// negative from the beginning; they do the same with the other half, once
/// their highest bit is another.
Value ByteTable::lookUpParts16(OpBuilder &b, Location loc, Value bytes) const {
  auto type = cast<VectorType>(bytes.getType());
  StringRef name = width == 16   ? "llvm.x86.ssse3.pshuf.b.128"
                   : width == 32 ? "llvm.x86.avx2.pshuf.b"
                                 : "llvm.x86.avx512.pshuf.b.512";
  Value step = createSplat(b, loc, type, kPart);
  Value highest = createSplat(b, loc, type, INT8_MIN);
  Value result;
  for (unsigned half = 0; half < 2; ++half) {
    Value place =
        half == 0 ? bytes
                  : arith::XOrIOp::create(b, loc, bytes, highest).getResult();
    for (unsigned part = 0; part < parts.size() / 2; ++part) {
      if (part > 0) // no less than the least number
        place = LLVM::SSubSat::create(b, loc, type, place, step);
      Value picked = callIntrinsic(
          b, loc, name, {parts[half * parts.size() / 2 + part], place});
      result = result
                   ? arith::XOrIOp::create(b, loc, result, picked).getResult()
                   : picked;
    }
  }
  return result;
}

/// The same for as many bytes as a register has.
Value ByteTable::lookUpRegister(OpBuilder &b, Location loc, Value bytes) const {
  auto type = cast<VectorType>(bytes.getType());
  if (form == Parts16)
    return lookUpParts16(b, loc, bytes);
  if (form == Parts128) {
    auto pick = [&](unsigned part) {
      return callIntrinsic(b, loc, "llvm.x86.avx512.vpermi2var.qi.512",
                           {parts[part], bytes, parts[part + 1]});
    };
    Value zero = createSplat(b, loc, type, 0);
    Value isHigh =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, bytes, zero);
    return arith::SelectOp::create(b, loc, isHigh, pick(2), pick(0));
  }
  // A place beyond the registers of a tbl gives 0.
  constexpr int64_t kRegisters = 4;
  Value step = createSplat(b, loc, type, kRegisters * width);
  Value result, place = bytes;
  for (unsigned part = 0; part < parts.size(); part += kRegisters) {
    if (part > 0)
      place = arith::SubIOp::create(b, loc, place, step);
    SmallVector<Value> operands(ArrayRef(parts).slice(part, kRegisters));
    operands.push_back(place);
    Value picked =
        callIntrinsic(b, loc, "llvm.aarch64.neon.tbl4.v16i8", operands);
    result = result ? arith::OrIOp::create(b, loc, result, picked).getResult()
                    : picked;
  }
  return result;
}

/// Bytes leave and enter vectors as words of several, which takes a shift each.
Value ByteTable::loadEach(OpBuilder &b, Location loc, Value bytes) const {
  auto type = cast<VectorType>(bytes.getType());
  constexpr int64_t kByte = 8, kMostBits = 64;
  int64_t bits = std::min(kMostBits, type.getNumElements() * kByte);
  IntegerType word = b.getIntegerType(bits);
  auto words = VectorType::get(type.getNumElements() * kByte / bits, word);
  auto amount = [&](int64_t shift) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(word, shift));
  };
  Value places = vector::BitCastOp::create(b, loc, words, bytes);
  SmallVector<Value> results;
  for (int64_t i = 0; i < words.getNumElements(); ++i) {
    Value from = vector::ExtractOp::create(b, loc, places, i), result;
    for (int64_t shift = 0; shift < bits; shift += kByte) {
      Value place = from;
      if (shift > 0)
        place = arith::ShRUIOp::create(b, loc, from, amount(shift));
      if (bits > kByte)
        place = arith::TruncIOp::create(b, loc, b.getI8Type(), place);
      Value picked = memref::LoadOp::create(
          b, loc, memref,
          arith::IndexCastUIOp::create(b, loc, b.getIndexType(), place)
              .getResult());
      if (bits > kByte)
        picked = arith::ExtUIOp::create(b, loc, word, picked);
      if (shift > 0)
        picked = arith::ShLIOp::create(b, loc, picked, amount(shift));
      result = result ? arith::OrIOp::create(b, loc, result, picked).getResult()
                      : picked;
    }
    results.push_back(result);
  }
  return vector::BitCastOp::create(
      b, loc, type, vector::FromElementsOp::create(b, loc, words, results));
}

Value ByteTable::lookUp(OpBuilder &b, Location loc, Value bytes) const {
  if (form == Loads)
    return loadEach(b, loc, bytes);
  auto type = cast<VectorType>(bytes.getType());
  int64_t count = type.getNumElements();
  if (count == width)
    return lookUpRegister(b, loc, bytes);
  if (count < width) {
    SmallVector<int64_t> wide;
    for (int64_t lane = 0; lane < width; ++lane)
      wide.push_back(lane % count);
    Value filled = vector::ShuffleOp::create(b, loc, bytes, bytes, wide);
    return extractLanes(b, loc, lookUpRegister(b, loc, filled), 0, count);
  }
  ImplicitLocOpBuilder builder(loc, b);
  SmallVector<Value> registers;
  for (int64_t first = 0; first < count; first += width)
    registers.push_back(
        lookUpRegister(b, loc, extractLanes(b, loc, bytes, first, width)));
  return emitConcatenation(builder, registers);
}
