//===- WarpgroupMultiply.cpp - How warpgroups multiply tiles --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Matmul/WarpgroupTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static NVVM::WGMMATypes typeOf(Type type, bool isUnsigned) {
  if (type.isF16())
    return NVVM::WGMMATypes::f16;
  if (type.isBF16())
    return NVVM::WGMMATypes::bf16;
  if (type.isF32())
    return NVVM::WGMMATypes::tf32;
  if (isa<Float8E4M3FNType>(type))
    return NVVM::WGMMATypes::e4m3;
  if (isa<Float8E5M2Type>(type))
    return NVVM::WGMMATypes::e5m2;
  return isUnsigned ? NVVM::WGMMATypes::u8 : NVVM::WGMMATypes::s8;
}

Value WarpgroupTile::multiplyStage(ImplicitLocOpBuilder &b, Value lhs,
                                   Value rhs, Value sums) {
  MLIRContext *context = b.getContext();
  const int64_t depth = kGroupStepBytes / types.lhsBytes();
  auto shape =
      NVVM::MMAShapeAttr::get(context, kGroupRows, plan.getTileN(), depth);
  // Along K the next products follow each other in a row; across it are rows.
  constexpr int64_t kUnit = 16;
  const int64_t lhsStep = kGroupStepBytes / kUnit;
  const int64_t rhsStep =
      types.transposed ? lhsStep : depth * kMapRowBytes / kUnit;
  NVVM::WgmmaFenceAlignedOp::create(b);
  for (int64_t step = 0; step < kMapRowBytes / kGroupStepBytes; ++step) {
    auto advance = [&](Value descriptor, int64_t units) -> Value {
      return arith::AddIOp::create(
          b, descriptor, arith::ConstantIntOp::create(b, step * units, 64));
    };
    sums = NVVM::WgmmaMmaAsyncOp::create(
        b, sums.getType(), sums, advance(lhs, lhsStep), advance(rhs, rhsStep),
        shape, typeOf(types.lhs, types.isLhsUnsigned),
        typeOf(types.rhs, types.isRhsUnsigned),
        types.sum.isF32() ? NVVM::WGMMATypes::f32 : NVVM::WGMMATypes::s32,
        NVVM::WGMMAScaleOut::one, NVVM::WGMMAScaleIn::one,
        NVVM::WGMMAScaleIn::one, NVVM::MMALayout::row,
        types.transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
        NVVM::MMAIntOverflowAttr());
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return sums;
}

void WarpgroupTile::release(ImplicitLocOpBuilder &b, Value condition,
                            Value stage) {
  arriveWhere(b, condition, [&] { return freeAt(b, stage); });
}

Ring WarpgroupTile::beginProducts(ImplicitLocOpBuilder &b) {
  return {Indices(b).constant(0), word(b, 0)};
}

Ring WarpgroupTile::multiply(ImplicitLocOpBuilder &b, Value count, Ring ring,
                             Value &sums) {
  Indices i(b);
  Value group = i.div(thread, MatmulPlanAttr::kWarpgroup);
  Value lhs = describeTile(b, bytes, i.mul(group, kGroupRows * kMapRowBytes),
                           std::nullopt);
  Value rhs = describeTile(b, bytes, i.constant(lhsBytes()),
                           types.transposed ? std::nullopt
                                            : std::optional(plan.getTileK()));
  Value isLeader = isFirstOfGroup(b, thread);
  SmallVector<Type> parts(plan.getTileN() / 2, types.sum);
  Value zeros = LLVM::ZeroOp::create(
      b, LLVM::LLVMStructType::getLiteral(b.getContext(), parts));
  auto loop = scf::ForOp::create(
      b, i.constant(0), count, i.constant(1),
      ValueRange{ring.stage, ring.phase, i.constant(0), zeros});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Ring at = {loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
    Value before = loop.getRegionIterArg(2);
    waitFor(b, fullAt(b, at.stage), at.phase);
    Value offset = b.createOrFold<arith::IndexCastOp>(
        b.getI64Type(), i.mul(at.stage, stageBytes() / 16));
    Value next = multiplyStage(b, arith::AddIOp::create(b, lhs, offset),
                               arith::AddIOp::create(b, rhs, offset),
                               loop.getRegionIterArg(3));
    // While these are on their way, those before are done: their stage is free.
    NVVM::WgmmaWaitGroupSyncOp::create(b, 1);
    Value hasBefore = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne, loop.getInductionVar(), i.constant(0));
    release(b, i.both(hasBefore, isLeader), before);
    Ring after = at.next(b, plan.getStages());
    scf::YieldOp::create(b,
                         ValueRange{after.stage, after.phase, at.stage, next});
  }
  NVVM::WgmmaWaitGroupSyncOp::create(b, 0);
  release(b, i.both(i.less(i.constant(0), count), isLeader), loop.getResult(2));
  sums = loop.getResult(3);
  return {loop.getResult(0), loop.getResult(1)};
}
