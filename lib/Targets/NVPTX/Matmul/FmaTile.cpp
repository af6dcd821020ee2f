//===- FmaTile.cpp - Products of tiles by multiply-adds -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread has groups of 4x4 sums, the groups of all threads beside each other,
// so that what a warp reads of shared memory at a time are neighbours.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Matmul/BlockTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Rows, and columns, of a group.
static constexpr int64_t kGroup = 4;
/// Steps along K that are written one after the other.
static constexpr int64_t kUnroll = 4;

namespace {

class FmaTile : public BlockTile {
public:
  FmaTile(const ProductTypes &types, MatmulPlanAttr plan, Value thread)
      : types(types), plan(plan), thread(thread),
        groupRows(plan.getPartM() / kGroup),
        groupCols(plan.getPartN() / kGroup) {}

  TileLayout lhsLayout() const override {
    return {TileLayout::Transposed, plan.getTileM(), plan.getTileK(),
            types.lhsBytes()};
  }
  TileLayout rhsLayout() const override {
    if (types.transposed)
      return {TileLayout::Transposed, plan.getTileN(), plan.getTileK(),
              types.rhsBytes()};
    return {TileLayout::Padded, plan.getTileK(), plan.getTileN(),
            types.rhsBytes()};
  }

  SmallVector<Value> zeros(ImplicitLocOpBuilder &b) const override {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(types.sum));
    return SmallVector<Value>(plan.getPartM() * plan.getPartN(), zero);
  }

  SmallVector<Value> multiply(ImplicitLocOpBuilder &b, Value lhs,
                              Value lhsOffset, Value rhs, Value rhsOffset,
                              ValueRange sums) const override {
    Indices i(b);
    auto loop =
        scf::ForOp::create(b, i.constant(0), i.constant(plan.getTileK()),
                           i.constant(kUnroll), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next(loop.getRegionIterArgs());
    for (int64_t step = 0; step < kUnroll; ++step) {
      Value k = i.add(loop.getInductionVar(), step);
      SmallVector<Value> a = load(b, lhs, lhsOffset, k, firstRow(b), groupRows,
                                  plan.getTileM(), rowStep());
      SmallVector<Value> c = load(b, rhs, rhsOffset, k, firstCol(b), groupCols,
                                  plan.getTileN(), colStep());
      for (auto [m, x] : llvm::enumerate(a))
        for (auto [n, y] : llvm::enumerate(c)) {
          Value &sum = next[m * c.size() + n];
          sum = math::FmaOp::create(b, x, y, sum);
        }
    }
    scf::YieldOp::create(b, next);
    return SmallVector<Value>(loop.getResults());
  }

  void store(ImplicitLocOpBuilder &b, ValueRange sums,
             Value tile) const override {
    Indices i(b);
    Value row0 = firstRow(b), col0 = firstCol(b);
    for (int64_t m = 0; m < plan.getPartM(); ++m) {
      Value row = i.add(row0, m / kGroup * rowStep() + m % kGroup);
      for (int64_t n = 0; n < plan.getPartN(); ++n) {
        Value col = i.add(col0, n / kGroup * colStep() + n % kGroup);
        memref::StoreOp::create(b, sums[m * plan.getPartN() + n], tile,
                                ValueRange{row, col});
      }
    }
  }

private:
  int64_t threadCols() const { return plan.getTileN() / plan.getPartN(); }
  int64_t threadRows() const { return plan.getTileM() / plan.getPartM(); }
  /// From a thread's group to its next one.
  int64_t rowStep() const { return threadRows() * kGroup; }
  int64_t colStep() const { return threadCols() * kGroup; }

  Value firstRow(ImplicitLocOpBuilder &b) const {
    Indices i(b);
    return i.mul(i.div(thread, threadCols()), kGroup);
  }
  Value firstCol(ImplicitLocOpBuilder &b) const {
    Indices i(b);
    return i.mul(i.rem(thread, threadCols()), kGroup);
  }

  /// The elements of row `k` of a tile, of `size` elements and a gap, that this
  /// thread multiplies.
  static SmallVector<Value> load(ImplicitLocOpBuilder &b, Value buffer,
                                 Value offset, Value k, Value first,
                                 int64_t groups, int64_t size, int64_t step) {
    Indices i(b);
    Value row = i.add(offset, i.mul(k, size + TileLayout::kGap));
    SmallVector<Value> loaded;
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t j = 0; j < kGroup; ++j) {
        Value at = i.add(i.add(row, first), group * step + j);
        loaded.push_back(memref::LoadOp::create(b, buffer, at));
      }
    return loaded;
  }

  ProductTypes types;
  MatmulPlanAttr plan;
  Value thread;
  int64_t groupRows, groupCols;
};

} // namespace

std::unique_ptr<BlockTile> nv::createFmaTile(const ProductTypes &types,
                                             MatmulPlanAttr plan,
                                             Value thread) {
  return std::make_unique<FmaTile>(types, plan, thread);
}
