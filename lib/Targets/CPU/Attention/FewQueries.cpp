//===- FewQueries.cpp - Products of few queries ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Few queries read keys and values as they lie, which come from memory once: a
// score is a sum over the lanes of products along the depth, and values are
// vectors of columns anyway. Several queries read bytes as floats, which a few
// keys at a time become in the first cache.
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Common/IndexMath.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The sums of the lanes of `vectors`, as many as lanes, in the lanes of one.
static Value sumLanes(ImplicitLocOpBuilder &b, SmallVector<Value> vectors) {
  const int64_t lanes = vectors.size();
  for (int64_t run = 1; run < lanes; run *= 2) {
    // Of each block of two runs the first, or the second, of x and of y in
    // turn.
    auto interleave = [&](Value x, Value y, int64_t first) -> Value {
      SmallVector<int64_t> order;
      for (int64_t block = first; block < lanes; block += 2 * run)
        for (int64_t from : {block, lanes + block})
          for (int64_t i = 0; i < run; ++i)
            order.push_back(from + i);
      return vector::ShuffleOp::create(b, x, y, order);
    };
    SmallVector<Value> pairs;
    for (size_t i = 0; i < vectors.size(); i += 2)
      pairs.push_back(
          arith::AddFOp::create(b, interleave(vectors[i], vectors[i + 1], 0),
                                interleave(vectors[i], vectors[i + 1], run)));
    vectors = std::move(pairs);
  }
  return vectors.front();
}

/// scores[r, k] = sum_d queries[r, d] * key[k, d], as many keys at a time as
/// there are lanes; the last one again where there are fewer.
void AttentionKernel::emitScoresOfFew(ImplicitLocOpBuilder &b, const Task &task,
                                      const Rows &rows, const Keys &block) {
  IndexMath math(b);
  const int64_t lanes = facts.lanes;
  Value source = body.getBuffer(op.getKey());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(vectorType(b)));
  Value last = math.sub(keys, math.constant(1));
  Values loops(task.pair);
  loops.resize(op.getNumLoops(), math.constant(0));
  emitFor(b, math.constant(0), block.count, lanes, [&](Value group) {
    SmallVector<Values> places;
    for (int64_t i = 0; i < lanes; ++i) {
      Value key = math.add(block.first, math.add(group, i));
      loops[op.getKeyLoop()] = hasTail() ? math.min(key, last) : key;
      Values place = at(b, 1, loops);
      if (task.widened) {
        Value row = math.constant(i);
        copyRow(b, source, place, task.widened, row, facts.depth);
        place = {row, math.constant(0)};
      }
      places.push_back(place);
    }
    Value from = task.widened ? task.widened : source;
    emitFor(b, math.constant(0), rows.count, 1, [&](Value row) {
      auto add = [&](Value depth, ValueRange before, Value mask) {
        Value query = emitLoad(b, task.fewQueries,
                               {math.add(rows.first, row), depth}, lanes);
        Values sums;
        for (auto [place, sum] : llvm::zip_equal(places, before)) {
          Values indices = place;
          indices.back() = depth;
          sums.push_back(vector::FMAOp::create(
              b, query, loadWide(b, from, indices, lanes, mask), sum));
        }
        return sums;
      };
      const int64_t whole = facts.depth / lanes * lanes;
      auto loop = scf::ForOp::create(b, math.constant(0), math.constant(whole),
                                     math.constant(lanes), Values(lanes, zero));
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(loop.getBody());
        scf::YieldOp::create(
            b, add(loop.getInductionVar(), loop.getRegionIterArgs(), nullptr));
      }
      Values sums(loop.getResults());
      if (whole < facts.depth)
        sums = add(math.constant(whole), sums,
                   emitTailMask(b, math.constant(facts.depth - whole), lanes));
      emitStore(b, sumLanes(b, sums), task.scores, {row, group});
    });
  });
}

/// sums[r, e] += sum_k scores[r, k] * value[k, e]
void AttentionKernel::emitSumsOfFew(ImplicitLocOpBuilder &b, const Task &task,
                                    const Rows &rows, const Keys &block) {
  IndexMath math(b);
  const int64_t lanes = facts.lanes;
  Value source = body.getBuffer(op.getValue());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(vectorType(b)));
  Values loops(task.pair);
  loops.resize(op.getNumLoops(), math.constant(0));
  // Enough sums to hide the latency of multiply-adds.
  constexpr int64_t kMostSums = 8;
  // Adds `count` keys, the first of which is number `first` of the block;
  // `load` gets a vector of the value of one of these.
  auto emitPart = [&](Value first, Value count,
                      function_ref<Value(Value, Value, Value)> load) {
    auto emitColumns = [&](Value row, Value column, int64_t columns,
                           Value mask) {
      auto probability = [&](Value k, int64_t) -> Value {
        return memref::LoadOp::create(b, task.scores,
                                      ValueRange{row, math.add(first, k)});
      };
      auto value = [&](Value k, int64_t c) {
        return load(k, math.add(column, c * lanes), mask);
      };
      Values sums =
          emitContractionLoop(b, count, /*rows=*/1, columns,
                              Values(columns, zero), probability, value);
      for (auto [c, sum] : llvm::enumerate(sums)) {
        Values at = {math.add(rows.first, row), math.add(column, c * lanes)};
        Value before = emitLoad(b, task.sums, at, lanes);
        emitStore(b, arith::AddFOp::create(b, before, sum), task.sums, at);
      }
    };
    emitFor(b, math.constant(0), rows.count, 1, [&](Value row) {
      int64_t column = 0;
      const int64_t whole = facts.columns / lanes * lanes;
      while (column < whole) {
        const int64_t columns = std::min(kMostSums, (whole - column) / lanes);
        emitColumns(row, math.constant(column), columns, nullptr);
        column += columns * lanes;
      }
      if (whole < facts.columns)
        emitColumns(
            row, math.constant(whole), 1,
            emitTailMask(b, math.constant(facts.columns - whole), lanes));
    });
  };
  auto placeOf = [&](Value key) {
    loops[op.getKeyLoop()] = math.add(block.first, key);
    return at(b, 2, loops);
  };
  if (!task.widened)
    return emitPart(math.constant(0), block.count,
                    [&](Value k, Value column, Value mask) {
                      Values indices = placeOf(k);
                      indices.back() = column;
                      return loadWide(b, source, indices, lanes, mask);
                    });
  emitFor(b, math.constant(0), block.count, kWidenedKeys, [&](Value first) {
    Value count =
        math.min(math.sub(block.count, first), math.constant(kWidenedKeys));
    emitFor(b, math.constant(0), count, 1, [&](Value k) {
      copyRow(b, source, placeOf(math.add(first, k)), task.widened, k,
              facts.columns);
    });
    emitPart(first, count, [&](Value k, Value column, Value) {
      return emitLoad(b, task.widened, {k, column}, lanes);
    });
  });
}
