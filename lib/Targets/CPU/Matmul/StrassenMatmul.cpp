//===- StrassenMatmul.cpp - Seven products in the place of eight ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Winograd's form of Strassen's algorithm, once. With the rows, the columns and
// the values of k (or those of a range of them) cut into halves,
//
//   s1 = a21 + a22    s2 = s1 - a11     s3 = a11 - a21    s4 = a12 - s2
//   t1 = b12 - b11    t2 = b22 - t1     t3 = b22 - b12    t4 = b21 - t2
//
//   c11 = a11 b11 + a12 b21
//   c21 = a11 b11 + s2 t2 + s3 t3 + a22 t4
//   c22 = a11 b11 + s2 t2 + s3 t3 + s1 t1
//   c12 = a11 b11 + s2 t2         + s1 t1 + s4 b22
//
// are seven products (N. J. Higham, "Accuracy and Stability of Numerical
// Algorithms", chapter 23, has their error). Here are the plan, the threads'
// split and the order of steps; StrassenEmitter.cpp has a step, of which
// nothing but a few states of a tile is added in memory (StrassenResults.cpp),
// and StrassenSums.cpp the sums of rows and columns.
//
// Rows, columns and values of k that meet each other have to be of about the
// same size, for rounding errors are those of the larger. Of weights, which
// are known, `cpu.packed_matmul` says so; of rows, each run looks.
//
//===----------------------------------------------------------------------===//

#include "Matmul/StrassenEmitter.h"

#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Number `index` along the first dimension of a buffer.
static Value emitSlice(ImplicitLocOpBuilder &b, Value buffer, Value index) {
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<OpFoldResult> sizes =
      memref::getMixedSizes(b, buffer.getLoc(), buffer);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  offsets.front() = index;
  sizes.front() = b.getIndexAttr(1);
  auto slice = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
      type.getShape().drop_front(), type, offsets, sizes, strides));
  return memref::SubViewOp::create(b, slice, buffer, offsets, sizes, strides);
}

/// Rows at a time, so that what is kept of them stays small.
static constexpr int64_t kMaxRows = 512;

/// All rows, some hundred at a time; or directly where they are few, or where
/// threads cannot share them evenly.
void MatmulEmitter::emitStrassenLoops(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Value blocks = math.max(math.ceilDiv(m, kMaxRows), math.constant(1));
  Value size = math.ceilDiv(m, blocks);
  StrassenSplit split = emitStrassenSplit(b, size);
  Value pays = split.pays;
  if (!IndexMath::known(m))
    pays = arith::AndIOp::create(
        b, pays, math.less(math.constant(getMinStrassenRows(shape) - 1), m));
  auto emitBlock = [&](Value number) {
    Value first = math.mul(number, size);
    emitStrassenRows(b, split, first, math.min(math.add(first, size), m));
  };
  auto bySums = [&] {
    if (IndexMath::known(blocks) == 1)
      return emitBlock(math.constant(0));
    emitFor(b, math.constant(0), blocks, 1, emitBlock);
  };
  emitIf(b, pays, bySums, [&] { emitDirect(b); });
}

/// The best split of groups of panels and of so many rows among the threads of
/// the run. A thread makes the sums of all its panels and all its rows, so that
/// few rows or few columns of it are dear.
StrassenSplit MatmulEmitter::emitStrassenSplit(ImplicitLocOpBuilder &b,
                                               Value rows) {
  // In units of which the products of a tile with a group take so many: its
  // results; where threads share the columns, what of its rows and results is
  // in the caches of other cores, whose own share are rows; sums of columns, as
  // long as the products of one row; those of rows, as long as the products
  // with ten columns (measured).
  constexpr int64_t kTile = 32, kResults = 1, kOfOthers = 1;
  constexpr int64_t kRowsOfSums = 1, kColumnsOfSums = 10;
  constexpr int64_t kMaxRowParts = 4;
  IndexMath math(b);
  Value tiles = math.ceilDiv(math.ceilDiv(rows, 2), shape.rows);
  Value groups = math.constant(plan.strassen.pairs / plan.panelsPerTile);
  Value threads = sdx::ThreadCountOp::create(b);
  Value one = math.constant(1);
  int64_t columnSums = llvm::divideCeil(kTile * kRowsOfSums, shape.rows);
  int64_t rowSums = llvm::divideCeil(kTile * kColumnsOfSums,
                                     plan.panelsPerTile * op.getPanelWidth());
  StrassenSplit best;
  Value least;
  for (int64_t splitRows = 1; splitRows <= kMaxRowParts; splitRows *= 2) {
    Value splitPanel =
        math.min(math.max(math.div(threads, splitRows), one), groups);
    Value tilesOfPart = math.ceilDiv(tiles, splitRows);
    Value perTile = b.createOrFold<arith::SelectOp>(
        math.less(one, splitPanel), math.constant(kTile + kResults + kOfOthers),
        math.constant(kTile + kResults));
    Value group = math.add(math.mul(tilesOfPart, perTile), columnSums);
    Value cost = math.add(math.mul(math.ceilDiv(groups, splitPanel), group),
                          math.mul(tilesOfPart, rowSums));
    if (!least) {
      least = cost;
      best = {math.constant(splitRows), splitPanel, {}};
      continue;
    }
    Value isBetter = b.createOrFold<arith::AndIOp>(
        math.less(math.constant(splitRows - 1), threads),
        math.less(cost, least));
    auto choose = [&](Value other, Value otherwise) {
      return b.createOrFold<arith::SelectOp>(isBetter, other, otherwise);
    };
    best.splitRows = choose(math.constant(splitRows), best.splitRows);
    best.splitPanel = choose(splitPanel, best.splitPanel);
    least = choose(cost, least);
  }
  // What all threads take for eight products of halves, of which a part has to
  // be saved.
  constexpr int64_t kSaved = 32;
  Value direct =
      math.mul(math.mul(groups, tiles), kTile * (kStrassenProducts + 1));
  Value time = math.mul(math.mul(least, threads), kStrassenProducts * kSaved);
  best.pays = math.less(time, math.mul(direct, kSaved - 1));
  return best;
}

namespace {

/// A number for each part, in memory that gives each a line of its own.
class PartNumbers {
public:
  static constexpr int64_t kStride = 8;

  PartNumbers(ImplicitLocOpBuilder &b, Value memory)
      : b(b), memory(memory), zero(IndexMath(b).constant(0)) {}

  Value get(Value part) {
    return asIndex(memref::LoadOp::create(b, memory, ValueRange{part, zero}));
  }
  void set(Value part, Value number) {
    Value value = arith::IndexCastOp::create(b, b.getI64Type(), number);
    memref::StoreOp::create(b, value, memory, ValueRange{part, zero});
  }
  /// The number, which is one larger afterwards for all threads.
  Value take(Value part) {
    Value one = arith::ConstantOp::create(b, b.getI64IntegerAttr(1));
    return asIndex(memref::AtomicRMWOp::create(b, one.getType(),
                                               arith::AtomicRMWKind::addi, one,
                                               memory, ValueRange{part, zero}));
  }

private:
  Value asIndex(Value number) {
    return arith::IndexCastOp::create(b, b.getIndexType(), number);
  }

  ImplicitLocOpBuilder &b;
  Value memory, zero;
};

} // namespace

/// The rows from `firstRow` to `endRow`, with nothing of a thread's yet.
StrassenRows MatmulEmitter::getStrassenRows(ImplicitLocOpBuilder &b,
                                            Value firstRow, Value endRow) {
  IndexMath math(b);
  StrassenRows rows;
  rows.first = firstRow;
  rows.count = math.sub(endRow, firstRow);
  rows.half = math.ceilDiv(rows.count, 2);
  rows.tiles = math.ceilDiv(rows.half, shape.rows);
  // Memory for open numbers of rows is that of the most: of one size, so that
  // all runs use the same.
  rows.padded = llvm::alignTo(
      IndexMath::known(rows.half).value_or(kMaxRows / 2), shape.rows);
  return rows;
}

/// Some rows times an odd panel, which has none to go with.
void MatmulEmitter::emitOddPanels(ImplicitLocOpBuilder &b,
                                  const StrassenRows &rows, Value endRow) {
  IndexMath math(b);
  for (int64_t panel = 2 * plan.strassen.pairs;
       panel < *IndexMath::known(panelCount); ++panel) {
    constexpr int64_t kTiles = 4;
    int64_t share = kTiles * shape.rows;
    emitParallel(b, {math.ceilDiv(rows.count, share)}, [&](ValueRange ivs) {
      Chunk chunk;
      chunk.panel = math.constant(panel);
      chunk.firstRow = math.add(rows.first, math.mul(ivs[0], share));
      chunk.endRow = math.min(math.add(chunk.firstRow, share), endRow);
      emitFor(b, chunk.firstRow, chunk.endRow, shape.rows, [&](Value row) {
        emitTiles(b, chunk, row, shape.rows, chunk.endRow);
      });
    });
  }
}

/// Some rows times all panels. Each thread has a part, and takes one group of
/// panels of it after the other; who is done takes from the others, for a
/// processor that has other work, too, is slower than its neighbours.
void MatmulEmitter::emitStrassenRows(ImplicitLocOpBuilder &b,
                                     const StrassenSplit &split, Value firstRow,
                                     Value endRow) {
  IndexMath math(b);
  StrassenRows rows = getStrassenRows(b, firstRow, endRow);
  Value groups = math.constant(plan.strassen.pairs / plan.panelsPerTile);
  Value tilesOfPart = math.ceilDiv(rows.tiles, split.splitRows);
  Value groupsOfPart = math.ceilDiv(groups, split.splitPanel);

  // Each thread has memory of its own, the same in each run, so that it is in
  // its cache. That also holds sums of rows, which are made sooner than they
  // come from another core.
  Value parts = math.mul(split.splitPanel, split.splitRows);
  SmallVector<Value> buffers;
  auto allocate = [&](Value count, ArrayRef<int64_t> sizes, Type type) {
    SmallVector<int64_t> all{ShapedType::kDynamic};
    llvm::append_range(all, sizes);
    buffers.push_back(emitBuffer(b, MemRefType::get(all, type), count));
    return buffers.back();
  };
  int64_t width = op.getPanelWidth();
  bool hasRanges = plan.strassen.depth < *IndexMath::known(k);
  Type f32 = b.getF32Type();
  Value sums =
      allocate(parts, {kRowSums, rows.padded, plan.strassen.half()}, f32);
  Value bad = allocate(parts, {rows.padded / shape.rows}, b.getI1Type());
  Value columns = allocate(parts,
                           {plan.strassen.pieces, plan.panelsPerTile,
                            plan.strassen.half(), shape.width},
                           f32);
  Value kept = allocate(
      parts, {kStrassenStates, plan.panelsPerTile, rows.padded, width}, f32);
  Value results = allocate(
      hasRanges ? groups : parts,
      {rows.padded * plan.panelsPerTile * kStrassenQuarters, width}, f32);

  // Groups of each part that are taken, and whose rows a thread has the sums
  // of: a part's, or none's.
  auto allocateNumbers = [&] {
    return allocate(parts, {PartNumbers::kStride}, b.getI64Type());
  };
  PartNumbers taken(b, allocateNumbers()), held(b, allocateNumbers());
  Value zero = math.constant(0), none = split.splitRows;

  // What thread `self` does with the groups that part `number` has left.
  auto emitGroupsOf = [&](Value self, Value number, Value depth) {
    Value panelPart = math.div(number, split.splitRows);
    Value rowPart = math.rem(number, split.splitRows);
    Value first = math.mul(panelPart, groupsOfPart);
    Value end = math.min(math.add(first, groupsOfPart), groups);
    StrassenRows part = rows;
    part.sums = emitSlice(b, sums, self);
    part.bad = emitSlice(b, bad, self);
    part.firstTile = math.min(math.mul(rowPart, tilesOfPart), rows.tiles);
    part.endTile = math.min(math.add(part.firstTile, tilesOfPart), rows.tiles);
    part.endOfFull = math.max(
        math.min(part.endTile, getStrassenRest(b, rows, shape.rows).firstTile),
        part.firstTile);
    Value count = b.createOrFold<arith::SelectOp>(
        math.less(part.firstTile, part.endTile), math.sub(end, first), zero);
    emitFor(b, zero, count, 1, [&](Value) {
      Value next = taken.take(number);
      emitIf(b, math.less(next, count), [&] {
        Value needsSums = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                                held.get(self), rowPart);
        held.set(self, rowPart);
        Value group = math.add(first, next);
        StrassenScratch scratch;
        scratch.columns = emitSlice(b, columns, self);
        scratch.kept = emitSlice(b, kept, self);
        scratch.results = emitSlice(b, results, hasRanges ? group : self);
        emitStrassenGroup(b, part, scratch, {group, first, end, needsSums},
                          depth);
      });
    });
  };
  auto emitRange = [&](Value depth) {
    emitFor(b, zero, parts, 1, [&](Value number) {
      taken.set(number, zero);
      held.set(number, none);
    });
    emitParallel(b, {parts}, [&](ValueRange ivs) {
      Value self = ivs[0];
      emitFor(b, zero, parts, 1, [&](Value k) {
        emitGroupsOf(self, math.rem(math.add(self, k), parts), depth);
      });
    });
  };
  if (!hasRanges)
    emitRange(zero);
  else // Rows and their sums of a range stay in the cache from group to group.
    emitFor(b, zero, k, plan.strassen.depth, emitRange);
  for (Value buffer : buffers)
    memref::DeallocOp::create(b, buffer);
  emitOddPanels(b, rows, endRow);
}

StrassenRest sardonyx::cpu::getStrassenRest(ImplicitLocOpBuilder &b,
                                            const StrassenRows &rows,
                                            int64_t tileRows) {
  IndexMath math(b);
  StrassenRest rest;
  if (std::optional<int64_t> count = IndexMath::known(rows.count)) {
    bool isOdd = *count % 2 != 0;
    rest.rows = *IndexMath::known(rows.half) % tileRows;
    rest.areTilesLimited = rest.rows == 0 && isOdd;
    rest.isLimited = isOdd;
  } else {
    rest.rows = tileRows * 2 / 3;
    rest.areTilesLimited = rest.isLimited = true;
  }
  rest.firstTile =
      math.div(math.add(rows.half, tileRows - 1 - rest.rows), tileRows);
  return rest;
}

/// A step: a group of panels with those that lie half of the columns later, in
/// the range of k from `depth` on.
void MatmulEmitter::emitStrassenGroup(ImplicitLocOpBuilder &b,
                                      const StrassenRows &rows,
                                      const StrassenScratch &scratch,
                                      const StrassenGroup &group, Value depth) {
  IndexMath math(b);
  auto select = [&](Value condition, Value then, Value otherwise) {
    return b.createOrFold<arith::SelectOp>(condition, then, otherwise);
  };
  Value lastDepth = math.sub(k, math.constant(plan.strassen.depth));
  StrassenStep step;
  step.panel = math.mul(group.number, plan.panelsPerTile);
  step.depth = depth;
  step.isAdded = IndexMath::known(lastDepth) != 0;
  step.needsSums = group.needsSums;
  step.isLast = math.less(math.sub(lastDepth, math.constant(1)), depth);
  Value isLastGroup = math.less(math.sub(group.end, math.constant(1)),
                                math.add(group.number, 1));
  step.nextPanel =
      math.mul(select(isLastGroup, group.first, math.add(group.number, 1)),
               plan.panelsPerTile);
  step.nextDepth =
      select(isLastGroup, math.add(depth, plan.strassen.depth), depth);
  step.hasNext = math.less(step.nextDepth, k);
  if (step.isAdded)
    emitIf(b, math.less(depth, math.constant(1)), [&] {
      auto type = VectorType::get({op.getPanelWidth()}, b.getF32Type());
      Value none = arith::ConstantOp::create(b, b.getZeroAttr(type));
      Value zero = math.constant(0);
      Value top = math.mul(rows.firstTile, shape.rows);
      Value bottom = math.mul(rows.endTile, shape.rows);
      emitFor(b, zero, math.constant(plan.panelsPerTile * kStrassenQuarters), 1,
              [&](Value part) {
                Value begin = math.mul(part, rows.padded);
                emitFor(b, math.add(begin, top), math.add(begin, bottom), 1,
                        [&](Value row) {
                          emitStore(b, none, scratch.results, {row, zero});
                        });
              });
    });
  StrassenEmitter(*this, b, rows, scratch, step).emit();
}
