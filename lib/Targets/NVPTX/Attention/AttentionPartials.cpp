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

/// For each part and each query: sums of values, the largest score, the sum of
/// exponentials.
Value AttentionKernel::allocatePartials(ImplicitLocOpBuilder &b) {
  const int64_t columns = op.getValue().getType().getShape().back();
  SmallVector<int64_t> shape = {plan.split};
  SmallVector<Value> open;
  for (Value size : {pairs, rows}) {
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
                                    Value part, Value pair) {
  Indices i(b);
  const int64_t columns = op.getInit().getType().getShape().back();
  const size_t ofThread = state.values.size() / rowsOfThread.size();
  const int64_t step = width(tile->columnWidth());
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
                                          i.rem(thread, tile->threadsOfRow()),
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
  auto load = [&](int64_t part, Value of) -> Value {
    return memref::LoadOp::create(
        b, partials, ValueRange{i.constant(part), at[0], at[1], of});
  };
  Values largest;
  for (int64_t part = 0; part < plan.split; ++part)
    largest.push_back(load(part, i.constant(columns)));
  Value base = finiteBase(b, reduce(b, largest, /*isSum=*/false));
  Value sum;
  Values values(step);
  auto add = [&](Value &total, Value value, Value factor) {
    total = total ? math::FmaOp::create(b, value, factor, total).getResult()
                  : arith::MulFOp::create(b, value, factor).getResult();
  };
  for (int64_t part = 0; part < plan.split; ++part) {
    Value factor = exp2(b, arith::SubFOp::create(b, largest[part], base));
    add(sum, load(part, i.constant(columns + 1)), factor);
    for (int64_t j = 0; j < step; ++j)
      add(values[j], load(part, i.add(column, j)), factor);
  }
  Value factor = arith::DivFOp::create(b, floatConstant(b, 1), sum);
  for (Value &value : values)
    value = normalize(b, sizes[op.getKeyLoop()], value, factor);
  row0 = i.constant(0);
  emitPoints(b, findRow(b, at[0], at[1]).indices, column, values);
}
