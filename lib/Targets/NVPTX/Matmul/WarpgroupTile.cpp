//===- WarpgroupTile.cpp - How warpgroups multiply tiles ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/WarpgroupTile.h"

#include "Kernel/Block.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Bytes along K that an instruction multiplies, and rows that it has.
static constexpr int64_t kStepBytes = 32, kGroupRows = 64;
static constexpr int64_t kBarrierBytes = 8;
/// Nanoseconds that a thread sleeps at most before it looks at a barrier again.
static constexpr int64_t kPatience = 10'000'000;
/// The barrier of the warpgroups that multiply.
static constexpr int64_t kWorkers = 1;

static int64_t warpgroups(MatmulPlanAttr plan) {
  return plan.getTileM() / kGroupRows;
}

static Value word(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

static Value asWord(ImplicitLocOpBuilder &b, Value index) {
  return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), index);
}

MappedSource MappedSource::matrix(ImplicitLocOpBuilder &b, Value memref,
                                  ArrayRef<Value> sizes, ArrayRef<int64_t> box,
                                  std::function<Value()> findPair) {
  SmallVector<int64_t> boxSizes(box);
  boxSizes.resize(sizes.size(), 1);
  MappedSource source;
  source.map = TensorMapOp::create(b, memref, sizes, boxSizes, kMapRowBytes,
                                   getElementTypeOrSelf(memref).isF32(),
                                   /*lower=*/{}, /*upper=*/{}, /*steps=*/{});
  source.find = [findPair](ImplicitLocOpBuilder &, Value row,
                           Value col) -> Place {
    SmallVector<Value> at = {col, row};
    if (findPair)
      at.push_back(findPair());
    return {at, {}};
  };
  return source;
}

WarpgroupTile::WarpgroupTile(const ProductTypes &types, MatmulPlanAttr plan)
    : types(types), plan(plan) {}

int64_t WarpgroupTile::tileBytes() const {
  const int64_t sums =
      plan.getTileM() * sumCols() * (types.sum.getIntOrFloatBitWidth() / 8);
  return std::max(plan.getStages() * stageBytes(), sums);
}

int64_t WarpgroupTile::countSharedBytes() const {
  return tileBytes() + 2 * plan.getStages() * kBarrierBytes;
}

//===----------------------------------------------------------------------===//
// Shared memory and barriers
//===----------------------------------------------------------------------===//

Value WarpgroupTile::byteAt(ImplicitLocOpBuilder &b, Value byte) {
  return addressOf(b, bytes, byte);
}

Value WarpgroupTile::fullAt(ImplicitLocOpBuilder &b, Value stage) {
  Indices i(b);
  return byteAt(b, i.add(i.mul(stage, kBarrierBytes), tileBytes()));
}

Value WarpgroupTile::freeAt(ImplicitLocOpBuilder &b, Value stage) {
  Indices i(b);
  return byteAt(b, i.add(i.mul(stage, kBarrierBytes),
                         tileBytes() + plan.getStages() * kBarrierBytes));
}

void WarpgroupTile::waitFor(ImplicitLocOpBuilder &b, Value barrier,
                            Value phase) {
  NVVM::MBarrierTryWaitParityOp::create(b, barrier, phase, word(b, kPatience));
}

WarpgroupTile::Ring WarpgroupTile::next(ImplicitLocOpBuilder &b, Ring ring) {
  Indices i(b);
  Value stage = i.add(ring.stage, 1);
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, stage,
                                       i.constant(plan.getStages()));
  Value other = arith::XOrIOp::create(b, ring.phase, word(b, 1));
  return {arith::SelectOp::create(b, isLast, i.constant(0), stage),
          arith::SelectOp::create(b, isLast, other, ring.phase)};
}

void WarpgroupTile::begin(ImplicitLocOpBuilder &b, Value sharedBytes,
                          Value threadNumber) {
  Indices i(b);
  shared = sharedBytes;
  thread = threadNumber;
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
      NVVM::MBarrierInitOp::create(b, freeAt(b, i.constant(stage)),
                                   word(b, warpgroups(plan)), Value());
    }
    NVVM::FenceMbarrierInitOp::create(b);
  }
  gpu::BarrierOp::create(b);
}

Value WarpgroupTile::isWorker(ImplicitLocOpBuilder &b) {
  Indices i(b);
  // What the first lane of a warp says: all of it goes the same way.
  Value group = i.div(thread, MatmulPlanAttr::kWarpgroup);
  Value same = gpu::ShuffleOp::create(b, asWord(b, group), word(b, 0),
                                      word(b, 32), gpu::ShuffleMode::IDX)
                   .getShuffleResult();
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, same,
                               word(b, warpgroups(plan)));
}

void WarpgroupTile::joinWorkers(ImplicitLocOpBuilder &b) {
  NVVM::BarrierOp::create(b, TypeRange(), word(b, kWorkers),
                          word(b, plan.countWorkers()),
                          NVVM::BarrierReductionAttr(), Value());
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void WarpgroupTile::copyBox(ImplicitLocOpBuilder &b, const MappedSource &source,
                            Value row, Value col, Value byte, Value barrier) {
  const MappedSource::Place place = source.find(b, row, col);
  SmallVector<Value> coordinates, offsets;
  for (Value coordinate : place.coordinates)
    coordinates.push_back(asWord(b, coordinate));
  for (Value offset : place.offsets)
    offsets.push_back(
        b.createOrFold<arith::IndexCastOp>(b.getI16Type(), offset));
  auto cluster = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  Value to = LLVM::AddrSpaceCastOp::create(b, cluster, byteAt(b, byte));
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      b, to, source.map, coordinates, barrier, offsets,
      /*multicastMask=*/Value(), /*l2CacheHint=*/Value(),
      offsets.empty() ? NVVM::TMALoadMode::TILE : NVVM::TMALoadMode::IM2COL,
      /*isCTAOnly=*/false, NVVM::CTAGroupKindAttr(),
      /*predicate=*/Value());
}

/// The tiles that begin at `k`, where the ring is.
void WarpgroupTile::copyStage(ImplicitLocOpBuilder &b, const MappedSource &lhs,
                              const MappedSource &rhs, Value row, Value col,
                              Value k, Ring ring) {
  Indices i(b);
  waitFor(b, freeAt(b, ring.stage), ring.phase);
  Value full = fullAt(b, ring.stage);
  NVVM::MBarrierArriveExpectTxOp::create(
      b, Type(), full, word(b, stageBytes()), NVVM::MemScopeKind::CTA,
      /*relaxed=*/false, /*predicate=*/Value());
  Value at = i.mul(ring.stage, stageBytes());
  copyBox(b, lhs, row, k, at, full);
  at = i.add(at, lhsBytes());
  if (types.transposed)
    return copyBox(b, rhs, col, k, at, full);
  for (int64_t c = 0; c < plan.getTileN(); c += boxCols())
    copyBox(b, rhs, k, i.add(col, c),
            i.add(at, c * rhsBoxRows() * types.rhsBytes()), full);
}

void WarpgroupTile::copy(ImplicitLocOpBuilder &b, const MappedSource &lhs,
                         const MappedSource &rhs, Value row, Value col,
                         Value from, Value count) {
  Indices i(b);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread,
                                        i.constant(plan.countWorkers()));
  auto first = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(first.thenYield());
  // Free stages are those of the phase before the first.
  auto loop = scf::ForOp::create(b, i.constant(0), count, i.constant(1),
                                 ValueRange{i.constant(0), word(b, 1)});
  b.setInsertionPointToStart(loop.getBody());
  Ring ring = {loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
  Value step = i.add(from, loop.getInductionVar());
  copyStage(b, lhs, rhs, row, col, i.mul(step, plan.getTileK()), ring);
  Ring after = next(b, ring);
  scf::YieldOp::create(b, ValueRange{after.stage, after.phase});
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The descriptor of a tile in shared memory (PTX ISA, "Matrix descriptor
/// format"): where it begins, how far its 8x8 cores are from each other along
/// and across rows, all in units of 16 bytes, and the swizzle of 128 bytes.
Value WarpgroupTile::describe(ImplicitLocOpBuilder &b, Value byte,
                              bool isAlongK) {
  constexpr uint64_t kUnit = 16, kSwizzle128 = uint64_t(1) << 62;
  // Of eight rows; from 64 columns to the next where these go across K.
  constexpr uint64_t kEightRows = 8 * kMapRowBytes / kUnit;
  const uint64_t columns =
      isAlongK ? 1 : plan.getTileK() * kMapRowBytes / kUnit;
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, bytes);
  Value address = b.createOrFold<arith::IndexCastOp>(
      b.getI64Type(), Indices(b).add(base, byte));
  auto constant = [&](uint64_t value) -> Value {
    return arith::ConstantIntOp::create(b, static_cast<int64_t>(value), 64);
  };
  Value start = arith::AndIOp::create(
      b, arith::ShRUIOp::create(b, address, constant(4)), constant(0x3fff));
  return arith::OrIOp::create(
      b, start, constant(columns << 16 | kEightRows << 32 | kSwizzle128));
}

static NVVM::WGMMATypes typeOf(Type type) {
  if (type.isF16())
    return NVVM::WGMMATypes::f16;
  return type.isBF16() ? NVVM::WGMMATypes::bf16 : NVVM::WGMMATypes::tf32;
}

Value WarpgroupTile::multiplyStage(ImplicitLocOpBuilder &b, Value lhs,
                                   Value rhs, Value sums) {
  MLIRContext *context = b.getContext();
  const int64_t depth = kStepBytes / types.lhsBytes();
  auto shape =
      NVVM::MMAShapeAttr::get(context, kGroupRows, plan.getTileN(), depth);
  // Along K the next products follow each other in a row; across it are rows.
  constexpr int64_t kUnit = 16;
  const int64_t lhsStep = kStepBytes / kUnit;
  const int64_t rhsStep =
      types.transposed ? lhsStep : depth * kMapRowBytes / kUnit;
  NVVM::WgmmaFenceAlignedOp::create(b);
  for (int64_t step = 0; step < kMapRowBytes / kStepBytes; ++step) {
    auto advance = [&](Value descriptor, int64_t units) -> Value {
      return arith::AddIOp::create(
          b, descriptor, arith::ConstantIntOp::create(b, step * units, 64));
    };
    sums = NVVM::WgmmaMmaAsyncOp::create(
        b, sums.getType(), sums, advance(lhs, lhsStep), advance(rhs, rhsStep),
        shape, typeOf(types.lhs), typeOf(types.rhs), NVVM::WGMMATypes::f32,
        NVVM::WGMMAScaleOut::one, NVVM::WGMMAScaleIn::one,
        NVVM::WGMMAScaleIn::one, NVVM::MMALayout::row,
        types.transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
        NVVM::MMAIntOverflowAttr());
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return sums;
}

Value WarpgroupTile::multiply(ImplicitLocOpBuilder &b, Value count) {
  Indices i(b);
  Value group = i.div(thread, MatmulPlanAttr::kWarpgroup);
  Value lhs = describe(b, i.mul(group, kGroupRows * kMapRowBytes), true);
  Value rhs = describe(b, i.constant(lhsBytes()), types.transposed);
  Value isLeader = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq, i.rem(thread, MatmulPlanAttr::kWarpgroup),
      i.constant(0));
  SmallVector<Type> parts(plan.getTileN() / 2, types.sum);
  Value zeros = LLVM::ZeroOp::create(
      b, LLVM::LLVMStructType::getLiteral(b.getContext(), parts));
  auto loop = scf::ForOp::create(
      b, i.constant(0), count, i.constant(1),
      ValueRange{i.constant(0), word(b, 0), i.constant(0), zeros});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Ring ring = {loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
    Value before = loop.getRegionIterArg(2);
    waitFor(b, fullAt(b, ring.stage), ring.phase);
    Value offset = b.createOrFold<arith::IndexCastOp>(
        b.getI64Type(), i.mul(ring.stage, stageBytes() / 16));
    Value sums = multiplyStage(b, arith::AddIOp::create(b, lhs, offset),
                               arith::AddIOp::create(b, rhs, offset),
                               loop.getRegionIterArg(3));
    // While these are on their way, those before are done: their stage is free.
    NVVM::WgmmaWaitGroupSyncOp::create(b, 1);
    Value hasBefore = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne, loop.getInductionVar(), i.constant(0));
    auto release = scf::IfOp::create(b, i.both(hasBefore, isLeader),
                                     /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPoint(release.thenYield());
      NVVM::MBarrierArriveOp::create(b, b.getI64Type(), freeAt(b, before),
                                     Value());
    }
    Ring after = next(b, ring);
    scf::YieldOp::create(
        b, ValueRange{after.stage, after.phase, ring.stage, sums});
  }
  NVVM::WgmmaWaitGroupSyncOp::create(b, 0);
  // Sums take the place of tiles, which all are done with.
  joinWorkers(b);
  Value tile =
      viewShared(b, shared, 0, {plan.getTileM(), sumCols()}, types.sum);
  storeSums(b, loop.getResult(3), tile);
  joinWorkers(b);
  return tile;
}

/// A thread has two neighbours of each eight columns, in two of a warp's rows.
void WarpgroupTile::storeSums(ImplicitLocOpBuilder &b, Value sums, Value tile) {
  Indices i(b);
  Value warp = i.div(thread, 32), lane = i.rem(thread, 32);
  Value row0 = i.add(i.mul(warp, 16), i.div(lane, 4));
  Value col0 = i.mul(i.rem(lane, 4), 2);
  auto pair = VectorType::get({2}, types.sum);
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t piece = 0; piece < plan.getTileN() / 8; ++piece) {
      Value neighbours = LLVM::PoisonOp::create(b, pair);
      for (int32_t j = 0; j < 2; ++j)
        neighbours = LLVM::InsertElementOp::create(
            b, neighbours,
            LLVM::ExtractValueOp::create(b, sums, 4 * piece + 2 * half + j),
            word(b, j));
      Value row = i.add(row0, half * 8), col = i.add(col0, piece * 8);
      Value at = i.add(i.mul(row, sumCols()), col);
      LLVM::StoreOp::create(b, neighbours, addressOf(b, tile, at),
                            /*alignment=*/8);
    }
}
