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
// are seven products (G. W. Stewart's order of I. Miller, "Computational
// complexity and numerical stability", 1975, gives the bound). A register tile
// goes through several of them without leaving its registers, so that only two
// of its states are ever kept aside. Sums of rows are made once; those of two
// panels while the products of the two before them leave room for it.
//
// Rows, columns and values of k that meet each other have to be of about the
// same size, for rounding errors are those of the larger. Of weights, which
// are known, `sdx.packed_matmul` says so; of rows, each run looks.
//
//===----------------------------------------------------------------------===//

#include "MatmulEmitter.h"

#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// The quarters of a result: its lower half, its right half.
enum Quarter { TopLeft, BottomLeft, TopRight, BottomRight, kQuarters };

/// Sums of columns, t1 to t4, and those of rows, s1 to s4, with a22.
constexpr int64_t kColumnSums = 4, kRowSums = 5, kCopy = 4;
/// Products in a step, and those before the second and the third phase of it.
constexpr int64_t kShareUnit = 1 << 16;
constexpr int64_t kProducts = 7, kFirstOfSecond = 2, kFirstOfThird = 5;

} // namespace

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

/// What each of so many parts has at most.
static Value emitShare(ImplicitLocOpBuilder &b, Value all, Value parts) {
  IndexMath math(b);
  return math.div(math.sub(math.add(all, parts), math.constant(1)), parts);
}

/// Whether `plannedRows` go by Strassen's algorithm.
void MatmulEmitter::planStrassen() {
  usesStrassen = op.getStrassen() && !usesParts && vectorBits >= 256 &&
                 plannedRows >= kFewestStrassenRows;
  if (!usesStrassen)
    return;
  strassen = {};
  strassen.depth = *op.getStrassen();
  strassen.pairs = *IndexMath::known(panelCount) / 2;
  // Two panels to a tile as long as there are no odd ones.
  if (panelsPerTile > 1 && strassen.pairs % panelsPerTile != 0) {
    panelsPerTile = 1;
    shape = TileShape::get(vectorBits, vectorRegisters, op.getPanelWidth());
  }
  strassen.pieces = op.getPanelWidth() / shape.width;
  // Short enough that what is made between two periods waits for no memory.
  constexpr int64_t kLongestPeriod = 16;
  strassen.period = std::gcd(strassen.half(), kLongestPeriod);
}

/// All rows, some hundred at a time, so that what is kept of them stays small.
/// Multiplied directly where they are few, or where threads could not share
/// them evenly.
void MatmulEmitter::emitStrassenLoops(ImplicitLocOpBuilder &b) {
  constexpr int64_t kMostRows = 512;
  IndexMath math(b);
  Value blocks = math.max(math.ceilDiv(m, kMostRows), math.constant(1));
  Value size = emitShare(b, m, blocks);
  StrassenSplit split = emitStrassenSplit(b, size);
  Value pays = split.pays;
  if (!IndexMath::known(m))
    pays = arith::AndIOp::create(
        b, pays, math.less(math.constant(kFewestStrassenRows - 1), m));
  auto emitBlock = [&](Value number) {
    Value first = math.mul(number, size);
    emitStrassenRows(b, split, first, math.min(math.add(first, size), m));
  };
  auto bySums = [&] {
    if (IndexMath::known(blocks) == 1)
      return emitBlock(math.constant(0));
    emitFor(b, math.constant(0), blocks, 1, emitBlock);
  };
  auto directly = [&] {
    usesStrassen = false;
    planTiles();
    emitChunks(b);
  };
  emitIf(b, pays, bySums, directly);
}

/// The best split of groups of panels and of so many rows among the threads of
/// the run. A thread makes the sums of all its panels and all its rows, so that
/// few rows or few columns of it are dear.
StrassenSplit MatmulEmitter::emitStrassenSplit(ImplicitLocOpBuilder &b,
                                               Value rows) {
  // In sixteenths of the time that the products of a tile with a group take:
  // sums of columns, as long as the products of three rows, and those of rows,
  // as long as the products with four columns (measured).
  constexpr int64_t kTile = 16, kRowsOfSums = 3, kColumnsOfSums = 4;
  constexpr int64_t kMostRowParts = 4;
  IndexMath math(b);
  Value tiles = math.ceilDiv(math.ceilDiv(rows, 2), shape.rows);
  Value groups = math.constant(strassen.pairs / panelsPerTile);
  Value threads = sdx::ThreadCountOp::create(b);
  Value one = math.constant(1);
  int64_t columnSums = llvm::divideCeil(kTile * kRowsOfSums, shape.rows);
  int64_t rowSums = llvm::divideCeil(kTile * kColumnsOfSums,
                                     panelsPerTile * op.getPanelWidth());
  StrassenSplit best;
  Value least;
  for (int64_t rowParts = 1; rowParts <= kMostRowParts; rowParts *= 2) {
    Value panelParts =
        math.min(math.max(math.div(threads, rowParts), one), groups);
    Value tilesOfPart = math.ceilDiv(tiles, rowParts);
    Value group = math.add(math.mul(tilesOfPart, kTile), columnSums);
    Value cost = math.add(math.mul(emitShare(b, groups, panelParts), group),
                          math.mul(tilesOfPart, rowSums));
    if (!least) {
      least = cost;
      best = {math.constant(rowParts), panelParts, {}};
      continue;
    }
    Value isBetter = b.createOrFold<arith::AndIOp>(
        math.less(math.constant(rowParts - 1), threads),
        math.less(cost, least));
    auto choose = [&](Value other, Value otherwise) {
      return b.createOrFold<arith::SelectOp>(isBetter, other, otherwise);
    };
    best.rowParts = choose(math.constant(rowParts), best.rowParts);
    best.panelParts = choose(panelParts, best.panelParts);
    least = choose(cost, least);
  }
  // What all threads take for eight products of halves, of which a fourteenth
  // has to be saved.
  constexpr int64_t kSaved = 14;
  Value direct = math.mul(math.mul(groups, tiles), kTile * (kProducts + 1));
  Value time = math.mul(math.mul(least, threads), kProducts * kSaved);
  best.pays = math.less(time, math.mul(direct, kSaved - 1));
  return best;
}

void MatmulEmitter::emitStrassenRows(ImplicitLocOpBuilder &b,
                                     const StrassenSplit &split, Value firstRow,
                                     Value endRow) {
  IndexMath math(b);
  StrassenRows rows;
  rows.first = firstRow;
  rows.count = math.sub(endRow, firstRow);
  rows.half = math.ceilDiv(rows.count, 2);
  rows.tiles = math.ceilDiv(rows.half, shape.rows);
  rows.padded = math.mul(rows.tiles, shape.rows);
  Value groups = math.constant(strassen.pairs / panelsPerTile);
  Value tilesOfPart = emitShare(b, rows.tiles, split.rowParts);
  Value groupsOfPart = emitShare(b, groups, split.panelParts);

  // Each part has memory of its own, the same in each run, so that it is in the
  // cache of the thread that has the part each time. That also holds sums of
  // rows, which are made sooner than they come from another core.
  Value parts = math.mul(split.panelParts, split.rowParts);
  SmallVector<Value> buffers;
  auto allocate = [&](ArrayRef<OpFoldResult> sizes, Type type) {
    SmallVector<OpFoldResult> all{getAsOpFoldResult(parts)};
    llvm::append_range(all, sizes);
    SmallVector<int64_t> shape;
    SmallVector<Value> open;
    dispatchIndexOpFoldResults(all, open, shape);
    buffers.push_back(emitBuffer(b, MemRefType::get(shape, type), open));
  };
  auto size = [&](int64_t value) -> OpFoldResult {
    return b.getIndexAttr(value);
  };
  OpFoldResult padded = getAsOpFoldResult(rows.padded);
  OpFoldResult panels = size(panelsPerTile), width = size(op.getPanelWidth());
  Type f32 = b.getF32Type();
  allocate({size(kRowSums), padded, size(*IndexMath::known(k) / 2)}, f32);
  allocate({size(*IndexMath::known(k) / strassen.depth),
            getAsOpFoldResult(rows.tiles)},
           b.getI1Type());
  allocate({size(2), size(kColumnSums), panels, size(strassen.half()), width},
           f32);
  // With other ranges to add, also the first sum waits until it is known that
  // the rows may go by way of sums.
  int64_t kept = strassen.depth == *IndexMath::known(k) ? 2 : 3;
  allocate({size(kept), panels, padded, width}, f32);
  allocate({getAsOpFoldResult(math.mul(rows.padded, panelsPerTile * kQuarters)),
            width},
           f32);
  emitParallel(b, {split.panelParts, split.rowParts}, [&](ValueRange ivs) {
    Value number = math.add(math.mul(ivs[0], split.rowParts), ivs[1]);
    SmallVector<Value> own;
    for (Value buffer : buffers)
      own.push_back(emitSlice(b, buffer, number));
    StrassenRows part = rows;
    part.sums = own[0];
    part.bad = own[1];
    StrassenScratch scratch{own[2], own[3], own[4]};
    part.firstTile = math.min(math.mul(ivs[1], tilesOfPart), rows.tiles);
    part.endTile = math.min(math.add(part.firstTile, tilesOfPart), rows.tiles);
    part.endOfFull =
        math.max(math.min(part.endTile, getStrassenRest(b, rows).firstTile),
                 part.firstTile);
    Value first = math.mul(ivs[0], groupsOfPart);
    Value end = math.min(math.add(first, groupsOfPart), groups);
    emitStrassenGroups(b, part, scratch, first, end);
  });
  for (Value buffer : buffers)
    memref::DeallocOp::create(b, buffer);

  // An odd panel has none to go with.
  for (int64_t panel = 2 * strassen.pairs;
       panel < *IndexMath::known(panelCount); ++panel) {
    constexpr int64_t kTiles = 4;
    int64_t share = kTiles * shape.rows;
    emitParallel(b, {math.ceilDiv(rows.count, share)}, [&](ValueRange ivs) {
      Chunk chunk;
      chunk.panel = math.constant(panel);
      chunk.firstRow = math.add(firstRow, math.mul(ivs[0], share));
      chunk.endRow = math.min(math.add(chunk.firstRow, share), endRow);
      emitOpenRows(b, chunk);
    });
  }
}

/// The rows of a chunk, which may be any number.
void MatmulEmitter::emitOpenRows(ImplicitLocOpBuilder &b, const Chunk &chunk) {
  emitFor(b, chunk.firstRow, chunk.endRow, shape.rows, [&](Value row) {
    emitTiles(b, chunk, row, shape.rows, chunk.endRow);
  });
}

/// The sums of the rows of a tile with those half of the rows below, in the
/// range of k of a step, and whether a row must not be multiplied by way of
/// them: the two are of other sizes, or sums might overflow.
void MatmulEmitter::emitRowSums(ImplicitLocOpBuilder &b,
                                const StrassenRows &rows,
                                const StrassenStep &step, Value tile) {
  // Powers of two between two rows at most; what a number may be at most.
  constexpr int64_t kMostDistance = 3, kMostExponent = 240, kMantissaBits = 23;
  IndexMath math(b);
  int64_t lanes = std::min<int64_t>(vectorBits / 32, strassen.half());
  auto bits = VectorType::get({lanes}, b.getI32Type());
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(bits));
  Value magnitude = emitSplat(b, bits, 0x7FFFFFFF);
  Value zero = math.constant(0);
  auto i32 = [&](int64_t value) { return emitSplat(b, b.getI32Type(), value); };
  auto larger = [&](Value most, Value numbers) -> Value {
    Value size = arith::AndIOp::create(
        b, vector::BitCastOp::create(b, bits, numbers), magnitude);
    return arith::MaxUIOp::create(b, most, size);
  };
  Value first = math.mul(tile, shape.rows);
  Value good = arith::ConstantOp::create(b, b.getBoolAttr(false));
  auto loop = scf::ForOp::create(b, zero, math.constant(shape.rows),
                                 math.constant(1), ValueRange{good});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value row = math.add(first, loop.getInductionVar());
    StrassenTile one{row, 1, /*isLimited=*/true};
    Value top = getStrassenRow(b, rows, one, 0, /*isBottom=*/false);
    Value bottom = getStrassenRow(b, rows, one, 0, /*isBottom=*/true);
    auto inner =
        scf::ForOp::create(b, zero, math.constant(strassen.half()),
                           math.constant(lanes), ValueRange{none, none});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(inner.getBody());
      Value inHalf = inner.getInductionVar();
      Value at = math.add(step.depth, inHalf);
      Value later = math.add(at, strassen.half());
      Value a11 = emitLoad(b, lhs, {top, at}, lanes);
      Value a12 = emitLoad(b, lhs, {top, later}, lanes);
      Value a21 = emitLoad(b, lhs, {bottom, at}, lanes);
      Value a22 = emitLoad(b, lhs, {bottom, later}, lanes);
      Value s1 = arith::AddFOp::create(b, a21, a22);
      Value s2 = arith::SubFOp::create(b, s1, a11);
      Value s3 = arith::SubFOp::create(b, a11, a21);
      Value s4 = arith::SubFOp::create(b, a12, s2);
      // A range of sums is half as long.
      Value to = math.add(math.div(step.depth, 2), inHalf);
      SmallVector<Value> sums{s1, s2, s3, s4, a22};
      for (auto [number, sum] : llvm::enumerate(sums))
        emitStore(b, sum, rows.sums, {math.constant(number), row, to});
      Value above = larger(larger(inner.getRegionIterArg(0), a11), a12);
      Value below = larger(larger(inner.getRegionIterArg(1), a21), a22);
      scf::YieldOp::create(b, ValueRange{above, below});
    }
    auto exponent = [&](Value most) -> Value {
      Value largest =
          vector::ReductionOp::create(b, vector::CombiningKind::MAXUI, most);
      return arith::ShRUIOp::create(b, largest, i32(kMantissaBits));
    };
    Value above = exponent(inner.getResult(0));
    Value below = exponent(inner.getResult(1));
    Value low = arith::MinUIOp::create(b, above, below);
    Value high = arith::MaxUIOp::create(b, above, below);
    Value isFar = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ugt, high,
        arith::AddIOp::create(b, low, i32(kMostDistance)));
    Value isLarge = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, high,
                                          i32(kMostExponent));
    Value bad = arith::OrIOp::create(b, isFar, isLarge);
    scf::YieldOp::create(
        b, ValueRange{arith::OrIOp::create(b, loop.getRegionIterArg(0), bad)});
  }
  memref::StoreOp::create(b, loop.getResult(0), rows.bad,
                          {math.div(step.depth, strassen.depth), tile});
}

/// Row `r` of a tile in the upper or the lower half, of the left-hand side.
Value MatmulEmitter::getStrassenRow(ImplicitLocOpBuilder &b,
                                    const StrassenRows &rows,
                                    const StrassenTile &tile, int64_t r,
                                    bool isBottom) {
  IndexMath math(b);
  Value row = math.add(tile.row, r);
  if (tile.isLimited)
    row = math.min(row, math.sub(rows.half, math.constant(1)));
  if (isBottom) {
    row = math.add(row, rows.half);
    if (tile.isLimited)
      row = math.min(row, math.sub(rows.count, math.constant(1)));
  }
  return math.add(rows.first, row);
}

/// Which rows of the upper half fill no tile.
StrassenRest MatmulEmitter::getStrassenRest(ImplicitLocOpBuilder &b,
                                            const StrassenRows &rows) {
  IndexMath math(b);
  StrassenRest rest;
  if (std::optional<int64_t> count = IndexMath::known(rows.count)) {
    bool isOdd = *count % 2 != 0;
    rest.rows = *IndexMath::known(rows.half) % shape.rows;
    // Direct products take 8/7 of the time.
    if (rest.rows * (kProducts + 1) > shape.rows * kProducts)
      rest = {0, /*areTilesLimited=*/true, false, {}};
    else
      rest.areTilesLimited = rest.rows == 0 && isOdd;
    rest.isLimited = isOdd;
  } else {
    rest.rows = shape.rows * 2 / 3;
    rest.areTilesLimited = rest.isLimited = true;
  }
  rest.firstTile =
      math.div(math.add(rows.half, shape.rows - 1 - rest.rows), shape.rows);
  return rest;
}

/// Groups of panels from `first` to `end`, each with the panels that lie half
/// of the columns later, one range of k after the other.
void MatmulEmitter::emitStrassenGroups(ImplicitLocOpBuilder &b,
                                       const StrassenRows &rows,
                                       const StrassenScratch &scratch,
                                       Value first, Value end) {
  IndexMath math(b);
  Value zero = math.constant(0), one = math.constant(1);
  int64_t ranges = *IndexMath::known(k) / strassen.depth;
  Value columnRows = math.constant(panelsPerTile * strassen.half());
  Value products = math.mul(math.sub(rows.endOfFull, rows.firstTile),
                            strassen.pieces * countPeriods());
  auto periods = [&](int64_t ofTile) { return math.mul(products, ofTile); };
  auto select = [&](Value condition, Value then, Value otherwise) {
    return b.createOrFold<arith::SelectOp>(condition, then, otherwise);
  };
  // The rows before each of so many periods.
  auto spread = [&](Value periods) {
    return emitShare(b, math.mul(columnRows, kShareUnit),
                     math.max(periods, one));
  };
  emitFor(b, first, end, 1, [&](Value group) {
    Value panel = math.mul(group, panelsPerTile);
    if (ranges > 1) {
      auto type = VectorType::get({op.getPanelWidth()}, b.getF32Type());
      Value none = arith::ConstantOp::create(b, b.getZeroAttr(type));
      emitFor(
          b, zero, math.mul(rows.padded, panelsPerTile * kQuarters), 1,
          [&](Value row) { emitStore(b, none, scratch.results, {row, zero}); });
    }
    auto range = [&](Value number) {
      Value done = math.add(math.mul(math.sub(group, first), ranges), number);
      Value isFirst = math.less(done, one);
      Value isFirstGroup = math.less(group, math.add(first, 1));
      StrassenStep step;
      step.panel = panel;
      step.depth = math.mul(number, strassen.depth);
      step.slot = math.rem(done, math.constant(2));
      step.isAdded = ranges > 1;
      Value isLast = ranges == 1
                         ? arith::ConstantOp::create(b, b.getBoolAttr(true))
                         : math.less(math.constant(ranges - 2), number);
      // The sums of the next step are made beside this; of the first also its
      // own, which only its first phase does without.
      StrassenSums later;
      later.of.panel = select(isLast, math.add(panel, panelsPerTile), panel);
      later.of.depth =
          select(isLast, zero, math.add(step.depth, strassen.depth));
      later.of.slot = math.sub(one, step.slot);
      Value isEnd = math.less(math.sub(end, one), math.add(group, one));
      isEnd = b.createOrFold<arith::AndIOp>(isEnd, isLast);
      later.count = select(isEnd, zero, columnRows);
      later.origin = select(isFirst, periods(kFirstOfSecond), zero);
      later.share = spread(select(isFirst, periods(kProducts - kFirstOfSecond),
                                  periods(kProducts)));
      StrassenSums early;
      early.of.panel = select(isFirst, step.panel, later.of.panel);
      early.of.depth = select(isFirst, step.depth, later.of.depth);
      early.of.slot = select(isFirst, step.slot, later.of.slot);
      early.count = select(isFirst, columnRows, later.count);
      early.origin = zero;
      early.share =
          select(isFirst, spread(periods(kFirstOfSecond)), later.share);
      emitStrassenStep(b, rows, scratch, step, early, later,
                       {isFirst, isFirstGroup, isLast});
    };
    if (ranges == 1)
      return range(zero);
    emitFor(b, zero, math.constant(ranges), 1, range);
  });
}

/// The products of all rows with a group of panels over a range of k, and sums
/// of columns beside those of the first phase and of the later ones.
void MatmulEmitter::emitStrassenStep(ImplicitLocOpBuilder &b,
                                     const StrassenRows &rows,
                                     const StrassenScratch &scratch,
                                     const StrassenStep &step,
                                     const StrassenSums &early,
                                     const StrassenSums &later,
                                     const StrassenOrder &order) {
  IndexMath math(b);
  Value zero = math.constant(0);
  StrassenRest rest = getStrassenRest(b, rows);
  Value fullTiles = math.sub(rows.endOfFull, rows.firstTile);
  // The first of the periods beside which the product number `number` of a
  // tile's phase goes on; `count` are in it, and `before` in those before.
  auto firstPeriod = [&](Value tile, Value piece, int64_t before, int64_t count,
                         int64_t number) {
    Value tiles = math.mul(fullTiles, before * strassen.pieces);
    Value pieces = math.add(
        math.mul(math.sub(tile, rows.firstTile), strassen.pieces), piece);
    return math.mul(math.add(math.add(tiles, math.mul(pieces, count)), number),
                    countPeriods());
  };
  // The sums beside the periods from `from` to `end`, or to the last.
  auto sumsFor = [&](const StrassenSums &sums, Value from, Value end = {}) {
    auto row = [&](Value period) {
      Value periods = math.sub(period, sums.origin);
      return math.div(math.mul(periods, sums.share), kShareUnit);
    };
    Value last = end ? math.min(row(end), sums.count) : sums.count;
    emitFor(b, row(from), last, 1,
            [&](Value row) { emitColumnSums(b, scratch, sums.of, row); });
  };
  auto phase = [&](int64_t before, int64_t after, const StrassenSums &sums,
                   function_ref<void(StrassenProducts &)> products,
                   function_ref<void(const StrassenTile &)> otherwise,
                   function_ref<void(const StrassenTile &)> afterwards,
                   Value isAlways = {}) {
    int64_t count = after - before;
    // Rows as such are what LLVM makes good addresses of.
    Value top = math.mul(rows.firstTile, shape.rows);
    Value end = math.mul(rows.endOfFull, shape.rows);
    emitFor(b, top, end, shape.rows, [&](Value row) {
      StrassenTile tile{row, shape.rows, rest.areTilesLimited};
      Value index = math.div(row, shape.rows);
      auto fast = [&] {
        emitFor(b, zero, math.constant(strassen.pieces), 1, [&](Value piece) {
          auto first = [&](int64_t number) {
            return firstPeriod(index, piece, before, count, number);
          };
          Value column =
              strassen.pieces == 1 ? zero : math.mul(piece, shape.width);
          StrassenProducts emit{tile, column, sums, first};
          products(emit);
        });
      };
      auto direct = [&] {
        sumsFor(sums, firstPeriod(index, zero, before, count, 0),
                firstPeriod(math.add(index, 1), zero, before, count, 0));
        otherwise(tile);
      };
      Value isBad = memref::LoadOp::create(
          b, rows.bad, ValueRange{math.div(step.depth, strassen.depth), index});
      Value isGood = arith::XOrIOp::create(
          b, isBad, arith::ConstantOp::create(b, b.getBoolAttr(true)));
      if (isAlways)
        isGood = arith::OrIOp::create(b, isGood, isAlways);
      emitIf(b, isGood, fast, direct);
      afterwards(tile);
    });
  };
  auto none = [](const StrassenTile &) {};
  Value endOfEarly =
      math.mul(fullTiles, kFirstOfSecond * strassen.pieces * countPeriods());
  Value endOfLater =
      math.mul(fullTiles, kProducts * strassen.pieces * countPeriods());

  // Operands of products: views of what a tile takes, so that one address with
  // offsets serves all its rows, and one all its panels. Rows below the upper
  // half fill its last tile; of the lower half there are copies.
  auto view = [&](Value memref, ArrayRef<Value> offsets,
                  ArrayRef<int64_t> sizes) -> Value {
    auto of = [&](ArrayRef<int64_t> values) {
      return llvm::map_to_vector(values, [&](int64_t value) -> OpFoldResult {
        return b.getIndexAttr(value);
      });
    };
    return memref::SubViewOp::create(b, memref, getAsOpFoldResult(offsets),
                                     of(sizes),
                                     of(SmallVector<int64_t>(sizes.size(), 1)));
  };
  auto depthOf = [&](bool isLater) {
    return math.add(step.depth, isLater ? strassen.half() : 0);
  };
  auto upperRows = [&](const StrassenTile &tile, bool isLater) {
    Value rowsOfTile =
        view(lhs, {math.add(rows.first, tile.row), depthOf(isLater)},
             {tile.rows, strassen.half()});
    return [rowsOfTile](ImplicitLocOpBuilder &b, Value k, int64_t r) -> Value {
      IndexMath math(b);
      return memref::LoadOp::create(b, rowsOfTile,
                                    ValueRange{math.constant(r), k});
    };
  };
  auto rowSums = [&](const StrassenTile &tile, int64_t number) {
    // A range of sums is half as long.
    Value sums = view(
        rows.sums, {math.constant(number), tile.row, math.div(step.depth, 2)},
        {1, tile.rows, strassen.half()});
    return [sums](ImplicitLocOpBuilder &b, Value k, int64_t r) -> Value {
      IndexMath math(b);
      return memref::LoadOp::create(
          b, sums, ValueRange{math.constant(0), math.constant(r), k});
    };
  };
  int64_t width = shape.width;
  auto columns = [&](const StrassenProducts &emit, bool isRight, bool isLater) {
    Value panel = math.add(step.panel, isRight ? strassen.pairs : 0);
    Value panels = view(rhs, {panel, depthOf(isLater), emit.column},
                        {panelsPerTile, strassen.half(), width});
    return
        [panels, width](ImplicitLocOpBuilder &b, Value k, int64_t p) -> Value {
          IndexMath math(b);
          return emitLoad(b, panels, {math.constant(p), k, math.constant(0)},
                          width);
        };
  };
  auto columnSums = [&](const StrassenProducts &emit, int64_t number) {
    Value sums =
        view(scratch.columns,
             {step.slot, math.constant(number), zero, zero, emit.column},
             {1, 1, panelsPerTile, strassen.half(), width});
    return [sums, width](ImplicitLocOpBuilder &b, Value k, int64_t p) -> Value {
      IndexMath math(b);
      Value zero = math.constant(0);
      return emitLoad(b, sums, {zero, zero, math.constant(p), k, zero}, width);
    };
  };

  auto type = VectorType::get({shape.width}, b.getF32Type());
  auto zeros = [&](const StrassenProducts &emit) {
    Value value = arith::ConstantOp::create(b, b.getZeroAttr(type));
    return SmallVector<Value>(emit.tile.rows * panelsPerTile, value);
  };
  // Where a state or a result of a tile lies.
  auto keptAt = [&](const StrassenProducts &emit, int64_t which, int64_t r,
                    int64_t p) {
    return SmallVector<Value>{math.constant(which), math.constant(p),
                              math.add(emit.tile.row, r), emit.column};
  };
  auto resultAt = [&](const StrassenProducts &emit, Quarter quarter, int64_t r,
                      int64_t p) {
    return SmallVector<Value>{getResultRow(b, rows, math.constant(p),
                                           math.constant(quarter),
                                           math.add(emit.tile.row, r)),
                              emit.column};
  };
  auto forAll = [&](const StrassenProducts &emit, SmallVector<Value> &accs,
                    function_ref<void(Value &, int64_t, int64_t)> body) {
    for (int64_t r = 0; r < emit.tile.rows; ++r)
      for (int64_t p = 0; p < panelsPerTile; ++p)
        body(accs[r * panelsPerTile + p], r, p);
  };
  auto keep = [&](const StrassenProducts &emit, SmallVector<Value> &accs,
                  int64_t which) {
    forAll(emit, accs, [&](Value &acc, int64_t r, int64_t p) {
      emitStore(b, acc, scratch.kept, keptAt(emit, which, r, p));
    });
  };
  auto kept = [&](const StrassenProducts &emit, int64_t which) {
    SmallVector<Value> accs = zeros(emit);
    forAll(emit, accs, [&](Value &acc, int64_t r, int64_t p) {
      acc = emitLoad(b, scratch.kept, keptAt(emit, which, r, p), shape.width);
    });
    return accs;
  };
  auto addKept = [&](const StrassenProducts &emit, SmallVector<Value> &accs,
                     int64_t which) {
    forAll(emit, accs, [&](Value &acc, int64_t r, int64_t p) {
      acc = arith::AddFOp::create(
          b, acc,
          emitLoad(b, scratch.kept, keptAt(emit, which, r, p), shape.width));
    });
  };
  auto addResult = [&](const StrassenProducts &emit, SmallVector<Value> &accs,
                       Quarter quarter) {
    if (!step.isAdded)
      return;
    forAll(emit, accs, [&](Value &acc, int64_t r, int64_t p) {
      acc = arith::AddFOp::create(b, acc,
                                  emitLoad(b, scratch.results,
                                           resultAt(emit, quarter, r, p),
                                           shape.width));
    });
  };
  auto store = [&](const StrassenProducts &emit, SmallVector<Value> &accs,
                   Quarter quarter) {
    forAll(emit, accs, [&](Value &acc, int64_t r, int64_t p) {
      emitStore(b, acc, scratch.results, resultAt(emit, quarter, r, p));
    });
  };
  auto multiply = [&](const StrassenProducts &emit, SmallVector<Value> &accs,
                      int64_t number, auto left, auto right,
                      function_ref<void(Value)> beside = {}) {
    Value firstPeriod = emit.firstPeriod(number);
    accs = emitStrassenProduct(
        b, accs, emit.tile.rows,
        [&](Value k, int64_t r) { return left(b, k, r); },
        [&](Value k, int64_t p) { return right(b, k, p); },
        [&](Value inProduct) {
          Value period = math.add(firstPeriod, inProduct);
          sumsFor(emit.sums, period, math.add(period, 1));
          if (beside)
            beside(inProduct);
        });
  };
  // The first products of all bring the rows whose sums are made after them.
  auto fetchLower = [&](const StrassenTile &tile, bool isLater) {
    return [&, isLater](Value period) {
      emitIf(b, order.isFirstGroup, [&] {
        Value row = math.add(math.add(rows.first, rows.half), tile.row);
        Value at =
            math.add(depthOf(isLater), math.mul(period, strassen.period));
        for (int64_t r = 0; r < tile.rows; ++r)
          memref::PrefetchOp::create(b, lhs, ValueRange{math.add(row, r), at},
                                     /*isWrite=*/false, /*localityHint=*/3,
                                     /*isDataCache=*/true);
      });
    };
  };

  phase(
      0, kFirstOfSecond, early,
      [&](StrassenProducts &emit) {
        fetchStrassenResults(b, rows, step, emit.tile, TopLeft);
        SmallVector<Value> accs = zeros(emit);
        multiply(emit, accs, 0, upperRows(emit.tile, false),
                 columns(emit, false, false), fetchLower(emit.tile, false));
        keep(emit, accs, 0);
        multiply(emit, accs, 1, upperRows(emit.tile, true),
                 columns(emit, false, true), fetchLower(emit.tile, true));
        if (step.isAdded)
          keep(emit, accs, 2);
        else
          store(emit, accs, TopLeft);
      },
      none,
      [&](const StrassenTile &tile) {
        emitIf(b, order.isFirstGroup, [&] {
          emitRowSums(b, rows, step, math.div(tile.row, shape.rows));
        });
      },
      order.isFirstGroup);
  emitIf(b, order.isFirst, [&] { sumsFor(early, endOfEarly); });
  phase(
      kFirstOfSecond, kFirstOfThird, later,
      [&](StrassenProducts &emit) {
        fetchStrassenResults(b, rows, step, emit.tile, BottomLeft);
        if (step.isAdded) {
          SmallVector<Value> first = kept(emit, 2);
          addResult(emit, first, TopLeft);
          store(emit, first, TopLeft);
        }
        SmallVector<Value> accs = kept(emit, 0);
        multiply(emit, accs, 0, rowSums(emit.tile, 1), columnSums(emit, 1));
        keep(emit, accs, 0);
        multiply(emit, accs, 1, rowSums(emit.tile, 2), columnSums(emit, 2));
        keep(emit, accs, 1);
        addResult(emit, accs, BottomLeft);
        multiply(emit, accs, 2, rowSums(emit.tile, kCopy), columnSums(emit, 3));
        store(emit, accs, BottomLeft);
      },
      none, none);
  auto direct = [&](const StrassenTile &tile) {
    emitStrassenDirect(b, rows, scratch, step, tile);
  };
  auto results = [&](const StrassenTile &tile) {
    emitIf(b, order.isLast,
           [&] { emitStrassenResults(b, rows, scratch, step, tile); });
  };
  phase(
      kFirstOfThird, kProducts, later,
      [&](StrassenProducts &emit) {
        fetchStrassenResults(b, rows, step, emit.tile, TopRight);
        fetchStrassenResults(b, rows, step, emit.tile, BottomRight);
        SmallVector<Value> accs = zeros(emit);
        multiply(emit, accs, 0, rowSums(emit.tile, 0), columnSums(emit, 0));
        SmallVector<Value> last = accs;
        addKept(emit, last, 1);
        addResult(emit, last, BottomRight);
        store(emit, last, BottomRight);
        addKept(emit, accs, 0);
        addResult(emit, accs, TopRight);
        multiply(emit, accs, 1, rowSums(emit.tile, 3),
                 columns(emit, true, true));
        store(emit, accs, TopRight);
      },
      direct, results);
  if (rest.rows > 0)
    emitIf(b, math.less(rest.firstTile, rows.endTile), [&] {
      StrassenTile tile{math.mul(rest.firstTile, shape.rows), rest.rows,
                        rest.isLimited};
      direct(tile);
      results(tile);
    });

  sumsFor(later, endOfLater);
}

/// The row of the buffer of results in which one of a panel's quarter begins.
Value MatmulEmitter::getResultRow(ImplicitLocOpBuilder &b,
                                  const StrassenRows &rows, Value panel,
                                  Value quarter, Value row) {
  IndexMath math(b);
  Value number = math.add(math.mul(panel, kQuarters), quarter);
  return math.add(math.mul(number, rows.padded), row);
}

/// One of the products over half of a range of k, with something `meanwhile`
/// after each so many of them.
SmallVector<Value>
MatmulEmitter::emitStrassenProduct(ImplicitLocOpBuilder &b, ValueRange accs,
                                   int64_t rows,
                                   function_ref<Value(Value, int64_t)> left,
                                   function_ref<Value(Value, int64_t)> right,
                                   function_ref<void(Value)> meanwhile) {
  IndexMath math(b);
  auto loop =
      scf::ForOp::create(b, math.constant(0), math.constant(strassen.half()),
                         math.constant(strassen.period), accs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  meanwhile(math.div(first, strassen.period));
  auto inner = scf::ForOp::create(b, first, math.add(first, strassen.period),
                                  math.constant(Prefetch::kMostSteps),
                                  loop.getRegionIterArgs());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(inner.getBody());
    SmallVector<Value> sums(inner.getRegionIterArgs());
    for (int64_t step = 0; step < Prefetch::kMostSteps; ++step)
      emitContractionStep(b, math.add(inner.getInductionVar(), step), rows,
                          panelsPerTile, sums, left, right,
                          emitFusedMultiplyAdd);
    scf::YieldOp::create(b, sums);
  }
  scf::YieldOp::create(b, inner.getResults());
  return loop.getResults();
}

/// Row `row` of the sums of columns of a step: one value of k of a panel.
void MatmulEmitter::emitColumnSums(ImplicitLocOpBuilder &b,
                                   const StrassenScratch &scratch,
                                   const StrassenStep &step, Value row) {
  // As far ahead as memory needs to bring four streams.
  constexpr int64_t kRowsAhead = 8;
  IndexMath math(b);
  Value p =
      panelsPerTile == 1 ? math.constant(0) : math.div(row, strassen.half());
  Value k =
      panelsPerTile == 1 ? row : math.sub(row, math.mul(p, strassen.half()));
  Value left = math.add(step.panel, p);
  Value right = math.add(left, strassen.pairs);
  Value at = math.add(step.depth, k), later = math.add(at, strassen.half());
  int64_t width = op.getPanelWidth();
  if (comesFromMemory)
    for (auto [panel, depth] :
         {std::pair(left, at), std::pair(right, at), std::pair(left, later),
          std::pair(right, later)})
      for (int64_t i = 0; i < width; i += Prefetch::kLine)
        memref::PrefetchOp::create(
            b, rhs,
            ValueRange{panel, math.add(depth, kRowsAhead), math.constant(i)},
            /*isWrite=*/false, /*localityHint=*/3, /*isDataCache=*/true);
  // Few registers are left beside a tile.
  int64_t lanes = std::min<int64_t>(vectorBits / 32, width);
  for (int64_t i = 0; i < width; i += lanes) {
    Value column = math.constant(i);
    Value b11 = emitLoad(b, rhs, {left, at, column}, lanes);
    Value b12 = emitLoad(b, rhs, {right, at, column}, lanes);
    Value b21 = emitLoad(b, rhs, {left, later, column}, lanes);
    Value b22 = emitLoad(b, rhs, {right, later, column}, lanes);
    Value t1 = arith::SubFOp::create(b, b12, b11);
    Value t2 = arith::SubFOp::create(b, b22, t1);
    Value t3 = arith::SubFOp::create(b, b22, b12);
    Value t4 = arith::SubFOp::create(b, b21, t2);
    for (auto [number, sum] : llvm::enumerate(ArrayRef<Value>{t1, t2, t3, t4}))
      emitStore(b, sum, scratch.columns,
                {step.slot, math.constant(number), p, k, column});
  }
}

/// The products of a tile of rows that cannot go by way of sums, and of those
/// below it.
void MatmulEmitter::emitStrassenDirect(ImplicitLocOpBuilder &b,
                                       const StrassenRows &rows,
                                       const StrassenScratch &scratch,
                                       const StrassenStep &step,
                                       const StrassenTile &tile) {
  IndexMath math(b);
  Value zero = math.constant(0);
  auto type = VectorType::get({shape.width}, b.getF32Type());
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(type));
  auto multiply = [&](Value p, Value isRight, Value column) {
    Value panel =
        math.add(math.add(step.panel, p), math.mul(isRight, strassen.pairs));
    SmallVector<Value> accs, at, row;
    for (bool isBottom : {false, true})
      for (int64_t r = 0; r < tile.rows; ++r) {
        Value quarter = math.add(math.mul(isRight, TopRight),
                                 isBottom ? BottomLeft : TopLeft);
        at.push_back(getResultRow(b, rows, p, quarter, math.add(tile.row, r)));
        accs.push_back(step.isAdded ? emitLoad(b, scratch.results,
                                               {at.back(), column}, shape.width)
                                    : none);
        row.push_back(getStrassenRow(b, rows, tile, r, isBottom));
      }
    accs = emitContractionLoop(
        b, math.constant(strassen.depth), row.size(), 1, accs,
        [&](Value k, int64_t r) -> Value {
          return memref::LoadOp::create(
              b, lhs, ValueRange{row[r], math.add(step.depth, k)});
        },
        [&](Value k, int64_t) {
          // What the products before took has left the cache.
          constexpr int64_t kAhead = 24;
          Value depth = math.add(step.depth, k);
          for (int64_t i = 0; i < shape.width; i += Prefetch::kLine)
            memref::PrefetchOp::create(
                b, rhs,
                ValueRange{panel, math.add(depth, kAhead), math.add(column, i)},
                /*isWrite=*/false, /*localityHint=*/3, /*isDataCache=*/true);
          return emitLoad(b, rhs, {panel, depth, column}, shape.width);
        });
    for (auto [acc, result] : llvm::zip_equal(accs, at))
      emitStore(b, acc, scratch.results, {result, column});
  };
  emitFor(b, zero, math.constant(2 * panelsPerTile), 1, [&](Value number) {
    emitFor(b, zero, math.constant(op.getPanelWidth()), shape.width,
            [&](Value column) {
              multiply(math.div(number, 2), math.rem(number, math.constant(2)),
                       column);
            });
  });
}

/// Calls `body` for each quarter and panel of a tile.
void MatmulEmitter::emitParts(
    ImplicitLocOpBuilder &b, const StrassenRows &rows, const StrassenTile &tile,
    function_ref<void(Value quarter, Value p, Value isBottom, Value isRight)>
        body) {
  IndexMath math(b);
  emitFor(b, math.constant(0), math.constant(kQuarters * panelsPerTile), 1,
          [&](Value number) {
            Value quarter = math.rem(number, math.constant(kQuarters));
            Value isBottom = math.less(math.constant(0),
                                       math.rem(quarter, math.constant(2)));
            Value isRight = math.less(math.constant(1), quarter);
            body(quarter, math.div(number, kQuarters), isBottom, isRight);
          });
}

/// What follows the products of a tile.
void MatmulEmitter::emitStrassenResults(ImplicitLocOpBuilder &b,
                                        const StrassenRows &rows,
                                        const StrassenScratch &scratch,
                                        const StrassenStep &step,
                                        const StrassenTile &tile) {
  IndexMath math(b);
  emitParts(
      b, rows, tile,
      [&](Value quarter, Value p, Value isBottom, Value isRight) {
        Chunk chunk;
        chunk.sums = scratch.results;
        chunk.panel = math.add(
            math.add(step.panel, p),
            b.createOrFold<arith::SelectOp>(
                isRight, math.constant(strassen.pairs), math.constant(0)));
        Value zero = math.constant(0);
        Value top = math.add(rows.first, tile.row);
        Value row = math.add(
            top, b.createOrFold<arith::SelectOp>(isBottom, rows.half, zero));
        Value limit;
        if (tile.isLimited)
          limit = math.add(rows.first, b.createOrFold<arith::SelectOp>(
                                           isBottom, rows.count, rows.half));
        Start whole;
        whole.row = getResultRow(b, rows, p, quarter, tile.row);
        whole.isWhole = true;
        emitFor(b, zero, math.constant(op.getPanelWidth()), shape.width,
                [&](Value column) {
                  whole.column = column;
                  emitTile(b, chunk, row, tile.rows,
                           math.add(math.mul(chunk.panel, op.getPanelWidth()),
                                    column),
                           limit, whole);
                });
      });
}

/// Asks for the memory of a tile's results.
void MatmulEmitter::fetchStrassenResults(ImplicitLocOpBuilder &b,
                                         const StrassenRows &rows,
                                         const StrassenStep &step,
                                         const StrassenTile &tile,
                                         int64_t quarter) {
  IndexMath math(b);
  for (int64_t p = 0; p < panelsPerTile; ++p) {
    Value panel = math.add(step.panel, p);
    if (quarter == TopRight || quarter == BottomRight)
      panel = math.add(panel, strassen.pairs);
    bool isBottom = quarter == BottomLeft || quarter == BottomRight;
    Chunk chunk;
    Tile results = getTile(b, chunk, getStrassenRow(b, rows, tile, 0, isBottom),
                           math.mul(panel, op.getPanelWidth()));
    evaluator.prefetchOutputs(b, results, tile.rows, /*cacheBytes=*/0);
  }
}
