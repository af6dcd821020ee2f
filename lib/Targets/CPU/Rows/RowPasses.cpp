//===- RowPasses.cpp - The loops over a row -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes over a row of a group: its loops, those along the lanes, and the
// accumulators of its reductions.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Vectorize.h"
#include "Rows/ReductionCombiner.h"
#include "Rows/RowGroupEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Loops over the row of up to this many iterations are unrolled when lanes are
/// rows of their own: the windows of a pooling.
static constexpr int64_t kUnrolledRow = 16;

/// A loop along the lanes: whole groups of `unroll` vectors, then single
/// vectors under a mask (or single elements where a mask is not enough).
/// Accumulators come in groups of `plan.unroll`; the tail uses the first.
SmallVector<Value> RowGroupEmitter::emitLaneLoop(const Point &outer,
                                                 OpFoldResult begin,
                                                 OpFoldResult end,
                                                 ValueRange accs,
                                                 LaneBody body) {
  int64_t step = plan.lanes * plan.unroll;
  SmallVector<Value> values(accs);
  auto first = getConstantIntValue(begin), last = getConstantIntValue(end);
  Value beginValue = getValueOrCreateConstantIndexOp(b, loc, begin);
  Value endValue = getValueOrCreateConstantIndexOp(b, loc, end);
  Value middle;
  bool hasMain = true, hasTail = true;
  if (first && last) {
    int64_t count = std::max<int64_t>(*last - *first, 0);
    middle = index(*first + count / step * step);
    hasMain = count >= step;
    hasTail = count % step != 0;
  } else {
    Value count = arith::SubIOp::create(b, loc, endValue, beginValue);
    Value rest = arith::RemUIOp::create(b, loc, count, index(step));
    middle = arith::SubIOp::create(b, loc, endValue, rest);
  }
  auto loop = [&](Value lb, Value ub, int64_t by, unsigned copies,
                  bool onVectors, bool masked) {
    auto forOp = scf::ForOp::create(b, loc, lb, ub, index(by), values);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    Point point = outer;
    point.ivs[plan.lane] = forOp.getInductionVar();
    point.copies = copies;
    point.onVectors = onVectors;
    if (masked) {
      point.left = arith::SubIOp::create(b, loc, ub, forOp.getInductionVar());
      point.mask = vector::CreateMaskOp::create(
          b, loc, VectorType::get(plan.lanes, b.getI1Type()), point.left);
    }
    SmallVector<Value> next = body(point, forOp.getRegionIterArgs());
    if (!values.empty())
      scf::YieldOp::create(b, loc, next);
    values = llvm::to_vector_of<Value>(forOp.getResults());
  };
  if (hasMain)
    loop(beginValue, middle, step, plan.unroll, true, false);
  if (!hasTail)
    return values;
  auto emitRest = [&] {
    loop(middle, endValue, plan.maskedTail ? plan.lanes : 1, 1, plan.maskedTail,
         plan.maskedTail);
  };
  if (!plan.overlapsTail) {
    emitRest();
    return values;
  }
  assert(accs.empty() && "lanes that overlap would be added twice");
  emitOverlapped(outer, begin, middle, end, body, emitRest);
  return values;
}

/// From `middle` to `end` by single vectors, the last of which begins earlier;
/// by `emitRest` where there are fewer elements than lanes from `begin` on.
void RowGroupEmitter::emitOverlapped(const Point &outer, OpFoldResult begin,
                                     Value middle, OpFoldResult end,
                                     LaneBody body,
                                     llvm::function_ref<void()> emitRest) {
  Value endValue = getValueOrCreateConstantIndexOp(b, loc, end);
  Value lastVector = arith::SubIOp::create(b, loc, endValue, index(plan.lanes));
  auto emitVectors = [&] {
    auto forOp =
        scf::ForOp::create(b, loc, middle, endValue, index(plan.lanes));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    Point point = outer;
    point.ivs[plan.lane] =
        arith::MinSIOp::create(b, loc, forOp.getInductionVar(), lastVector);
    point.copies = 1;
    point.onVectors = true;
    (void)body(point, {});
  };
  auto first = getConstantIntValue(begin), last = getConstantIntValue(end);
  if (first && last)
    return *last - *first >= plan.lanes ? emitVectors() : emitRest();
  Value hasVector =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, lastVector,
                            getValueOrCreateConstantIndexOp(b, loc, begin));
  auto branch = scf::IfOp::create(b, loc, hasVector, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenYield());
  emitVectors();
  b.setInsertionPoint(branch.elseYield());
  emitRest();
}

/// The part of the run between `begin` and `end` by vectors, the last of which
/// begins earlier where fewer positions are left and stores some once more;
/// what else lies between them one by one.
void RowGroupEmitter::emitRun(const Point &outer, OpFoldResult begin,
                              OpFoldResult end, LaneBody body) {
  auto toValue = [&](OpFoldResult number) {
    return getValueOrCreateConstantIndexOp(b, loc, number);
  };
  auto minus = [&](Value x, Value y) {
    return b.createOrFold<arith::SubIOp>(loc, x, y);
  };
  Value start = toValue(begin), stop = toValue(end);
  auto clamp = [&](Value position) {
    Value below = b.createOrFold<arith::MinSIOp>(loc, position, stop);
    return b.createOrFold<arith::MaxSIOp>(loc, below, start);
  };
  Value low = toValue(plan.run->low);
  Value first = clamp(low), lanes = index(plan.lanes);
  Value last =
      clamp(b.createOrFold<arith::AddIOp>(loc, low, toValue(plan.run->size)));
  // No vector where there are fewer positions than lanes.
  Value hasVector = b.createOrFold<arith::CmpIOp>(
      loc, arith::CmpIPredicate::sge, minus(last, first), lanes);
  last = b.createOrFold<arith::SelectOp>(loc, hasVector, last, first);
  Value rest = b.createOrFold<arith::RemUIOp>(loc, minus(last, first),
                                              index(plan.lanes * plan.unroll));
  Value middle = minus(last, rest);
  auto emitLoop = [&](Value from, Value to, int64_t step,
                      llvm::function_ref<void(Point &)> place) {
    if (auto known = getConstantIntValue(from);
        known && known == getConstantIntValue(to))
      return;
    auto loop = scf::ForOp::create(b, loc, from, to, index(step));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Point point = outer;
    point.ivs[plan.lane] = loop.getInductionVar();
    place(point);
    (void)body(point, {});
  };
  emitLoop(start, first, 1, [](Point &) {});
  emitLoop(first, middle, plan.lanes * plan.unroll, [&](Point &point) {
    point.copies = plan.unroll;
    point.onVectors = point.isInRun = true;
  });
  emitLoop(middle, last, plan.lanes, [&](Point &point) {
    point.onVectors = point.isInRun = true;
    point.ivs[plan.lane] = arith::MinSIOp::create(b, loc, point.ivs[plan.lane],
                                                  minus(last, lanes));
  });
  emitLoop(last, stop, 1, [](Point &) {});
}

/// Everything of `stages` at one point of the row; returns the accumulators.
SmallVector<Value> RowGroupEmitter::emitPoint(const Point &point, Scope &scope,
                                              ArrayRef<unsigned> stages,
                                              ValueRange accs) {
  SmallVector<Value> next(accs);
  unsigned at = 0;
  // In a loop along reduced lanes there are `unroll` accumulators, of which
  // the tail updates one.
  unsigned width = plan.laneReduced ? plan.unroll : point.copies;
  for (unsigned s : stages) {
    RowStage &stage = group.stages[s];
    if (!stage.isReduction) {
      (void)evaluate(s, point, scope);
      storeResults(s, point, scope);
      continue;
    }
    SmallVector<Copies> current;
    for (unsigned r = 0; r < stage.resultTypes.size(); ++r)
      current.push_back(
          Copies(ArrayRef(next).slice(at + r * width, point.copies)));
    SmallVector<Copies> updated = compute(s, point, scope, current);
    for (unsigned r = 0; r < stage.resultTypes.size(); ++r)
      for (unsigned i = 0; i < point.copies; ++i) {
        Value value = broadcastTo(b, loc, updated[r][i], shape(point));
        if (plan.laneReduced && point.mask)
          value =
              arith::SelectOp::create(b, loc, point.mask, value, current[r][i]);
        next[at + r * width + i] = value;
      }
    at += stage.resultTypes.size() * width;
  }
  return next;
}

bool RowGroupEmitter::unrollsRow() {
  int64_t total = 1;
  for (unsigned d = 0; d < group.getNumDims(); ++d)
    if (group.reduced[d] && total > 0)
      total *= group.getStaticSize(d);
  return !plan.laneReduced && total > 0 && total <= kUnrolledRow;
}

SmallVector<Value> RowGroupEmitter::emitRowLoops(const Point &point,
                                                 Scope &scope,
                                                 ArrayRef<unsigned> loops,
                                                 ArrayRef<unsigned> stages,
                                                 ValueRange accs) {
  if (!loops.empty() && unrollsRow()) {
    unsigned d = loops.front();
    SmallVector<Value> values(accs);
    for (int64_t i = 0, e = group.getStaticSize(d); i < e; ++i) {
      Point inner = point;
      inner.ivs[d] = index(i);
      values = emitRowLoops(inner, scope, loops.drop_front(), stages, values);
    }
    return values;
  }
  if (!loops.empty()) {
    unsigned d = loops.front();
    auto forOp =
        scf::ForOp::create(b, loc, index(0), getSize(d), index(1), accs);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    Point inner = point;
    inner.ivs[d] = forOp.getInductionVar();
    SmallVector<Value> next = emitRowLoops(inner, scope, loops.drop_front(),
                                           stages, forOp.getRegionIterArgs());
    if (!accs.empty())
      scf::YieldOp::create(b, loc, next);
    return llvm::to_vector_of<Value>(forOp.getResults());
  }
  if (!plan.laneReduced) {
    Scope inner(&scope);
    return emitPoint(point, inner, stages, accs);
  }
  return emitLaneLoop(point, b.getIndexAttr(0), group.sizes[plan.lane], accs,
                      [&](const Point &inner, ValueRange values) {
                        if (plan.prefetch && inner.isFirstPass)
                          prefetchNextRow(inner);
                        Scope innerScope(&scope);
                        return emitPoint(inner, innerScope, stages, values);
                      });
}

/// Turns accumulators into the reductions' results.
void RowGroupEmitter::finishReductions(const Point &point, Scope &scope,
                                       ArrayRef<unsigned> stages,
                                       ValueRange accs) {
  unsigned at = 0;
  unsigned width = plan.laneReduced ? plan.unroll : point.copies;
  for (unsigned s : stages) {
    RowStage &stage = group.stages[s];
    if (!stage.isReduction)
      continue;
    SmallVector<Copies> results;
    for (unsigned r = 0; r < stage.resultTypes.size(); ++r, at += width) {
      Copies values(accs.begin() + at, accs.begin() + at + width);
      if (!plan.laneReduced) {
        results.push_back(values);
        continue;
      }
      ReductionCombiner combiner{plan.kinds[s][r], startsWithNumber(stage, r)};
      for (unsigned half = width / 2; half > 0; half /= 2)
        for (unsigned i = 0; i < half; ++i)
          values[i] = combiner.combine(b, loc, values[i], values[i + half]);
      Value total = combiner.reduceLanes(b, loc, values[0]);
      Value init = pick(getArg(s, stage.numInputs + r, point, scope), 0);
      results.push_back({combiner.combine(b, loc, init, total)});
    }
    scope.results[s] = std::move(results);
    storeResults(s, point, scope);
  }
}

/// One pass over the row.
void RowGroupEmitter::emitPass(const Point &outer, Scope &scope, int level,
                               ArrayRef<unsigned> stages) {
  Point point = outer;
  point.level = level;
  SmallVector<Value> accs;
  for (unsigned s : stages) {
    RowStage &stage = group.stages[s];
    if (!stage.isReduction)
      continue;
    for (unsigned r = 0; r < stage.resultTypes.size(); ++r) {
      if (plan.laneReduced) {
        auto type = VectorType::get(plan.lanes, stage.resultTypes[r]);
        ReductionCombiner combiner{plan.kinds[s][r],
                                   startsWithNumber(stage, r)};
        Attribute one = combiner.getNeutral(b, stage.resultTypes[r]);
        Value neutral = arith::ConstantOp::create(
            b, loc, DenseElementsAttr::get(type, one));
        accs.append(plan.unroll, neutral);
        continue;
      }
      RowAccess &init = stage.args[stage.numInputs + r];
      Copies values;
      if (init.kind == RowAccess::None)
        values = {arith::ConstantOp::create(
            b, loc, b.getZeroAttr(stage.resultTypes[r]))};
      else
        values = getArg(s, stage.numInputs + r, point, scope);
      for (unsigned i = 0; i < point.copies; ++i)
        accs.push_back(broadcastTo(b, loc, pick(values, i), shape(point)));
    }
  }
  SmallVector<unsigned> loops;
  for (unsigned d = 0; d < group.getNumDims(); ++d)
    if (group.reduced[d] && static_cast<int64_t>(d) != plan.lane)
      loops.push_back(d);
  SmallVector<Value> results = emitRowLoops(point, scope, loops, stages, accs);
  finishReductions(point, scope, stages, results);
}

void RowGroupEmitter::emitPasses(Point point, Scope &scope) {
  point.isFirstPass = true;
  preload(point, scope, /*onlyInnerStages=*/true,
          [&](unsigned d) { return group.reduced[d]; });
  for (int level = -1; level <= plan.maxLevel; ++level) {
    point.level = level;
    SmallVector<unsigned> pass;
    for (unsigned s = 0; s < group.stages.size(); ++s) {
      RowStage &stage = group.stages[s];
      bool stored = llvm::any_of(stage.stores, [](RowAccess &a) {
        return a.kind == RowAccess::Memory;
      });
      if (plan.inner[s] && plan.level[s] == level &&
          (stage.isReduction || stored || plan.kept[s]))
        pass.push_back(s);
    }
    if (!pass.empty()) {
      emitPass(point, scope, level, pass);
      point.isFirstPass = false;
    }
    for (unsigned s = 0; s < group.stages.size(); ++s) {
      if (plan.inner[s] || plan.level[s] != level)
        continue;
      (void)evaluate(s, point, scope);
      storeResults(s, point, scope);
    }
  }
}
