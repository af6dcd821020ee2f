//===- WarpgroupKernel.cpp - Kernels around a product by warpgroups -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What follows a product is computed where its sums are, in registers: of two
// neighbouring columns at a time. Results are stored by the hardware where rows
// are multiples of 16 bytes, else by each thread. Blocks go from tile to tile:
// while results of one are computed and stored, copies for the next one are
// under way.
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulPlan.h"
#include "Matmul/ProductKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Neighbouring columns of a thread, and columns from one pair to its next.
static constexpr int64_t kPair = 2, kPieceCols = 8;

/// Blocks of one warpgroup that multiplies leave each other registers.
int64_t ProductKernel::countBlocksOfMultiprocessor() const {
  constexpr int64_t kMostBlocks = 2, kMostCols = 128;
  // The driver has some for itself of each block.
  constexpr int64_t kReservedBytes = 1024;
  if (plan.countGroups() > 1 || plan.getTileN() > kMostCols)
    return 1;
  const int64_t all =
      getTargetOrDefault(op).getSharedBytesOfBlock() + kReservedBytes;
  const int64_t block = nv::countSharedBytes(types, plan) + kReservedBytes;
  return std::clamp<int64_t>(all / block, 1, kMostBlocks);
}

/// Whether the hardware can store the results. Threads whose place is beyond
/// the matrix compute those of its last row and columns then, of sums that are
/// others: nothing but numbers may hang on them.
bool ProductKernel::canStoreBoxes() const {
  const int64_t columns =
      cast<RankedTensorType>(init().getType()).getShape().back();
  if (partials)
    return WarpgroupStore::isPossible(plan, types.sum, columns);
  if (!llvm::hasSingleElement(body.getOutputs()))
    return false;
  auto result = cast<MemRefType>(body.getOutputs().front().memref.getType());
  const bool readsByNumbers =
      op->getParentOfType<func::FuncOp>()
          ->walk([](Operation *inner) {
            return isa<tensor::ExtractOp, sdx::CheckOp>(inner)
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          })
          .wasInterrupted();
  return !readsByNumbers && result.getLayout().isIdentity() &&
         WarpgroupStore::isPossible(plan, result.getElementType(), columns);
}

/// Makes the maps, on the host. Returns how many blocks there are.
Value ProductKernel::prepareWarpgroups(ImplicitLocOpBuilder &b) {
  Indices i(b);
  const WarpgroupTile boxes(types, plan);
  lhsMap = mapLhs(b, boxes.lhsBoxRows(), boxes.boxCols());
  rhsMap = mapRhs(b, boxes.rhsBoxRows(), boxes.boxCols());
  if (canStoreBoxes()) {
    SmallVector<Value> extents = {sizes.n, sizes.m};
    if (hasPairs())
      extents.push_back(sizes.pairs);
    if (partials)
      extents.push_back(i.constant(plan.getSplit()));
    resultMap = WarpgroupStore::makeMap(
        b, plan, partials ? partials : body.getOutputs().front().memref,
        extents);
  }
  const int64_t most = std::max<int64_t>(
      countBlocksOfMultiprocessor() *
          getTargetOrDefault(op).countMultiprocessors() / plan.countCluster(),
      1);
  if (std::optional<int64_t> known = getConstantIntValue(items);
      known && *known <= most)
    return i.mul(items, plan.countCluster());
  mostItems = b.createOrFold<arith::MinSIOp>(items, i.constant(most));
  return i.mul(mostItems, plan.countCluster());
}

/// The items of a block, or of its cluster, one after the other; `begin` is
/// where the ring is before the first.
void ProductKernel::forEachItem(ImplicitLocOpBuilder &b, scf::ParallelOp loop,
                                Ring begin, EmitItem emitItem) {
  Value first = Indices(b).div(loop.getInductionVars()[0], plan.countCluster());
  if (!mostItems) {
    emitItem(findItem(b, first), begin);
    return;
  }
  auto each = scf::ForOp::create(b, first, items, mostItems,
                                 ValueRange{begin.stage, begin.phase});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(each.getBody());
  const Ring after =
      emitItem(findItem(b, each.getInductionVar()),
               {each.getRegionIterArg(0), each.getRegionIterArg(1)});
  scf::YieldOp::create(b, ValueRange{after.stage, after.phase});
}

/// The code of a block, one of whose warpgroups has the tiles copied. Where two
/// others multiply, it leaves them most of its registers.
void ProductKernel::emitWarpgroups(ImplicitLocOpBuilder &b,
                                   scf::ParallelOp loop) {
  constexpr int64_t kCopyingRegisters = 40, kMultiplyingRegisters = 232;
  const bool movesRegisters = plan.countGroups() > 1;
  auto limitRegisters = [&](int64_t count, NVVM::SetMaxRegisterAction action) {
    if (movesRegisters)
      NVVM::SetMaxRegisterOp::create(b, count, action);
  };
  if (const int64_t blocks = countBlocksOfMultiprocessor(); blocks > 1)
    loop->setAttr(kBlocksAttr, b.getI64IntegerAttr(blocks));
  if (plan.sharesTiles()) {
    loop->setAttr(kClusterAttr, b.getI64IntegerAttr(plan.countCluster()));
    rank = Indices(b).rem(loop.getInductionVars()[0], plan.countCluster());
  }
  WarpgroupTile tiles(types, plan);
  Value shared = allocateShared(b, tiles.countSharedBytes());
  tiles.begin(b, shared, thread, rank);
  auto count = [&](const Item &item) {
    return b.createOrFold<arith::SubIOp>(item.to, item.from);
  };
  auto roles = scf::IfOp::create(b, tiles.isWorker(b), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(roles.elseYield());
  limitRegisters(kCopyingRegisters, NVVM::SetMaxRegisterAction::decrease);
  {
    auto copier =
        scf::IfOp::create(b, tiles.isCopier(b), /*withElseRegion=*/false);
    b.setInsertionPoint(copier.thenYield());
    forEachItem(b, loop, tiles.beginCopies(b),
                [&](const Item &item, Ring ring) {
                  return tiles.copy(b, lhsMap, rhsMap, row0, col0, item.from,
                                    count(item), ring);
                });
  }
  b.setInsertionPoint(roles.thenYield());
  limitRegisters(kMultiplyingRegisters, NVVM::SetMaxRegisterAction::increase);
  Type type = partials ? types.sum
                       : getElementTypeOrSelf(body.getOutputs().front().memref);
  WarpgroupStore store(plan, type, tiles.allBytes(), tiles.resultsFrom(),
                       thread, resultMap);
  forEachItem(b, loop, tiles.beginProducts(b),
              [&](const Item &item, Ring ring) {
                SmallVector<Value> sums;
                const Ring after = tiles.multiply(b, count(item), ring, sums);
                if (resultMap)
                  emitBoxes(b, store, sums, item.part);
                else
                  emitPairs(b, sums, item.part);
                return after;
              });
  if (resultMap)
    store.finish(b);
  b.setInsertionPointAfter(roles);
  tiles.end(b);
}

/// Two neighbours of each eight columns, in two rows of each warp's 16.
static ArrayRef<Value> takePair(ArrayRef<Value> sums, int64_t half,
                                int64_t piece) {
  return sums.slice(4 * piece + 2 * half, kPair);
}

/// The rows of the matrix that the thread has, and its first column.
static SmallVector<Value, 2> findRows(ImplicitLocOpBuilder &b, Value thread,
                                      Value row0) {
  Indices i(b);
  Value row = i.add(
      row0, i.add(i.mul(i.div(thread, 32), 16), i.div(i.rem(thread, 32), 4)));
  return {row, i.add(row, 8)};
}

static Value findColumn(ImplicitLocOpBuilder &b, Value thread, Value col0) {
  Indices i(b);
  return i.add(col0, i.mul(i.rem(thread, 4), kPair));
}

/// Results that the hardware stores.
void ProductKernel::emitBoxes(ImplicitLocOpBuilder &b, WarpgroupStore &store,
                              ArrayRef<Value> sums, Value part) {
  Indices i(b);
  auto limit = [&](Value at, Value size, int64_t multiple, int64_t count) {
    if (std::optional<int64_t> known = getConstantIntValue(size);
        known && *known % multiple == 0)
      return at;
    return b.createOrFold<arith::MinSIOp>(at, i.add(size, -count));
  };
  SmallVector<Value, 2> m = findRows(b, thread, row0);
  for (Value &row : m)
    row = limit(row, sizes.m, rowsOfItem(), 1);
  Value n0 = findColumn(b, thread, col0);
  auto findPair = [&](int64_t half, int64_t piece) {
    SmallVector<Value> pairOfSums(takePair(sums, half, piece));
    if (partials)
      return pairOfSums;
    Value n =
        limit(i.add(n0, piece * kPieceCols), sizes.n, colsOfItem(), kPair);
    Points found = findPoints(b, m[half], n, pairOfSums);
    SmallVector<Value> results;
    for (auto [index, point] : llvm::zip_equal(found.indices, found.known))
      results.push_back(
          points.evaluate(b, body.getOutputs().front().tensor, index, point));
    return results;
  };
  Value group = i.div(thread, MatmulPlanAttr::kWarpgroup);
  Value firstRow = i.add(row0, i.mul(group, kGroupRows));
  store.emit(b, findPair, [&](int64_t col) {
    SmallVector<Value> at = {i.add(col0, col), firstRow};
    if (hasPairs())
      at.push_back(pair);
    if (partials)
      at.push_back(part);
    return at;
  });
}

/// Results that each thread stores itself.
void ProductKernel::emitPairs(ImplicitLocOpBuilder &b, ArrayRef<Value> sums,
                              Value part) {
  Indices i(b);
  const int64_t together = std::min<int64_t>(width(), kPair);
  SmallVector<Value, 2> m = findRows(b, thread, row0);
  Value n0 = findColumn(b, thread, col0);
  for (int64_t half = 0; half < 2; ++half) {
    auto hasRow = scf::IfOp::create(b, i.less(m[half], sizes.m),
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(hasRow.thenYield());
    for (int64_t piece = 0; piece < plan.getTileN() / kPieceCols; ++piece) {
      const ArrayRef<Value> all = takePair(sums, half, piece);
      for (int64_t j = 0; j < kPair; j += together) {
        Value n = i.add(n0, piece * kPieceCols + j);
        ArrayRef<Value> some = all.slice(j, together);
        auto hasCol = scf::IfOp::create(b, i.less(n, sizes.n),
                                        /*withElseRegion=*/false);
        OpBuilder::InsertionGuard inner(b);
        b.setInsertionPoint(hasCol.thenYield());
        if (partials)
          storePartial(b, part, m[half], n, some);
        else
          emitPoints(b, m[half], n, some);
      }
    }
  }
}
