//===- ContractionLoop.cpp - The loop of a register tile ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/ContractionLoop.h"
#include "Common/IndexMath.h"

#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

TileShape TileShape::get(cpu::TargetAttr target, int64_t packed) {
  // A tile never straddles two packed panels.
  int64_t width = std::gcd(2 * target.getLanes(), packed);
  // 16 accumulators of 32 registers leave room for two columns of the
  // right-hand side, broadcasts and prefetched loads. More rows than 8 were
  // slower on power-of-two strides (all rows in one cache set). 16 registers
  // hold 4 x 2 accumulators and the operands.
  return {target.countVectorRegisters() >= 32 ? 8 : 4, width};
}

bool Prefetch::pays(Value weights) {
  constexpr int64_t kMinBytes = 128 * 1024;
  auto type = cast<ShapedType>(weights.getType());
  return type.hasStaticShape() &&
         type.getNumElements() * (type.getElementTypeBitWidth() / 8) >=
             kMinBytes;
}

Prefetch Prefetch::share(ImplicitLocOpBuilder &b, const Task &task,
                         Value loop) {
  IndexMath math(b);
  Prefetch result;
  result.memory = task.memory;
  result.stride = task.stride;
  result.run = task.run;
  constexpr int64_t kLongestPeriod = 64;
  result.period = kLongestPeriod;
  while (result.period > 1 &&
         (result.period * task.lines > task.loops * task.depth ||
          task.depth % result.period != 0))
    result.period /= 2;
  constexpr int64_t kMaxLines = 2;
  if (result.period == 1)
    result.count = std::clamp<int64_t>(
        llvm::divideCeil(task.lines, task.loops * task.depth), 1, kMaxLines);
  int64_t linesOfLoop = task.depth / result.period * result.count;
  // A depth without such a divisor would have lines fetched again and again.
  constexpr int64_t kMaxTimes = 2;
  if (result.period < kMaxSteps &&
      linesOfLoop * task.loops > kMaxTimes * task.lines)
    return {};
  // Loops that have nothing left to fetch fetch the last lines again.
  Value first =
      math.min(math.mul(loop, linesOfLoop),
               math.constant(std::max<int64_t>(0, task.lines - linesOfLoop)));
  result.start = math.add(task.from, math.mul(first, task.stride));
  return result;
}

Value sardonyx::cpu::emitFusedMultiplyAdd(ImplicitLocOpBuilder &b, Value lhs,
                                          Value rhs, Value accumulator) {
  return vector::FMAOp::create(b, lhs, rhs, accumulator);
}

void sardonyx::cpu::emitContractionStep(ImplicitLocOpBuilder &b, Value k,
                                        int64_t rows, int64_t columns,
                                        MutableArrayRef<Value> accumulators,
                                        function_ref<Value(Value, int64_t)> lhs,
                                        function_ref<Value(Value, int64_t)> rhs,
                                        MultiplyAdd multiplyAdd) {
  SmallVector<Value> columnsOfRhs;
  for (int64_t c = 0; c < columns; ++c)
    columnsOfRhs.push_back(rhs(k, c));
  for (int64_t r = 0; r < rows; ++r) {
    Value scalar = vector::BroadcastOp::create(
        b, columnsOfRhs.front().getType(), lhs(k, r));
    for (int64_t c = 0; c < columns; ++c) {
      Value &acc = accumulators[r * columns + c];
      acc = multiplyAdd(b, scalar, columnsOfRhs[c], acc);
    }
  }
}

/// Fetches what belongs to `k`.
static void emitPrefetch(ImplicitLocOpBuilder &b, const Prefetch &prefetch,
                         Value k) {
  IndexMath math(b);
  Value place = math.mul(math.div(k, prefetch.period), prefetch.count);
  Value line = math.add(prefetch.start, math.mul(place, prefetch.stride));
  // What these mean is up to the processor (FetchIntoL1.h).
  constexpr int64_t kL1 = 3, kL2 = 2, kL2OfMany = 1;
  int64_t locality = prefetch.isWrite   ? kL1
                     : prefetch.isForL2 ? kL2OfMany
                                        : kL2;
  for (int64_t i = 0; i < prefetch.count; ++i)
    for (int64_t j = 0; j < prefetch.run; ++j)
      memref::PrefetchOp::create(
          b, prefetch.memory,
          ValueRange{math.add(line, i * prefetch.stride + j * Prefetch::kLine)},
          prefetch.isWrite, locality,
          /*isDataCache=*/true);
}

/// The loop over k from `begin` to `end`.
static SmallVector<Value>
emitContraction(ImplicitLocOpBuilder &b, Value begin, Value end, int64_t rows,
                int64_t columns, ValueRange init,
                function_ref<Value(Value, int64_t)> lhs,
                function_ref<Value(Value, int64_t)> rhs,
                ArrayRef<Prefetch> prefetches, MultiplyAdd multiplyAdd) {
  IndexMath math(b);
  int64_t steps = 1;
  for (const Prefetch &prefetch : prefetches)
    steps = std::max(steps, std::min(prefetch.period, Prefetch::kMaxSteps));
  auto loop = scf::ForOp::create(b, begin, end, math.constant(steps), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  SmallVector<Value> accs(loop.getRegionIterArgs());
  for (int64_t step = 0; step < steps; ++step) {
    Value k = math.add(first, step);
    for (const Prefetch &prefetch : prefetches)
      if (prefetch.memory && step % std::min(prefetch.period, steps) == 0)
        emitPrefetch(b, prefetch, k);
    emitContractionStep(b, k, rows, columns, accs, lhs, rhs, multiplyAdd);
  }
  scf::YieldOp::create(b, accs);
  return loop.getResults();
}

SmallVector<Value> sardonyx::cpu::emitContractionLoop(
    ImplicitLocOpBuilder &b, Value size, int64_t rows, int64_t columns,
    ValueRange init, function_ref<Value(Value, int64_t)> lhs,
    function_ref<Value(Value, int64_t)> rhs, ArrayRef<Prefetch> prefetches,
    MultiplyAdd multiplyAdd) {
  return emitContraction(b, IndexMath(b).constant(0), size, rows, columns, init,
                         lhs, rhs, prefetches, multiplyAdd);
}

SmallVector<Value> sardonyx::cpu::emitContractionOfBlocks(
    ImplicitLocOpBuilder &b, Value size, int64_t block, int64_t rows,
    int64_t columns, VectorType type, function_ref<Value(Value, int64_t)> lhs,
    function_ref<Value(Value, int64_t)> rhs, ArrayRef<Prefetch> prefetches) {
  IndexMath math(b);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  SmallVector<Value> zeros(rows * columns, zero);
  std::optional<int64_t> known = IndexMath::known(size);
  if (known && *known <= block)
    return emitContractionLoop(b, size, rows, columns, zeros, lhs, rhs,
                               prefetches);
  auto blocks = scf::ForOp::create(b, math.constant(0), size,
                                   math.constant(block), zeros);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(blocks.getBody());
  Value begin = blocks.getInductionVar(), end = math.add(begin, block);
  if (!known || *known % block)
    end = math.min(end, size);
  SmallVector<Value> sums =
      emitContraction(b, begin, end, rows, columns, zeros, lhs, rhs, prefetches,
                      emitFusedMultiplyAdd);
  for (auto [sum, total] : llvm::zip_equal(sums, blocks.getRegionIterArgs()))
    sum = arith::AddFOp::create(b, total, sum);
  scf::YieldOp::create(b, sums);
  return blocks.getResults();
}
