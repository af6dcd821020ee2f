//===- ProductKernel.cpp - Kernels around a product of matrices -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/ProductKernel.h"

#include "Kernel/Block.h"
#include "Matmul/MatmulPlan.h"

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

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
  emitBlocks(b, plan.getSplit() > 1);
  if (!partials)
    return;
  emitSums(b);
  freeSums(b);
}

void ProductKernel::emitSumsOfParts(ImplicitLocOpBuilder &b) {
  emitBlocks(b, /*hasPartials=*/true);
}

void ProductKernel::freeSums(ImplicitLocOpBuilder &b) {
  memref::DeallocOp::create(b, partials);
}

void ProductKernel::emitBlocks(ImplicitLocOpBuilder &b, bool hasPartials) {
  Indices i(b);
  sizes = findSizes(b);
  rows = i.ceilDiv(sizes.m, rowsOfItem());
  cols = i.ceilDiv(sizes.n, colsOfItem());
  steps = i.ceilDiv(sizes.k, plan.getTileK());
  items = i.mul(i.mul(sizes.pairs, i.mul(rows, cols)), plan.getSplit());
  if (hasPartials)
    partials = allocatePartials(b);
  Value blocks = items;
  if (plan.isWgmma())
    blocks = prepareWarpgroups(b);
  if (isWanted)
    blocks = b.createOrFold<arith::SelectOp>(isWanted, blocks, i.constant(0));
  OpBuilder::InsertionGuard guard(b);
  scf::ParallelOp loop =
      startBlocks(b, blocks, plan.countThreads(), op.getKernelName());
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  if (plan.isWgmma())
    emitWarpgroups(b, loop);
  else
    emitBlock(b, loop.getInductionVars()[0]);
}

int64_t ProductKernel::rowsOfItem() const {
  return plan.getTileM() * (plan.sharesTiles() ? plan.getClusterM() : 1);
}

int64_t ProductKernel::colsOfItem() const {
  return plan.getTileN() * (plan.sharesTiles() ? plan.getClusterN() : 1);
}

/// The blocks of a cluster have the tiles of some rows, all of their columns,
/// and leave the sums in shared memory. Of these rows each computes every so
/// many-th.
void ProductKernel::emitClusters(ImplicitLocOpBuilder &b, EmitRows emitRows) {
  Indices i(b);
  const int64_t cluster = plan.countCluster();
  sizes = findSizes(b);
  rows = i.ceilDiv(sizes.m, plan.getTileM());
  cols = i.ceilDiv(sizes.n, plan.getTileN());
  steps = i.ceilDiv(sizes.k, plan.getTileK());
  OpBuilder::InsertionGuard guard(b);
  scf::ParallelOp loop = startBlocks(b, i.mul(rows, cluster),
                                     plan.countThreads(), op.getKernelName());
  loop->setAttr(kClusterAttr, b.getI64IntegerAttr(cluster));
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value number = loop.getInductionVars()[0];
  const Item item = findItem(b, number);
  tile = createTile(types, plan, thread);
  emitProduct(b, item.from, item.to);
  joinCluster(b);
  emitRows(thread, i.add(row0, i.rem(number, cluster)), cluster,
           llvm::divideCeil(plan.getTileM(), cluster),
           arith::MinSIOp::create(b, sizes.m, i.add(row0, plan.getTileM())));
  // A block's memory is there until the others have read it.
  joinCluster(b);
}

Value ProductKernel::loadSum(ImplicitLocOpBuilder &b, ValueRange index) {
  Indices i(b);
  Value r = b.createOrFold<arith::SubIOp>(index[0], row0);
  Value c = i.rem(index[1], plan.getTileN());
  Value at = i.add(i.mul(r, sumCols()), c);
  Value first = i.mul(i.div(index[1], plan.getTileN()), plan.getSplit());
  Value total;
  for (int64_t part = 0; part < plan.getSplit(); ++part) {
    Value sum = loadFromCluster(b, sumTile, at, i.add(first, part));
    total = total ? addSums(b, total, sum) : sum;
  }
  PointEvaluator::Point point;
  return finishSum(b, total, index[1], index, point);
}

/// Which tile of which pair has this number, or of the tiles of a cluster which
/// is the block's. Large tiles go down some rows before the next column, so
/// that those of blocks that run at a time are few: they stay in the L2 cache.
void ProductKernel::findTile(ImplicitLocOpBuilder &b, Value number) {
  constexpr int64_t kRowsTogether = 8;
  const int64_t rowsTogether = kRowsTogether * plan.getTileM() / rowsOfItem();
  Indices i(b);
  Value tileRow, tileCol;
  if (plan.isWgmma()) {
    Value tiles = i.mul(rows, cols);
    pair = i.div(number, tiles);
    number = i.rem(number, tiles);
    Value ofGroup = i.mul(cols, rowsTogether);
    Value first = i.mul(i.div(number, ofGroup), rowsTogether);
    Value rest = i.rem(number, ofGroup);
    Value together =
        arith::MinSIOp::create(b, i.constant(rowsTogether),
                               b.createOrFold<arith::SubIOp>(rows, first));
    tileRow = i.add(first, i.rem(rest, together));
    tileCol = i.div(rest, together);
  } else {
    tileCol = i.rem(number, cols);
    number = i.div(number, cols);
    pair = i.div(number, rows);
    tileRow = i.rem(number, rows);
  }
  row0 = i.mul(tileRow, rowsOfItem());
  col0 = i.mul(tileCol, colsOfItem());
  if (!plan.sharesTiles())
    return;
  // A tile may lie beyond the matrix: there is nothing to read or store then.
  if (plan.getClusterM() > 1)
    row0 = i.add(row0, i.mul(rank, plan.getTileM()));
  else
    col0 = i.add(col0, i.mul(rank, plan.getTileN()));
}

/// What item number `number` is, a tile or one of the parts of one.
ProductKernel::Item ProductKernel::findItem(ImplicitLocOpBuilder &b,
                                            Value number) {
  Indices i(b);
  Item item;
  item.part = i.rem(number, plan.getSplit());
  findTile(b, i.div(number, plan.getSplit()));
  item.from = i.constant(0);
  item.to = steps;
  if (plan.getSplit() > 1) {
    Value stepsOfPart = i.ceilDiv(steps, plan.getSplit());
    item.from = i.mul(item.part, stepsOfPart);
    item.to = arith::MinSIOp::create(b, steps, i.add(item.from, stepsOfPart));
  }
  return item;
}

/// The code of a block.
void ProductKernel::emitBlock(ImplicitLocOpBuilder &b, Value number) {
  const Item item = findItem(b, number);
  tile = createTile(types, plan, thread);
  emitProduct(b, item.from, item.to);
  if (partials)
    storePartials(b, item.part);
  else
    emitResults(b);
}

Value ProductKernel::allocatePartials(ImplicitLocOpBuilder &b) {
  SmallVector<int64_t> shape = {plan.getSplit()};
  SmallVector<Value> open;
  for (Value size : {sizes.pairs, sizes.m, sizes.n}) {
    std::optional<int64_t> known = getConstantIntValue(size);
    shape.push_back(known.value_or(ShapedType::kDynamic));
    if (!known)
      open.push_back(size);
  }
  Attribute space = cast<MemRefType>(body.getOutputs().front().memref.getType())
                        .getMemorySpace();
  return memref::AllocOp::create(
      b, MemRefType::get(shape, types.sum, MemRefLayoutAttrInterface(), space),
      open);
}

int64_t ProductKernel::sumCols() const { return plan.getTileN() + kSumGap; }

/// So many sums of a row, from any multiple of that number on, follow each
/// other in the result and are there or not together.
int64_t ProductKernel::width() const {
  const int64_t row =
      cast<RankedTensorType>(init().getType()).getShape().back();
  return !ShapedType::isDynamic(row) && row % kStoredSums == 0 ? kStoredSums
                                                               : 1;
}

/// Shared memory for the operands' tiles, and later for the sums; all of it.
Value ProductKernel::allocateStages(ImplicitLocOpBuilder &b, Stages &stages) {
  const TileLayout lhsLayout = tile->lhsLayout(), rhsLayout = tile->rhsLayout();
  const int64_t count = plan.getStages();
  stages.lhsCount = lhsLayout.countElements();
  stages.rhsCount = rhsLayout.countElements();
  Value shared = allocateShared(b, countSharedBytes(types, plan));
  stages.lhs = viewShared(b, shared, 0, {count * stages.lhsCount}, types.lhs);
  stages.rhs = viewShared(b, shared, count * lhsLayout.countBytes(),
                          {count * stages.rhsCount}, types.rhs);
  return shared;
}

void ProductKernel::copyLhs(ImplicitLocOpBuilder &b, const Stages &stages,
                            Value step, Value stage) {
  Indices i(b);
  TileCopy(findLhs(b, pair), tile->lhsLayout(), thread, plan.countThreads())
      .emit(b, row0, i.mul(step, plan.getTileK()), stages.lhs,
            i.mul(stage, stages.lhsCount));
}

/// Copies a tile of the right-hand side, or reads what it is computed from.
SmallVector<Value> ProductKernel::startRhs(ImplicitLocOpBuilder &b,
                                           const Stages &stages, Value step,
                                           Value stage) {
  Indices i(b);
  Value k = i.mul(step, plan.getTileK());
  Value row = types.transposed ? col0 : k, col = types.transposed ? k : col0;
  if (computesRhs())
    return readRhs(b, row, col);
  TileCopy(findRhs(b, pair), tile->rhsLayout(), thread, plan.countThreads())
      .emit(b, row, col, stages.rhs, i.mul(stage, stages.rhsCount));
  return {};
}

void ProductKernel::finishRhs(ImplicitLocOpBuilder &b, const Stages &stages,
                              ValueRange read, Value step, Value stage) {
  Indices i(b);
  if (computesRhs())
    writeRhs(b, read, i.mul(step, plan.getTileK()), stages.rhs,
             i.mul(stage, stages.rhsCount));
}

/// The sums of steps `from` to `to`, in registers.
ValueRange ProductKernel::emitSteps(ImplicitLocOpBuilder &b,
                                    const Stages &stages, Value from,
                                    Value to) {
  Indices i(b);
  const int64_t ahead = plan.getStages() - 1;
  SmallVector<Type> typesOfRead;
  for (int64_t stage = 0; stage < ahead; ++stage) {
    Value step = i.add(from, stage), at = i.constant(stage);
    copyLhs(b, stages, step, at);
    SmallVector<Value> read = startRhs(b, stages, step, at);
    finishRhs(b, stages, read, step, at);
    typesOfRead = llvm::to_vector(ValueRange(read).getTypes());
    NVVM::CpAsyncCommitGroupOp::create(b);
  }
  Value count = b.createOrFold<arith::SubIOp>(to, from);
  auto loop = scf::ForOp::create(b, i.constant(0), count, i.constant(1),
                                 tile->zeros(b));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  NVVM::CpAsyncWaitGroupOp::create(b, ahead - 1);
  gpu::BarrierOp::create(b);
  Value next = i.add(loop.getInductionVar(), ahead);
  Value isMore = i.less(next, count);
  auto inNext = [&](scf::IfOp more, function_ref<void(Value, Value)> emit) {
    OpBuilder::InsertionGuard inner(b);
    if (more.thenBlock()->mightHaveTerminator())
      b.setInsertionPoint(more.thenYield());
    else
      b.setInsertionPointToEnd(more.thenBlock());
    emit(i.add(from, next), i.rem(next, plan.getStages()));
  };
  auto more = scf::IfOp::create(b, typesOfRead, isMore,
                                /*withElseRegion=*/!typesOfRead.empty());
  inNext(more, [&](Value step, Value stage) {
    copyLhs(b, stages, step, stage);
    SmallVector<Value> read = startRhs(b, stages, step, stage);
    if (read.empty())
      return;
    scf::YieldOp::create(b, read);
    b.setInsertionPointToStart(more.elseBlock());
    for (Value &value : read)
      value = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
    scf::YieldOp::create(b, read);
  });
  NVVM::CpAsyncCommitGroupOp::create(b);
  Value stage = i.rem(loop.getInductionVar(), plan.getStages());
  SmallVector<Value> sums =
      tile->multiply(b, stages.lhs, i.mul(stage, stages.lhsCount), stages.rhs,
                     i.mul(stage, stages.rhsCount), loop.getRegionIterArgs());
  if (computesRhs()) {
    auto write = scf::IfOp::create(b, isMore, /*withElseRegion=*/false);
    inNext(write, [&](Value step, Value stage) {
      finishRhs(b, stages, more.getResults(), step, stage);
    });
  }
  scf::YieldOp::create(b, sums);
  return loop.getResults();
}

/// Sums in registers, then in shared memory, of steps `from` to `to`.
void ProductKernel::emitProduct(ImplicitLocOpBuilder &b, Value from, Value to) {
  Stages stages;
  Value shared = allocateStages(b, stages);
  ValueRange sums = emitSteps(b, stages, from, to);
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  gpu::BarrierOp::create(b);
  sumTile = viewShared(b, shared, 0, {plan.getTileM(), sumCols()}, types.sum);
  tile->store(b, sums, sumTile);
  gpu::BarrierOp::create(b);
}

/// Visits the sums of the tile that exist, neighbours at a time: at (r, c) of
/// the tile, (m, n) of the matrix.
void ProductKernel::forEachPiece(ImplicitLocOpBuilder &b, EmitPiece emitPiece) {
  Indices i(b);
  const int64_t piecesOfRow = plan.getTileN() / kStoredSums;
  Value pieces = i.constant(plan.getTileM() * piecesOfRow);
  auto loop =
      scf::ForOp::create(b, thread, pieces, i.constant(plan.countThreads()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value r = i.div(loop.getInductionVar(), piecesOfRow);
  Value c = i.mul(i.rem(loop.getInductionVar(), piecesOfRow), kStoredSums);
  Value m = i.add(row0, r), n = i.add(col0, c);
  for (int64_t j = 0; j < kStoredSums; j += width()) {
    Value column = i.add(n, j);
    Value inside = i.both(i.less(m, sizes.m), i.less(column, sizes.n));
    auto some = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPoint(some.thenYield());
    emitPiece(r, i.add(c, j), m, column);
  }
}

/// What follows the product.
void ProductKernel::emitResults(ImplicitLocOpBuilder &b) {
  forEachPiece(b, [&](Value r, Value c, Value m, Value n) {
    emitPoints(b, m, n, loadSums(b, r, c));
  });
}

SmallVector<Value> ProductKernel::loadSums(ImplicitLocOpBuilder &b, Value r,
                                           Value c) {
  Indices i(b);
  SmallVector<Value> sums;
  for (int64_t j = 0; j < width(); ++j)
    sums.push_back(
        memref::LoadOp::create(b, sumTile, ValueRange{r, i.add(c, j)}));
  return sums;
}

void ProductKernel::storePartials(ImplicitLocOpBuilder &b, Value part) {
  forEachPiece(b, [&](Value r, Value c, Value m, Value n) {
    storePartial(b, part, m, n, loadSums(b, r, c));
  });
}

/// Sums of neighbours from (m, n) on.
void ProductKernel::storePartial(ImplicitLocOpBuilder &b, Value part, Value m,
                                 Value n, ArrayRef<Value> sums) {
  Indices i(b);
  for (auto [j, sum] : llvm::enumerate(sums))
    memref::StoreOp::create(b, sum, partials,
                            ValueRange{part, pair, m, i.add(n, j)});
}

Value ProductKernel::addSums(ImplicitLocOpBuilder &b, Value x, Value y) {
  if (isa<FloatType>(types.sum))
    return arith::AddFOp::create(b, x, y);
  return arith::AddIOp::create(b, x, y);
}

/// Adds up what the blocks that shared tiles have; a thread has neighbours.
void ProductKernel::emitSums(ImplicitLocOpBuilder &b) {
  constexpr int64_t threads = 256;
  Indices i(b);
  SmallVector<Value> grid = {sizes.pairs, sizes.m, i.div(sizes.n, width())};
  Value count = i.mul(grid[0], i.mul(grid[1], grid[2]));
  OpBuilder::InsertionGuard guard(b);
  Value blocks = i.ceilDiv(count, threads);
  if (isWanted)
    blocks = b.createOrFold<arith::SelectOp>(isWanted, blocks, i.constant(0));
  scf::ParallelOp loop = startBlocks(b, blocks, threads, "sums");
  Value number = i.add(i.mul(loop.getInductionVars()[0], threads),
                       gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  auto some = scf::IfOp::create(b, i.less(number, count),
                                /*withElseRegion=*/false);
  b.setInsertionPoint(some.thenYield());
  SmallVector<Value> at = i.unflatten(number, grid);
  pair = at[0];
  Value m = at[1], n = i.mul(at[2], width());
  SmallVector<Value> sums;
  for (int64_t j = 0; j < width(); ++j)
    sums.push_back(addParts(b, m, i.add(n, j)));
  emitPoints(b, m, n, sums);
}

/// What all blocks of the tile have of a sum.
Value ProductKernel::addParts(ImplicitLocOpBuilder &b, Value m, Value n) {
  Indices i(b);
  Value total;
  for (int64_t part = 0; part < plan.getSplit(); ++part) {
    Value sum = memref::LoadOp::create(
        b, partials, ValueRange{i.constant(part), pair, m, n});
    total = total ? addSums(b, total, sum) : sum;
  }
  return total;
}

Value ProductKernel::emitSum(ImplicitLocOpBuilder &b, ValueRange index) {
  pair = Indices(b).constant(0);
  PointEvaluator::Point point;
  return finishSum(b, addParts(b, index[0], index[1]), index[1], index, point);
}

/// The result at `index`, of column `n`, whose products add up to `sum`.
Value ProductKernel::finishSum(ImplicitLocOpBuilder &b, Value sum, Value n,
                               ValueRange index, PointEvaluator::Point &point) {
  Value whole = scaleSum(b, sum, n);
  if (!isZeroFilled(init()))
    whole = addSums(b, whole, points.evaluate(b, init(), index, point));
  return whole;
}

/// What is known at (m, n) and its neighbours, whose sums these are.
ProductKernel::Points ProductKernel::findPoints(ImplicitLocOpBuilder &b,
                                                Value m, Value n,
                                                ArrayRef<Value> sums) {
  Indices i(b);
  Points found;
  SmallVector<Value> first = findResult(b, pair, m, n);
  for (auto [j, sum] : llvm::enumerate(sums)) {
    SmallVector<Value> &index = found.indices.emplace_back(first);
    index.back() = i.add(index.back(), j);
    PointEvaluator::Point &point = found.known.emplace_back();
    point.add(op->getResult(0), index,
              finishSum(b, sum, i.add(n, j), index, point));
  }
  return found;
}

void ProductKernel::emitPoints(ImplicitLocOpBuilder &b, Value m, Value n,
                               ArrayRef<Value> sums) {
  Points found = findPoints(b, m, n, sums);
  points.store(b, body.getOutputs(), found.indices, found.known);
}
