//===- WarpgroupMultiply.cpp - How warpgroups multiply tiles --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Kernel/GroupProduct.h"
#include "Matmul/WarpgroupTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// The sums with the products of a stage, which are in flight.
SmallVector<Value> WarpgroupTile::multiplyStage(ImplicitLocOpBuilder &b,
                                                Value lhs, Value rhs,
                                                ValueRange sums) {
  const GroupProduct product = {nameOfElement(types.lhs, types.isLhsUnsigned),
                                nameOfElement(types.rhs, types.isRhsUnsigned),
                                types.sum, plan.getTileN(), types.transposed};
  // Along K the next products follow each other in a row; across it are rows.
  constexpr int64_t kUnit = 16;
  const int64_t depth = kGroupStepBytes / types.lhsBytes();
  const int64_t lhsStep = kGroupStepBytes / kUnit;
  const int64_t rhsStep =
      types.transposed ? lhsStep : depth * kMapRowBytes / kUnit;
  SmallVector<Value> next(sums);
  fenceRegisters(b, {});
  for (int64_t step = 0; step < kMapRowBytes / kGroupStepBytes; ++step) {
    auto advance = [&](Value descriptor, int64_t units) -> Value {
      return arith::AddIOp::create(
          b, descriptor, arith::ConstantIntOp::create(b, step * units, 64));
    };
    next = product.start(b, next, advance(lhs, lhsStep), advance(rhs, rhsStep));
  }
  commitProducts(b);
  return next;
}

void WarpgroupTile::release(ImplicitLocOpBuilder &b, Value condition,
                            Value stage) {
  arriveWhere(b, condition, [&] { return freeAt(b, stage); });
}

Ring WarpgroupTile::beginProducts(ImplicitLocOpBuilder &b) {
  return {Indices(b).constant(0), word(b, 0)};
}

Ring WarpgroupTile::multiply(ImplicitLocOpBuilder &b, Value count, Ring ring,
                             SmallVector<Value> &sums) {
  Indices i(b);
  Value group = i.div(thread, MatmulPlanAttr::kWarpgroup);
  Value lhs = describeTile(b, bytes, i.mul(group, kGroupRows * kMapRowBytes),
                           std::nullopt);
  Value rhs = describeTile(b, bytes, i.constant(lhsBytes()),
                           types.transposed ? std::nullopt
                                            : std::optional(plan.getTileK()));
  Value isLeader = isFirstOfGroup(b, thread);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(types.sum));
  SmallVector<Value> state = {ring.stage, ring.phase, i.constant(0)};
  const size_t beforeSums = state.size();
  state.append(plan.getTileN() / 2, zero);
  auto loop = scf::ForOp::create(b, i.constant(0), count, i.constant(1), state);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Ring at = {loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
    Value before = loop.getRegionIterArg(2);
    waitFor(b, fullAt(b, at.stage), at.phase);
    Value offset = b.createOrFold<arith::IndexCastOp>(
        b.getI64Type(), i.mul(at.stage, stageBytes() / 16));
    SmallVector<Value> products =
        multiplyStage(b, arith::AddIOp::create(b, lhs, offset),
                      arith::AddIOp::create(b, rhs, offset),
                      loop.getRegionIterArgs().drop_front(beforeSums));
    // While these are on their way, those before are done: their stage is free.
    waitForProducts(b, 1, {});
    Value hasBefore = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne, loop.getInductionVar(), i.constant(0));
    release(b, i.both(hasBefore, isLeader), before);
    Ring after = at.next(b, plan.getStages());
    SmallVector<Value> next = {after.stage, after.phase, at.stage};
    llvm::append_range(next, products);
    scf::YieldOp::create(b, next);
  }
  sums = waitForProducts(b, 0, loop.getResults().drop_front(beforeSums));
  release(b, i.both(i.less(i.constant(0), count), isLeader), loop.getResult(2));
  return {loop.getResult(0), loop.getResult(1)};
}
