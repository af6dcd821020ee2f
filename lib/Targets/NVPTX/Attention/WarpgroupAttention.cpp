//===- WarpgroupAttention.cpp - Tiles of attention by warpgroups ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/WarpgroupAttention.h"
#include "Attention/MmaFragment.h"

#include "Kernel/Block.h"
#include "Kernel/GroupProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Elements along K that an instruction multiplies, and units of descriptors.
static constexpr int64_t kStep = 16, kUnit = 16;
static constexpr int64_t kStepsOfBox = kMapRowBytes / kGroupStepBytes;

SmallVector<Value> WarpgroupAttention::rows(ImplicitLocOpBuilder &b) const {
  return mmaRows(b, thread);
}

SmallVector<Value> WarpgroupAttention::keys(ImplicitLocOpBuilder &b) const {
  return mmaPairs(b, thread, plan.keys);
}

SmallVector<Value> WarpgroupAttention::columns(ImplicitLocOpBuilder &b) const {
  return mmaPairs(b, thread, plan.columns);
}

//===----------------------------------------------------------------------===//
// Shared memory and barriers
//===----------------------------------------------------------------------===//

static int64_t countBoxes(int64_t columns) {
  return llvm::divideCeil(columns, WarpgroupAttention::kBoxCols);
}

Value WarpgroupAttention::barrierAt(ImplicitLocOpBuilder &b, int64_t number,
                                    Value stage) {
  Indices i(b);
  return addressOf(b, bytes,
                   i.add(i.mul(stage, kBarrierBytes),
                         plan.countTileBytes() + number * kBarrierBytes));
}

Value WarpgroupAttention::fullAt(ImplicitLocOpBuilder &b, Part part,
                                 Value stage) {
  return barrierAt(b, 1 + (part == Keys ? 0 : plan.stages), stage);
}

Value WarpgroupAttention::freeAt(ImplicitLocOpBuilder &b, Part part,
                                 Value stage) {
  return barrierAt(b, 1 + (part == Keys ? 2 : 3) * plan.stages, stage);
}

Value WarpgroupAttention::byteOf(ImplicitLocOpBuilder &b, Part part,
                                 Value stage) {
  Indices i(b);
  return i.add(i.mul(stage, plan.countKeyBytes() + plan.countValueBytes()),
               plan.countQueryBytes() +
                   (part == Keys ? 0 : plan.countKeyBytes()));
}

void WarpgroupAttention::begin(ImplicitLocOpBuilder &b) {
  Indices i(b);
  const int64_t size = plan.countSharedBytes();
  bytes = viewShared(b, allocateShared(b, size), 0, {size}, b.getI8Type());
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, i.constant(0));
  {
    auto first = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(first.thenYield());
    auto make = [&](Value barrier, int64_t count) {
      NVVM::MBarrierInitOp::create(b, barrier, word(b, count), Value());
    };
    make(barrierAt(b, 0, i.constant(0)), 1);
    for (int64_t number = 0; number < plan.stages; ++number)
      for (Part part : {Keys, AllValues}) {
        make(fullAt(b, part, i.constant(number)), 1);
        make(freeAt(b, part, i.constant(number)), plan.rows / kGroupRows);
      }
    NVVM::FenceMbarrierInitOp::create(b);
  }
  gpu::BarrierOp::create(b);
}

Value WarpgroupAttention::isWorker(ImplicitLocOpBuilder &b) {
  return isOfFirstGroups(b, thread, plan.rows / kGroupRows);
}

void WarpgroupAttention::waitForQueries(ImplicitLocOpBuilder &b) {
  waitFor(b, barrierAt(b, 0, Indices(b).constant(0)), word(b, 0));
}

void WarpgroupAttention::waitForPart(ImplicitLocOpBuilder &b, Part part,
                                     const Ring &ring) {
  waitFor(b, fullAt(b, part, ring.stage), ring.phase);
}

void WarpgroupAttention::release(ImplicitLocOpBuilder &b, Part part,
                                 const Ring &ring) {
  arriveWhere(b, isFirstOfGroup(b, thread),
              [&] { return freeAt(b, part, ring.stage); });
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void WarpgroupAttention::copyTile(ImplicitLocOpBuilder &b,
                                  const MappedSource &source, Value row,
                                  Value byte, int64_t boxes, int64_t boxRows,
                                  Value barrier) {
  Indices i(b);
  const int64_t boxBytes = boxRows * kMapRowBytes;
  NVVM::MBarrierArriveExpectTxOp::create(
      b, Type(), barrier, word(b, boxes * boxBytes), NVVM::MemScopeKind::CTA,
      /*relaxed=*/false, /*predicate=*/Value());
  for (int64_t box = 0; box < boxes; ++box)
    copyBox(b, source, row, i.constant(box * kBoxCols),
            addressOf(b, bytes, i.add(byte, box * boxBytes)), barrier);
}

void WarpgroupAttention::copyPart(ImplicitLocOpBuilder &b, Part part,
                                  const MappedSource &source, Value key,
                                  const Ring &ring) {
  waitFor(b, freeAt(b, part, ring.stage), ring.phase);
  copyTile(b, source, key, byteOf(b, part, ring.stage),
           countBoxes(part == Keys ? plan.depth : plan.columns), plan.keys,
           fullAt(b, part, ring.stage));
}

void WarpgroupAttention::copy(ImplicitLocOpBuilder &b, const Sources &sources,
                              Value row, Value from, Value count) {
  Indices i(b);
  Value isFirst = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq, thread,
      i.constant(plan.rows / kGroupRows * kWarpgroupThreads));
  Value isWanted = i.both(isFirst, i.less(i.constant(0), count));
  auto first = scf::IfOp::create(b, isWanted, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(first.thenYield());
  copyTile(b, sources.queries, row, i.constant(0), countBoxes(plan.depth),
           plan.rows, barrierAt(b, 0, i.constant(0)));
  // Free stages are those of the phase before the first.
  auto loop = scf::ForOp::create(b, i.constant(0), count, i.constant(1),
                                 ValueRange{i.constant(0), word(b, 1)});
  b.setInsertionPointToStart(loop.getBody());
  Ring ring = {loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
  Value key = i.mul(i.add(from, loop.getInductionVar()), plan.keys);
  copyPart(b, Keys, sources.keys, key, ring);
  copyPart(b, AllValues, sources.values, key, ring);
  Ring after = ring.next(b, plan.stages);
  scf::YieldOp::create(b, ValueRange{after.stage, after.phase});
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A descriptor so many units further.
static Value advance(ImplicitLocOpBuilder &b, Value descriptor, int64_t units) {
  return units == 0
             ? descriptor
             : arith::AddIOp::create(b, descriptor,
                                     arith::ConstantIntOp::create(b, units, 64))
                   .getResult();
}

SmallVector<Value> WarpgroupAttention::startScores(ImplicitLocOpBuilder &b,
                                                   const Ring &ring) {
  Indices i(b);
  const StringRef name = nameOfElement(type);
  const GroupProduct product = {name, name, b.getF32Type(), plan.keys,
                                /*isRhsAlongK=*/true};
  Value group = i.div(thread, kWarpgroupThreads);
  Value queries = describeTile(
      b, bytes, i.mul(group, kGroupRows * kMapRowBytes), std::nullopt);
  Value keyTile =
      describeTile(b, bytes, byteOf(b, Keys, ring.stage), std::nullopt);
  Values sums;
  fenceRegisters(b, {});
  for (int64_t step = 0; step < plan.depth / kStep; ++step) {
    // Boxes follow each other, and steps in their rows.
    auto at = [&](Value tile, int64_t boxRows) {
      return advance(b, tile,
                     (step / kStepsOfBox * boxRows * kMapRowBytes +
                      step % kStepsOfBox * kGroupStepBytes) /
                         kUnit);
    };
    sums =
        product.start(b, sums, at(queries, plan.rows), at(keyTile, plan.keys));
  }
  commitProducts(b);
  return sums;
}

SmallVector<Value> WarpgroupAttention::startSums(ImplicitLocOpBuilder &b,
                                                 ValueRange factors,
                                                 const Ring &ring,
                                                 ValueRange sums) {
  const StringRef name = nameOfElement(type);
  const GroupProduct product = {name, name, b.getF32Type(), plan.columns,
                                /*isRhsAlongK=*/false};
  Value tile =
      describeTile(b, bytes, byteOf(b, AllValues, ring.stage), plan.keys);
  Values kept(factors);
  llvm::append_range(kept, sums);
  kept = fenceRegisters(b, kept);
  factors = ArrayRef(kept).take_front(factors.size());
  Values next(ArrayRef(kept).drop_front(factors.size()));
  for (int64_t step = 0; step < plan.keys / kStep; ++step)
    next = product.start(b, next, factors.slice(4 * step, 4),
                         advance(b, tile, step * kStep * kMapRowBytes / kUnit));
  commitProducts(b);
  return next;
}
