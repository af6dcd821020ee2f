//===- MmaAttention.cpp - Tiles of attention by tensor cores --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp has 16 queries, all keys of a tile and all columns. Scores are where
// the sums of mma.sync are, and so are the registers of the left-hand side of
// the second product: they stay in the thread.
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionTile.h"
#include "Attention/MmaFragment.h"
#include "Kernel/Block.h"
#include "Matmul/MmaPiece.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Elements along K that an instruction multiplies, and that ldmatrix reads for
/// a lane.
static constexpr int64_t kStep = 16, kPiece = 8;
/// The longest queries that a thread keeps in registers.
static constexpr int64_t kKeptDepth = 128;

namespace {

class MmaAttention : public AttentionTile {
public:
  MmaAttention(Type type, const AttentionPlan &plan, Value thread)
      : plan(plan), thread(thread) {
    types.lhs = types.rhs = type;
    types.sum = Float32Type::get(type.getContext());
  }

  TileLayout queryLayout() const override {
    return {TileLayout::Spaced, plan.rows, plan.depth, 2};
  }
  TileLayout keyLayout() const override {
    return {TileLayout::Spaced, plan.keys, plan.depth, 2};
  }
  TileLayout valueLayout() const override {
    return {TileLayout::Spaced, plan.keys, plan.columns, 2};
  }

  Values rows(ImplicitLocOpBuilder &b) const override {
    return mmaRows(b, thread);
  }
  Values keys(ImplicitLocOpBuilder &b) const override {
    return mmaPairs(b, thread, plan.keys);
  }
  Values columns(ImplicitLocOpBuilder &b) const override {
    return mmaPairs(b, thread, plan.columns);
  }
  int64_t columnWidth() const override { return 2; }
  int64_t threadsOfRow() const override { return 4; }

  Values loadQueries(ImplicitLocOpBuilder &b, Value queries) const override {
    Values loaded;
    if (plan.depth <= kKeptDepth)
      for (int64_t step = 0; step < plan.depth / kStep; ++step)
        llvm::append_range(loaded, loadQuery(b, queries, step));
    return loaded;
  }

  Values multiply(ImplicitLocOpBuilder &b, Value queries, ValueRange loaded,
                  Value keys, Value offset) const override {
    Indices i(b);
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
    const int64_t pieces = plan.keys / kMmaCols;
    Values sums(pieces * kMmaSums, zero);
    Value inside = i.add(i.rem(lane(b), 8), i.mul(i.div(lane(b), 16), 8));
    Value half = i.rem(i.div(lane(b), 8), 2);
    for (int64_t step = 0; step < plan.depth / kStep; ++step) {
      Values query = loaded.empty() ? loadQuery(b, queries, step)
                                    : Values(loaded.slice(step * 4, 4));
      for (int64_t n = 0; n < pieces; n += 2) {
        Value row = i.add(inside, n * kMmaCols);
        Value col = i.mul(i.add(half, 2 * step), kPiece);
        Value at = i.add(offset, keyLayout().place(b, row, col));
        Values key = loadMatrices(b, addressOf(b, keys, at), false);
        multiplyTwo(b, query, key, sums, n);
      }
    }
    return byRows(sums);
  }

  Values accumulate(ImplicitLocOpBuilder &b, ValueRange factors, Value,
                    Value values, Value offset,
                    ValueRange sums) const override {
    Indices i(b);
    Values next = byPieces(sums);
    Values packed = packPieces(b, byPieces(factors), types.lhs);
    const int64_t pieces = plan.columns / kMmaCols;
    Value row0 = i.rem(lane(b), 16);
    Value col0 = i.mul(i.div(lane(b), 16), kPiece);
    for (int64_t step = 0; step < plan.keys / kStep; ++step) {
      Values lhs(ArrayRef(packed).slice(step * 4, 4));
      for (int64_t n = 0; n < pieces; n += 2) {
        Value row = i.add(row0, step * kStep);
        Value col = i.add(col0, n * kMmaCols);
        Value at = i.add(offset, valueLayout().place(b, row, col));
        Values value = loadMatrices(b, addressOf(b, values, at), true);
        multiplyTwo(b, lhs, value, next, n);
      }
    }
    return byRows(next);
  }

private:
  /// Adds products of one piece of the left-hand side to pieces `n` and `n` + 1
  /// of the sums, whose right-hand sides are the registers `rhs`.
  void multiplyTwo(ImplicitLocOpBuilder &b, const Values &lhs,
                   const Values &rhs, Values &sums, int64_t n) const {
    for (int64_t j = 0; j < 2; ++j)
      multiplyPiece(b, types, lhs, ArrayRef(rhs).slice(2 * j, 2),
                    MutableArrayRef(sums).slice((n + j) * kMmaSums, kMmaSums));
  }

  Value lane(ImplicitLocOpBuilder &b) const {
    return Indices(b).rem(thread, 32);
  }
  Values loadQuery(ImplicitLocOpBuilder &b, Value queries, int64_t step) const {
    Indices i(b);
    Value row = i.add(warpRow(b, thread), i.rem(lane(b), 16));
    Value col = i.mul(i.add(i.div(lane(b), 16), 2 * step), kPiece);
    Value at = queryLayout().place(b, row, col);
    return loadMatrices(b, addressOf(b, queries, at), false);
  }

  AttentionPlan plan;
  ProductTypes types;
  Value thread;
};

} // namespace

std::unique_ptr<AttentionTile>
nv::createMmaAttention(Type type, const AttentionPlan &plan, Value thread) {
  return std::make_unique<MmaAttention>(type, plan, thread);
}
