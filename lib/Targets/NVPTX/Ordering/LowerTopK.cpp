//===- LowerTopK.cpp - The best of rows by sorting in a block -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block has a row. An element is a number of 64 bits: a key that is lower the
// better it is, then its index, so that no two are equal; of elements of 64
// bits the index is a number beside the key. The numbers are sorted in shared
// memory (a bitonic sort); of a long row the better half of them stays and the
// next elements take the place of the other. Where more are wanted than that
// half has, the row is sorted in the device's memory.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Ordering/NamedLoop.h"

#include "dialects/SDX/TaskLoops.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/Support/MathExtras.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERTOPK
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kMostThreads = 256;
/// Numbers that are sorted at a time: at most, at least, and of a long row
/// where few are wanted.
static constexpr int64_t kMost = 4096, kLeast = 64, kUsual = 2048;
/// A thread selects from shorter rows faster.
static constexpr int64_t kShortest = 32;

namespace {

class TopKKernel {
public:
  TopKKernel(const NamedLoop &loop, Value source)
      : source(source), values(loop.targets[0]), places(loop.targets[1]),
        type(loop.sourceType().getElementType()),
        isSmallest(loop.says("smallest")), isUnsigned(loop.says("unsigned")),
        isWide(type.getIntOrFloatBitWidth() == 64),
        knownLength(loop.sourceType().getDimSize(1)),
        knownCount(loop.resultType(0).getDimSize(1)) {}

  static bool isPossible(const NamedLoop &loop) {
    if (loop.targets.size() != 2 || loop.sourceType().getRank() != 2 ||
        loop.resultType(0).getRank() != 2)
      return false;
    Type type = loop.sourceType().getElementType();
    const int64_t length = loop.sourceType().getDimSize(1);
    const bool isLong = ShapedType::isDynamic(length) || length >= kShortest;
    return isLong &&
           (type.isF16() || type.isBF16() || type.isF32() || type.isF64() ||
            (type.isInteger() && type.getIntOrFloatBitWidth() >= 8));
  }

  void emit(ImplicitLocOpBuilder &b) {
    Indices i(b);
    Value any = values ? values : places;
    rows = sizeOf(b, any, 0);
    count = sizeOf(b, any, 1);
    length = sizeOf(b, source, 1);
    const bool isCounted = !ShapedType::isDynamic(knownCount);
    if (!ShapedType::isDynamic(knownLength) && knownLength <= kMost)
      return emitShared(
          b, std::max<int64_t>(kLeast, llvm::PowerOf2Ceil(knownLength)),
          /*isWhole=*/true, rows);
    if (isCounted && 2 * knownCount <= kMost)
      return emitShared(b, 2 * knownCount <= kUsual ? kUsual : kMost,
                        /*isWhole=*/false, rows);
    if (isCounted)
      return emitInMemory(b, rows);
    Value none = i.constant(0);
    Value isFew = i.less(count, i.constant(kMost / 2 + 1));
    emitShared(b, kMost, /*isWhole=*/false,
               arith::SelectOp::create(b, isFew, rows, none));
    emitInMemory(b, arith::SelectOp::create(b, isFew, none, rows));
  }

private:
  void startRow(ImplicitLocOpBuilder &b, Value blocks, int64_t numThreads) {
    threads = numThreads;
    scf::ParallelOp loop = startBlocks(b, blocks, threads, "top_k");
    row = loop.getInductionVars()[0];
    thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  }

  /// Sorts `size` numbers at a time in shared memory; all of a row if
  /// `isWhole`.
  void emitShared(ImplicitLocOpBuilder &b, int64_t size, bool isWhole,
                  Value blocks) {
    Indices i(b);
    OpBuilder::InsertionGuard guard(b);
    startRow(b, blocks, std::min(kMostThreads, size / 2));
    entries = viewShared(b, allocateShared(b, size * 8), 0, {1, size},
                         b.getI64Type());
    if (isWide)
      indices = viewShared(b, allocateShared(b, size * 4), 0, {1, size},
                           b.getI32Type());
    rowOfEntries = i.constant(0);
    capacity = i.constant(size);
    levels = i.constant(llvm::Log2_64(size));
    Value half = i.constant(size / 2);
    fill(b, i.constant(0), capacity, i.constant(0));
    sort(b);
    if (!isWhole) {
      auto loop = scf::ForOp::create(b, capacity, length, half);
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToStart(loop.getBody());
      fill(b, half, half, loop.getInductionVar());
      sort(b);
    }
    storeBest(b);
  }

  /// The least power of two from the length of rows, and 2, on.
  Value roundUp(ImplicitLocOpBuilder &b) {
    Indices i(b);
    Value bits =
        i.add(arith::MaxSIOp::create(b, length, i.constant(2)).getResult(), -1);
    for (int64_t shift = 1; shift < 64; shift *= 2)
      bits = arith::OrIOp::create(
          b, bits, arith::ShRUIOp::create(b, bits, i.constant(shift)));
    return i.add(bits, 1);
  }

  /// Sorts rows in the device's memory.
  void emitInMemory(ImplicitLocOpBuilder &b, Value blocks) {
    Indices i(b);
    capacity = roundUp(b);
    Attribute space = cast<MemRefType>(source.getType()).getMemorySpace();
    auto allocate = [&](Type word) -> Value {
      auto type = MemRefType::get({ShapedType::kDynamic, ShapedType::kDynamic},
                                  word, MemRefLayoutAttrInterface(), space);
      return memref::AllocOp::create(b, type, ValueRange{blocks, capacity});
    };
    entries = allocate(b.getI64Type());
    if (isWide)
      indices = allocate(b.getI32Type());
    {
      OpBuilder::InsertionGuard guard(b);
      startRow(b, blocks, kMostThreads);
      rowOfEntries = row;
      Value word = arith::IndexCastOp::create(b, b.getI64Type(), capacity);
      Value zeros = arith::IndexCastOp::create(
          b, b.getIndexType(), math::CountLeadingZerosOp::create(b, word));
      levels = arith::SubIOp::create(b, i.constant(63), zeros);
      fill(b, i.constant(0), capacity, i.constant(0));
      sort(b);
      storeBest(b);
    }
    memref::DeallocOp::create(b, entries);
    if (isWide)
      memref::DeallocOp::create(b, indices);
  }

  Value constant(ImplicitLocOpBuilder &b, int64_t value, unsigned bits) {
    return arith::ConstantIntOp::create(b, value, bits);
  }

  /// A number of 32 bits, of elements of 64 bits of 64, without a sign, that is
  /// lower the better `value` is. Zeros are equal, and NaNs, which are more
  /// than all else.
  Value keyOf(ImplicitLocOpBuilder &b, Value value) {
    const unsigned bits = isWide ? 64 : 32;
    Type word = b.getIntegerType(bits);
    Type wide = isWide ? Type(b.getF64Type()) : b.getF32Type();
    Value ones = constant(b, -1, bits);
    Value sign = constant(b, isWide ? INT64_MIN : INT32_MIN, bits);
    Value key;
    if (isa<FloatType>(type)) {
      if (type != wide)
        value = arith::ExtFOp::create(b, wide, value);
      Value zero = arith::ConstantOp::create(b, b.getFloatAttr(wide, 0));
      Value isZero =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, value, zero);
      Value isNaN =
          arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
      value = arith::SelectOp::create(b, isZero, zero, value);
      Value pattern = arith::BitcastOp::create(b, word, value);
      Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                               pattern, constant(b, 0, bits));
      Value flips = arith::SelectOp::create(b, isNegative, ones, sign);
      key = arith::XOrIOp::create(b, pattern, flips);
      key = arith::SelectOp::create(b, isNaN, ones, key);
    } else {
      key = value;
      if (type != word)
        key = isUnsigned ? arith::ExtUIOp::create(b, word, value).getResult()
                         : arith::ExtSIOp::create(b, word, value).getResult();
      if (!isUnsigned)
        key = arith::XOrIOp::create(b, key, sign);
    }
    return isSmallest ? key : arith::XOrIOp::create(b, key, ones).getResult();
  }

  /// An element, in one or two numbers.
  using Entry = SmallVector<Value, 2>;

  Entry loadEntry(ImplicitLocOpBuilder &b, Value at) {
    SmallVector<Value> place = {rowOfEntries, at};
    Entry entry = {memref::LoadOp::create(b, entries, place)};
    if (isWide)
      entry.push_back(memref::LoadOp::create(b, indices, place));
    return entry;
  }
  void storeEntry(ImplicitLocOpBuilder &b, const Entry &entry, Value at) {
    SmallVector<Value> place = {rowOfEntries, at};
    memref::StoreOp::create(b, entry[0], entries, place);
    if (isWide)
      memref::StoreOp::create(b, entry[1], indices, place);
  }

  Entry entryOf(ImplicitLocOpBuilder &b, Value value, Value at) {
    Type i64 = b.getI64Type();
    Value key = keyOf(b, value);
    if (isWide)
      return {key, arith::IndexCastOp::create(b, b.getI32Type(), at)};
    key = arith::ExtUIOp::create(b, i64, key);
    key = arith::ShLIOp::create(b, key, constant(b, 32, 64));
    Value index = arith::IndexCastOp::create(b, i64, at);
    return {arith::OrIOp::create(b, key, index)};
  }
  /// What is not there: worse than all else.
  Entry noEntry(ImplicitLocOpBuilder &b) {
    Entry entry = {constant(b, -1, 64)};
    if (isWide)
      entry.push_back(constant(b, -1, 32));
    return entry;
  }

  /// Two entries, the better one first.
  std::pair<Entry, Entry> inOrder(ImplicitLocOpBuilder &b, const Entry &x,
                                  const Entry &y) {
    if (!isWide)
      return {Entry{arith::MinUIOp::create(b, x[0], y[0])},
              Entry{arith::MaxUIOp::create(b, x[0], y[0])}};
    auto compare = [&](arith::CmpIPredicate how, int part) -> Value {
      return arith::CmpIOp::create(b, how, x[part], y[part]);
    };
    Value earlier =
        arith::AndIOp::create(b, compare(arith::CmpIPredicate::eq, 0),
                              compare(arith::CmpIPredicate::ult, 1));
    Value isFirst =
        arith::OrIOp::create(b, compare(arith::CmpIPredicate::ult, 0), earlier);
    return {select(b, isFirst, x, y), select(b, isFirst, y, x)};
  }
  static Entry select(ImplicitLocOpBuilder &b, Value condition, const Entry &x,
                      const Entry &y) {
    Entry entry;
    for (auto [left, right] : llvm::zip_equal(x, y))
      entry.push_back(arith::SelectOp::create(b, condition, left, right));
    return entry;
  }

  /// Reads `count` elements of the row from `first` on to the entries from
  /// `place` on. What is not there is worse than all else.
  void fill(ImplicitLocOpBuilder &b, Value place, Value count, Value first) {
    Indices i(b);
    auto loop = scf::ForOp::create(b, thread, count, i.constant(threads));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value at = i.add(first, loop.getInductionVar());
      Entry none = noEntry(b);
      auto some = scf::IfOp::create(b, TypeRange(ValueRange(none)),
                                    i.less(at, length), true);
      {
        OpBuilder::InsertionGuard inner(b);
        b.setInsertionPointToStart(some.thenBlock());
        Value value = memref::LoadOp::create(b, source, ValueRange{row, at});
        scf::YieldOp::create(b, entryOf(b, value, at));
        b.setInsertionPointToStart(some.elseBlock());
        scf::YieldOp::create(b, none);
      }
      storeEntry(b, Entry(some.getResults()),
                 i.add(loop.getInductionVar(), place));
    }
    gpu::BarrierOp::create(b);
  }

  /// Sorts the entries: sorted sequences of 2^level numbers, in
  /// turns up and down, are merged to ones of twice the length.
  void sort(ImplicitLocOpBuilder &b) {
    Indices i(b);
    Value one = i.constant(1);
    auto outer = scf::ForOp::create(b, one, i.add(levels, 1), one);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(outer.getBody());
    Value level = outer.getInductionVar();
    auto steps = scf::ForOp::create(b, i.constant(0), level, one);
    b.setInsertionPointToStart(steps.getBody());
    Value shift = arith::SubIOp::create(b, arith::SubIOp::create(b, level, one),
                                        steps.getInductionVar());
    Value distance = arith::ShLIOp::create(b, one, shift);
    auto pairs =
        scf::ForOp::create(b, thread, i.div(capacity, 2), i.constant(threads));
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToStart(pairs.getBody());
      Value number = pairs.getInductionVar();
      // Pairs whose positions differ by `distance`.
      Value low = arith::AndIOp::create(
          b, number, arith::SubIOp::create(b, distance, one));
      Value high = arith::SubIOp::create(b, number, low);
      Value x =
          arith::AddIOp::create(b, arith::AddIOp::create(b, high, high), low);
      Value y = arith::AddIOp::create(b, x, distance);
      Value turn =
          arith::AndIOp::create(b, arith::ShRUIOp::create(b, x, level), one);
      Value isUp = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, turn,
                                         i.constant(0));
      Entry atX = loadEntry(b, x), atY = loadEntry(b, y);
      auto [least, most] = inOrder(b, atX, atY);
      storeEntry(b, select(b, isUp, least, most), x);
      storeEntry(b, select(b, isUp, most, least), y);
    }
    gpu::BarrierOp::create(b);
  }

  void storeBest(ImplicitLocOpBuilder &b) {
    Indices i(b);
    auto loop = scf::ForOp::create(b, thread, count, i.constant(threads));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value place = loadEntry(b, loop.getInductionVar()).back();
    place = isWide
                ? arith::ExtUIOp::create(b, b.getI64Type(), place).getResult()
                : arith::AndIOp::create(b, place, constant(b, UINT32_MAX, 64))
                      .getResult();
    SmallVector<Value> to = {row, loop.getInductionVar()};
    if (values) {
      Value at = arith::IndexCastOp::create(b, b.getIndexType(), place);
      Value value = memref::LoadOp::create(b, source, ValueRange{row, at});
      memref::StoreOp::create(b, value, values, to);
    }
    if (places)
      memref::StoreOp::create(b, place, places, to);
  }

  const Value source, values, places;
  const Type type;
  const bool isSmallest, isUnsigned, isWide;
  const int64_t knownLength, knownCount;
  Value rows, count, length;
  // Of a block: numbers that it sorts at a time, 2^levels of them, and where.
  int64_t threads = 0;
  Value row, thread, entries, indices, rowOfEntries, capacity, levels;
};

struct LowerTopKPass : sardonyx::impl::NVLowerTopKBase<LowerTopKPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    KernelBody body(func);
    std::optional<NamedLoop> loop = NamedLoop::find(func, body, sdx::kTopKAttr);
    if (loop && TopKKernel::isPossible(*loop) &&
        failed(body.replaceWith([&](auto &b) {
          TopKKernel(*loop, body.getBuffer(loop->source)).emit(b);
        })))
      signalPassFailure();
  }
};

} // namespace
