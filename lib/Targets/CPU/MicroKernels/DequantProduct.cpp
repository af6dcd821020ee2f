//===- DequantProduct.cpp - Products with weights of a few bits -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where weights come from memory, what counts is their bytes: they stay packed,
// and are numbers only in registers. A step over k loads the integers of a
// panel, spreads and scales them, and multiplies; scales and offsets stay in
// registers for a block.
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulEmitter.h"
#include "MicroKernels/CompressedWeights.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The integers of a tile's columns at one value of k, as f32.
Value MatmulEmitter::emitNumbers(ImplicitLocOpBuilder &b, Value panel,
                                 Value depth, Value columnInPanel) {
  IndexMath math(b);
  int64_t perByte = op.getNumbersPerByte(), bits = 8 / perByte;
  // Columns of which a byte holds the first, and those after them.
  int64_t partWidth = op.getPanelWidth() / perByte;
  int64_t width = std::min(shape.width, partWidth);
  Value part = math.div(columnInPanel, partWidth);
  Value first = math.sub(columnInPanel, math.mul(part, partWidth));
  auto type = VectorType::get({width}, b.getI32Type());
  Value bytes = emitLoad(b, rhs, {panel, depth, first}, width);
  Value words = arith::ExtUIOp::create(b, type, bytes);
  SmallVector<Value> parts;
  for (int64_t j = 0; j < std::max<int64_t>(1, shape.width / width); ++j) {
    Value number = words;
    if (perByte > 1) {
      Value shift = math.mul(math.add(part, j), bits);
      Value amount = arith::IndexCastOp::create(b, b.getI32Type(), shift);
      number = arith::ShRUIOp::create(
          b, number, vector::BroadcastOp::create(b, type, amount));
      number =
          arith::AndIOp::create(b, number, emitSplat(b, type, (1 << bits) - 1));
    }
    parts.push_back(arith::SIToFPOp::create(
        b, VectorType::get({width}, b.getF32Type()), number));
  }
  return emitConcatenation(b, std::move(parts));
}

/// The accumulators of a tile after `size` values of k that share scales.
SmallVector<Value>
MatmulEmitter::emitDepthBlock(ImplicitLocOpBuilder &b, const Chunk &chunk,
                              ArrayRef<Value> rows, Value columnInPanel,
                              ValueRange accs, Value block, int64_t size) {
  IndexMath math(b);
  SmallVector<Value> scale, offset;
  for (int64_t p = 0; p < chunk.panels; ++p) {
    Value panel = math.add(chunk.panel, p);
    auto load = [&](int64_t which) {
      return emitLoad(b, scales,
                      {panel, block, math.constant(which), columnInPanel},
                      shape.width);
    };
    scale.push_back(load(0));
    if (op.hasOffsets()) {
      offset.push_back(load(1));
      continue;
    }
    auto type = cast<VectorType>(scale.back().getType());
    Value middle = emitFloatSplat(
        b, type, -std::ldexp(1.0f, 8 / op.getNumbersPerByte() - 1));
    offset.push_back(arith::MulFOp::create(b, scale.back(), middle));
  }
  Value first = math.mul(block, *op.getBlock());
  auto right = [&](Value depth, int64_t p) -> Value {
    Value numbers = emitNumbers(b, math.add(chunk.panel, p),
                                math.add(first, depth), columnInPanel);
    return vector::FMAOp::create(b, numbers, scale[p], offset[p]);
  };
  auto left = [&](Value depth, int64_t r) {
    return emitLhs(b, chunk, rows[r], math.add(first, depth), 1);
  };
  return emitContractionLoop(b, math.constant(size), rows.size(), chunk.panels,
                             accs, left, right);
}

/// What a loop over the rows of panel `p` of a chunk fetches.
Prefetch MatmulEmitter::prefetchW24(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                    int64_t p, int64_t depth) {
  // As far ahead as four such streams need to keep memory busy.
  constexpr int64_t kRowsAhead = 16;
  IndexMath math(b);
  int64_t row = op.getRhs().getType().getShape().back();
  Prefetch result;
  result.memory = emitCollapse(b, rhs, 0);
  result.start =
      math.add(math.mul(math.add(chunk.panel, p), math.constant(depth * row)),
               math.constant(kRowsAhead * row));
  // Two rows of 96 bytes are three lines.
  bool isEven = depth % 2 == 0;
  result.period = isEven ? 2 : 1;
  result.count = isEven ? 3 : 2;
  result.stride = row * result.period / result.count;
  return result;
}

/// The products of a tile's rows with triples, on top of `accs`.
SmallVector<Value> MatmulEmitter::emitW21Products(ImplicitLocOpBuilder &b,
                                                  const Chunk &chunk,
                                                  const LeftNumber &left,
                                                  int64_t rows,
                                                  SmallVector<Value> accs) {
  IndexMath math(b);
  int64_t depth = op.getLhs().getType().getShape().back();
  // One panel after the other, which takes the fewest registers.
  auto emitStep = [&](Value triple, int64_t count,
                      MutableArrayRef<Value> sums) {
    Value first = math.mul(triple, cpu::kW21Group);
    for (int64_t p = 0; p < chunk.panels; ++p) {
      SmallVector<Value> numbers =
          emitW21(b, getCompressedPanel(math.add(chunk.panel, p)), triple);
      for (int64_t i = 0; i < count; ++i)
        for (int64_t r = 0; r < rows; ++r) {
          Value &sum = sums[r * chunk.panels + p];
          Value number = vector::BroadcastOp::create(
              b, sum.getType(), left(math.add(first, i), r));
          sum = vector::FMAOp::create(b, number, numbers[i], sum);
        }
    }
  };
  // As far ahead as such streams need to keep memory busy.
  constexpr int64_t kW21Ahead = 10;
  constexpr int64_t kLine = Prefetch::kLineBytes / sizeof(int64_t);
  auto loop = scf::ForOp::create(b, math.constant(0),
                                 math.constant(depth / cpu::kW21Group),
                                 math.constant(1), accs);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value triple = loop.getInductionVar();
    for (int64_t p = 0; p < chunk.panels; ++p)
      for (int64_t line = 0; line < op.getPanelWidth(); line += kLine)
        emitFetch(b, rhs,
                  {math.add(chunk.panel, p), math.add(triple, kW21Ahead),
                   math.constant(line)});
    SmallVector<Value> sums(loop.getRegionIterArgs());
    emitStep(triple, cpu::kW21Group, sums);
    scf::YieldOp::create(b, sums);
  }
  SmallVector<Value> sums(loop.getResults());
  if (depth % cpu::kW21Group)
    emitStep(math.constant(depth / cpu::kW21Group), depth % cpu::kW21Group,
             sums);
  return sums;
}

CompressedPanel MatmulEmitter::getCompressedPanel(Value number) {
  return CompressedPanel::get(rhs, number, op.getPanelWidth(),
                              target.getLanes());
}

/// The accumulators of a tile after its products with numbers of 21 or 24 bits.
SmallVector<Value>
MatmulEmitter::emitCompressedProducts(ImplicitLocOpBuilder &b,
                                      const Chunk &chunk, ArrayRef<Value> rows,
                                      ArrayRef<Value> accs) {
  IndexMath math(b);
  int64_t depth = op.getLhs().getType().getShape().back();
  int shift = op.isW21() ? kW21Shift : kW24Shift;
  auto type = cast<VectorType>(accs.front().getType());
  SmallVector<Value> scale;
  for (int64_t p = 0; p < chunk.panels; ++p)
    scale.push_back(emitCompressedScales(b, scales, math.add(chunk.panel, p),
                                         /*column=*/0, shape.width, shift));
  Value small =
      emitFloatSplat(b, b.getF32Type(), std::ldexp(1.0f, -kRangeShift));
  auto left = [&](Value k, int64_t r) -> Value {
    return arith::MulFOp::create(b, emitLhs(b, chunk, rows[r], k, 1), small);
  };
  SmallVector<Value> sums(accs.size(), emitFloatSplat(b, type, 0));
  if (op.isW21()) {
    sums = emitW21Products(b, chunk, left, rows.size(), std::move(sums));
  } else {
    SmallVector<Prefetch> prefetches;
    for (int64_t p = 0; p < chunk.panels; ++p)
      prefetches.push_back(prefetchW24(b, chunk, p, depth));
    auto right = [&](Value k, int64_t p) {
      return emitW24Numbers(b, getCompressedPanel(math.add(chunk.panel, p)), k);
    };
    sums = emitContractionLoop(b, math.constant(depth), rows.size(),
                               chunk.panels, sums, left, right, prefetches);
  }
  for (auto [i, sum] : llvm::enumerate(sums))
    sum = vector::FMAOp::create(b, sum, scale[i % chunk.panels], accs[i]);
  return sums;
}

SmallVector<Value> MatmulEmitter::emitScaledProducts(ImplicitLocOpBuilder &b,
                                                     const Chunk &chunk,
                                                     ArrayRef<Value> rows,
                                                     Value columnInPanel,
                                                     SmallVector<Value> accs) {
  if (op.isCompressed())
    return emitCompressedProducts(b, chunk, rows, accs);
  IndexMath math(b);
  int64_t depth = op.getLhs().getType().getShape().back();
  int64_t size = *op.getBlock(), blocks = depth / size, rest = depth % size;
  if (blocks > 0) {
    auto loop = scf::ForOp::create(b, math.constant(0), math.constant(blocks),
                                   math.constant(1), accs);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(b, emitDepthBlock(b, chunk, rows, columnInPanel,
                                           loop.getRegionIterArgs(),
                                           loop.getInductionVar(), size));
    accs = SmallVector<Value>(loop.getResults());
  }
  if (rest > 0)
    accs = emitDepthBlock(b, chunk, rows, columnInPanel, accs,
                          math.constant(blocks), rest);
  return accs;
}
