//===- LowerScan.cpp - Running sums and products --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block has a row: of a piece of it each thread sums up some neighbours, the
// threads' totals are scanned in shared memory, and what is before the piece is
// carried on to the next. Where elements of other rows lie between those of a
// row, a thread has a row and its neighbour the next one.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Ordering/NamedLoop.h"

#include "dialects/SDX/TaskLoops.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERSCAN
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kThreads = 256;
/// Neighbours that a thread sums up.
static constexpr int64_t kNeighbours = 4;

namespace {

class ScanKernel {
public:
  ScanKernel(const NamedLoop &loop, Value source)
      : source(source), target(loop.targets[0]),
        type(loop.resultType(0).getElementType()),
        isProduct(loop.says("product")), isExclusive(loop.says("exclusive")),
        isReverse(loop.says("reverse")) {}

  static bool isPossible(const NamedLoop &loop) {
    auto isNumber = [](Type type) {
      return type.isF16() || type.isBF16() || type.isF32() || type.isF64() ||
             (type.isInteger() && type.getIntOrFloatBitWidth() >= 8);
    };
    Type from = loop.sourceType().getElementType();
    if (loop.targets.size() != 1 || loop.sourceType().getRank() != 3 ||
        loop.resultType(0).getRank() != 3)
      return false;
    Type to = loop.resultType(0).getElementType();
    return isNumber(from) && isNumber(to) &&
           (from == to ||
            (isa<FloatType>(from) && isa<FloatType>(to) &&
             from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth()));
  }

  void emit(ImplicitLocOpBuilder &b) {
    Indices i(b);
    before = sizeOf(b, target, 0);
    length = sizeOf(b, target, 1);
    after = sizeOf(b, target, 2);
    OpBuilder::InsertionGuard guard(b);
    if (isConstantIntValue(after, 1))
      emitRow(b);
    else
      emitColumn(b);
  }

private:
  Value neutral(ImplicitLocOpBuilder &b) {
    if (isa<FloatType>(type))
      return arith::ConstantOp::create(b, b.getFloatAttr(type, isProduct));
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, isProduct));
  }

  Value combine(ImplicitLocOpBuilder &b, Value x, Value y) {
    if (isa<FloatType>(type))
      return isProduct ? arith::MulFOp::create(b, x, y).getResult()
                       : arith::AddFOp::create(b, x, y).getResult();
    return isProduct ? arith::MulIOp::create(b, x, y).getResult()
                     : arith::AddIOp::create(b, x, y).getResult();
  }

  /// Where step `step` is.
  Value placeOf(ImplicitLocOpBuilder &b, Value step) {
    if (!isReverse)
      return step;
    Value last = Indices(b).add(length, -1);
    return arith::SubIOp::create(b, last, step);
  }

  Value load(ImplicitLocOpBuilder &b, ValueRange index) {
    Value value = memref::LoadOp::create(b, source, index);
    if (value.getType() != type)
      value = arith::ExtFOp::create(b, type, value);
    return value;
  }

  /// A block has a row.
  void emitRow(ImplicitLocOpBuilder &b) {
    Indices i(b);
    scf::ParallelOp blocks = startBlocks(b, before, kThreads, "scan");
    row = blocks.getInductionVars()[0];
    thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    const int64_t bytes = type.getIntOrFloatBitWidth() / 8;
    totals = viewShared(b, allocateShared(b, 2 * kThreads * bytes), 0,
                        {2, kThreads}, type);
    auto loop =
        scf::ForOp::create(b, i.constant(0), length,
                           i.constant(kThreads * kNeighbours), neutral(b));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value carried =
        emitPiece(b, loop.getInductionVar(), loop.getRegionIterArgs()[0]);
    // The next piece's totals lie where this one's do.
    gpu::BarrierOp::create(b);
    scf::YieldOp::create(b, carried);
  }

  /// The piece from step `first` on, with `carried` of all before it; the same
  /// for the next one.
  Value emitPiece(ImplicitLocOpBuilder &b, Value first, Value carried) {
    Indices i(b);
    Value zero = i.constant(0);
    SmallVector<SmallVector<Value>> indices;
    SmallVector<Value> exists, sums;
    for (int64_t j = 0; j < kNeighbours; ++j) {
      Value step = i.add(first, i.add(i.mul(thread, kNeighbours), j));
      exists.push_back(i.less(step, length));
      indices.push_back({row, placeOf(b, step), zero});
      auto some = scf::IfOp::create(b, type, exists.back(), true);
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(some.thenBlock());
        scf::YieldOp::create(b, load(b, indices.back()));
        b.setInsertionPointToStart(some.elseBlock());
        scf::YieldOp::create(b, neutral(b));
      }
      Value value = some.getResult(0);
      sums.push_back(j == 0 ? value : combine(b, sums.back(), value));
    }
    scanTotals(b, sums.back());
    // What the threads before this one have.
    Value isFirst = i.less(thread, i.constant(1));
    Value previous =
        arith::SelectOp::create(b, isFirst, zero, i.add(thread, -1));
    Value others =
        memref::LoadOp::create(b, totals, ValueRange{zero, previous});
    others = arith::SelectOp::create(b, isFirst, neutral(b), others);
    Value start = combine(b, carried, others);
    for (int64_t j = 0; j < kNeighbours; ++j) {
      Value result = !isExclusive ? combine(b, start, sums[j])
                     : j == 0     ? start
                                  : combine(b, start, sums[j - 1]);
      auto some = scf::IfOp::create(b, exists[j], /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(some.thenYield());
      memref::StoreOp::create(b, result, target, indices[j]);
    }
    Value all = memref::LoadOp::create(
        b, totals, ValueRange{zero, i.constant(kThreads - 1)});
    return combine(b, carried, all);
  }

  /// Leaves in the first half of the shared memory, for each thread, the
  /// `total` of all threads up to it.
  void scanTotals(ImplicitLocOpBuilder &b, Value total) {
    Indices i(b);
    int64_t half = 0;
    auto store = [&](Value value) {
      memref::StoreOp::create(b, value, totals,
                              ValueRange{i.constant(half), thread});
      gpu::BarrierOp::create(b);
    };
    store(total);
    for (int64_t distance = 1; distance < kThreads; distance *= 2) {
      Value isFirst = i.less(thread, i.constant(distance));
      Value from = arith::SelectOp::create(b, isFirst, i.constant(0),
                                           i.add(thread, -distance));
      Value other =
          memref::LoadOp::create(b, totals, ValueRange{i.constant(half), from});
      other = arith::SelectOp::create(b, isFirst, neutral(b), other);
      total = combine(b, other, total);
      half = 1 - half;
      store(total);
    }
    static_assert(kThreads == 256, "an even number of steps");
  }

  /// A thread has a row, whose elements are `after` apart.
  void emitColumn(ImplicitLocOpBuilder &b) {
    Indices i(b);
    Value count = i.mul(before, after);
    scf::ParallelOp blocks =
        startBlocks(b, i.ceilDiv(count, kThreads), kThreads, "scan");
    thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    Value number = i.add(i.mul(blocks.getInductionVars()[0], kThreads), thread);
    auto some = scf::IfOp::create(b, i.less(number, count),
                                  /*withElseRegion=*/false);
    b.setInsertionPoint(some.thenYield());
    SmallVector<Value> at = i.unflatten(number, {before, after});
    auto loop =
        scf::ForOp::create(b, i.constant(0), length, i.constant(1), neutral(b));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> index = {at[0], placeOf(b, loop.getInductionVar()),
                                at[1]};
    Value sum = loop.getRegionIterArgs()[0];
    Value next = combine(b, sum, load(b, index));
    memref::StoreOp::create(b, isExclusive ? sum : next, target, index);
    scf::YieldOp::create(b, next);
  }

  const Value source, target; // [before, length, after]
  const Type type;            // of sums
  const bool isProduct, isExclusive, isReverse;
  Value before, length, after;
  Value thread, row, totals;
};

struct LowerScanPass : sardonyx::impl::NVLowerScanBase<LowerScanPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    KernelBody body(func);
    std::optional<NamedLoop> loop = NamedLoop::find(func, body, sdx::kScanAttr);
    if (loop && ScanKernel::isPossible(*loop) &&
        failed(body.replaceWith([&](auto &b) {
          ScanKernel(*loop, body.getBuffer(loop->source)).emit(b);
        })))
      signalPassFailure();
  }
};

} // namespace
