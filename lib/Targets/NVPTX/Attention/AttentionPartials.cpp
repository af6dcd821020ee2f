//===- AttentionPartials.cpp - Blocks that share the keys -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Attention/Numbers.h"

#include "Kernel/Block.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// How many blocks share the keys of a tile of queries.
Value AttentionKernel::countParts(ImplicitLocOpBuilder &b) {
  Indices i(b);
  if (plan.split)
    return i.constant(plan.split);
  Value one = i.constant(1);
  Value blocks = arith::MaxSIOp::create(b, i.mul(pairs, tiles), one);
  Value wanted = i.div(i.constant(plan.multiprocessors), blocks);
  Value tilesOfKeys = i.ceilDiv(sizes[op.getKeyLoop()], plan.keys);
  Value most = arith::SelectOp::create(
      b, i.less(tilesOfKeys, i.constant(plan.kFewestShared)), one,
      i.div(tilesOfKeys, plan.kFewestTiles));
  wanted = arith::MinSIOp::create(b, wanted, most);
  wanted = arith::MinSIOp::create(b, wanted, i.constant(plan.kMostSplits));
  return arith::MaxSIOp::create(b, wanted, one);
}

/// For each part and each query: sums of values, the largest score, the sum of
/// exponentials. Nothing where there is only one part.
Value AttentionKernel::allocatePartials(ImplicitLocOpBuilder &b) {
  Indices i(b);
  const int64_t columns = op.getValue().getType().getShape().back();
  Value shared = parts;
  if (!plan.split)
    shared = arith::SelectOp::create(b, i.less(i.constant(1), parts), parts,
                                     i.constant(0));
  if (isWanted)
    shared = arith::SelectOp::create(b, isWanted, shared, i.constant(0));
  SmallVector<int64_t> shape;
  SmallVector<Value> open;
  for (Value size : {shared, pairs, rows}) {
    std::optional<int64_t> known = getConstantIntValue(size);
    shape.push_back(known.value_or(ShapedType::kDynamic));
    if (!known)
      open.push_back(size);
  }
  shape.push_back(columns + 2);
  Attribute space = cast<MemRefType>(body.getOutputs().front().memref.getType())
                        .getMemorySpace();
  return memref::AllocOp::create(b,
                                 MemRefType::get(shape, b.getF32Type(),
                                                 MemRefLayoutAttrInterface(),
                                                 space),
                                 open);
}

void AttentionKernel::storePartials(ImplicitLocOpBuilder &b, const State &state,
                                    Value part) {
  Indices i(b);
  const int64_t columns = op.getInit().getType().getShape().back();
  const size_t ofThread = state.values.size() / rowsOfThread.size();
  const int64_t step = width(share->columnWidth());
  auto store = [&](const Row &row, Value value, Value column) {
    memref::StoreOp::create(b, value, partials,
                            ValueRange{part, pair, row.number, column});
  };
  forEachPiece(b, [&](size_t row, size_t first, Value column) {
    for (int64_t j = 0; j < step; ++j)
      store(rowsOfThread[row], state.values[row * ofThread + first + j],
            i.add(column, j));
  });
  for (auto [r, row] : llvm::enumerate(rowsOfThread)) {
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                          i.rem(thread, share->threadsOfRow()),
                                          i.constant(0));
    auto one = scf::IfOp::create(b, i.both(row.exists, isFirst), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(one.thenYield());
    store(row, state.largest[r], i.constant(columns));
    store(row, state.sums[r], i.constant(columns + 1));
  }
}

/// Adds up what the blocks that shared keys have; a thread has neighbours of a
/// query.
void AttentionKernel::emitSums(ImplicitLocOpBuilder &b) {
  constexpr int64_t threads = 256;
  Indices i(b);
  const int64_t columns = op.getInit().getType().getShape().back();
  const int64_t step = width(4);
  Values grid = {pairs, rows, i.constant(columns / step)};
  Value count = i.mul(grid[0], i.mul(grid[1], grid[2]));
  if (!plan.split)
    count = arith::SelectOp::create(b, i.less(i.constant(1), parts), count,
                                    i.constant(0));
  if (isWanted)
    count = arith::SelectOp::create(b, isWanted, count, i.constant(0));
  OpBuilder::InsertionGuard guard(b);
  scf::ParallelOp loop =
      startBlocks(b, i.ceilDiv(count, threads), threads, "sums");
  Value number = i.add(i.mul(loop.getInductionVars()[0], threads),
                       gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  auto some = scf::IfOp::create(b, i.less(number, count),
                                /*withElseRegion=*/false);
  b.setInsertionPoint(some.thenYield());
  Values at = i.unflatten(number, grid);
  Value column = i.mul(at[2], step);
  auto load = [&](Value part, Value of) -> Value {
    return memref::LoadOp::create(b, partials,
                                  ValueRange{part, at[0], at[1], of});
  };
  auto overParts =
      [&](Values first,
          llvm::function_ref<void(Value part, Values & state)> emitPart) {
        auto loop =
            scf::ForOp::create(b, i.constant(0), parts, i.constant(1), first);
        OpBuilder::InsertionGuard inner(b);
        b.setInsertionPointToStart(loop.getBody());
        Values state(loop.getRegionIterArgs());
        emitPart(loop.getInductionVar(), state);
        scf::YieldOp::create(b, state);
        return Values(loop.getResults());
      };
  Values largest =
      overParts({minusInfinity(b)}, [&](Value part, Values &state) {
        state[0] = larger(b, state[0], load(part, i.constant(columns)));
      });
  Value base = finiteBase(b, largest[0]);
  Values zeros(step + 1, floatConstant(b, 0));
  Values values = overParts(zeros, [&](Value part, Values &state) {
    Value below =
        arith::SubFOp::create(b, load(part, i.constant(columns)), base);
    Value factor = exp2(b, below);
    for (int64_t j = 0; j < step; ++j)
      state[j] = math::FmaOp::create(b, load(part, i.add(column, j)), factor,
                                     state[j]);
    state[step] = math::FmaOp::create(b, load(part, i.constant(columns + 1)),
                                      factor, state[step]);
  });
  Value sum = values.pop_back_val();
  Value factor = arith::DivFOp::create(b, floatConstant(b, 1), sum);
  for (Value &value : values)
    value = normalize(b, sizes[op.getKeyLoop()], value, factor);
  row0 = i.constant(0);
  emitPoints(b, findRow(b, at[0], at[1]).indices, column, values);
}
