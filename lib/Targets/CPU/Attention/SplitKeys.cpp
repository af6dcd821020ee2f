//===- SplitKeys.cpp - Few queries by several threads ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where queries are few and threads many, each task has a part of the keys, and
// writes what it has of a softmax: sums of values, sums of exponentials, the
// largest score. A second loop adds up the parts of each set of keys.
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Common/IndexMath.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The fewest keys that are worth a task.
static constexpr int64_t kKeysOfPart = 512;
/// Tasks for each thread.
static constexpr int64_t kTasksOfThread = 2;

/// Whether there may be fewer tasks than threads, of keys that can be split.
bool AttentionKernel::mayBeSplit() const {
  constexpr int64_t kMostPairs = 64;
  auto mayBe = [](int64_t size, int64_t least, int64_t most) {
    return ShapedType::isDynamic(size) || (size >= least && size <= most);
  };
  const int64_t most = facts.areFew() ? facts.queries : facts.kFewQueries;
  return !facts.areMany() && plan.getQueries() >= most &&
         mayBe(facts.pairs, 1, kMostPairs) &&
         mayBe(facts.keys, 2 * kKeysOfPart,
               std::numeric_limits<int64_t>::max());
}

/// How many tasks share the keys of a few queries.
Value AttentionKernel::countParts(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Value threads = sdx::ThreadCountOp::create(b, b.getIndexType());
  Value one = math.constant(1);
  Value parts =
      math.div(math.mul(threads, kTasksOfThread), math.max(pairs, one));
  parts = math.max(math.min(parts, math.div(keys, kKeysOfPart)), one);
  if (facts.areFew())
    return parts;
  return arith::SelectOp::create(
      b, math.less(queries, math.constant(facts.kFewQueries + 1)), parts, one);
}

void AttentionKernel::emitSplit(ImplicitLocOpBuilder &b, Value parts) {
  IndexMath math(b);
  const int64_t columns = facts.paddedColumns(), lanes = facts.lanes;
  Value zero = math.constant(0), total = math.constant(columns),
        largest = math.constant(columns + lanes);
  // Of each query the sums of values, those of exponentials, and the largest
  // score in all lanes.
  auto type = MemRefType::get({ShapedType::kDynamic, ShapedType::kDynamic,
                               facts.kFewQueries, columns + 2 * lanes},
                              b.getF32Type());
  Value partials = emitBuffer(b, type, {pairs, parts});
  emitParallel(b, {pairs, parts}, [&](ValueRange ivs) {
    Task task = startTask(b, ivs[0], zero, /*hasFew=*/true);
    task.part = ivs[1];
    task.parts = parts;
    clearSums(b, task);
    emitKeys(b, task, hasLimits() ? emitBool(b, true) : Value());
    emitFor(b, zero, task.count, 1, [&](Value query) {
      auto store = [&](Value vector, Value at) {
        emitStore(b, vector, partials, {ivs[0], ivs[1], query, at});
      };
      emitFor(b, zero, math.constant(columns), lanes, [&](Value column) {
        store(emitLoad(b, task.sums, {query, column}, lanes), column);
      });
      store(emitLoad(b, task.totals, {query, zero}, lanes), total);
      Value score = memref::LoadOp::create(b, task.largest, ValueRange{query});
      store(vector::BroadcastOp::create(b, vectorType(b), score), largest);
    });
    memref::DeallocOp::create(b, task.memory);
  });
  emitParallel(b, {pairs}, [&](ValueRange ivs) {
    Task task = startTask(b, ivs[0], zero, /*hasFew=*/true);
    clearSums(b, task);
    emitFor(b, zero, parts, 1, [&](Value part) {
      emitFor(b, zero, task.count, 1, [&](Value query) {
        auto load = [&](Value at) {
          return emitLoad(b, partials, {ivs[0], part, query, at}, lanes);
        };
        Value ofPart = vector::ExtractOp::create(b, load(largest), 0);
        Value base = emitBase(b, growTo(b, task, query, ofPart));
        Value scale = vector::BroadcastOp::create(b, vectorType(b),
                                                  emitExp(b, ofPart, base));
        auto add = [&](Value memref, Value at, Value from) {
          Value before = emitLoad(b, memref, {query, at}, lanes);
          Value after = vector::FMAOp::create(b, load(from), scale, before);
          emitStore(b, after, memref, {query, at});
        };
        add(task.totals, zero, total);
        emitFor(b, zero, math.constant(columns), lanes,
                [&](Value column) { add(task.sums, column, column); });
      });
    });
    if (mayRepeat())
      emitIf(b, emitIsLow(b, task), [&] {
        clearSums(b, task);
        emitKeys(b, task, emitBool(b, false));
      });
    emitResults(b, task);
    memref::DeallocOp::create(b, task.memory);
  });
  memref::DeallocOp::create(b, partials);
}
