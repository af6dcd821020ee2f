//===- RowEmitter.cpp - Loops over vectors for a group --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tasks of a group: the parallel loop, and what one iteration of it does.
//
//===----------------------------------------------------------------------===//

#include "Rows/RowEmitter.h"
#include "Rows/RowGroupEmitter.h"
#include "Rows/RowsPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Parallel iterations that are enough to occupy the threads.
static constexpr int64_t kMinTasks = 256;

/// Loads what does not vary in the loops inside of this point.
void RowGroupEmitter::preload(const Point &point, Scope &scope,
                              bool onlyInnerStages,
                              llvm::function_ref<bool(unsigned)> varies) {
  for (unsigned s = 0; s < group.stages.size(); ++s) {
    if (onlyInnerStages && !plan.inner[s])
      continue;
    RowStage &stage = group.stages[s];
    for (auto [i, access] : llvm::enumerate(stage.args)) {
      // Initial values are read once, where the reduction starts or ends.
      if (access.kind != RowAccess::Memory || scope.findLoad(s, i) ||
          (stage.isReduction && i >= stage.numInputs))
        continue;
      bool fixed = true;
      for (unsigned d = 0; d < group.getNumDims(); ++d)
        fixed &= !access.map.isFunctionOfDim(d) || !varies(d);
      if (fixed)
        scope.loads[{s, static_cast<unsigned>(i)}] = load(access, point);
    }
  }
}

void RowGroupEmitter::loadTables() {
  if (plan.lane < 0)
    return;
  for (RowStage &stage : group.stages)
    for (auto op : stage.body->getOps<tensor::ExtractOp>())
      if (Value memref = stage.extracts.lookup(op);
          memref && isByteTable(op) && !tables.contains(memref))
        tables.try_emplace(memref, b, loc, memref);
}

/// One iteration of the parallel loop; `begin` and `end` are the part of the
/// lane dimension that it works on when lanes are rows of their own.
void RowGroupEmitter::emitTask(Point point, OpFoldResult begin,
                               OpFoldResult end) {
  keptIn = plan.keptIn;
  for (unsigned s = 0; s < group.stages.size(); ++s)
    if (plan.kept[s])
      for (auto [r, access] : llvm::enumerate(keptIn[s]))
        if (access.kind == RowAccess::None)
          access = makeScratch(group.stages[s].resultTypes[r]);
  loadTables();
  Scope top;
  preload(point, top, /*onlyInnerStages=*/false,
          [&](unsigned d) { return isInnerDim(d); });
  if (plan.lane < 0 || plan.laneReduced) {
    emitPasses(point, top);
  } else {
    for (unsigned s = 0; s < group.stages.size(); ++s) {
      RowStage &stage = group.stages[s];
      if (!plan.inner[s] && plan.level[s] < 0 && !stage.domain[plan.lane])
        (void)evaluate(s, point, top);
    }
    auto emitBody = [&](const Point &inner, ValueRange) -> SmallVector<Value> {
      Scope scope(&top);
      emitPasses(inner, scope);
      return {};
    };
    if (plan.run)
      emitRun(point, begin, end, emitBody);
    else
      emitLoopOrMove(point, begin, end,
                     [&] { emitLaneLoop(point, begin, end, {}, emitBody); });
  }
  for (Value buffer : buffers)
    memref::DeallocOp::create(b, loc, buffer);
  buffers.clear();
}

/// A block of rows of the transposed dimension: square tiles as far as they
/// go, the rest row by row.
void RowGroupEmitter::emitTransposedTask(Point point, Value firstRow) {
  loadTables();
  Scope top;
  preload(point, top, /*onlyInnerStages=*/false,
          [&](unsigned d) { return isInnerDim(d); });
  int64_t lanes = plan.lanes;
  Value rows = getSize(plan.transposed), columns = getSize(plan.lane);
  Value next = arith::AddIOp::create(b, loc, firstRow, index(lanes));
  Value end = arith::MinSIOp::create(b, loc, next, rows);
  Value isWhole =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, next, rows);
  Value tiled = arith::SubIOp::create(
      b, loc, columns, arith::RemUIOp::create(b, loc, columns, index(lanes)));
  tiled = arith::SelectOp::create(b, loc, isWhole, tiled, index(0));
  {
    auto loop = scf::ForOp::create(b, loc, index(0), tiled, index(lanes));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Point tile = point;
    tile.ivs[plan.transposed] = firstRow;
    tile.ivs[plan.lane] = loop.getInductionVar();
    tile.copies = lanes;
    tile.onVectors = tile.isTile = true;
    Scope scope(&top);
    emitPasses(tile, scope);
  }
  auto loop = scf::ForOp::create(b, loc, firstRow, end, index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  point.ivs[plan.transposed] = loop.getInductionVar();
  emitLaneLoop(point, tiled, columns, {},
               [&](const Point &inner, ValueRange) -> SmallVector<Value> {
                 Scope scope(&top);
                 emitPasses(inner, scope);
                 return {};
               });
}

/// All positions of the transposed dimension for vectors of the lane's from
/// `begin` to `end`. The last vector begins earlier where fewer are left, and
/// stores some once more; what is no vector goes one by one.
void RowGroupEmitter::emitInterleavedTask(Point point, OpFoldResult begin,
                                          OpFoldResult end) {
  loadTables();
  Scope top;
  preload(point, top, /*onlyInnerStages=*/false,
          [&](unsigned d) { return isInnerDim(d); });
  Value first = getValueOrCreateConstantIndexOp(b, loc, begin);
  Value last = getValueOrCreateConstantIndexOp(b, loc, end);
  Value lastVector = arith::SubIOp::create(b, loc, last, index(plan.lanes));
  Value hasVectors = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                           lastVector, first);
  Value middle = arith::SelectOp::create(b, loc, hasVectors, last, first);
  auto emitLoop = [&](Value from, Value to, int64_t step,
                      llvm::function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(b, loc, from, to, index(step));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  };
  emitLoop(first, middle, plan.lanes, [&](Value position) {
    Point tile = point;
    tile.ivs[plan.transposed] = index(0);
    tile.ivs[plan.lane] = arith::MinSIOp::create(b, loc, position, lastVector);
    tile.copies = group.getStaticSize(plan.transposed);
    tile.onVectors = tile.isTile = true;
    Scope scope(&top);
    emitPasses(tile, scope);
  });
  emitLoop(middle, last, 1, [&](Value position) {
    emitLoop(index(0), getSize(plan.transposed), 1, [&](Value row) {
      Point single = point;
      single.ivs[plan.lane] = position;
      single.ivs[plan.transposed] = row;
      Scope scope(&top);
      emitPasses(single, scope);
    });
  });
}

/// The rows of a task: `plan.rows` side by side where they are short and, among
/// all the sizes of the parallel loop, that leaves tasks for many threads.
Value RowGroupEmitter::getRowsOfTask() {
  Value rows = index(plan.rows), tasks = index(1), length = index(1);
  bool areKnown = true;
  for (unsigned d = 0; d < group.getNumDims(); ++d) {
    Value &count = group.reduced[d] ? length : tasks;
    count = arith::MulIOp::create(b, loc, count, getSize(d));
    areKnown &= group.getStaticSize(d) >= 0;
  }
  if (areKnown)
    return rows;
  Value isEnough =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, tasks,
                            index(plan.rows * kEnoughRowTasks));
  Value areShort =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, length,
                            index(plan.lanes * kVectorsOfShortRow));
  isEnough = arith::AndIOp::create(b, loc, isEnough, areShort);
  return arith::SelectOp::create(b, loc, isEnough, rows, index(1));
}

/// Makes one scratch for all iterations of `loop`.
static void hoistScratch(scf::ForOp loop) {
  for (Operation &op : llvm::make_early_inc_range(*loop.getBody())) {
    if (isa<memref::AllocaOp, memref::AllocOp>(op))
      op.moveBefore(loop);
    else if (isa<memref::DeallocOp>(op))
      op.moveAfter(loop);
  }
}

/// A task of `count` rows along dimension `d` from `first` on: side by side, or
/// one after another where there are fewer than `plan.rows`.
void RowGroupEmitter::emitRows(Point point, unsigned d, Value first,
                               Value count) {
  auto emitLoop = [&](Value begin, Value end, RowGroupEmitter &emitter) {
    auto loop = scf::ForOp::create(b, loc, begin, end, index(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    point.ivs[d] = arith::AddIOp::create(b, loc, first, loop.getInductionVar());
    emitter.emitTask(point, b.getIndexAttr(0), group.sizes[plan.lane]);
    moveLoopInvariantCode(loop);
    return loop;
  };
  // Short ones hide each other's latency and need no accumulators for that.
  // Where the order of sums counts, a row goes the same way as a lone one.
  RowPlan shortRows = plan;
  if (plan.isExact && group.getStaticSize(plan.lane) < 0)
    shortRows.unroll = 1;
  RowGroupEmitter sideBySide(b, group, shortRows);
  auto emitSideBySide = [&] {
    scf::ForOp loop = emitLoop(index(0), index(plan.rows), sideBySide);
    (void)loopUnrollJamByFactor(loop, plan.rows);
  };
  const int64_t size = group.getStaticSize(d);
  if (matchPattern(count, m_Constant()) && size >= 0 && size % plan.rows == 0)
    return emitSideBySide();
  Value left = arith::SubIOp::create(b, loc, getSize(d), first);
  count = arith::MinSIOp::create(b, loc, count, left);
  Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count,
                                        index(plan.rows));
  auto branch = scf::IfOp::create(b, loc, isWhole, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenYield());
  emitSideBySide();
  b.setInsertionPoint(branch.elseYield());
  hoistScratch(emitLoop(index(0), count, *this));
}

void RowGroupEmitter::run() {
  SmallVector<unsigned> outer;
  for (unsigned d = 0; d < group.getNumDims(); ++d)
    if (!isInnerDim(d))
      outer.push_back(d);
  const int64_t chunk = plan.chunk;
  // Without lanes, inner dimensions become loops once there are iterations
  // enough: an iteration is more than one element then.
  SmallVector<unsigned> sequential;
  if (plan.lane < 0) {
    int64_t iterations = 1;
    unsigned keep = 0;
    for (; keep + 1 < outer.size() && iterations < kMinTasks; ++keep) {
      int64_t size = group.getStaticSize(outer[keep]);
      iterations *= size < 0 ? 4 : std::max<int64_t>(size, 1);
    }
    sequential.assign(outer.begin() + std::min<size_t>(keep, outer.size()),
                      outer.end());
    if (outer.size() < 2)
      sequential.clear();
    outer.resize(outer.size() - sequential.size());
  }
  SmallVector<Value> lbs, ubs, steps;
  for (unsigned d : outer) {
    lbs.push_back(index(0));
    ubs.push_back(getSize(d));
    steps.push_back(index(1));
  }
  if (plan.rows > 1)
    steps.back() = getRowsOfTask();
  OpFoldResult begin = b.getIndexAttr(0), end = begin;
  if (plan.lane >= 0)
    end = group.sizes[plan.lane];
  if (chunk) {
    lbs.push_back(index(0));
    ubs.push_back(getSize(plan.lane));
    steps.push_back(index(chunk));
  }
  const bool isInterleaved = plan.interleaves || plan.deinterleaves;
  const bool hasSquares = plan.transposed >= 0 && !isInterleaved;
  if (hasSquares) {
    lbs.push_back(index(0));
    ubs.push_back(getSize(plan.transposed));
    steps.push_back(index(plan.lanes));
  }
  Point point;
  point.ivs.resize(group.getNumDims());
  OpBuilder::InsertionGuard guard(b);
  if (!lbs.empty()) {
    auto loop = scf::ParallelOp::create(b, loc, lbs, ubs, steps);
    b.setInsertionPointToStart(loop.getBody());
    for (auto [d, iv] : llvm::zip(outer, loop.getInductionVars()))
      point.ivs[d] = iv;
    if (hasSquares)
      return emitTransposedTask(point, loop.getInductionVars().back());
    if (plan.rows > 1)
      return emitRows(point, outer.back(), loop.getInductionVars().back(),
                      steps.back());
    if (chunk) {
      Value first = loop.getInductionVars().back();
      begin = first;
      int64_t size = group.getStaticSize(plan.lane);
      Value next = arith::AddIOp::create(b, loc, first, index(chunk));
      end = size >= 0 && size % chunk == 0
                ? next
                : arith::MinSIOp::create(b, loc, next, getSize(plan.lane))
                      .getResult();
    }
  }
  for (unsigned d : sequential) {
    auto loop = scf::ForOp::create(b, loc, index(0), getSize(d), index(1));
    b.setInsertionPointToStart(loop.getBody());
    point.ivs[d] = loop.getInductionVar();
  }
  if (isInterleaved)
    return emitInterleavedTask(point, begin, end);
  emitTask(point, begin, end);
}

namespace sardonyx::cpu {

void emitRowGroup(OpBuilder &b, ReductionGroup &group, RowsPlanAttr choice) {
  const RowPlan plan = makeRowPlan(group, choice);
  RowGroupEmitter(b, group, plan).run();
}

LogicalResult emitRowLoops(RewriterBase &rewriter, linalg::LinalgOp op,
                           TargetAttr target) {
  rewriter.setInsertionPoint(op);
  FailureOr<ReductionGroup> group = buildGroup(rewriter, op);
  if (failed(group))
    return failure();
  collapseDims(rewriter, *group);
  emitRowGroup(rewriter, *group,
               selectPlan(RowsFacts(*group, op.getContext(), target)));
  rewriter.eraseOp(op);
  return success();
}

} // namespace sardonyx::cpu
