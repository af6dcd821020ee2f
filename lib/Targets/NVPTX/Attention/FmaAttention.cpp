//===- FmaAttention.cpp - Tiles of attention by multiply-adds -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// 16 threads share rows: each has every 16th key, and groups of neighbouring
// columns. Factors of values go through shared memory to the other threads.
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionTile.h"
#include "Kernel/Block.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Threads that share rows, and elements along the depth, or keys, that are
/// written one after the other.
static constexpr int64_t kThreads = 16, kUnroll = 4;

namespace {

class FmaAttention : public AttentionTile {
public:
  FmaAttention(const AttentionPlan &plan, Value thread)
      : plan(plan), thread(thread),
        width(std::min<int64_t>(4, plan.columns / kThreads)) {}

  TileLayout queryLayout() const override {
    return {TileLayout::Padded, plan.rows, plan.depth, 4};
  }
  TileLayout keyLayout() const override {
    return {TileLayout::Padded, plan.keys, plan.depth, 4};
  }
  TileLayout valueLayout() const override {
    return {TileLayout::Padded, plan.keys, plan.columns, 4};
  }
  int64_t countExchangeBytes() const override {
    return exchangeLayout().countBytes();
  }

  Values rows(ImplicitLocOpBuilder &b) const override {
    Indices i(b);
    Value first = i.mul(i.div(thread, kThreads), plan.rowsOfThread);
    Values numbers;
    for (int64_t row = 0; row < plan.rowsOfThread; ++row)
      numbers.push_back(i.add(first, row));
    return numbers;
  }
  Values keys(ImplicitLocOpBuilder &b) const override {
    Indices i(b);
    Values numbers;
    for (int64_t key = 0; key < plan.keys; key += kThreads)
      numbers.push_back(i.add(i.rem(thread, kThreads), key));
    return numbers;
  }
  Values columns(ImplicitLocOpBuilder &b) const override {
    Indices i(b);
    Value first = i.mul(i.rem(thread, kThreads), width);
    Values numbers;
    for (int64_t group = 0; group < plan.columns; group += kThreads * width)
      for (int64_t j = 0; j < width; ++j)
        numbers.push_back(i.add(first, group + j));
    return numbers;
  }
  int64_t columnWidth() const override { return width; }
  int64_t threadsOfRow() const override { return kThreads; }

  Values multiply(ImplicitLocOpBuilder &b, Value queries, ValueRange,
                  Value keyTile, Value offset) const override {
    const int64_t ofRow = plan.keys / kThreads;
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
    Values zeros(plan.rowsOfThread * ofRow, zero);
    Values rowNumbers = rows(b), keyNumbers = keys(b);
    return addUp(b, plan.depth, zeros, [&](Value d, Values &sums) {
      SmallVector<Values> q, k;
      for (Value row : rowNumbers)
        q.push_back(load(b, queries, Value(), queryLayout(), row, d, kUnroll));
      for (Value key : keyNumbers)
        k.push_back(load(b, keyTile, offset, keyLayout(), key, d, kUnroll));
      for (int64_t j = 0; j < kUnroll; ++j)
        for (int64_t row = 0; row < plan.rowsOfThread; ++row)
          for (int64_t key = 0; key < ofRow; ++key)
            add(b, sums[row * ofRow + key], q[row][j], k[key][j]);
    });
  }

  Values accumulate(ImplicitLocOpBuilder &b, ValueRange factors, Value exchange,
                    Value values, Value offset,
                    ValueRange sums) const override {
    Indices i(b);
    const int64_t ofRow = plan.keys / kThreads;
    Values rowNumbers = rows(b), keyNumbers = keys(b),
           columnNumbers = columns(b);
    for (int64_t row = 0; row < plan.rowsOfThread; ++row)
      for (int64_t key = 0; key < ofRow; ++key)
        memref::StoreOp::create(
            b, factors[row * ofRow + key], exchange,
            exchangeLayout().place(b, rowNumbers[row], keyNumbers[key]));
    gpu::BarrierOp::create(b);
    const int64_t cols = columnNumbers.size();
    return addUp(b, plan.keys, Values(sums), [&](Value n, Values &next) {
      SmallVector<Values> p;
      for (Value row : rowNumbers)
        p.push_back(
            load(b, exchange, Value(), exchangeLayout(), row, n, kUnroll));
      for (int64_t j = 0; j < kUnroll; ++j) {
        Values v;
        for (int64_t group = 0; group < cols; group += width)
          llvm::append_range(v, load(b, values, offset, valueLayout(),
                                     i.add(n, j), columnNumbers[group], width));
        for (int64_t row = 0; row < plan.rowsOfThread; ++row)
          for (int64_t col = 0; col < cols; ++col)
            add(b, next[row * cols + col], p[row][j], v[col]);
      }
    });
  }

private:
  TileLayout exchangeLayout() const {
    return {TileLayout::Padded, plan.rows, plan.keys, 4};
  }

  static void add(ImplicitLocOpBuilder &b, Value &sum, Value x, Value y) {
    sum = math::FmaOp::create(b, x, y, sum);
  }

  /// `count` neighbours in a row of a tile.
  static Values load(ImplicitLocOpBuilder &b, Value tile, Value offset,
                     const TileLayout &layout, Value row, Value col,
                     int64_t count) {
    Indices i(b);
    Value first = layout.place(b, row, col);
    if (offset)
      first = i.add(offset, first);
    Values loaded;
    for (int64_t j = 0; j < count; ++j)
      loaded.push_back(memref::LoadOp::create(b, tile, i.add(first, j)));
    return loaded;
  }

  /// Sums over a loop to `count`, of which each iteration takes several.
  static Values addUp(ImplicitLocOpBuilder &b, int64_t count, Values sums,
                      llvm::function_ref<void(Value, Values &)> emit) {
    Indices i(b);
    auto loop = scf::ForOp::create(b, i.constant(0), i.constant(count),
                                   i.constant(kUnroll), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Values next(loop.getRegionIterArgs());
    emit(loop.getInductionVar(), next);
    scf::YieldOp::create(b, next);
    return Values(loop.getResults());
  }

  AttentionPlan plan;
  Value thread;
  /// Neighbouring columns of a thread.
  int64_t width;
};

} // namespace

std::unique_ptr<AttentionTile> nv::createFmaAttention(const AttentionPlan &plan,
                                                      Value thread) {
  return std::make_unique<FmaAttention>(plan, thread);
}
