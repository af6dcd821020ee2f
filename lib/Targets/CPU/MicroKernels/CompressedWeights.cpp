//===- CompressedWeights.cpp - f32 in 21 or 24 bits -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers of 21 bits take no instruction that AVX2 or NEON would lack: of a
// register of triples, a shift of half of its lanes brings two numbers of each
// to the top of a lane, and the third numbers of two registers are together
// after two shifts. Masks would cost a fifth of the speed: packing knows what
// lies below each number, and rounds what is above it.
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/CompressedWeights.h"
#include "Common/IndexMath.h"
#include "MicroKernels/ContractionLoop.h"
#include "MicroKernels/VectorOps.h"

#include "dialects/CPU/CPU.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Where the three numbers of a triple begin: the two that are neighbours in
/// registers of lanes half as long, and the one between them.
static constexpr int64_t kNumberBits = 21, kMiddleAt = 22, kUpperAt = 43;

static Value loadScales(ImplicitLocOpBuilder &b, Value scales, Value panel,
                        int64_t column, int64_t width) {
  IndexMath math(b);
  Value zero = math.constant(0);
  return emitLoad(b, scales, {panel, zero, zero, math.constant(column)}, width);
}

/// The reciprocals of the scales of `lanes` columns from `column` on.
static Value emitInverse(ImplicitLocOpBuilder &b, Value scales, Value panel,
                         int64_t column, int64_t lanes) {
  Value scale = loadScales(b, scales, panel, column, lanes);
  return arith::DivFOp::create(b, emitFloatSplat(b, scale.getType(), 1), scale);
}

Value sardonyx::cpu::emitCompressedScales(ImplicitLocOpBuilder &b, Value scales,
                                          Value panel, int64_t column,
                                          int64_t width, int shift) {
  Value scale = loadScales(b, scales, panel, column, width);
  float factor = std::ldexp(1.0f, kRangeShift - shift);
  return arith::MulFOp::create(b, scale,
                               emitFloatSplat(b, scale.getType(), factor));
}

/// The integers of `bits` bits nearest to `numbers`, that are not larger.
static Value emitNearest(ImplicitLocOpBuilder &b, Value numbers, int64_t bits) {
  auto type = cast<VectorType>(numbers.getType());
  float largest = std::ldexp(1.0f, bits - 1) - 1;
  Value nearest =
      arith::MinimumFOp::create(b, math::RoundEvenOp::create(b, numbers),
                                emitFloatSplat(b, type, largest));
  return arith::FPToSIOp::create(
      b, VectorType::get(type.getShape(), b.getI32Type()), nearest);
}

//===----------------------------------------------------------------------===//
// Three bytes
//===----------------------------------------------------------------------===//

void sardonyx::cpu::packW24(ImplicitLocOpBuilder &b, Value numbers,
                            Value scales, Value k, const CompressedPanel &to) {
  IndexMath math(b);
  constexpr int64_t kBits = 24;
  int64_t lanes = to.lanes;
  auto bytes = VectorType::get({4 * lanes}, b.getI8Type());
  SmallVector<int64_t> lowBytes; // three of each word's
  for (int64_t byte = 0; byte < 4 * lanes; ++byte)
    if (byte % 4 != 3)
      lowBytes.push_back(byte);
  SmallVector<Value> inverse;
  for (int64_t column = 0; column < to.width; column += lanes)
    inverse.push_back(emitInverse(b, scales, to.number, column, lanes));
  emitFor(b, math.constant(0), k, 1, [&](Value i) {
    for (int64_t column = 0; column < to.width; column += lanes) {
      Value scaled = arith::MulFOp::create(
          b, emitLoad(b, numbers, {i, math.constant(column)}, lanes),
          inverse[column / lanes]);
      Value integers =
          vector::BitCastOp::create(b, bytes, emitNearest(b, scaled, kBits));
      emitStore(b, vector::ShuffleOp::create(b, integers, integers, lowBytes),
                to.memory, {to.number, i, math.constant(3 * column)});
    }
  });
}

Value sardonyx::cpu::emitW24Numbers(ImplicitLocOpBuilder &b,
                                    const CompressedPanel &panel, Value k) {
  IndexMath math(b);
  int64_t lanes = panel.lanes;
  auto words = VectorType::get({lanes}, b.getI32Type());
  auto floats = VectorType::get({lanes}, b.getF32Type());
  int64_t size = 4 * lanes, rowSize = 3 * panel.width;
  Value zeros = emitSplat(b, VectorType::get({size}, b.getI8Type()), 0);
  SmallVector<Value> parts;
  for (int64_t column = 0; column < panel.width; column += lanes) {
    // A register is longer than what it needs, which the last one has at its
    // end.
    int64_t from = std::min(3 * column, rowSize - size);
    Value bytes =
        emitLoad(b, panel.memory, {panel.number, k, math.constant(from)}, size);
    // Four numbers are three words: with these in the four words of a lane of
    // 128 bits, bytes stay in their lane, as AVX-512 without VBMI wants it.
    SmallVector<int64_t> wordPlaces, places;
    for (int64_t word = 0; word < lanes; ++word)
      wordPlaces.push_back((3 * column - from) / 4 + word / 4 * 3 +
                           std::min<int64_t>(word % 4, 2));
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t first = lane / 4 * 16 + lane % 4 * 3;
      places.append({size, first, first + 1, first + 2});
    }
    Value inLanes = vector::BitCastOp::create(b, words, bytes);
    inLanes = vector::ShuffleOp::create(b, inLanes, inLanes, wordPlaces);
    bytes = vector::BitCastOp::create(b, zeros.getType(), inLanes);
    Value integers = vector::BitCastOp::create(
        b, words, vector::ShuffleOp::create(b, bytes, zeros, places));
    parts.push_back(arith::SIToFPOp::create(b, floats, integers));
  }
  return emitConcatenation(b, std::move(parts));
}

//===----------------------------------------------------------------------===//
// Triples
//===----------------------------------------------------------------------===//

void sardonyx::cpu::packW21(ImplicitLocOpBuilder &b, Value numbers,
                            Value scales, Value k, const CompressedPanel &to) {
  IndexMath math(b);
  int64_t half = to.width / 2, quarter = to.width / 4;
  auto words = VectorType::get({quarter}, b.getI32Type());
  auto longs = VectorType::get({quarter}, b.getI64Type());
  auto floats = VectorType::get({quarter}, b.getF32Type());
  // Values of k past the end.
  Value triples = math.ceilDiv(k, cpu::kW21Group);
  Value none =
      emitFloatSplat(b, VectorType::get({to.width}, b.getF32Type()), 0);
  emitFor(b, k, math.mul(triples, cpu::kW21Group), 1,
          [&](Value i) { emitStore(b, none, numbers, {i, math.constant(0)}); });
  // Every other column of a half of the panel: even ones and odd ones.
  auto pick = [&](Value vector, int64_t first) {
    return emitPick(b, vector, vector, first, 2, quarter);
  };
  Value inverse[2];
  for (int64_t h : {0, 1})
    inverse[h] = emitInverse(b, scales, to.number, h * half, half);
  emitFor(b, math.constant(0), triples, 1, [&](Value triple) {
    Value first = math.mul(triple, cpu::kW21Group);
    Value rows[cpu::kW21Group][2];
    for (int64_t row = 0; row < cpu::kW21Group; ++row)
      for (int64_t h : {0, 1})
        rows[row][h] = arith::MulFOp::create(
            b,
            emitLoad(b, numbers,
                     {math.add(first, row), math.constant(h * half)}, half),
            inverse[h]);
    // An integer nearest to a number less what lies below it, and its bits.
    auto round = [&](Value number, Value below) {
      if (below)
        number = arith::SubFOp::create(b, number, below);
      Value integer = emitNearest(b, number, kNumberBits);
      return arith::AndIOp::create(b, integer,
                                   emitSplat(b, words, (1 << kNumberBits) - 1));
    };
    // What comes of the bits from `low` on below the number above them.
    auto below = [&](Value bits, int64_t low) -> Value {
      Value upper = arith::ShRUIOp::create(b, bits, emitSplat(b, words, low));
      return arith::MulFOp::create(
          b, arith::UIToFPOp::create(b, floats, upper),
          emitFloatSplat(b, floats, std::ldexp(1.0f, -kW21Shift)));
    };
    auto place = [&](Value bits, int64_t at) -> Value {
      Value wide = arith::ExtUIOp::create(b, longs, bits);
      return arith::ShLIOp::create(b, wide, emitSplat(b, longs, at));
    };
    for (int64_t a = 0; a < 4; ++a) {
      // A lane of the third number ends with kW21Shift bits from that bit on
      // of its triple, of the second with so many from bit 32 on.
      Value lower = round(pick(rows[a / 2][a % 2], 0), nullptr);
      Value middle =
          round(pick(rows[2][a / 2], a % 2), below(lower, kW21Shift));
      Value upper =
          round(pick(rows[a / 2][a % 2], 1), below(middle, 32 - kMiddleAt));
      Value all =
          arith::OrIOp::create(b, place(lower, 0), place(middle, kMiddleAt));
      all = arith::OrIOp::create(b, all, place(upper, kUpperAt));
      emitStore(b, all, to.memory,
                {to.number, triple, math.constant(a * quarter)});
    }
  });
}

SmallVector<Value> sardonyx::cpu::emitW21(ImplicitLocOpBuilder &b,
                                          const CompressedPanel &panel,
                                          Value triple) {
  IndexMath math(b);
  int64_t lanes = panel.lanes, longsInRegister = lanes / 2;
  int64_t half = panel.width / 2, quarter = panel.width / 4;
  auto words = VectorType::get({lanes}, b.getI32Type());
  auto longs = VectorType::get({longsInRegister}, b.getI64Type());
  auto floats = VectorType::get({lanes}, b.getF32Type());
  SmallVector<int64_t> evenAndOdd; // even lanes of one, odd ones of another
  for (int64_t lane = 0; lane < lanes; ++lane)
    evenAndOdd.push_back(lane % 2 ? lanes + lane : lane);
  auto join = [&](Value even, Value odd) -> Value {
    Value joined = vector::ShuffleOp::create(b, even, odd, evenAndOdd);
    return arith::SIToFPOp::create(b, floats, joined);
  };
  auto asWords = [&](Value value) -> Value {
    return vector::BitCastOp::create(b, words, value);
  };
  auto load = [&](int64_t a, int64_t i) {
    return emitLoad(b, panel.memory,
                    {panel.number, triple, math.constant(a * quarter + i)},
                    longsInRegister);
  };
  SmallVector<Value> parts[cpu::kW21Group];
  for (int64_t h : {0, 1})
    for (int64_t i = 0; i < quarter; i += longsInRegister) {
      // The columns of row h, and of the last row the columns of half h.
      Value left = load(2 * h, i), right = load(2 * h + 1, i);
      Value low =
          arith::ShRUIOp::create(b, left, emitSplat(b, longs, kW21Shift));
      Value high = arith::ShLIOp::create(
          b, right, emitSplat(b, longs, 64 - kMiddleAt - kNumberBits));
      parts[2].push_back(join(asWords(low), asWords(high)));
      for (Value block : {left, right}) {
        Value even = arith::ShLIOp::create(b, asWords(block),
                                           emitSplat(b, words, kW21Shift));
        parts[h].push_back(join(even, asWords(block)));
      }
    }
  // Rows 0 and 1 came as register i of the left and of the right half.
  int64_t count = half / lanes;
  SmallVector<Value> result;
  for (int64_t row = 0; row < cpu::kW21Group; ++row) {
    SmallVector<Value> inOrder(parts[row]);
    if (row < 2)
      for (int64_t i = 0; i < count; ++i)
        for (int64_t h : {0, 1})
          inOrder[h * count + i] = parts[row][2 * i + h];
    result.push_back(emitConcatenation(b, std::move(inOrder)));
  }
  return result;
}
