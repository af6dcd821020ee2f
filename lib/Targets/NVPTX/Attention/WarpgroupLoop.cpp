//===- WarpgroupLoop.cpp - Warpgroups that go over keys -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While a warpgroup makes factors of the scores of a tile, the tensor cores add
// up the values of the tile before, whose factors it has made.
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Attention/MmaFragment.h"
#include "Attention/Numbers.h"

#include "Kernel/Block.h"
#include "Kernel/GroupProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

//===----------------------------------------------------------------------===//
// The host's part
//===----------------------------------------------------------------------===//

Value AttentionKernel::isLong(ImplicitLocOpBuilder &b) {
  Indices i(b);
  findSizes(b);
  Value isMany = i.less(i.constant(plan.kLeastQueries - 1), rows);
  Value scores = i.mul(rows, sizes[op.getKeyLoop()]);
  return i.both(isMany, i.less(i.constant(plan.kScoresOfWarps), scores));
}

/// An operand as boxes of so many of the rows that `rowLoop` goes over, of one
/// pair.
MappedSource AttentionKernel::mapOperand(ImplicitLocOpBuilder &b,
                                         unsigned operand, unsigned rowLoop,
                                         int64_t boxRows) {
  Value memref = body.getBuffer(op->getOperand(operand));
  AffineMap map = op.getMap(operand);
  SmallVector<Value> extents;
  SmallVector<int64_t> box;
  SmallVector<std::optional<unsigned>> loops;
  // The innermost dimension comes first.
  for (int64_t dim = int64_t(map.getNumResults()) - 1; dim >= 0; --dim) {
    auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
    loops.push_back(loop ? std::optional(loop.getPosition()) : std::nullopt);
    // A kernel whose sizes are 0 is not started, but described.
    Value one = arith::ConstantIndexOp::create(b, 1);
    extents.push_back(
        b.createOrFold<arith::MaxSIOp>(sizeOf(b, memref, dim), one));
    box.push_back(loop && loop.getPosition() == rowLoop ? boxRows : 1);
  }
  box.front() = WarpgroupAttention::kBoxCols;
  MappedSource source =
      MappedSource::matrix(b, memref, extents, box, /*rounds=*/false);
  source.find = [this, loops, rowLoop](ImplicitLocOpBuilder &b, Value row,
                                       Value col) -> MappedSource::Place {
    Indices i(b);
    Values ofPair = i.unflatten(pair, pairSizes);
    MappedSource::Place place;
    place.coordinates.push_back(col);
    for (std::optional<unsigned> loop : ArrayRef(loops).drop_front())
      place.coordinates.push_back(
          !loop ? i.constant(0)
          : *loop == rowLoop
              ? row
              : ofPair[llvm::find(pairLoops, *loop) - pairLoops.begin()]);
    return place;
  };
  return source;
}

WarpgroupAttention::Sources
AttentionKernel::mapOperands(ImplicitLocOpBuilder &b) {
  return {mapOperand(b, 0, rowLoops.front(), plan.rows),
          mapOperand(b, 1, op.getKeyLoop(), plan.keys),
          mapOperand(b, 2, op.getKeyLoop(), plan.keys)};
}

//===----------------------------------------------------------------------===//
// The device's part
//===----------------------------------------------------------------------===//

/// The code of a block: one warpgroup copies, the others go over the keys.
void AttentionKernel::emitWarpgroups(ImplicitLocOpBuilder &b, Value part,
                                     Value from, Value count) {
  constexpr int64_t kCopyingRegisters = 40, kMultiplyingRegisters = 232;
  const bool movesRegisters = plan.rows > kGroupRows;
  auto limitRegisters = [&](int64_t number, NVVM::SetMaxRegisterAction action) {
    if (movesRegisters)
      NVVM::SetMaxRegisterOp::create(b, number, action);
  };
  WarpgroupAttention groups(op.getQuery().getType().getElementType(), plan,
                            thread);
  groups.begin(b);
  auto roles =
      scf::IfOp::create(b, groups.isWorker(b), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(roles.elseYield());
  limitRegisters(kCopyingRegisters, NVVM::SetMaxRegisterAction::decrease);
  groups.copy(b, sources, row0, from, count);
  b.setInsertionPoint(roles.thenYield());
  limitRegisters(kMultiplyingRegisters, NVVM::SetMaxRegisterAction::increase);
  findRows(b, groups);
  finish(b, emitKeysOfGroup(b, groups, from, count), part);
}

/// Goes over `count` tiles, which may be none.
AttentionKernel::State
AttentionKernel::emitKeysOfGroup(ImplicitLocOpBuilder &b,
                                 WarpgroupAttention &groups, Value from,
                                 Value count) {
  Indices i(b);
  State start = startState(b);
  Values none = start.flatten();
  auto some = scf::IfOp::create(b, ValueRange(none).getTypes(),
                                i.less(i.constant(0), count),
                                /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(some.elseBlock());
    scf::YieldOp::create(b, none);
    b.setInsertionPointToStart(some.thenBlock());
    scf::YieldOp::create(b, emitTilesOfGroup(b, groups, from, count));
  }
  State all = start.unflatten(some.getResults());
  combineSums(b, all);
  return all;
}

/// The factors of values, packed, of the scores of a tile, which it counts in.
AttentionKernel::Values
AttentionKernel::emitFactors(ImplicitLocOpBuilder &b, Values scores,
                             Value firstKey, State &state, Values &factors) {
  Values rows = byRows(scores);
  modifyScores(b, rows, firstKey);
  factors = addRows(b, rows, state);
  return rows;
}

/// Waits for the keys of tile `number` if there is one.
static void waitForNextKeys(ImplicitLocOpBuilder &b, WarpgroupAttention &groups,
                            Value number, Value count, const Ring &ring) {
  auto some = scf::IfOp::create(b, Indices(b).less(number, count),
                                /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(some.thenYield());
  groups.waitForPart(b, WarpgroupAttention::Keys, ring);
}

AttentionKernel::Values
AttentionKernel::emitTilesOfGroup(ImplicitLocOpBuilder &b,
                                  WarpgroupAttention &groups, Value from,
                                  Value count) {
  Indices i(b);
  using Part = WarpgroupAttention::Part;
  Type type = op.getQuery().getType().getElementType();
  auto firstKey = [&](Value number) {
    return i.mul(i.add(from, number), plan.keys);
  };
  State state = startState(b);
  Ring ring = {i.constant(0), word(b, 0)};
  groups.waitForQueries(b);
  groups.waitForPart(b, Part::Keys, ring);
  Values scores = waitForProducts(b, 0, groups.startScores(b, ring));
  groups.release(b, Part::Keys, ring);
  Values factors;
  Values rows = emitFactors(b, scores, firstKey(i.constant(0)), state, factors);
  Values packed = packPieces(b, byPieces(rows), type);

  // Of a tile the keys come first: a step has those of its tile, which it finds
  // there, and the values of the one before.
  Ring second = ring.next(b, plan.stages);
  waitForNextKeys(b, groups, i.constant(1), count, second);
  Values start = {ring.stage, ring.phase, second.stage, second.phase};
  const size_t numPacked = packed.size();
  start.append(packed);
  start.append(state.flatten());
  auto loop = scf::ForOp::create(b, i.constant(1), count, i.constant(1), start);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    ValueRange carried = loop.getRegionIterArgs();
    const Ring before = {carried[0], carried[1]},
               now = {carried[2], carried[3]};
    ValueRange packedBefore = carried.slice(4, numPacked);
    State next = state.unflatten(carried.drop_front(4 + numPacked));
    scores = groups.startScores(b, now);
    groups.waitForPart(b, Part::AllValues, before);
    Values sums =
        groups.startSums(b, packedBefore, before, byPieces(next.values));
    scores = waitForProducts(b, 1, scores);
    groups.release(b, Part::Keys, now);
    rows =
        emitFactors(b, scores, firstKey(loop.getInductionVar()), next, factors);
    // ptxas moves no arithmetic past a branch: the factors are made before the
    // sums, those with the factors of the tile before, are waited for.
    const Ring after = now.next(b, plan.stages);
    waitForNextKeys(b, groups, i.add(loop.getInductionVar(), 1), count, after);
    next.values = byRows(waitForProducts(b, 0, sums));
    groups.release(b, Part::AllValues, before);
    scaleValues(b, factors, next);
    Values yielded = {now.stage, now.phase, after.stage, after.phase};
    yielded.append(packPieces(b, byPieces(rows), type));
    yielded.append(next.flatten());
    scf::YieldOp::create(b, yielded);
  }
  ValueRange last = loop.getResults();
  const Ring before = {last[0], last[1]};
  State all = state.unflatten(last.drop_front(4 + numPacked));
  groups.waitForPart(b, Part::AllValues, before);
  all.values =
      byRows(waitForProducts(b, 0,
                             groups.startSums(b, last.slice(4, numPacked),
                                              before, byPieces(all.values))));
  return all.flatten();
}
