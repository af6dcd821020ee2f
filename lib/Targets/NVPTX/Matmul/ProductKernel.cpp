//===- ProductKernel.cpp - Kernels around a product of matrices -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/ProductKernel.h"

#include "Kernel/Block.h"

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Neighbouring elements of the result that a thread writes.
static constexpr int64_t kWidth = 4;

ProductKernel::ProductKernel(sdx::DenseOpInterface op, ProductTypes types,
                             MatmulPlanAttr plan, KernelBody &body)
    : op(op), types(types), plan(plan), body(body), points(body) {
  points.declare(op->getResult(0));
}

bool ProductKernel::isPossible() {
  if (!hasOperands() || !points.canEvaluate(init()))
    return false;
  const int64_t rank = cast<RankedTensorType>(init().getType()).getRank();
  return llvm::all_of(body.getOutputs(), [&](const KernelBody::Output &out) {
    return cast<MemRefType>(out.memref.getType()).getRank() == rank &&
           points.canEvaluate(out.tensor);
  });
}

void ProductKernel::emit(ImplicitLocOpBuilder &b) {
  Indices i(b);
  sizes = findSizes(b);
  Value rows = i.ceilDiv(sizes.m, plan.getTileM());
  Value cols = i.ceilDiv(sizes.n, plan.getTileN());
  Value steps = i.ceilDiv(sizes.k, plan.getTileK());
  Value blocks = i.mul(sizes.pairs, i.mul(rows, cols));
  OpBuilder::InsertionGuard guard(b);
  scf::ParallelOp loop =
      startBlocks(b, blocks, plan.countThreads(), op.getKernelName());
  Value id = loop.getInductionVars()[0];
  Value tileCol = i.rem(id, cols);
  id = i.div(id, cols);
  pair = i.div(id, rows);
  row0 = i.mul(i.rem(id, rows), plan.getTileM());
  col0 = i.mul(tileCol, plan.getTileN());
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  tile = plan.isMma() ? createMmaTile(types, plan, thread)
                      : createFmaTile(types, plan, thread);
  emitProduct(b, steps);
  emitResults(b);
}

/// Of a row of the sums in shared memory: a gap keeps rows out of each other's
/// banks.
int64_t ProductKernel::sumCols() const { return plan.getTileN() + kWidth; }

/// Sums in registers, then in shared memory.
void ProductKernel::emitProduct(ImplicitLocOpBuilder &b, Value steps) {
  Indices i(b);
  const int64_t stages = plan.getStages();
  const TileLayout lhsLayout = tile->lhsLayout(), rhsLayout = tile->rhsLayout();
  const int64_t lhsCount = lhsLayout.countElements();
  const int64_t rhsCount = rhsLayout.countElements();
  const int64_t lhsBytes = stages * lhsLayout.countBytes();
  const int64_t rhsBytes = stages * rhsLayout.countBytes();
  const int64_t sumBytes =
      plan.getTileM() * sumCols() * (types.sum.getIntOrFloatBitWidth() / 8);
  Value shared = allocateShared(b, std::max(lhsBytes + rhsBytes, sumBytes));
  Value sharedLhs = viewShared(b, shared, 0, {stages * lhsCount}, types.lhs);
  Value sharedRhs =
      viewShared(b, shared, lhsBytes, {stages * rhsCount}, types.rhs);
  TileCopy copyLhs(findLhs(b, pair), lhsLayout, thread, plan.countThreads());
  TileCopy copyRhs(findRhs(b, pair), rhsLayout, thread, plan.countThreads());
  auto copy = [&](Value step, Value stage) {
    Value k = i.mul(step, plan.getTileK());
    copyLhs.emit(b, row0, k, sharedLhs, i.mul(stage, lhsCount));
    copyRhs.emit(b, types.transposed ? col0 : k, types.transposed ? k : col0,
                 sharedRhs, i.mul(stage, rhsCount));
  };
  for (int64_t stage = 0; stage < stages - 1; ++stage) {
    copy(i.constant(stage), i.constant(stage));
    NVVM::CpAsyncCommitGroupOp::create(b);
  }
  auto loop = scf::ForOp::create(b, i.constant(0), steps, i.constant(1),
                                 tile->zeros(b));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    NVVM::CpAsyncWaitGroupOp::create(b, stages - 2);
    gpu::BarrierOp::create(b);
    Value next = i.add(loop.getInductionVar(), stages - 1);
    auto more =
        scf::IfOp::create(b, i.less(next, steps), /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPoint(more.thenYield());
      copy(next, i.rem(next, stages));
    }
    NVVM::CpAsyncCommitGroupOp::create(b);
    Value stage = i.rem(loop.getInductionVar(), stages);
    SmallVector<Value> sums =
        tile->multiply(b, sharedLhs, i.mul(stage, lhsCount), sharedRhs,
                       i.mul(stage, rhsCount), loop.getRegionIterArgs());
    scf::YieldOp::create(b, sums);
  }
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  gpu::BarrierOp::create(b);
  sumTile = viewShared(b, shared, 0, {plan.getTileM(), sumCols()}, types.sum);
  tile->store(b, loop.getResults(), sumTile);
  gpu::BarrierOp::create(b);
}

/// What follows the product, on neighbours at a time.
void ProductKernel::emitResults(ImplicitLocOpBuilder &b) {
  Indices i(b);
  const int64_t piecesOfRow = plan.getTileN() / kWidth;
  Value pieces = i.constant(plan.getTileM() * piecesOfRow);
  auto loop =
      scf::ForOp::create(b, thread, pieces, i.constant(plan.countThreads()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value r = i.div(loop.getInductionVar(), piecesOfRow);
  Value c = i.mul(i.rem(loop.getInductionVar(), piecesOfRow), kWidth);
  Value m = i.add(row0, r), n = i.add(col0, c);
  const int64_t width = countNeighbours() % kWidth == 0 ? kWidth : 1;
  for (int64_t j = 0; j < kWidth; j += width) {
    Value column = i.add(n, j);
    Value inside = i.both(i.less(m, sizes.m), i.less(column, sizes.n));
    auto some = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPoint(some.thenYield());
    emitPoints(b, r, i.add(c, j), m, column, width);
  }
}

/// All is read before anything is written.
void ProductKernel::emitPoints(ImplicitLocOpBuilder &b, Value r, Value c,
                               Value m, Value n, int64_t width) {
  Indices i(b);
  SmallVector<SmallVector<Value>> indices, values;
  SmallVector<Value> first = findResult(b, pair, m, n);
  for (int64_t j = 0; j < width; ++j) {
    SmallVector<Value> &index = indices.emplace_back(first);
    index.back() = i.add(index.back(), j);
    PointEvaluator::Point point;
    Value sum = memref::LoadOp::create(b, sumTile, ValueRange{r, i.add(c, j)});
    if (!isZeroFilled(init())) {
      Value start = points.evaluate(b, init(), index, point);
      sum = isa<FloatType>(types.sum)
                ? arith::AddFOp::create(b, sum, start).getResult()
                : arith::AddIOp::create(b, sum, start).getResult();
    }
    point.add(op->getResult(0), index, sum);
    SmallVector<Value> &results = values.emplace_back();
    for (const KernelBody::Output &output : body.getOutputs())
      results.push_back(points.evaluate(b, output.tensor, index, point));
  }
  for (auto [number, output] : llvm::enumerate(body.getOutputs()))
    for (auto [index, results] : llvm::zip(indices, values))
      memref::StoreOp::create(b, results[number], output.memref, index);
}

FailureOr<bool> nv::emitProductKernel(func::FuncOp func, ProductKernel &kernel,
                                      KernelBody &body) {
  if (!kernel.isPossible())
    return false;
  if (failed(body.replaceDims()))
    return failure();
  ImplicitLocOpBuilder b(func.getLoc(), func.getBody().front().getTerminator());
  kernel.emit(b);
  body.eraseTensors();
  return true;
}
