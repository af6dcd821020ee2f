//===- WarpgroupMultiply.cpp - How warpgroups multiply tiles --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Kernel/GroupProduct.h"
#include "Kernel/SplitFloats.h"
#include "Matmul/WarpgroupTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Where in a row the low parts of split numbers begin.
static constexpr int64_t kLowByte = kMapRowBytes / 2;
/// The barrier of all warpgroups that multiply; those before it are of one of
/// them each (WarpgroupStore.cpp).
static constexpr int64_t kSplitBarrier = 8;

/// Along K the next products follow each other in a row; across it are rows. Of
/// numbers that are split those of small parts come first.
SmallVector<WarpgroupTile::Step> WarpgroupTile::listSteps() const {
  const int64_t depth = kGroupStepBytes / types.lhsBytes();
  const int64_t rhsStep =
      types.transposed ? kGroupStepBytes : depth * kMapRowBytes;
  SmallVector<Step> steps;
  if (!types.areSplit) {
    for (int64_t step = 0; step < kMapRowBytes / kGroupStepBytes; ++step)
      steps.push_back({step * kGroupStepBytes, step * rhsStep});
    return steps;
  }
  for (const Step parts : {Step{kLowByte, 0}, Step{0, kLowByte}, Step{0, 0}})
    for (int64_t byte = 0; byte < kLowByte; byte += kGroupStepBytes)
      steps.push_back({parts.lhsByte + byte, parts.rhsByte + byte});
  return steps;
}

/// Splits eight numbers, 16-byte pieces 2 `pair` and the one behind it of a row
/// at `row`; all of a warp's are read before any are written.
void WarpgroupTile::splitChunks(ImplicitLocOpBuilder &b, Value row,
                                Value pair) {
  constexpr int64_t kChunk = 16;
  Indices i(b);
  auto pieceAt = [&](Value number) {
    Value swizzle = i.rem(i.div(row, kMapRowBytes), kMapRowBytes / kChunk);
    return byteAt(b, i.add(row, i.mul(i.exclusiveOr(number, swizzle), kChunk)));
  };
  auto floats = VectorType::get({4}, b.getF32Type());
  auto words = VectorType::get({4}, b.getI32Type());
  Value high = LLVM::PoisonOp::create(b, words), low = high;
  for (int64_t half = 0; half < 2; ++half) {
    Value at = pieceAt(i.add(i.mul(pair, 2), half));
    Value read = LLVM::LoadOp::create(b, floats, at, kChunk);
    auto take = [&](int64_t number) -> Value {
      return LLVM::ExtractElementOp::create(b, read, word(b, number));
    };
    for (int64_t two = 0; two < 2; ++two) {
      const SplitPair parts = splitPair(b, take(2 * two), take(2 * two + 1));
      Value place = word(b, 2 * half + two);
      high = LLVM::InsertElementOp::create(b, high, parts.high, place);
      low = LLVM::InsertElementOp::create(b, low, parts.low, place);
    }
  }
  NVVM::SyncWarpOp::create(b, word(b, -1));
  LLVM::StoreOp::create(b, high, pieceAt(pair), kChunk);
  LLVM::StoreOp::create(b, low, pieceAt(i.add(pair, kLowByte / kChunk)),
                        kChunk);
}

/// Splits both tiles of a stage; all warpgroups that multiply do so together.
void WarpgroupTile::splitStage(ImplicitLocOpBuilder &b, Value stage) {
  constexpr int64_t kPairs = kMapRowBytes / 32;
  Indices i(b);
  const int64_t pieces = stageBytes() / kMapRowBytes * kPairs;
  Value begin = i.mul(stage, stageBytes());
  for (int64_t first = 0; first < pieces; first += plan.countWorkers()) {
    Value piece = i.add(thread, first);
    OpBuilder::InsertionGuard guard(b);
    // Rows are whole eights, so that warps go one way.
    if (first + plan.countWorkers() > pieces) {
      auto some = scf::IfOp::create(b, i.less(piece, i.constant(pieces)),
                                    /*withElseRegion=*/false);
      b.setInsertionPoint(some.thenYield());
    }
    Value row = i.add(begin, i.mul(i.div(piece, kPairs), kMapRowBytes));
    splitChunks(b, row, i.rem(piece, kPairs));
  }
  NVVM::FenceProxyOp::create(
      b, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
  NVVM::BarrierOp::create(b, TypeRange(), word(b, kSplitBarrier),
                          word(b, plan.countWorkers()),
                          NVVM::BarrierReductionAttr(), Value());
}

/// The sums with the products of a stage, which are in flight.
SmallVector<Value> WarpgroupTile::multiplyStage(ImplicitLocOpBuilder &b,
                                                Value lhs, Value rhs,
                                                ValueRange sums) {
  auto nameOf = [&](Type type, bool isUnsigned) -> StringRef {
    return types.areSplit ? "bf16" : nameOfElement(type, isUnsigned);
  };
  const GroupProduct product = {nameOf(types.lhs, types.isLhsUnsigned),
                                nameOf(types.rhs, types.isRhsUnsigned),
                                types.sum, plan.getTileN(), types.transposed};
  constexpr int64_t kUnit = 16;
  auto advance = [&](Value descriptor, int64_t bytes) -> Value {
    return arith::AddIOp::create(
        b, descriptor, arith::ConstantIntOp::create(b, bytes / kUnit, 64));
  };
  SmallVector<Value> next(sums);
  fenceRegisters(b, {});
  for (const Step &step : listSteps())
    next = product.start(b, next, advance(lhs, step.lhsByte),
                         advance(rhs, step.rhsByte));
  commitProducts(b);
  return next;
}

void WarpgroupTile::release(ImplicitLocOpBuilder &b, Value condition,
                            Value stage) {
  auto barrier = [&] { return freeAt(b, stage); };
  if (plan.sharesTiles())
    arriveAtAllWhere(b, condition, plan.countCluster(), barrier);
  else
    arriveWhere(b, condition, barrier);
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
    if (types.areSplit)
      splitStage(b, at.stage);
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
