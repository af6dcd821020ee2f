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
// Few long rows are cut into parts: the parts are summed up, their sums
// scanned, and then each part, beginning with what is before it.
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
/// Elements of a part of a row, that a block has or, with other rows between
/// them, a thread.
static constexpr int64_t kPartOfBlock = 4096, kPartOfThread = 256;

namespace {

class ScanKernel {
public:
  ScanKernel(Value source, Value target, bool isProduct, bool isExclusive,
             bool isReverse)
      : source(source), target(target),
        type(cast<MemRefType>(target.getType()).getElementType()),
        isProduct(isProduct), isExclusive(isExclusive), isReverse(isReverse) {}
  ScanKernel(const NamedLoop &loop, Value source)
      : ScanKernel(source, loop.targets[0], loop.says("product"),
                   loop.says("exclusive"), loop.says("reverse")) {}

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

  /// Whether rows are cut may be for the host to decide: the other kernels have
  /// no blocks then.
  void emit(ImplicitLocOpBuilder &b, int64_t multiprocessors) {
    Indices i(b);
    measure(b);
    Value blocks = hasRows ? before : i.ceilDiv(i.mul(before, after), kThreads);
    Value isLong = i.both(i.less(i.constant(2 * partLength()), length),
                          i.less(blocks, i.constant(multiprocessors)));
    std::optional<int64_t> known = getConstantIntValue(isLong);
    if (!known)
      emitParts(b, arith::SelectOp::create(b, isLong, before, i.constant(0)));
    else if (*known != 0)
      return emitParts(b, before);
    if (!known)
      before = arith::SelectOp::create(b, isLong, i.constant(0), before);
    emitWhole(b);
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

  int64_t partLength() const { return hasRows ? kPartOfBlock : kPartOfThread; }

  void measure(ImplicitLocOpBuilder &b) {
    before = sizeOf(b, target, 0);
    length = sizeOf(b, target, 1);
    after = sizeOf(b, target, 2);
    hasRows = isConstantIntValue(after, 1);
  }

  void emitWhole(ImplicitLocOpBuilder &b) {
    OpBuilder::InsertionGuard guard(b);
    Indices i(b);
    start(b, i.constant(1));
    scan(b, i.constant(0), length, neutral(b));
  }

  void emitParts(ImplicitLocOpBuilder &b, Value rows) {
    Indices i(b);
    Value parts = i.ceilDiv(length, partLength());
    Attribute space = cast<MemRefType>(target.getType()).getMemorySpace();
    const int64_t open = ShapedType::kDynamic;
    auto sumsType = MemRefType::get({open, open, hasRows ? 1 : open}, type,
                                    MemRefLayoutAttrInterface(), space);
    SmallVector<Value> sizes = {rows, parts};
    if (!hasRows)
      sizes.push_back(after);
    Value sums = memref::AllocOp::create(b, sumsType, sizes), whole = before;
    before = rows;
    auto forParts =
        [&](llvm::function_ref<void(Value first, Value end, ValueRange)> body) {
          OpBuilder::InsertionGuard guard(b);
          start(b, parts);
          Value first = i.mul(part, partLength());
          Value end =
              arith::MinSIOp::create(b, i.add(first, partLength()), length);
          body(first, end, {row, part, column});
        };
    forParts([&](Value first, Value end, ValueRange place) {
      sumUp(b, first, end, place, sums);
    });
    ScanKernel ofSums(sums, sums, isProduct, /*isExclusive=*/true,
                      /*isReverse=*/false);
    ofSums.measure(b);
    ofSums.emitWhole(b);
    forParts([&](Value first, Value end, ValueRange place) {
      scan(b, first, end, memref::LoadOp::create(b, sums, place));
    });
    memref::DeallocOp::create(b, sums);
    before = whole;
  }

  /// The loop over blocks, each of which, or of whose threads, has one of
  /// `parts` parts of a row.
  void start(ImplicitLocOpBuilder &b, Value parts) {
    Indices i(b);
    Value count = i.mul(before, parts);
    if (!hasRows)
      count = i.mul(count, after);
    scf::ParallelOp blocks = startBlocks(
        b, hasRows ? count : i.ceilDiv(count, kThreads), kThreads, "scan");
    thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    Value number = blocks.getInductionVars()[0];
    if (!hasRows) {
      number = i.add(i.mul(number, kThreads), thread);
      auto some = scf::IfOp::create(b, i.less(number, count),
                                    /*withElseRegion=*/false);
      b.setInsertionPoint(some.thenYield());
    }
    SmallVector<Value> at = i.unflatten(number, {before, parts, after});
    row = at[0];
    part = at[1];
    column = at[2];
    if (hasRows) {
      const int64_t bytes = type.getIntOrFloatBitWidth() / 8;
      totals = viewShared(b, allocateShared(b, 2 * kThreads * bytes), 0,
                          {2, kThreads}, type);
    }
  }

  /// Scans the steps from `first` to `end`, with `carried` of those before.
  void scan(ImplicitLocOpBuilder &b, Value first, Value end, Value carried) {
    Indices i(b);
    const int64_t step = hasRows ? kThreads * kNeighbours : 1;
    auto loop = scf::ForOp::create(b, first, end, i.constant(step), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value at = loop.getInductionVar(), sum = loop.getRegionIterArgs()[0];
    if (!hasRows) {
      SmallVector<Value> index = {row, placeOf(b, at), column};
      Value next = combine(b, sum, load(b, index));
      memref::StoreOp::create(b, isExclusive ? sum : next, target, index);
      scf::YieldOp::create(b, next);
      return;
    }
    Value next = emitPiece(b, at, end, sum);
    // The next piece's totals lie where this one's do.
    gpu::BarrierOp::create(b);
    scf::YieldOp::create(b, next);
  }

  /// Leaves the sum of the steps from `first` to `end` at `place` of `sums`.
  void sumUp(ImplicitLocOpBuilder &b, Value first, Value end, ValueRange place,
             Value sums) {
    Indices i(b);
    auto loop =
        scf::ForOp::create(b, hasRows ? i.add(first, thread) : first, end,
                           i.constant(hasRows ? kThreads : 1), neutral(b));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value at = placeOf(b, loop.getInductionVar());
      Value next =
          combine(b, loop.getRegionIterArgs()[0], load(b, {row, at, column}));
      scf::YieldOp::create(b, next);
    }
    Value sum = loop.getResult(0);
    if (!hasRows) {
      memref::StoreOp::create(b, sum, sums, place);
      return;
    }
    scanTotals(b, sum);
    auto isFirst = scf::IfOp::create(b, i.less(thread, i.constant(1)),
                                     /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(isFirst.thenYield());
    memref::StoreOp::create(b, lastTotal(b), sums, place);
  }

  Value lastTotal(ImplicitLocOpBuilder &b) {
    Indices i(b);
    return memref::LoadOp::create(
        b, totals, ValueRange{i.constant(0), i.constant(kThreads - 1)});
  }

  /// The piece from step `first` on, up to `end`, with `carried` of all before
  /// it; the same for the next one.
  Value emitPiece(ImplicitLocOpBuilder &b, Value first, Value end,
                  Value carried) {
    Indices i(b);
    Value zero = i.constant(0);
    SmallVector<SmallVector<Value>> indices;
    SmallVector<Value> exists, sums;
    for (int64_t j = 0; j < kNeighbours; ++j) {
      Value step = i.add(first, i.add(i.mul(thread, kNeighbours), j));
      exists.push_back(i.less(step, end));
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
    return combine(b, carried, lastTotal(b));
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

  const Value source, target; // [before, length, after]
  const Type type;            // of sums
  const bool isProduct, isExclusive, isReverse;
  Value before, length, after;
  /// Whether elements of a row are neighbours.
  bool hasRows = true;
  // Of the code of a block.
  Value thread, row, part, column, totals;
};

struct LowerScanPass : sardonyx::impl::NVLowerScanBase<LowerScanPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    KernelBody body(func);
    std::optional<NamedLoop> loop = NamedLoop::find(func, body, sdx::kScanAttr);
    if (loop && ScanKernel::isPossible(*loop) &&
        failed(body.replaceWith([&](auto &b) {
          ScanKernel(*loop, body.getBuffer(loop->source))
              .emit(b, getTargetOrDefault(func).countMultiprocessors());
        })))
      signalPassFailure();
  }
};

} // namespace
