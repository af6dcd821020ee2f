//===- Bf16Operands.cpp - Operands of attention as pairs of bf16 ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions multiply pairs of bf16: of neighbours along the depth for
// scores, of neighbouring keys for sums of values. A pair is an i32 in scratch
// memory, where panels are as those of f32 with half as many rows. Tile
// registers take whole rows of them, so depth, keys and columns have zeros
// behind them.
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Common/IndexMath.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

Value cpu::emitRounded(ImplicitLocOpBuilder &b, Value low, Value high) {
  const int64_t lanes = cast<VectorType>(low.getType()).getNumElements();
  auto type = VectorType::get({2 * lanes}, b.getBF16Type());
  auto name =
      b.getStringAttr("llvm.x86.avx512bf16.cvtne2ps2bf16." + Twine(lanes * 32));
  return LLVM::CallIntrinsicOp::create(b, type, name, ValueRange{high, low})
      .getResult(0);
}

Value cpu::emitAsPairs(ImplicitLocOpBuilder &b, Value vector) {
  const int64_t count = cast<VectorType>(vector.getType()).getNumElements();
  return vector::BitCastOp::create(
      b, VectorType::get({count / 2}, b.getI32Type()), vector);
}

/// The first `count` of `width` lanes, none unless `isThere` (i1, null:
/// always); null if that is all of them.
static Value emitMask(ImplicitLocOpBuilder &b, int64_t count, int64_t width,
                      Value isThere) {
  Value mask = emitTailMask(b, IndexMath(b).constant(count), width);
  if (!isThere)
    return mask;
  Value all = vector::BroadcastOp::create(
      b, VectorType::get({width}, b.getI1Type()), isThere);
  return mask ? arith::AndIOp::create(b, mask, all).getResult() : all;
}

/// `count` elements as bf16, and zeros up to a panel; nothing but zeros unless
/// `isThere` (i1, null: always).
Value AttentionKernel::loadPairs(ImplicitLocOpBuilder &b, Value memref,
                                 ValueRange indices, int64_t count,
                                 Value isThere) {
  if (cast<MemRefType>(memref.getType()).getElementType().isBF16())
    return emitLoad(b, memref, indices, facts.panel,
                    emitMask(b, count, facts.panel, isThere));
  Value low = loadWide(b, memref, indices, facts.lanes,
                       emitMask(b, count, facts.lanes, isThere));
  Value high = arith::ConstantOp::create(b, b.getZeroAttr(vectorType(b)));
  if (count > facts.lanes) {
    Values behind(indices);
    behind.back() = IndexMath(b).add(behind.back(), facts.lanes);
    high = loadWide(b, memref, behind, facts.lanes,
                    emitMask(b, count - facts.lanes, facts.lanes, isThere));
  }
  return emitRounded(b, low, high);
}

/// Emits `emitPart(first, count)` for parts of `size` elements, a panel's each.
static void emitParts(ImplicitLocOpBuilder &b, int64_t size, int64_t panel,
                      function_ref<void(Value, int64_t)> emitPart) {
  IndexMath math(b);
  const int64_t whole = size / panel * panel;
  emitFor(b, math.constant(0), math.constant(whole), panel,
          [&](Value first) { emitPart(first, panel); });
  if (whole < size)
    emitPart(math.constant(whole), size - whole);
}

/// The queries of a task; the last one again in what is left of its tile.
void AttentionKernel::copyQueryPairs(ImplicitLocOpBuilder &b,
                                     const Task &task) {
  IndexMath math(b);
  Value source = body.getBuffer(op.getQuery());
  Value end = math.mul(math.ceilDiv(task.count, facts.tileRows),
                       math.constant(facts.tileRows));
  emitFor(b, math.constant(0), end, 1, [&](Value row) {
    Value query = math.min(row, math.sub(task.count, math.constant(1)));
    Values loops = findIndices(b, task, query);
    loops.resize(op.getNumLoops(), math.constant(0));
    Values from = at(b, 0, loops);
    emitParts(b, facts.depth, facts.panel, [&](Value first, int64_t count) {
      from.back() = first;
      Value halves = loadPairs(b, source, from, count);
      emitStore(b, emitAsPairs(b, halves), task.queries,
                {row, math.div(first, 2)});
    });
  });
}

/// Squares of keys and pairs along the depth change places in registers. Keys
/// past the last are the last one again.
void AttentionKernel::packKeyPairs(ImplicitLocOpBuilder &b, const Task &task,
                                   const Keys &block) {
  IndexMath math(b);
  Value source = body.getBuffer(op.getKey());
  Values loops(task.pair);
  loops.resize(op.getNumLoops(), math.constant(0));
  Value end = math.mul(block.panels, facts.panel);
  emitFor(b, math.constant(0), end, facts.lanes, [&](Value square) {
    Value panel = math.div(square, facts.panel);
    Value inPanel = math.sub(square, math.mul(panel, facts.panel));
    emitParts(b, facts.depth, facts.panel, [&](Value first, int64_t count) {
      Values rows;
      for (int64_t r = 0; r < facts.lanes; ++r) {
        Value key = math.add(math.add(block.first, square), r);
        if (hasTail())
          key = math.min(key, math.sub(keys, math.constant(1)));
        loops[op.getKeyLoop()] = key;
        Values indices = at(b, 1, loops);
        indices.back() = first;
        rows.push_back(emitAsPairs(b, loadPairs(b, source, indices, count)));
      }
      for (auto [d, column] : llvm::enumerate(emitTranspose(b, rows)))
        emitStore(b, column, task.keys,
                  {panel, math.add(math.div(first, 2), d), inPanel});
    });
  });
}

/// The columns of two neighbouring keys by turns. Keys past the last are zeros.
void AttentionKernel::packValuePairs(ImplicitLocOpBuilder &b, const Task &task,
                                     const Keys &block) {
  IndexMath math(b);
  Value source = body.getBuffer(op.getValue());
  Values loops(task.pair);
  loops.resize(op.getNumLoops(), math.constant(0));
  auto emitPair = [&](Value pair, bool isWhole) {
    emitParts(b, facts.columns, facts.panel, [&](Value first, int64_t count) {
      Values rows;
      for (int64_t r = 0; r < 2; ++r) {
        Value row = math.add(math.mul(pair, 2), r), isThere;
        if (!isWhole)
          isThere = math.less(row, block.count);
        loops[op.getKeyLoop()] = math.add(block.first, row);
        Values from = at(b, 2, loops);
        from.back() = first;
        rows.push_back(loadPairs(b, source, from, count, isThere));
      }
      for (int64_t half = 0; half < 2; ++half) {
        SmallVector<int64_t> order;
        for (int64_t i = 0; i < facts.lanes; ++i)
          for (int64_t of : {int64_t(0), facts.panel})
            order.push_back(of + half * facts.lanes + i);
        Value pairs = vector::ShuffleOp::create(b, rows[0], rows[1], order);
        emitStore(b, emitAsPairs(b, pairs), task.values,
                  {math.div(first, facts.panel), pair,
                   math.constant(half * facts.lanes)});
      }
    });
  };
  Value end = math.mul(block.panels, facts.lanes);
  Value whole = hasTail() ? math.div(block.count, 2) : end;
  emitFor(b, math.constant(0), whole, 1,
          [&](Value pair) { emitPair(pair, /*isWhole=*/true); });
  if (hasTail())
    emitFor(b, whole, end, 1,
            [&](Value pair) { emitPair(pair, /*isWhole=*/false); });
}
