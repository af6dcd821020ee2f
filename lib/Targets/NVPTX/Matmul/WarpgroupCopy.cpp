//===- WarpgroupCopy.cpp - How a warpgroup has tiles copied ---------------===//
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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

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
      b, Type(), full, asWord(b, stageBytes()), NVVM::MemScopeKind::CTA,
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

Value WarpgroupTile::isCopier(ImplicitLocOpBuilder &b) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread,
                               Indices(b).constant(plan.countWorkers()));
}

WarpgroupTile::Ring WarpgroupTile::beginCopies(ImplicitLocOpBuilder &b) {
  // Free stages are those of the phase before the first.
  return {Indices(b).constant(0), asWord(b, 1)};
}

WarpgroupTile::Ring WarpgroupTile::copy(ImplicitLocOpBuilder &b,
                                        const MappedSource &lhs,
                                        const MappedSource &rhs, Value row,
                                        Value col, Value from, Value count,
                                        Ring ring) {
  Indices i(b);
  auto loop = scf::ForOp::create(b, i.constant(0), count, i.constant(1),
                                 ValueRange{ring.stage, ring.phase});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Ring at = {loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
  Value step = i.add(from, loop.getInductionVar());
  copyStage(b, lhs, rhs, row, col, i.mul(step, plan.getTileK()), at);
  Ring after = next(b, at);
  scf::YieldOp::create(b, ValueRange{after.stage, after.phase});
  return {loop.getResult(0), loop.getResult(1)};
}
