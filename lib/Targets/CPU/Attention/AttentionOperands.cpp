//===- AttentionOperands.cpp - Operands of attention in scratch memory ----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Common/IndexMath.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

Value cpu::loadWide(ImplicitLocOpBuilder &b, Value memref, ValueRange indices,
                    int64_t width, Value mask) {
  Value loaded = emitLoad(b, memref, indices, width, mask);
  auto type = VectorType::get({width}, b.getF32Type());
  if (getElementTypeOrSelf(loaded).isInteger())
    return arith::SIToFPOp::create(b, type, loaded);
  return loaded.getType() == type
             ? loaded
             : arith::ExtFOp::create(b, type, loaded).getResult();
}

/// dest[row, 0:size] = source[from..., 0:size], zeros up to whole vectors.
void AttentionKernel::copyRow(ImplicitLocOpBuilder &b, Value source,
                              ValueRange from, Value dest, Value row,
                              int64_t size) {
  IndexMath math(b);
  Values indices(from);
  auto copy = [&](Value at, Value mask) {
    indices.back() = at;
    emitStore(b, loadWide(b, source, indices, facts.lanes, mask), dest,
              {row, at});
  };
  const int64_t whole = size / facts.lanes * facts.lanes;
  emitFor(b, math.constant(0), math.constant(whole), facts.lanes,
          [&](Value at) { copy(at, nullptr); });
  if (whole < size)
    copy(math.constant(whole),
         emitTailMask(b, math.constant(size - whole), facts.lanes));
}

/// The queries of a task; the last one again in what is left of its tile, of
/// which few have none.
void AttentionKernel::copyQueries(ImplicitLocOpBuilder &b, const Task &task) {
  IndexMath math(b);
  Value source = body.getBuffer(op.getQuery());
  Value dest = task.fewQueries;
  Value end = task.count;
  if (!facts.areBf16())
    end = math.mul(math.ceilDiv(task.count, facts.tileRows),
                   math.constant(facts.tileRows));
  emitFor(b, math.constant(0), end, 1, [&](Value row) {
    Value query = math.min(row, math.sub(task.count, math.constant(1)));
    Values loops = findIndices(b, task, query);
    loops.resize(op.getNumLoops(), math.constant(0));
    copyRow(b, source, at(b, 0, loops), dest, row, facts.depth);
  });
}

/// Squares of keys and depth change places in registers. Keys past the last are
/// the last one again; the squares of a depth that they do not divide overlap.
void AttentionKernel::packKeys(ImplicitLocOpBuilder &b, const Task &task,
                               const Keys &block) {
  IndexMath math(b);
  Value source = body.getBuffer(op.getKey());
  const int64_t square = llvm::bit_floor<uint64_t>(
      std::min({facts.lanes, facts.depth, int64_t(16)}));
  Values loops(task.pair);
  loops.resize(op.getNumLoops(), math.constant(0));
  auto emitSquare = [&](Value panel, Value inPanel, Value depth) {
    Value first =
        math.add(block.first, math.add(math.mul(panel, facts.panel), inPanel));
    Values rows;
    for (int64_t r = 0; r < square; ++r) {
      Value key = math.add(first, r);
      if (hasTail())
        key = math.min(key, math.sub(keys, math.constant(1)));
      loops[op.getKeyLoop()] = key;
      Values indices = at(b, 1, loops);
      indices.back() = depth;
      rows.push_back(loadWide(b, source, indices, square));
    }
    for (auto [d, column] : llvm::enumerate(emitTranspose(b, rows)))
      emitStore(b, column, task.keys, {panel, math.add(depth, d), inPanel});
  };
  const int64_t whole = facts.depth / square * square;
  emitFor(b, math.constant(0), block.panels, 1, [&](Value panel) {
    emitFor(b, math.constant(0), math.constant(facts.panel), square,
            [&](Value inPanel) {
              emitFor(b, math.constant(0), math.constant(whole), square,
                      [&](Value depth) { emitSquare(panel, inPanel, depth); });
              if (whole < facts.depth)
                emitSquare(panel, inPanel, math.constant(facts.depth - square));
            });
  });
}

/// Columns past the last are zeros, up to whole vectors.
void AttentionKernel::copyValues(ImplicitLocOpBuilder &b, const Task &task,
                                 const Keys &block) {
  IndexMath math(b);
  Value source = body.getBuffer(op.getValue());
  Values loops(task.pair);
  loops.resize(op.getNumLoops(), math.constant(0));
  emitFor(b, math.constant(0), block.count, 1, [&](Value row) {
    loops[op.getKeyLoop()] = math.add(block.first, row);
    Values from = at(b, 2, loops);
    auto copy = [&](Value panel, int64_t size) {
      for (int64_t part = 0; part < size; part += facts.lanes) {
        Value mask;
        if (size - part < facts.lanes)
          mask = emitTailMask(b, math.constant(size - part), facts.lanes);
        from.back() = math.add(math.mul(panel, facts.panel), part);
        emitStore(b, loadWide(b, source, from, facts.lanes, mask), task.values,
                  {panel, row, math.constant(part)});
      }
    };
    Value whole = math.constant(facts.columns / facts.panel);
    emitFor(b, math.constant(0), whole, 1,
            [&](Value panel) { copy(panel, facts.panel); });
    copy(whole, facts.columns % facts.panel);
  });
}
