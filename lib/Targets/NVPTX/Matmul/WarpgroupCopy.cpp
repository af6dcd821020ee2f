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

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// The tiles that begin at `k`, where the ring is. A barrier counts the bytes
/// of all blocks' copies.
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
  Value lhsAt = at;
  if (plan.getClusterN() > 1) {
    Value first = i.mul(rank, lhsBoxRows());
    row = i.add(row, first);
    lhsAt = i.add(at, i.mul(first, kMapRowBytes));
  }
  copyBox(b, lhs, row, k, byteAt(b, lhsAt), full, plan.getClusterN());
  copyRhs(b, rhs, col, k, i.add(at, lhsBytes()), full);
}

/// The right-hand side's tile at byte `at`, or the part that the block copies:
/// rows of a box along K, boxes across it.
void WarpgroupTile::copyRhs(ImplicitLocOpBuilder &b, const MappedSource &rhs,
                            Value col, Value k, Value at, Value full) {
  Indices i(b);
  const int64_t parts = plan.getClusterM();
  const int64_t columns = plan.getTileN() / parts;
  if (parts > 1) {
    Value first = i.mul(rank, columns);
    col = i.add(col, first);
    // A column has as many bytes in either order.
    at = i.add(at, i.mul(first, kMapRowBytes));
  }
  if (types.transposed)
    return copyBox(b, rhs, col, k, byteAt(b, at), full, parts);
  for (int64_t c = 0; c < columns; c += boxCols())
    copyBox(b, rhs, k, i.add(col, c),
            byteAt(b, i.add(at, c * rhsBoxRows() * types.rhsBytes())), full,
            parts);
}

Value WarpgroupTile::isCopier(ImplicitLocOpBuilder &b) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread,
                               Indices(b).constant(plan.countWorkers()));
}

Ring WarpgroupTile::beginCopies(ImplicitLocOpBuilder &b) {
  // Free stages are those of the phase before the first.
  return {Indices(b).constant(0), word(b, 1)};
}

Ring WarpgroupTile::copy(ImplicitLocOpBuilder &b, const MappedSource &lhs,
                         const MappedSource &rhs, Value row, Value col,
                         Value from, Value count, Ring ring) {
  Indices i(b);
  auto loop = scf::ForOp::create(b, i.constant(0), count, i.constant(1),
                                 ValueRange{ring.stage, ring.phase});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Ring at = {loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
  Value step = i.add(from, loop.getInductionVar());
  copyStage(b, lhs, rhs, row, col, i.mul(step, plan.getTileK()), at);
  Ring after = at.next(b, plan.getStages());
  scf::YieldOp::create(b, ValueRange{after.stage, after.phase});
  return {loop.getResult(0), loop.getResult(1)};
}
