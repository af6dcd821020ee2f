//===- AttentionProducts.cpp - Scores, and sums of values -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Common/IndexMath.h"
#include "MicroKernels/AmxMicroKernel.h"
#include "MicroKernels/MicroKernel.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The sums of a tile of vector registers; `size` counts pairs of bf16.
AttentionKernel::Values
AttentionKernel::emitTile(ImplicitLocOpBuilder &b, Value size, int64_t columns,
                          function_ref<Value(Value, int64_t)> lhs,
                          function_ref<Value(Value, int64_t)> rhs) {
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(vectorType(b)));
  Values zeros(facts.tileRows * columns, zero);
  if (!facts.areBf16())
    return emitContractionLoop(b, size, facts.tileRows, columns, zeros, lhs,
                               rhs);
  const MicroKernel *pairs = selectMicroKernel(
      PackedElement::BF16, facts.target, MicroKernel::Unit::Vectors);
  auto multiplyAdd = [&](ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                         Value sum) {
    return pairs->emitStep(b, facts.target, lhs, rhs, sum);
  };
  return emitContractionLoop(b, size, facts.tileRows, columns, zeros, lhs, rhs,
                             /*prefetches=*/{}, multiplyAdd);
}

/// Emits `emit(row, count)` for rows that fill two tile registers, or the one
/// that is left.
void AttentionKernel::forEachRowTile(ImplicitLocOpBuilder &b, const Rows &rows,
                                     function_ref<void(Value, int64_t)> emit) {
  IndexMath math(b);
  Value whole =
      math.roundDown(math.add(rows.count, kTileRows - 1), 2 * kTileRows);
  emitFor(b, math.constant(0), whole, 2 * kTileRows,
          [&](Value row) { emit(row, 2); });
  emitIf(b, math.less(whole, rows.count), [&] { emit(whole, 1); });
}

/// scores[r, k] = sum_d queries[r, d] * keys[k, d], by tiles of packed keys.
/// Rows that are missing in the last tile are computed as well: their memory is
/// there.
void AttentionKernel::emitScores(ImplicitLocOpBuilder &b, const Task &task,
                                 const Rows &rows, const Keys &block) {
  IndexMath math(b);
  const int64_t columns = facts.panel / facts.lanes, height = facts.tileRows;
  Value depth = math.constant(facts.areBf16() ? llvm::divideCeil(facts.depth, 2)
                                              : facts.depth);
  emitFor(b, math.constant(0), block.panels, 1, [&](Value panel) {
    if (facts.areTiles())
      return forEachRowTile(b, rows, [&](Value row, int64_t count) {
        Value zero = math.constant(0);
        Value steps = math.constant(facts.pairsOfDepth() / kTileRows);
        emitTileProduct(
            b, b.getBF16Type(), count, steps,
            getTileOperand(b, task.queries, {math.add(rows.first, row), zero}),
            getTileOperand(b, task.keys, {panel, zero, zero}),
            getTileOperand(b, task.scores,
                           {row, math.mul(panel, facts.panel)}));
      });
    emitFor(b, math.constant(0), rows.count, height, [&](Value row) {
      auto query = [&](Value d, int64_t r) -> Value {
        Value at = math.add(math.add(rows.first, row), r);
        return memref::LoadOp::create(b, task.queries, ValueRange{at, d});
      };
      auto key = [&](Value d, int64_t c) {
        return emitLoad(b, task.keys,
                        {panel, d, math.constant(c * facts.lanes)},
                        facts.lanes);
      };
      Values sums = emitTile(b, depth, columns, query, key);
      Value first = math.mul(panel, facts.panel);
      for (int64_t r = 0; r < height; ++r)
        for (int64_t c = 0; c < columns; ++c)
          emitStore(b, sums[r * columns + c], task.scores,
                    {math.add(row, r), math.add(first, c * facts.lanes)});
    });
  });
}

/// sums[r, e] += sum_k scores[r, k] * values[k, e]
void AttentionKernel::emitSums(ImplicitLocOpBuilder &b, const Task &task,
                               const Rows &rows, const Keys &block) {
  IndexMath math(b);
  const int64_t height = facts.tileRows;
  if (facts.areTiles()) {
    Value zero = math.constant(0);
    Value panels = math.constant(facts.paddedColumns() / facts.panel);
    return emitFor(b, zero, panels, 1, [&](Value panel) {
      forEachRowTile(b, rows, [&](Value row, int64_t count) {
        TileOperand sums = getTileOperand(
            b, task.sums,
            {math.add(rows.first, row), math.mul(panel, facts.panel)});
        emitTileProduct(b, b.getBF16Type(), count, block.panels,
                        getTileOperand(b, task.probabilities, {row, zero}),
                        getTileOperand(b, task.values, {panel, zero, zero}),
                        sums, /*start=*/sums);
      });
    });
  }
  Value probabilities = facts.areBf16() ? task.probabilities : task.scores;
  Value count =
      facts.areBf16() ? math.mul(block.panels, facts.lanes) : block.count;
  auto emitColumns = [&](Value panel, int64_t columns) {
    Value first = math.mul(panel, facts.panel);
    emitFor(b, math.constant(0), rows.count, height, [&](Value row) {
      auto probability = [&](Value k, int64_t r) -> Value {
        return memref::LoadOp::create(b, probabilities,
                                      ValueRange{math.add(row, r), k});
      };
      auto value = [&](Value k, int64_t c) {
        return emitLoad(b, task.values,
                        {panel, k, math.constant(c * facts.lanes)},
                        facts.lanes);
      };
      Values sums = emitTile(b, count, columns, probability, value);
      for (int64_t r = 0; r < height; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          Values at = {math.add(math.add(rows.first, row), r),
                       math.add(first, c * facts.lanes)};
          Value before = emitLoad(b, task.sums, at, facts.lanes);
          emitStore(b, arith::AddFOp::create(b, before, sums[r * columns + c]),
                    task.sums, at);
        }
    });
  };
  const int64_t vectors = facts.paddedColumns() / facts.lanes,
                vectorsOfPanel = facts.panel / facts.lanes;
  Value whole = math.constant(vectors / vectorsOfPanel);
  emitFor(b, math.constant(0), whole, 1,
          [&](Value panel) { emitColumns(panel, vectorsOfPanel); });
  if (vectors % vectorsOfPanel != 0)
    emitColumns(whole, vectors % vectorsOfPanel);
}
