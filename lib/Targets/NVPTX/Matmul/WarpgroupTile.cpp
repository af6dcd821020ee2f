//===- WarpgroupTile.cpp - The tiles of warpgroups ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/WarpgroupTile.h"

#include "Kernel/Block.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

WarpgroupTile::WarpgroupTile(const ProductTypes &types, MatmulPlanAttr plan)
    : types(types), plan(plan) {}

int64_t WarpgroupTile::barrierBytes() const {
  return resultsFrom() + plan.countGroups() * kGroupResultBytes;
}

int64_t WarpgroupTile::countSharedBytes() const {
  return barrierBytes() + 2 * plan.getStages() * kBarrierBytes;
}

Value WarpgroupTile::byteAt(ImplicitLocOpBuilder &b, Value byte) {
  return addressOf(b, bytes, byte);
}

Value WarpgroupTile::fullAt(ImplicitLocOpBuilder &b, Value stage) {
  Indices i(b);
  return byteAt(b, i.add(i.mul(stage, kBarrierBytes), barrierBytes()));
}

Value WarpgroupTile::freeAt(ImplicitLocOpBuilder &b, Value stage) {
  Indices i(b);
  return byteAt(b, i.add(i.mul(stage, kBarrierBytes),
                         barrierBytes() + plan.getStages() * kBarrierBytes));
}

void WarpgroupTile::begin(ImplicitLocOpBuilder &b, Value shared,
                          Value threadNumber, Value rankOfBlock) {
  Indices i(b);
  thread = threadNumber;
  rank = rankOfBlock;
  bytes = viewShared(b, shared, 0, {countSharedBytes()}, b.getI8Type());
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, i.constant(0));
  {
    auto first = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(first.thenYield());
    for (int64_t stage = 0; stage < plan.getStages(); ++stage) {
      NVVM::MBarrierInitOp::create(b, fullAt(b, i.constant(stage)), word(b, 1),
                                   Value());
      NVVM::MBarrierInitOp::create(
          b, freeAt(b, i.constant(stage)),
          word(b, plan.countGroups() * plan.countCluster()), Value());
    }
    NVVM::FenceMbarrierInitOp::create(b);
  }
  // No block copies to another one, or arrives there, before its barriers are.
  if (plan.sharesTiles())
    joinCluster(b);
  else
    gpu::BarrierOp::create(b);
}

void WarpgroupTile::end(ImplicitLocOpBuilder &b) {
  // The thread that has copied comes later than the others of its warp.
  if (plan.sharesTiles())
    joinCluster(b, /*isAligned=*/false);
}

Value WarpgroupTile::isWorker(ImplicitLocOpBuilder &b) {
  return isOfFirstGroups(b, thread, plan.countGroups());
}
