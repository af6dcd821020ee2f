//===- FmaTile.cpp - Products of tiles by multiply-adds -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread has groups of 4x4 sums, the groups of all threads beside each other,
// so that what a warp reads of shared memory at a time are neighbours. In tiles
// of few rows operands that follow themselves along K lie so in shared memory,
// too: they are copied 16 bytes at a time, and a thread reads some steps of a
// row at once. Its rows are as far from each other as it has neighbours, which
// keeps these out of each other's banks.
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
/// The most rows of tiles whose operands lie along K. Larger ones are copied
/// less often than they are read.
static constexpr int64_t kMostRowsAlongK = 64;

namespace {

class FmaTile : public BlockTile {
public:
  FmaTile(const ProductTypes &types, MatmulPlanAttr plan, Value thread)
      : types(types), plan(plan), thread(thread),
        isLhsAlongK(plan.getTileM() <= kMostRowsAlongK),
        isRhsAlongK(isLhsAlongK && types.transposed) {}

  TileLayout lhsLayout() const override {
    return {isLhsAlongK ? TileLayout::Padded : TileLayout::Transposed,
            plan.getTileM(), plan.getTileK(), types.lhsBytes()};
  }
  TileLayout rhsLayout() const override {
    if (types.transposed)
      return {isRhsAlongK ? TileLayout::Padded : TileLayout::Transposed,
              plan.getTileN(), plan.getTileK(), types.rhsBytes()};
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
    Value k = loop.getInductionVar();
    const Part left = {lhs, lhsOffset, lhsLayout(), rows(b), isLhsAlongK};
    const Part right = {rhs, rhsOffset, rhsLayout(), cols(b), isRhsAlongK};
    SmallVector<Value> lefts = loadAlongK(b, left, k);
    SmallVector<Value> rights = loadAlongK(b, right, k);
    const size_t numCols = right.places.size();
    for (int64_t step = 0; step < kUnroll; ++step) {
      SmallVector<Value> a = loadStep(b, left, lefts, k, step);
      SmallVector<Value> c = loadStep(b, right, rights, k, step);
      for (auto [m, x] : llvm::enumerate(a))
        for (auto [n, y] : llvm::enumerate(c)) {
          Value &sum = next[m * numCols + n];
          sum = math::FmaOp::create(b, x, y, sum);
        }
    }
    scf::YieldOp::create(b, next);
    return SmallVector<Value>(loop.getResults());
  }

  void store(ImplicitLocOpBuilder &b, ValueRange sums,
             Value tile) const override {
    SmallVector<Value> rowNumbers = rows(b), colNumbers = cols(b);
    for (auto [m, row] : llvm::enumerate(rowNumbers))
      for (auto [n, col] : llvm::enumerate(colNumbers))
        memref::StoreOp::create(b, sums[m * colNumbers.size() + n], tile,
                                ValueRange{row, col});
  }

private:
  /// The thread's rows, or columns, of so many threads beside each other, of
  /// which it is number `number`.
  static SmallVector<Value> place(ImplicitLocOpBuilder &b, Value number,
                                  int64_t threads, int64_t count,
                                  bool isAlongK) {
    Indices i(b);
    SmallVector<Value> places;
    for (int64_t j = 0; j < count; ++j)
      places.push_back(isAlongK
                           ? i.add(number, j * threads)
                           : i.add(i.mul(number, kGroup),
                                   j / kGroup * threads * kGroup + j % kGroup));
    return places;
  }
  SmallVector<Value> rows(ImplicitLocOpBuilder &b) const {
    return place(b, Indices(b).div(thread, threadCols()),
                 plan.getTileM() / plan.getPartM(), plan.getPartM(),
                 isLhsAlongK);
  }
  SmallVector<Value> cols(ImplicitLocOpBuilder &b) const {
    return place(b, Indices(b).rem(thread, threadCols()), threadCols(),
                 plan.getPartN(), isRhsAlongK);
  }
  int64_t threadCols() const { return plan.getTileN() / plan.getPartN(); }

  /// What this thread reads of an operand's tile: elements at `places` of each
  /// step along K.
  struct Part {
    Value buffer, offset;
    TileLayout layout;
    SmallVector<Value> places;
    bool isAlongK;
  };
  static Value load(ImplicitLocOpBuilder &b, const Part &part, Value place,
                    Value k) {
    Indices i(b);
    // Rows of what is copied across K are steps.
    const bool isAcross =
        !part.isAlongK && part.layout.kind == TileLayout::Padded;
    Value at = isAcross ? part.layout.place(b, k, place)
                        : part.layout.place(b, place, k);
    return memref::LoadOp::create(b, part.buffer, i.add(part.offset, at));
  }
  /// The steps from `k` on, place by place; nothing of a tile that does not lie
  /// along K.
  static SmallVector<Value> loadAlongK(ImplicitLocOpBuilder &b,
                                       const Part &part, Value k) {
    SmallVector<Value> loaded;
    if (part.isAlongK)
      for (Value place : part.places)
        for (int64_t step = 0; step < kUnroll; ++step)
          loaded.push_back(load(b, part, place, Indices(b).add(k, step)));
    return loaded;
  }
  /// One of the steps, of which `along` has been loaded.
  static SmallVector<Value> loadStep(ImplicitLocOpBuilder &b, const Part &part,
                                     ArrayRef<Value> along, Value k,
                                     int64_t step) {
    SmallVector<Value> loaded;
    for (size_t j = 0; j < part.places.size(); ++j)
      loaded.push_back(part.isAlongK ? along[j * kUnroll + step]
                                     : load(b, part, part.places[j],
                                            Indices(b).add(k, step)));
    return loaded;
  }

  ProductTypes types;
  MatmulPlanAttr plan;
  Value thread;
  /// Whether an operand's tile lies along K in shared memory.
  bool isLhsAlongK, isRhsAlongK;
};

} // namespace

std::unique_ptr<BlockTile> nv::createFmaTile(const ProductTypes &types,
                                             MatmulPlanAttr plan,
                                             Value thread) {
  return std::make_unique<FmaTile>(types, plan, thread);
}
