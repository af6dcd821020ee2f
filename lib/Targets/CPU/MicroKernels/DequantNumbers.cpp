//===- DequantNumbers.cpp - Weights of a few bits in registers ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/DequantNumbers.h"
#include "Common/IndexMath.h"
#include "MicroKernels/VectorOps.h"
#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Lanes of a register that an instruction fills from a table of as many
/// numbers (x86: vpermps).
static constexpr int64_t kTableLanes = 16;

Value cpu::emitLoadParameters(ImplicitLocOpBuilder &b, Value memref,
                              ValueRange indices, int64_t width) {
  Value loaded = emitLoad(b, memref, llvm::to_vector(indices), width);
  Type type = getElementTypeOrSelf(loaded);
  if (type.isF32())
    return loaded;
  if (type.isBF16())
    return arith::ExtFOp::create(b, VectorType::get({width}, b.getF32Type()),
                                 loaded);
  Value bits = vector::BitCastOp::create(
      b, VectorType::get({width}, b.getI16Type()), loaded);
  bits =
      arith::ExtUIOp::create(b, VectorType::get({width}, b.getI32Type()), bits);
  return decodeSmallFloat(b, bits, b.getF16Type());
}

/// Scales (0) or zero points (1) of the tile's columns in a block.
static Value emitParameters(ImplicitLocOpBuilder &b, const PackedTile &tile,
                            Value panel, Value block, int64_t which) {
  return emitLoadParameters(
      b, tile.scales, {panel, block, IndexMath(b).constant(which), tile.column},
      tile.width);
}

DequantNumbers::DequantNumbers(ImplicitLocOpBuilder &b, const PackedTile &tile,
                               Value panel, Value block)
    : b(b), tile(tile), panel(panel), bits(tile.packing.getBits()) {
  IndexMath math(b);
  words = tile.packing.getRowSize() / kQuantizedGroup;
  width = std::min(tile.width, words);
  repeats = std::max<int64_t>(1, std::min(tile.width, tile.target.getLanes()) /
                                     width);
  part = math.div(tile.column, words);
  first = math.sub(tile.column, math.mul(part, words));
  const bool hasZeros =
      cast<ShapedType>(tile.scales.getType()).getDimSize(2) == 2;
  const int64_t middle = int64_t(1) << (bits - 1);
  const bool hasTable = tile.target.getVectorBits() == 32 * kTableLanes &&
                        width * repeats == kTableLanes && bits < 8;
  const FloatType type = tile.packing.getSmallFloat();
  if (hasZeros)
    zero = emitParameters(b, tile, panel, block, /*which=*/1);
  else if (!hasTable && !type)
    zero = emitFloatSplat(b, VectorType::get({tile.width}, b.getF32Type()),
                          float(middle));
  if (!hasTable)
    return;
  SmallVector<float> numbers;
  for (int64_t i = 0; i < kTableLanes; ++i) {
    const int64_t code = i & ((1 << bits) - 1);
    numbers.push_back(
        type ? llvm::APFloat(type.getFloatSemantics(), llvm::APInt(bits, code))
                   .convertToFloat()
             : float(code - (hasZeros ? 0 : middle)));
  }
  table = arith::ConstantOp::create(
      b, DenseElementsAttr::get(VectorType::get({kTableLanes}, b.getF32Type()),
                                ArrayRef(numbers)));
}

Value DequantNumbers::load(Value group) {
  IndexMath math(b);
  Value bytes =
      emitLoad(b, tile.rhs, {panel, group, math.mul(first, kQuantizedGroup)},
               width * kQuantizedGroup);
  return vector::BitCastOp::create(b, VectorType::get({width}, b.getI32Type()),
                                   bytes);
}

/// Words of the tile's columns, each with its integer of the values of k that
/// begin at bit `start` in the lowest bits, as registers.
SmallVector<Value> DequantNumbers::emitShifted(Value loaded, Value start) {
  IndexMath math(b);
  const int64_t lanes = width * repeats;
  auto type = VectorType::get({lanes}, b.getI32Type());
  SmallVector<int64_t> order;
  SmallVector<int32_t> distances;
  for (int64_t i = 0; i < lanes; ++i) {
    order.push_back(i % width);
    distances.push_back(i / width * bits);
  }
  if (repeats > 1)
    loaded = vector::ShuffleOp::create(b, loaded, loaded, order);
  start = math.add(start, math.mul(part, bits));
  SmallVector<Value> parts;
  for (int64_t i = 0; i < tile.width / lanes; ++i) {
    Value amount = vector::BroadcastOp::create(
        b, type,
        arith::IndexCastOp::create(b, b.getI32Type(),
                                   math.add(start, i * repeats * bits)));
    if (repeats > 1)
      amount = arith::AddIOp::create(
          b, amount,
          arith::ConstantOp::create(
              b, DenseElementsAttr::get(type, ArrayRef<int32_t>(distances))));
    parts.push_back(arith::ShRUIOp::create(b, loaded, amount));
  }
  return parts;
}

Value DequantNumbers::emitBytes(Value loaded) {
  if (bits == 8)
    return loaded;
  SmallVector<Value> parts = emitShifted(loaded, IndexMath(b).constant(0));
  constexpr int64_t kOnes = 0x01010101;
  for (Value &part : parts)
    part = arith::AndIOp::create(
        b, part, emitSplat(b, part.getType(), kOnes * ((1 << bits) - 1)));
  return emitConcatenation(b, std::move(parts));
}

Value DequantNumbers::getZeroPoints() {
  if (cast<ShapedType>(tile.scales.getType()).getDimSize(2) == 2)
    return zero;
  return emitFloatSplat(b, VectorType::get({tile.width}, b.getF32Type()),
                        std::ldexp(1.0f, int(bits) - 1));
}

Value DequantNumbers::emit(Value loaded, Value place) {
  SmallVector<Value> parts = emitShifted(loaded, IndexMath(b).mul(place, 8));
  auto floats = VectorType::get({width * repeats}, b.getF32Type());
  for (Value &part : parts) {
    if (table) {
      part = LLVM::CallIntrinsicOp::create(
                 b, floats, b.getStringAttr("llvm.x86.avx512.permvar.sf.512"),
                 ValueRange{table, part})
                 .getResult(0);
      continue;
    }
    if (FloatType type = tile.packing.getSmallFloat()) {
      part = decodeSmallFloat(b, part, type);
      continue;
    }
    part = arith::AndIOp::create(b, part,
                                 emitSplat(b, part.getType(), (1 << bits) - 1));
    part = arith::SIToFPOp::create(b, floats, part);
  }
  Value numbers = emitConcatenation(b, std::move(parts));
  return zero ? Value(arith::SubFOp::create(b, numbers, zero)) : numbers;
}

Value cpu::emitDequantized(ImplicitLocOpBuilder &b, const PackedTile &tile,
                           Value k) {
  IndexMath math(b);
  Value block = math.div(k, tile.block);
  DequantNumbers numbers(b, tile, tile.panel, block);
  Value number = numbers.emit(numbers.load(math.div(k, kQuantizedGroup)),
                              math.rem(k, math.constant(kQuantizedGroup)));
  return arith::MulFOp::create(
      b, number, emitParameters(b, tile, tile.panel, block, /*which=*/0));
}

std::array<Value, kQuantizedGroup>
cpu::emitDequantizedGroup(ImplicitLocOpBuilder &b, const PackedTile &tile,
                          Value group, bool isScaled) {
  IndexMath math(b);
  Value block = math.div(math.mul(group, kQuantizedGroup), tile.block);
  DequantNumbers numbers(b, tile, tile.panel, block);
  Value words = numbers.load(group), scale;
  if (isScaled)
    scale = emitParameters(b, tile, tile.panel, block, /*which=*/0);
  std::array<Value, kQuantizedGroup> result;
  for (auto [place, number] : llvm::enumerate(result)) {
    number = numbers.emit(words, math.constant(place));
    if (isScaled)
      number = arith::MulFOp::create(b, number, scale);
  }
  return result;
}

SmallVector<Value> cpu::emitDequantBlocks(
    ImplicitLocOpBuilder &b, const PackedTile &tile, SmallVector<Value> accs,
    function_ref<SmallVector<Value>(Value block, int64_t size)> emitSums) {
  IndexMath math(b);
  const int64_t blocks = *tile.depth / tile.block;
  const int64_t rest = *tile.depth % tile.block;
  auto emitBlock = [&](Value block, int64_t size) {
    SmallVector<Value> sums = emitSums(block, size), scales;
    for (int64_t p = 0; p < tile.panels; ++p)
      scales.push_back(emitParameters(b, tile, math.add(tile.panel, p), block,
                                      /*which=*/0));
    for (auto [i, acc] : llvm::enumerate(accs))
      acc = vector::FMAOp::create(b, sums[i], scales[i % tile.panels], acc);
  };
  if (blocks == 1) {
    emitBlock(math.constant(0), tile.block);
  } else if (blocks > 1) {
    auto loop = scf::ForOp::create(b, math.constant(0), math.constant(blocks),
                                   math.constant(1), accs);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    accs.assign(loop.getRegionIterArgs().begin(),
                loop.getRegionIterArgs().end());
    emitBlock(loop.getInductionVar(), tile.block);
    scf::YieldOp::create(b, accs);
    accs = loop.getResults();
  }
  if (rest)
    emitBlock(math.constant(blocks), rest);
  return accs;
}
