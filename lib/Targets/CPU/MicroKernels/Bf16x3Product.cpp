//===- Bf16x3Product.cpp - Numbers of f32 as sums of bf16 -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/Bf16x3Product.h"
#include "Common/IndexMath.h"
#include "MicroKernels/ContractionLoop.h"
#include "MicroKernels/VectorOps.h"

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <array>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Lanes that are split at a time: a row of f32 in a tile register.
static constexpr int64_t kLanes = kTileRows;
static constexpr int64_t kHalves = kColumnTiles;

MemRefType sardonyx::cpu::getSplitRowsType(MLIRContext *context, int64_t blocks,
                                           int64_t steps, int64_t parts) {
  return MemRefType::get({blocks, steps, parts, kBlockRows, kStepDepth},
                         BFloat16Type::get(context));
}

MemRefType sardonyx::cpu::getSplitColumnsType(MLIRContext *context,
                                              int64_t slots, int64_t steps,
                                              int64_t parts) {
  return MemRefType::get({slots, steps, parts, kHalves, kStepPairs, 2 * kLanes},
                         BFloat16Type::get(context));
}

static int64_t countParts(Value memref) {
  return cast<MemRefType>(memref.getType()).getDimSize(2);
}

MemRefType sardonyx::cpu::getMagnitudesType(MLIRContext *context,
                                            int64_t slots) {
  return MemRefType::get({slots, kHalves, kLanes},
                         IntegerType::get(context, 32));
}

static Value emitCompare(ImplicitLocOpBuilder &b,
                         arith::CmpIPredicate predicate, Value lhs,
                         int64_t rhs) {
  return arith::CmpIOp::create(b, predicate, lhs,
                               emitSplat(b, lhs.getType(), rhs));
}

static VectorType getBitsType(ImplicitLocOpBuilder &b) {
  return VectorType::get({kLanes}, b.getI32Type());
}

/// The parts of a vector of f32, as such: the lower halves are zero. Of a
/// number below 2^-103 all but the first are zero: they may be subnormal, which
/// tile registers take as zero, and which processors take hundreds of cycles to
/// compute. Of the largest in its row or column it is less than 2^-53.
static std::array<Value, kBf16x3Terms> emitSplit(ImplicitLocOpBuilder &b,
                                                 Value value) {
  constexpr int64_t kLeastSplit = int64_t(127 - 103) << 23;
  Type bitsType = getBitsType(b);
  Value upper = emitSplat(b, bitsType, 0xffff0000);
  Value magnitude =
      arith::AndIOp::create(b, arith::BitcastOp::create(b, bitsType, value),
                            emitSplat(b, bitsType, 0x7fffffff));
  Value hasRest =
      emitCompare(b, arith::CmpIPredicate::uge, magnitude, kLeastSplit);
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
  std::array<Value, kBf16x3Terms> parts;
  for (Value &part : parts) {
    part = value;
    if (&part == &parts.back())
      break; // no bits are left for a lower half
    Value bits = arith::BitcastOp::create(b, bitsType, value);
    part = arith::BitcastOp::create(b, value.getType(),
                                    arith::AndIOp::create(b, bits, upper));
    value = arith::SubFOp::create(b, value, part);
    if (&part == &parts.front())
      value = arith::SelectOp::create(b, hasRest, value, none);
  }
  return parts;
}

/// The upper halves of the lanes of two vectors, one after the other.
static Value emitJoin(ImplicitLocOpBuilder &b, Value first, Value second) {
  auto halves = VectorType::get({2 * kLanes}, b.getBF16Type());
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < 2 * kLanes; ++i)
    order.push_back(1 + 2 * i);
  return vector::ShuffleOp::create(
      b, vector::BitCastOp::create(b, halves, first),
      vector::BitCastOp::create(b, halves, second), order);
}

/// The upper halves of the lanes of two vectors, by turns.
static Value emitInterleave(ImplicitLocOpBuilder &b, Value first,
                            Value second) {
  Type bitsType = getBitsType(b);
  auto bits = [&](Value value) {
    return arith::BitcastOp::create(b, bitsType, value);
  };
  Value lower =
      arith::ShRUIOp::create(b, bits(first), emitSplat(b, bitsType, 16));
  Value upper = arith::AndIOp::create(b, bits(second),
                                      emitSplat(b, bitsType, 0xffff0000));
  return vector::BitCastOp::create(
      b, VectorType::get({2 * kLanes}, b.getBF16Type()),
      arith::OrIOp::create(b, lower, upper));
}

/// A vector of f32 rounded to bf16, each as the upper half of a lane.
static Value emitRounded(ImplicitLocOpBuilder &b, Value value) {
  Type bitsType = getBitsType(b);
  Value rounded = arith::TruncFOp::create(
      b, VectorType::get({kLanes}, b.getBF16Type()), value);
  Value bits = arith::ExtUIOp::create(
      b, bitsType,
      vector::BitCastOp::create(b, VectorType::get({kLanes}, b.getI16Type()),
                                rounded));
  return arith::BitcastOp::create(
      b, value.getType(),
      arith::ShLIOp::create(b, bits, emitSplat(b, bitsType, 16)));
}

/// The `count` parts of a vector of f32, as such.
static SmallVector<Value> emitParts(ImplicitLocOpBuilder &b, Value value,
                                    int64_t count) {
  if (count == 1)
    return {emitRounded(b, value)};
  return llvm::to_vector(emitSplit(b, value));
}

static Value emitNoMagnitudes(ImplicitLocOpBuilder &b) {
  return emitSplat(b, getBitsType(b), 0);
}

/// Whether the largest magnitude of some numbers, or of those in each lane,
/// forbids to multiply them by parts. Products of two numbers that are allowed
/// are at least 2^-100, so that what a part is too small for is less than 2^-26
/// of them.
static Value emitIsBad(ImplicitLocOpBuilder &b, Value largest) {
  constexpr int64_t kInfinity = 0x7f800000;
  // Zeros become the largest, and are allowed.
  Value below =
      arith::SubIOp::create(b, largest, emitSplat(b, largest.getType(), 1));
  return arith::OrIOp::create(
      b, emitCompare(b, arith::CmpIPredicate::uge, largest, kInfinity),
      emitCompare(b, arith::CmpIPredicate::ult, below,
                  cpu::kSmallestSplit - 1));
}

Value sardonyx::cpu::emitRowParts(ImplicitLocOpBuilder &b, Value source,
                                  ValueRange lead, Value row, Value endRow,
                                  const DepthRange &depth, bool isFull,
                                  Value parts, Value block) {
  IndexMath math(b);
  Value zero = math.constant(0);
  Value last = math.sub(endRow, math.constant(1));
  Value good = arith::ConstantOp::create(b, b.getBoolAttr(false));
  auto rows = scf::ForOp::create(b, zero, math.constant(kBlockRows),
                                 math.constant(1), good);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(rows.getBody());
  Value inBlock = rows.getInductionVar();
  Value from = math.min(math.add(row, inBlock), last);
  auto steps = scf::ForOp::create(b, zero, depth.steps, math.constant(1),
                                  emitNoMagnitudes(b));
  {
    OpBuilder::InsertionGuard inSteps(b);
    b.setInsertionPointToStart(steps.getBody());
    Value step = steps.getInductionVar();
    Value k = math.add(depth.first, math.mul(step, kStepDepth));
    auto load = [&](Value first) {
      Value mask;
      if (!isFull) {
        Value left = math.sub(math.max(depth.end, first), first);
        mask = emitTailMask(b, left, kLanes);
      }
      SmallVector<Value> at(lead);
      at.append({from, first});
      return emitLoad(b, source, at, kLanes, mask);
    };
    Value first = load(k);
    Value seen = emitLarger(b, steps.getRegionIterArg(0), first);
    Value second = load(math.add(k, kLanes));
    Value largest = emitLarger(b, seen, second);
    const int64_t count = countParts(parts);
    auto low = emitParts(b, first, count), high = emitParts(b, second, count);
    for (int64_t p = 0; p < count; ++p)
      emitStore(b, emitJoin(b, low[p], high[p]), parts,
                {block, step, math.constant(p), inBlock, zero});
    scf::YieldOp::create(b, largest);
  }
  Value ofRow = vector::ReductionOp::create(b, vector::CombiningKind::MAXUI,
                                            steps.getResult(0));
  scf::YieldOp::create(
      b, ValueRange{arith::OrIOp::create(b, rows.getRegionIterArg(0),
                                         emitIsBad(b, ofRow))});
  return rows.getResult(0);
}

void sardonyx::cpu::emitClearMagnitudes(ImplicitLocOpBuilder &b,
                                        const ColumnParts &to) {
  IndexMath math(b);
  for (int64_t half = 0; half < to.halves; ++half)
    emitStore(b, emitNoMagnitudes(b), to.magnitudes,
              {to.slot, math.constant(half), math.constant(0)});
}

void sardonyx::cpu::emitColumnParts(ImplicitLocOpBuilder &b, Value firstPair,
                                    Value endPair,
                                    function_ref<Value(Value, int64_t)> load,
                                    const ColumnParts &to) {
  IndexMath math(b);
  Value zero = math.constant(0);
  SmallVector<Value> largest;
  for (int64_t half = 0; half < to.halves; ++half)
    largest.push_back(
        vector::LoadOp::create(b, getBitsType(b), to.magnitudes,
                               ValueRange{to.slot, math.constant(half), zero}));
  auto pairs =
      scf::ForOp::create(b, firstPair, endPair, math.constant(1), largest);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(pairs.getBody());
    Value k = math.mul(pairs.getInductionVar(), 2);
    Value step = math.div(pairs.getInductionVar(), kStepPairs);
    Value pair = math.rem(pairs.getInductionVar(), math.constant(kStepPairs));
    SmallVector<Value> next;
    for (int64_t half = 0; half < to.halves; ++half) {
      Value first = load(k, half), second = load(math.add(k, 1), half);
      const int64_t count = countParts(to.parts);
      auto even = emitParts(b, first, count), odd = emitParts(b, second, count);
      for (int64_t p = 0; p < count; ++p)
        emitStore(
            b, emitInterleave(b, even[p], odd[p]), to.parts,
            {to.slot, step, math.constant(p), math.constant(half), pair, zero});
      Value seen = emitLarger(b, pairs.getRegionIterArg(half), first);
      next.push_back(emitLarger(b, seen, second));
    }
    scf::YieldOp::create(b, next);
  }
  for (int64_t half = 0; half < to.halves; ++half)
    emitStore(b, pairs.getResult(half), to.magnitudes,
              {to.slot, math.constant(half), zero});
}

Value sardonyx::cpu::emitBf16Pairs(ImplicitLocOpBuilder &b, Value even,
                                   Value odd, bool isRounded) {
  if (isRounded)
    return emitInterleave(b, emitRounded(b, even), emitRounded(b, odd));
  return emitInterleave(b, even, odd);
}

Value sardonyx::cpu::emitAreColumnsBad(ImplicitLocOpBuilder &b,
                                       const ColumnParts &columns) {
  IndexMath math(b);
  Value bad;
  for (int64_t half = 0; half < columns.halves; ++half) {
    Value lanes = emitIsBad(
        b, vector::LoadOp::create(b, getBitsType(b), columns.magnitudes,
                                  ValueRange{columns.slot, math.constant(half),
                                             math.constant(0)}));
    bad = bad ? arith::OrIOp::create(b, bad, lanes) : lanes;
  }
  return vector::ReductionOp::create(b, vector::CombiningKind::OR, bad);
}
