//===- AttentionProducts.cpp - Scores, and sums of values -----------------===//
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

/// scores[r, k] = sum_d queries[r, d] * keys[k, d], by tiles of packed keys.
/// Rows that are missing in the last tile are computed as well: their memory is
/// there.
void AttentionKernel::emitScores(ImplicitLocOpBuilder &b, const Task &task,
                                 const Rows &rows, const Keys &block) {
  IndexMath math(b);
  const int64_t columns = facts.panel / facts.lanes, height = facts.tileRows;
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(vectorType(b)));
  emitFor(b, math.constant(0), block.panels, 1, [&](Value panel) {
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
      Values sums =
          emitContractionLoop(b, math.constant(facts.depth), height, columns,
                              Values(height * columns, zero), query, key);
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
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(vectorType(b)));
  auto emitColumns = [&](Value panel, int64_t columns) {
    Value first = math.mul(panel, facts.panel);
    emitFor(b, math.constant(0), rows.count, height, [&](Value row) {
      auto probability = [&](Value k, int64_t r) -> Value {
        return memref::LoadOp::create(b, task.scores,
                                      ValueRange{math.add(row, r), k});
      };
      auto value = [&](Value k, int64_t c) {
        return emitLoad(b, task.values,
                        {panel, k, math.constant(c * facts.lanes)},
                        facts.lanes);
      };
      Values sums = emitContractionLoop(b, block.count, height, columns,
                                        Values(height * columns, zero),
                                        probability, value);
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
