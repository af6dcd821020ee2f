//===- AttentionKernel.cpp - The loops of attention -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Common/IndexMath.h"

#include "lib/Dispatch/Attention/ScoreModifier.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

Value cpu::emitBool(ImplicitLocOpBuilder &b, bool value) {
  return arith::ConstantOp::create(b, b.getIntegerAttr(b.getI1Type(), value));
}

static int64_t findRowDim(sdx::AttentionOp op) {
  return std::max<int64_t>(op.getInit().getType().getRank() - 2, 0);
}

AttentionKernel::AttentionKernel(const AttentionFacts &facts,
                                 AttentionPlanAttr plan, KernelBody &body)
    : facts(facts), op(facts.getOp()), plan(plan), body(body),
      evaluator(body, op.getResult(), findRowDim(op), findRowDim(op) + 1),
      factor(attention::ScoreModifier(op).takeFactor()), bounds(op) {}

LogicalResult AttentionKernel::verify() {
  for (Value operand : op->getOperands().drop_back())
    if (!KernelBody::hasBuffer(operand))
      return op.emitOpError("has an operand that is computed in its own "
                            "kernel");
  return evaluator.verify();
}

/// Sizes of loops are those of dimensions of the operands, or of the result.
void AttentionKernel::findSizes(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  sizes.assign(op.getNumLoops(), Value());
  auto add = [&](AffineMap map, Value memref) {
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (!loop)
        continue;
      Value &size = sizes[loop.getPosition()];
      if (!size || !IndexMath::known(size))
        size = math.dim(memref, dim);
    }
  };
  for (unsigned operand = 0; operand < 3; ++operand)
    add(op.getMap(operand), body.getBuffer(op->getOperand(operand)));
  add(op.getInitMap(), body.getOutputs().front().memref);
  pairs = queries = math.constant(1);
  for (unsigned loop = 0; loop < op.getNumOuterLoops(); ++loop) {
    const bool isOfKeys = op.isOfKeys(loop);
    (isOfKeys ? pairLoops : queryLoops).push_back(loop);
    (isOfKeys ? pairSizes : querySizes).push_back(sizes[loop]);
    Value &count = isOfKeys ? pairs : queries;
    count = math.mul(count, sizes[loop]);
  }
  keys = sizes[op.getKeyLoop()];
}

void AttentionKernel::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  findSizes(b);
  evaluator.prepare(b);
  auto emitTasks = [&] {
    Value tasks = math.ceilDiv(queries, plan.getQueries());
    emitParallel(b, {pairs, tasks}, [&](ValueRange ivs) {
      Task task = startTask(b, ivs[0], math.mul(ivs[1], plan.getQueries()));
      emitPasses(b, task);
      emitResults(b, task);
      memref::DeallocOp::create(b, task.memory);
    });
  };
  if (!mayBeSplit())
    return emitTasks();
  Value parts = countParts(b);
  emitIf(
      b, math.less(math.constant(1), parts), [&] { emitSplit(b, parts); },
      emitTasks);
}

/// Writes the position of element `flat` of a grid of `sizes` to the indices of
/// `loops`.
static void unflatten(ImplicitLocOpBuilder &b, Value flat,
                      ArrayRef<Value> sizes, ArrayRef<unsigned> loops,
                      MutableArrayRef<Value> indices) {
  IndexMath math(b);
  for (size_t i = loops.size(); i-- > 0;) {
    if (i == 0) {
      indices[loops[i]] = flat;
      return;
    }
    Value outer = math.div(flat, sizes[i]);
    indices[loops[i]] = math.sub(flat, math.mul(outer, sizes[i]));
    flat = outer;
  }
}

/// The indices of the outer loops for a query of the task.
AttentionKernel::Values AttentionKernel::findIndices(ImplicitLocOpBuilder &b,
                                                     const Task &task,
                                                     Value query) {
  Values indices(task.pair);
  unflatten(b, IndexMath(b).add(task.firstQuery, query), querySizes, queryLoops,
            indices);
  return indices;
}

/// The place of an operand's element at these indices of loops.
AttentionKernel::Values AttentionKernel::at(ImplicitLocOpBuilder &b,
                                            unsigned operand,
                                            ArrayRef<Value> loops) {
  IndexMath math(b);
  Values indices;
  for (AffineExpr expr : op.getMap(operand).getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    indices.push_back(loop ? loops[loop.getPosition()] : math.constant(0));
  }
  return indices;
}

/// One piece of memory holds all that a task writes but its results.
void AttentionKernel::allocate(ImplicitLocOpBuilder &b, Task &task) {
  IndexMath math(b);
  const int64_t width = facts.panel, columns = facts.paddedColumns();
  const int64_t queries = plan.getQueries(), rows = plan.getRows(),
                keys = plan.getKeys();
  const int64_t columnPanels = llvm::divideCeil(columns, width);
  const Type f32 = b.getF32Type();
  // Pairs of bf16 are half as many.
  const bool areBf16 = facts.areBf16();
  const Type packed = areBf16 ? b.getI32Type() : f32;
  const int64_t paddedDepth = llvm::alignTo(facts.depth, facts.lanes);
  const int64_t depth = areBf16 ? facts.pairsOfDepth() : facts.depth;
  SmallVector<std::pair<Value *, MemRefType>> parts = {
      {&task.queries,
       MemRefType::get({queries, areBf16 ? depth : paddedDepth}, packed)},
      {&task.keys, MemRefType::get({keys / width, depth, width}, packed)},
      {&task.values,
       MemRefType::get({columnPanels, areBf16 ? keys / 2 : keys, width},
                       packed)},
      {&task.scores, MemRefType::get({rows, keys}, f32)},
      {&task.sums, MemRefType::get({queries, columns}, f32)},
      {&task.largest, MemRefType::get({queries}, f32)},
      {&task.totals, MemRefType::get({queries, facts.lanes}, f32)}};
  if (areBf16 && !facts.areFew())
    parts.push_back(
        {&task.probabilities, MemRefType::get({rows, keys / 2}, packed)});
  if (areBf16 && !facts.areMany())
    parts.push_back({&task.fewQueries,
                     MemRefType::get({facts.kFewQueries, paddedDepth}, f32)});
  if (widensForFew())
    parts.push_back(
        {&task.widened,
         MemRefType::get({kWidenedKeys, std::max(paddedDepth, columns)}, f32)});
  if (hasLimits())
    parts.push_back({&task.limits, MemRefType::get({queries / rows, NumLimits},
                                                   b.getIndexType())});
  SmallVector<int64_t> offsets;
  int64_t bytes = 0;
  for (auto &[value, type] : parts) {
    offsets.push_back(bytes);
    const int64_t size = type.getElementType().isIndex() ? 8 : 4;
    bytes += llvm::alignTo(type.getNumElements() * size, Prefetch::kLineBytes);
  }
  Value memory = emitBuffer(b, MemRefType::get({bytes}, b.getI8Type()));
  for (auto [part, offset] : llvm::zip_equal(parts, offsets))
    *part.first = memref::ViewOp::create(b, part.second, memory,
                                         math.constant(offset), ValueRange());
  if (!areBf16)
    task.fewQueries = task.queries;
  task.memory = memory;
}

/// Begins with some queries of those that share keys; `hasFew` if they are
/// known to be few, though their number is not.
AttentionKernel::Task AttentionKernel::startTask(ImplicitLocOpBuilder &b,
                                                 Value pair, Value firstQuery,
                                                 bool hasFew) {
  IndexMath math(b);
  Task task;
  task.hasFew = hasFew;
  task.pair.assign(op.getNumOuterLoops(), Value());
  unflatten(b, pair, pairSizes, pairLoops, task.pair);
  task.firstQuery = firstQuery;
  task.count =
      math.min(math.sub(queries, firstQuery), math.constant(plan.getQueries()));
  allocate(b, task);
  if (facts.areBf16())
    chooseByQueries(
        b, task, [&] { copyQueries(b, task); },
        [&] { copyQueryPairs(b, task); });
  else
    copyQueries(b, task);
  if (hasLimits())
    emitLimits(b, task);
  return task;
}

/// Nothing has been counted in.
void AttentionKernel::clearSums(ImplicitLocOpBuilder &b, const Task &task) {
  IndexMath math(b);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(vectorType(b)));
  Value lowest = emitFloatSplat(b, b.getF32Type(), -INFINITY);
  Value first = math.constant(0);
  Value rows = math.mul(math.ceilDiv(task.count, facts.tileRows),
                        math.constant(facts.tileRows));
  emitFor(b, first, rows, 1, [&](Value query) {
    memref::StoreOp::create(b, lowest, task.largest, ValueRange{query});
    emitStore(b, zero, task.totals, {query, first});
    emitFor(
        b, first, math.constant(facts.paddedColumns()), facts.lanes,
        [&](Value column) { emitStore(b, zero, task.sums, {query, column}); });
  });
}

/// Writes which keys the rows see.
void AttentionKernel::emitLimits(ImplicitLocOpBuilder &b, const Task &task) {
  IndexMath math(b);
  Value zero = math.constant(0);
  emitFor(b, zero, task.count, plan.getRows(), [&](Value first) {
    Value end = math.min(math.add(first, plan.getRows()), task.count);
    auto loop = scf::ForOp::create(b, first, end, math.constant(1),
                                   ValueRange{keys, zero, zero, keys});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Values indices = findIndices(b, task, loop.getInductionVar());
      Values elements(op.getExtras().size());
      for (unsigned extra : bounds.getNeededExtras().set_bits())
        elements[extra] =
            memref::LoadOp::create(b, body.getBuffer(op.getExtras()[extra]),
                                   at(b, 3 + extra, indices));
      auto clamp = [&](Value key) {
        return math.min(math.max(key, zero), keys);
      };
      Value from = bounds.hasFirst()
                       ? clamp(bounds.emitFirst(b, elements, indices))
                       : zero;
      Value to =
          bounds.hasEnd() ? clamp(bounds.emitEnd(b, elements, indices)) : keys;
      ValueRange before = loop.getRegionIterArgs();
      scf::YieldOp::create(b, ValueRange{math.min(before[First], from),
                                         math.max(before[End], to),
                                         math.max(before[FirstOfAll], from),
                                         math.min(before[EndOfAll], to)});
    }
    for (auto [i, limit] : llvm::enumerate(loop.getResults()))
      memref::StoreOp::create(
          b, limit, task.limits,
          ValueRange{math.div(first, plan.getRows()), math.constant(i)});
  });
}

/// Whether keys that are passed over have low scores, but not -inf.
bool AttentionKernel::mayRepeat() const {
  return hasLimits() && !std::isinf(bounds.getCeiling());
}

/// Whether (i1) the others would count: no score of some query is far above
/// theirs.
Value AttentionKernel::emitIsLow(ImplicitLocOpBuilder &b, const Task &task) {
  IndexMath math(b);
  // Exponentials of what is so far below the largest are 0. The sum may be
  // rounded to the ceiling itself.
  constexpr double kFar = 110;
  Value least =
      emitFloatSplat(b, b.getF32Type(), float(bounds.getCeiling() + kFar));
  auto loop =
      scf::ForOp::create(b, math.constant(0), task.count, math.constant(1),
                         ValueRange{emitBool(b, false)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value largest = memref::LoadOp::create(b, task.largest,
                                         ValueRange{loop.getInductionVar()});
  Value isLow =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, largest, least);
  Value isAny = arith::OrIOp::create(b, loop.getRegionIterArg(0), isLow);
  scf::YieldOp::create(b, isAny);
  return loop.getResult(0);
}

/// Passes the keys that queries see, and all of them if the others count, too.
void AttentionKernel::emitPasses(ImplicitLocOpBuilder &b, const Task &task) {
  IndexMath math(b);
  if (!mayRepeat()) {
    clearSums(b, task);
    return emitKeys(b, task, hasLimits() ? emitBool(b, true) : Value());
  }
  auto passes =
      scf::ForOp::create(b, math.constant(0), math.constant(2),
                         math.constant(1), ValueRange{emitBool(b, true)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(passes.getBody());
  auto pass = scf::IfOp::create(b, b.getI1Type(), passes.getRegionIterArg(0),
                                /*addThenBlock=*/true, /*addElseBlock=*/true);
  scf::YieldOp::create(b, pass.getResults());
  b.setInsertionPointToStart(pass.elseBlock());
  scf::YieldOp::create(b, emitBool(b, false));
  b.setInsertionPointToStart(pass.thenBlock());
  clearSums(b, task);
  emitKeys(b, task, math.less(passes.getInductionVar(), math.constant(1)));
  scf::YieldOp::create(b, emitIsLow(b, task));
}

/// Counts in all keys, or (i1, null without limits) those that some query sees.
void AttentionKernel::emitKeys(ImplicitLocOpBuilder &b, const Task &task,
                               Value isLimited) {
  IndexMath math(b);
  Value from = math.constant(0), to = keys;
  auto limit = [&](Value rows, Limit which) -> Value {
    return memref::LoadOp::create(
        b, task.limits,
        ValueRange{math.div(rows, plan.getRows()), math.constant(which)});
  };
  if (isLimited) {
    auto all = scf::ForOp::create(b, math.constant(0), task.count,
                                  math.constant(plan.getRows()),
                                  ValueRange{keys, math.constant(0)});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(all.getBody());
      Value rows = all.getInductionVar();
      scf::YieldOp::create(
          b, ValueRange{math.min(all.getRegionIterArg(0), limit(rows, First)),
                        math.max(all.getRegionIterArg(1), limit(rows, End))});
    }
    // Whole panels, as far as there are keys.
    Value first = math.roundDown(all.getResult(0), facts.panel);
    Value end = math.min(
        math.mul(math.ceilDiv(all.getResult(1), facts.panel), facts.panel),
        keys);
    from = arith::SelectOp::create(b, isLimited, first, from);
    to = arith::SelectOp::create(b, isLimited, end, to);
  }
  if (task.part) {
    Value share = math.ceilDiv(math.max(math.sub(to, from), math.constant(0)),
                               task.parts);
    share = math.mul(math.ceilDiv(share, facts.panel), facts.panel);
    from = math.add(from, math.mul(task.part, share));
    to = math.min(to, math.add(from, share));
  }
  emitFor(b, from, to, plan.getKeys(), [&](Value first) {
    Keys block;
    block.first = first;
    const bool isWhole = !isLimited && !task.part && !hasTail() &&
                         facts.keys % plan.getKeys() == 0;
    block.count =
        isWhole ? math.constant(plan.getKeys())
                : math.min(math.sub(to, first), math.constant(plan.getKeys()));
    block.panels = math.ceilDiv(block.count, facts.panel);
    chooseByQueries(
        b, task, [] {},
        [&] {
          if (facts.areBf16()) {
            packKeyPairs(b, task, block);
            packValuePairs(b, task, block);
          } else {
            packKeys(b, task, block);
            copyValues(b, task, block);
          }
        });
    emitFor(b, math.constant(0), task.count, plan.getRows(), [&](Value row) {
      Rows rows{row, math.min(math.sub(task.count, row),
                              math.constant(plan.getRows()))};
      Value isWithin;
      auto emitBlock = [&] {
        chooseByQueries(
            b, task, [&] { emitScoresOfFew(b, task, rows, block); },
            [&] { emitScores(b, task, rows, block); });
        emitSoftmax(b, task, rows, block, isWithin);
        chooseByQueries(
            b, task, [&] { emitSumsOfFew(b, task, rows, block); },
            [&] { emitSums(b, task, rows, block); });
      };
      if (!isLimited)
        return emitBlock();
      Value end = math.add(first, block.count);
      auto both = [&](Value x, Value y) -> Value {
        return arith::AndIOp::create(b, x, y);
      };
      isWithin = both(
          isLimited, both(math.less(limit(row, FirstOfAll), math.add(first, 1)),
                          math.less(end, math.add(limit(row, EndOfAll), 1))));
      Value isSeen = both(math.less(first, limit(row, End)),
                          math.less(limit(row, First), end));
      Value isAny = arith::OrIOp::create(
          b, isSeen, arith::XOrIOp::create(b, isLimited, emitBool(b, true)));
      emitIf(b, isAny, emitBlock);
    });
  });
}

/// Emits what is done for few queries, for many, or for either.
void AttentionKernel::chooseByQueries(ImplicitLocOpBuilder &b, const Task &task,
                                      function_ref<void()> few,
                                      function_ref<void()> many) {
  IndexMath math(b);
  if (facts.areFew() || task.hasFew)
    return few();
  if (facts.areMany())
    return many();
  emitIf(b, math.less(queries, math.constant(facts.kFewQueries + 1)), few,
         many);
}

/// Divides by the sums of exponentials, and computes and stores what follows.
void AttentionKernel::emitResults(ImplicitLocOpBuilder &b, const Task &task) {
  IndexMath math(b);
  auto type = vectorType(b);
  Type element = op.getInit().getType().getElementType();
  const int64_t lanes = facts.lanes, rank = op.getInit().getType().getRank();
  emitFor(b, math.constant(0), task.count, 1, [&](Value query) {
    Value total = emitSumOfLanes(
        b, emitLoad(b, task.totals, {query, math.constant(0)}, lanes));
    Value one = emitFloatSplat(b, b.getF32Type(), 1);
    Value inverse = arith::DivFOp::create(b, one, total);
    // Sums of no values are 0, though a softmax has no numbers then.
    if (!IndexMath::known(keys))
      inverse =
          arith::SelectOp::create(b, math.less(math.constant(0), keys), inverse,
                                  emitFloatSplat(b, b.getF32Type(), 0));
    inverse = vector::BroadcastOp::create(b, type, inverse);
    Values loops = findIndices(b, task, query);
    loops.resize(op.getNumLoops(), math.constant(0));
    Tile tile;
    tile.index = at(b, op.getIndexingMaps().size() - 1, loops);
    tile.index.truncate(rank - 1);
    tile.width = lanes;
    auto emitColumns = [&](Value column) {
      tile.position = column;
      Value sums = emitLoad(b, task.sums, {query, column}, lanes);
      Value result = arith::MulFOp::create(b, sums, inverse);
      if (!element.isF32()) {
        auto rounded = arith::TruncFOp::create(b, type.clone(element), result);
        if (facts.areBf16())
          rounded.setFastmath(arith::FastMathFlags::afn);
        result = rounded;
      }
      evaluator.emitStores(b, tile, result);
    };
    const int64_t whole = facts.columns / lanes * lanes;
    emitFor(b, math.constant(0), math.constant(whole), lanes, emitColumns);
    if (whole == facts.columns)
      return;
    tile.mask = emitTailMask(b, math.constant(facts.columns - whole), lanes);
    emitColumns(math.constant(whole));
  });
}
