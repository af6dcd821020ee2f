//===- MicroKernel.cpp - Register-tiled contraction -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/MicroKernel.h"
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
  auto type = cast<MemRefType>(weights.getType());
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

Value sardonyx::cpu::emitSplat(ImplicitLocOpBuilder &b, Type type,
                               int64_t value) {
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(
               vector, b.getIntegerAttr(vector.getElementType(), value)));
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
}

Value sardonyx::cpu::emitFloatSplat(ImplicitLocOpBuilder &b, Type type,
                                    float value) {
  FloatAttr number = b.getF32FloatAttr(value);
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, number));
  return arith::ConstantOp::create(b, number);
}

Value sardonyx::cpu::emitLarger(ImplicitLocOpBuilder &b, Value largest,
                                Value value) {
  Value bits = arith::BitcastOp::create(b, largest.getType(), value);
  Value magnitude = arith::AndIOp::create(
      b, bits, emitSplat(b, largest.getType(), 0x7fffffff));
  return arith::MaxUIOp::create(b, largest, magnitude);
}

Value sardonyx::cpu::emitSplat32(ImplicitLocOpBuilder &b, Value index,
                                 int64_t width) {
  Value narrow = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), index);
  return vector::BroadcastOp::create(
      b, VectorType::get({width}, b.getI32Type()), narrow);
}

Value sardonyx::cpu::emitInside(ImplicitLocOpBuilder &b, Value start,
                                int64_t width, Value size, int64_t step) {
  return arith::CmpIOp::create(
      b, arith::CmpIPredicate::ult,
      arith::AddIOp::create(b, emitSplat32(b, start, width),
                            emitLanes(b, width, step)),
      emitSplat32(b, size, width));
}

Value sardonyx::cpu::emitRowMask(ImplicitLocOpBuilder &b, Value mask,
                                 Value index, Value size) {
  Value inside =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, size);
  return arith::AndIOp::create(
      b, mask, vector::BroadcastOp::create(b, mask.getType(), inside));
}

void sardonyx::cpu::emitFetch(ImplicitLocOpBuilder &b, Value memref,
                              ValueRange indices, int64_t locality) {
  memref::PrefetchOp::create(b, memref, indices, /*isWrite=*/false, locality,
                             /*isDataCache=*/true);
}

Value sardonyx::cpu::emitPadding(ImplicitLocOpBuilder &b, VectorType type) {
  Type element = type.getElementType();
  TypedAttr off = element.isIntOrIndex()
                      ? TypedAttr(b.getIntegerAttr(element, 1))
                      : TypedAttr(b.getFloatAttr(element, 0.0));
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, off));
}

Value sardonyx::cpu::emitLoad(ImplicitLocOpBuilder &b, Value memref,
                              ValueRange indices, int64_t width, Value mask) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = VectorType::get({width}, element);
  if (!mask)
    return vector::LoadOp::create(b, type, memref, indices);
  return vector::MaskedLoadOp::create(b, type, memref, indices, mask,
                                      emitPadding(b, type));
}

void sardonyx::cpu::emitStore(ImplicitLocOpBuilder &b, Value vector,
                              Value memref, ValueRange indices, Value mask) {
  if (mask)
    vector::MaskedStoreOp::create(b, memref, indices, mask, vector);
  else
    vector::StoreOp::create(b, vector, memref, indices);
}

Value sardonyx::cpu::emitTailMask(ImplicitLocOpBuilder &b, Value count,
                                  int64_t width) {
  auto type = VectorType::get({width}, b.getI1Type());
  std::optional<int64_t> known = IndexMath::known(count);
  if (!known)
    return vector::CreateMaskOp::create(b, type, ValueRange{count});
  if (*known >= width)
    return nullptr;
  // A constant stays one where a parallel loop uses it.
  SmallVector<bool> lanes(width);
  std::fill_n(lanes.begin(), std::max<int64_t>(*known, 0), true);
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, lanes));
}

Value sardonyx::cpu::emitBuffer(ImplicitLocOpBuilder &b, MemRefType type,
                                ValueRange sizes) {
  return memref::AllocOp::create(b, type, sizes,
                                 b.getI64IntegerAttr(Prefetch::kLineBytes));
}

Value sardonyx::cpu::emitCollapse(ImplicitLocOpBuilder &b, Value memref,
                                  int64_t first) {
  int64_t rank = cast<MemRefType>(memref.getType()).getRank();
  if (rank - first <= 1)
    return memref;
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < first; ++d)
    groups.push_back({d});
  groups.push_back(llvm::to_vector<2>(llvm::seq<int64_t>(first, rank)));
  return memref::CollapseShapeOp::create(b, memref, groups);
}

Value sardonyx::cpu::emitLanes(ImplicitLocOpBuilder &b, int64_t width,
                               int64_t step) {
  SmallVector<int32_t> values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(i * step);
  return arith::ConstantOp::create(b, b.getI32VectorAttr(values));
}

Value sardonyx::cpu::emitPick(ImplicitLocOpBuilder &b, Value x, Value y,
                              int64_t first, int64_t step, int64_t count) {
  SmallVector<int64_t> lanes;
  for (int64_t i = 0; i < count; ++i)
    lanes.push_back(first + i * step);
  return vector::ShuffleOp::create(b, x, y, lanes);
}

Value sardonyx::cpu::emitConcatenation(ImplicitLocOpBuilder &b,
                                       SmallVector<Value> parts) {
  while (parts.size() > 1) {
    int64_t length = cast<VectorType>(parts[0].getType()).getNumElements();
    SmallVector<Value> pairs;
    for (size_t i = 0; i < parts.size(); i += 2)
      pairs.push_back(emitPick(b, parts[i], parts[i + 1], 0, 1, 2 * length));
    parts = std::move(pairs);
  }
  return parts[0];
}

SmallVector<Value> sardonyx::cpu::emitTranspose(ImplicitLocOpBuilder &b,
                                                ArrayRef<Value> rows) {
  int64_t size = rows.size();
  int64_t lanes = cast<VectorType>(rows[0].getType()).getNumElements();
  SmallVector<Value> current(rows);
  // Of each block of lanes the lower half of x and y, or the upper one, `run`
  // lanes of x and of y in turn.
  auto interleave = [&](Value x, Value y, bool isUpper, int64_t block,
                        int64_t run) -> Value {
    SmallVector<int64_t> order;
    int64_t half = block / 2;
    for (int64_t at = isUpper ? half : 0; at < lanes; at += block)
      for (int64_t of = at; of < at + half; of += run)
        for (int64_t from : {of, lanes + of})
          for (int64_t i = 0; i < run; ++i)
            order.push_back(from + i);
    return vector::ShuffleOp::create(b, x, y, order);
  };
  // Squares of four in the order of x86's instructions, which interleave halves
  // of 128 bits: single numbers, then pairs.
  constexpr int64_t kBlock = 4;
  int64_t done = 1;
  if (size >= kBlock) {
    for (int64_t i = 0; i < size; i += kBlock) {
      Value *square = &current[i];
      Value low[2], high[2];
      for (int64_t j = 0; j < 2; ++j) {
        Value x = square[2 * j], y = square[2 * j + 1];
        low[j] = interleave(x, y, /*isUpper=*/false, kBlock, 1);
        high[j] = interleave(x, y, /*isUpper=*/true, kBlock, 1);
      }
      square[0] = interleave(low[0], low[1], /*isUpper=*/false, kBlock, 2);
      square[1] = interleave(low[0], low[1], /*isUpper=*/true, kBlock, 2);
      square[2] = interleave(high[0], high[1], /*isUpper=*/false, kBlock, 2);
      square[3] = interleave(high[0], high[1], /*isUpper=*/true, kBlock, 2);
    }
    done = kBlock;
  }
  // Then blocks of what is square already are swapped.
  for (int64_t half = done; half < size; half *= 2) {
    SmallVector<Value> next(size);
    for (int64_t i = 0; i < size; ++i) {
      if (i & half)
        continue;
      Value first = current[i], second = current[i + half];
      next[i] = interleave(first, second, /*isUpper=*/false, 2 * half, half);
      next[i + half] =
          interleave(first, second, /*isUpper=*/true, 2 * half, half);
    }
    current = next;
  }
  return current;
}
