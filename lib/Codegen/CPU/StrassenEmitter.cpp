//===- StrassenEmitter.cpp - Seven products of halves ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of the algorithm that StrassenMatmul.cpp describes. Its three phases,
// each over all tiles of rows, so that the columns of a phase stay in the L2
// cache:
//
//   u = a11 b11            keep u     c11 = u + a12 b21
//   v = u + s2 t2          keep v     w = v + s3 t3     keep w
//                                     c21 = w + a22 t4
//   x = s1 t1              c22 = w + x                  c12 = v + x + s4 b22
//
//===----------------------------------------------------------------------===//

#include "StrassenEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Which states of a tile are kept. With ranges of k to add, also the sum of
/// the first phase waits: only after it is known whether the rows may go by way
/// of sums.
enum { kStateOfSecond, kStateOfThird, kWaiting };

StrassenEmitter::StrassenEmitter(MatmulEmitter &matmul, ImplicitLocOpBuilder &b,
                                 const StrassenRows &rows,
                                 const StrassenScratch &scratch,
                                 const StrassenStep &step,
                                 const StrassenOrder &order)
    : matmul(matmul), b(b), math(b), rows(rows), scratch(scratch), step(step),
      order(order), plan(matmul.strassen), tileRows(matmul.shape.rows),
      width(matmul.shape.width), panels(matmul.panelsPerTile),
      rest(getStrassenRest(b, rows, tileRows)), zero(math.constant(0)) {}

void StrassenEmitter::emit(const StrassenSums &early,
                           const StrassenSums &later) {
  auto none = [](const StrassenTile &) {};
  emitPhase(
      {0, kFirstOfSecond, early},
      [&](const StrassenProducts &at) { emitFirst(at); }, none,
      [&](const StrassenTile &tile) {
        // Rows have just been fetched.
        emitIf(b, order.isFirstGroup,
               [&] { emitRowSums(math.div(tile.row, tileRows)); });
      },
      order.isFirstGroup);
  emitIf(b, order.isFirst, [&] { emitSums(early, periodsOf(kFirstOfSecond)); });
  emitPhase(
      {kFirstOfSecond, kFirstOfThird - kFirstOfSecond, later},
      [&](const StrassenProducts &at) { emitSecond(at); }, none, none);
  emitPhase(
      {kFirstOfThird, kStrassenProducts - kFirstOfThird, later},
      [&](const StrassenProducts &at) { emitThird(at); },
      [&](const StrassenTile &tile) { emitDirect(tile); },
      [&](const StrassenTile &tile) { emitLast(tile); });
  emitSums(later, periodsOf(kStrassenProducts));
}

/// The periods in so many products of all full tiles.
Value StrassenEmitter::periodsOf(int64_t products) {
  Value tiles = math.sub(rows.endOfFull, rows.firstTile);
  return math.mul(tiles, products * plan.pieces * plan.periods());
}

/// Calls `products` for the pieces of tiles, or `otherwise` for those whose
/// rows must not be added, unless `isAlways`. Sums are made beside full tiles.
void StrassenEmitter::emitPhase(
    const StrassenPhase &phase,
    function_ref<void(const StrassenProducts &)> products,
    function_ref<void(const StrassenTile &)> otherwise,
    function_ref<void(const StrassenTile &)> afterwards, Value isAlways) {
  int64_t periods = phase.count * plan.pieces * plan.periods();
  // Rows as such are what LLVM makes good addresses of.
  Value top = math.mul(rows.firstTile, tileRows);
  Value end = math.mul(rows.endOfFull, tileRows);
  auto emitTile = [&](const StrassenTile &tile, Value index, Value first) {
    auto bySums = [&] {
      emitFor(b, zero, math.constant(plan.pieces), 1, [&](Value piece) {
        Value ofPiece;
        if (first)
          ofPiece =
              math.add(first, math.mul(piece, phase.count * plan.periods()));
        Value column = plan.pieces == 1 ? zero : math.mul(piece, width);
        products({tile, phase, column, ofPiece});
      });
    };
    auto directly = [&] {
      if (first)
        emitSums(phase.sums, first, math.add(first, periods));
      otherwise(tile);
    };
    Value isGood = arith::XOrIOp::create(
        b,
        memref::LoadOp::create(
            b, rows.bad, ValueRange{math.div(step.depth, plan.depth), index}),
        arith::ConstantOp::create(b, b.getBoolAttr(true)));
    // It is not known yet then.
    if (isAlways)
      isGood = arith::SelectOp::create(b, isAlways, isAlways, isGood);
    emitIf(b, isGood, bySums, directly);
    afterwards(tile);
  };
  emitFor(b, top, end, tileRows, [&](Value row) {
    Value index = math.div(row, tileRows);
    Value first = math.add(periodsOf(phase.before),
                           math.mul(math.sub(index, rows.firstTile), periods));
    emitTile({row, tileRows, rest.areTilesLimited}, index, first);
  });
  if (rest.rows > 0)
    emitIf(b, math.less(rest.firstTile, rows.endTile), [&] {
      Value row = math.mul(rest.firstTile, tileRows);
      emitTile({row, rest.rows, rest.isLimited}, rest.firstTile, nullptr);
    });
}

void StrassenEmitter::emitFirst(const StrassenProducts &at) {
  auto fetch = [&](bool isLater) {
    return [&, isLater](Value period) {
      emitIf(b, order.isFirstGroup, [&] {
        fetchLowerRows(at.tile, math.add(getDepth(isLater),
                                         math.mul(period, plan.period)));
      });
    };
  };
  Accumulators accs = makeZeros(at.tile);
  multiply(at, accs, 0, getUpperRows(at.tile, false),
           getColumns(at, false, false), fetch(false));
  keep(at, accs, kStateOfSecond);
  multiply(at, accs, 1, getUpperRows(at.tile, true),
           getColumns(at, false, true), fetch(true));
  if (step.isAdded)
    keep(at, accs, kWaiting);
  else
    store(at, accs, TopLeft);
}

void StrassenEmitter::emitSecond(const StrassenProducts &at) {
  if (step.isAdded) {
    Accumulators first = getKept(at, kWaiting);
    addResult(at, first, TopLeft);
    store(at, first, TopLeft);
  }
  Accumulators accs = getKept(at, kStateOfSecond);
  multiply(at, accs, 0, getRowSums(at.tile, 1), getColumnSums(at, 1));
  keep(at, accs, kStateOfSecond);
  multiply(at, accs, 1, getRowSums(at.tile, 2), getColumnSums(at, 2));
  keep(at, accs, kStateOfThird);
  addResult(at, accs, BottomLeft);
  multiply(at, accs, 2, getRowSums(at.tile, kCopyOfRows), getColumnSums(at, 3));
  store(at, accs, BottomLeft);
}

void StrassenEmitter::emitThird(const StrassenProducts &at) {
  Accumulators accs = makeZeros(at.tile);
  multiply(at, accs, 0, getRowSums(at.tile, 0), getColumnSums(at, 0));
  Accumulators last = accs;
  addKept(at, last, kStateOfThird);
  addResult(at, last, BottomRight);
  store(at, last, BottomRight);
  addKept(at, accs, kStateOfSecond);
  addResult(at, accs, TopRight);
  multiply(at, accs, 1, getRowSums(at.tile, 3), getColumns(at, true, true),
           [&](Value period) { fetchResults(at, period); });
  store(at, accs, TopRight);
}

/// What follows the products of a tile where no range of k is left.
void StrassenEmitter::emitLast(const StrassenTile &tile) {
  emitIf(b, order.isLast, [&] { emitResults(tile); });
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// The part of `memref` that a tile takes: one address with offsets then serves
/// all its rows, and one all its panels.
static Value emitView(ImplicitLocOpBuilder &b, Value memref,
                      ArrayRef<Value> offsets, ArrayRef<int64_t> sizes) {
  auto attributes = [&](ArrayRef<int64_t> values) {
    return llvm::map_to_vector(values, [&](int64_t value) -> OpFoldResult {
      return b.getIndexAttr(value);
    });
  };
  SmallVector<int64_t> strides(sizes.size(), 1);
  return memref::SubViewOp::create(b, memref, getAsOpFoldResult(offsets),
                                   attributes(sizes), attributes(strides));
}

Value StrassenEmitter::getDepth(bool isLater) {
  return math.add(step.depth, isLater ? plan.half() : 0);
}

/// Row `r` of a tile in the upper or the lower half, of the left-hand side.
Value StrassenEmitter::getRow(const StrassenTile &tile, int64_t r,
                              bool isBottom) {
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

/// Rows of the upper half, or of the lower where it is past the end of that.
StrassenEmitter::Operand StrassenEmitter::getUpperRows(const StrassenTile &tile,
                                                       bool isLater) {
  Value view = emitView(b, matmul.lhs,
                        {math.add(rows.first, tile.row), getDepth(isLater)},
                        {tile.rows, plan.half()});
  return [this, view](Value k, int64_t r) -> Value {
    return memref::LoadOp::create(b, view, ValueRange{math.constant(r), k});
  };
}

StrassenEmitter::Operand StrassenEmitter::getRowSums(const StrassenTile &tile,
                                                     int64_t number) {
  // A range of sums is half as long.
  Value view = emitView(
      b, rows.sums, {math.constant(number), tile.row, math.div(step.depth, 2)},
      {1, tile.rows, plan.half()});
  return [this, view](Value k, int64_t r) -> Value {
    return memref::LoadOp::create(b, view,
                                  ValueRange{zero, math.constant(r), k});
  };
}

StrassenEmitter::Operand StrassenEmitter::getColumns(const StrassenProducts &at,
                                                     bool isRight,
                                                     bool isLater) {
  Value panel = math.add(step.panel, isRight ? plan.pairs : 0);
  Value view = emitView(b, matmul.rhs, {panel, getDepth(isLater), at.column},
                        {panels, plan.half(), width});
  return [this, view](Value k, int64_t p) -> Value {
    return emitLoad(b, view, {math.constant(p), k, zero}, width);
  };
}

StrassenEmitter::Operand
StrassenEmitter::getColumnSums(const StrassenProducts &at, int64_t number) {
  Value view =
      emitView(b, scratch.columns,
               {step.slot, math.constant(number), zero, zero, at.column},
               {1, 1, panels, plan.half(), width});
  return [this, view](Value k, int64_t p) -> Value {
    return emitLoad(b, view, {zero, zero, math.constant(p), k, zero}, width);
  };
}

/// Adds one of a tile's products in a phase to its accumulators, with something
/// `beside` before each period.
void StrassenEmitter::multiply(const StrassenProducts &at, Accumulators &accs,
                               int64_t number, const Operand &left,
                               const Operand &right,
                               function_ref<void(Value)> beside) {
  Value firstPeriod;
  if (at.firstPeriod)
    firstPeriod = math.add(at.firstPeriod, number * plan.periods());
  auto loop = scf::ForOp::create(b, zero, math.constant(plan.half()),
                                 math.constant(plan.period), accs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  Value inProduct = math.div(first, plan.period);
  if (firstPeriod) {
    Value period = math.add(firstPeriod, inProduct);
    emitSums(at.phase.sums, period, math.add(period, 1));
  }
  if (beside)
    beside(inProduct);
  auto inner = scf::ForOp::create(b, first, math.add(first, plan.period),
                                  math.constant(Prefetch::kMostSteps),
                                  loop.getRegionIterArgs());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(inner.getBody());
    SmallVector<Value> sums(inner.getRegionIterArgs());
    for (int64_t i = 0; i < Prefetch::kMostSteps; ++i)
      emitContractionStep(b, math.add(inner.getInductionVar(), i), at.tile.rows,
                          panels, sums, left, right, emitFusedMultiplyAdd);
    scf::YieldOp::create(b, sums);
  }
  scf::YieldOp::create(b, inner.getResults());
  accs.assign(loop.getResults().begin(), loop.getResults().end());
}

/// Asks for a line of each row below a tile's from `depth` on: what another
/// thread has made takes its time.
void StrassenEmitter::fetchLowerRows(const StrassenTile &tile, Value depth) {
  Value row = math.add(math.add(rows.first, rows.half), tile.row);
  for (int64_t r = 0; r < tile.rows; ++r)
    emitFetch(b, matmul.lhs, {math.add(row, r), depth});
}

//===----------------------------------------------------------------------===//
// States and results of a tile
//===----------------------------------------------------------------------===//

StrassenEmitter::Accumulators
StrassenEmitter::makeZeros(const StrassenTile &tile) {
  auto type = VectorType::get({width}, b.getF32Type());
  Value value = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return Accumulators(tile.rows * panels, value);
}

void StrassenEmitter::forEach(
    const StrassenProducts &at, Accumulators &accs,
    function_ref<void(Value &acc, int64_t r, int64_t p)> body) {
  for (int64_t r = 0; r < at.tile.rows; ++r)
    for (int64_t p = 0; p < panels; ++p)
      body(accs[r * panels + p], r, p);
}

void StrassenEmitter::keep(const StrassenProducts &at, Accumulators &accs,
                           int64_t which) {
  forEach(at, accs, [&](Value &acc, int64_t r, int64_t p) {
    emitStore(b, acc, scratch.kept,
              {math.constant(which), math.constant(p), math.add(at.tile.row, r),
               at.column});
  });
}

StrassenEmitter::Accumulators
StrassenEmitter::getKept(const StrassenProducts &at, int64_t which) {
  Accumulators accs(at.tile.rows * panels);
  forEach(at, accs, [&](Value &acc, int64_t r, int64_t p) {
    acc = emitLoad(b, scratch.kept,
                   {math.constant(which), math.constant(p),
                    math.add(at.tile.row, r), at.column},
                   width);
  });
  return accs;
}

void StrassenEmitter::addKept(const StrassenProducts &at, Accumulators &accs,
                              int64_t which) {
  for (auto [acc, kept] : llvm::zip_equal(accs, getKept(at, which)))
    acc = arith::AddFOp::create(b, acc, kept);
}

/// Adds what the ranges of k before have given.
void StrassenEmitter::addResult(const StrassenProducts &at, Accumulators &accs,
                                StrassenQuarter quarter) {
  if (!step.isAdded)
    return;
  forEach(at, accs, [&](Value &acc, int64_t r, int64_t p) {
    Value row = getResultRow(math.constant(p), math.constant(quarter),
                             math.add(at.tile.row, r));
    acc = arith::AddFOp::create(
        b, acc, emitLoad(b, scratch.results, {row, at.column}, width));
  });
}

void StrassenEmitter::store(const StrassenProducts &at, Accumulators &accs,
                            StrassenQuarter quarter) {
  forEach(at, accs, [&](Value &acc, int64_t r, int64_t p) {
    Value row = getResultRow(math.constant(p), math.constant(quarter),
                             math.add(at.tile.row, r));
    emitStore(b, acc, scratch.results, {row, at.column});
  });
}

/// Where a row of a panel's quarter lies among the results.
Value StrassenEmitter::getResultRow(Value panel, Value quarter, Value row) {
  Value number = math.add(math.mul(panel, kStrassenQuarters), quarter);
  return math.add(math.mul(number, rows.padded), row);
}

/// Asks for the memory of a tile's results beside the last product before they
/// are stored, some rows in each period of it: what came sooner would have left
/// the cache again, and more at once would wait.
void StrassenEmitter::fetchResults(const StrassenProducts &at, Value period) {
  const StrassenTile &tile = at.tile;
  int64_t every = std::max<int64_t>(1, plan.periods() / tile.rows);
  int64_t count = llvm::divideCeil(tile.rows, plan.periods());
  Value first = math.mul(math.div(period, every), count);
  Value isDue = b.createOrFold<arith::AndIOp>(
      math.less(math.rem(period, math.constant(every)), math.constant(1)),
      math.less(first, math.constant(tile.rows)));
  emitIf(b, b.createOrFold<arith::AndIOp>(order.isLast, isDue), [&] {
    for (int64_t r = 0; r < count; ++r)
      for (int64_t quarter = 0; quarter < kStrassenQuarters; ++quarter)
        for (int64_t p = 0; p < panels; ++p) {
          StrassenTile one{math.add(math.add(tile.row, first), r), 1,
                           tile.isLimited};
          bool isRight = quarter >= TopRight;
          Value panel =
              math.add(step.panel, p + (isRight ? plan.pairs : int64_t(0)));
          Tile results = matmul.getTile(
              b, {}, getRow(one, 0, /*isBottom=*/quarter % TopRight != 0),
              math.add(math.mul(panel, matmul.op.getPanelWidth()), at.column));
          matmul.evaluator.prefetchOutputs(b, results, 1, /*cacheBytes=*/0);
        }
  });
}

/// The products of rows that cannot go by way of sums, and of those below them.
void StrassenEmitter::emitDirect(const StrassenTile &tile) {
  Value none = makeZeros(tile).front();
  auto product = [&](Value p, Value isRight, Value column) {
    Value panel =
        math.add(math.add(step.panel, p), math.mul(isRight, plan.pairs));
    SmallVector<Value> accs, results, row;
    for (bool isBottom : {false, true})
      for (int64_t r = 0; r < tile.rows; ++r) {
        Value quarter = math.add(math.mul(isRight, TopRight),
                                 isBottom ? BottomLeft : TopLeft);
        results.push_back(getResultRow(p, quarter, math.add(tile.row, r)));
        accs.push_back(step.isAdded ? emitLoad(b, scratch.results,
                                               {results.back(), column}, width)
                                    : none);
        row.push_back(getRow(tile, r, isBottom));
      }
    accs = emitContractionLoop(
        b, math.constant(plan.depth), row.size(), 1, accs,
        [&](Value k, int64_t r) -> Value {
          return memref::LoadOp::create(
              b, matmul.lhs, ValueRange{row[r], math.add(step.depth, k)});
        },
        [&](Value k, int64_t) {
          // What the products before took has left the cache.
          constexpr int64_t kAhead = 24;
          Value depth = math.add(step.depth, k);
          for (int64_t i = 0; i < width; i += Prefetch::kLine)
            emitFetch(b, matmul.rhs,
                      {panel, math.add(depth, kAhead), math.add(column, i)});
          return emitLoad(b, matmul.rhs, {panel, depth, column}, width);
        });
    for (auto [acc, result] : llvm::zip_equal(accs, results))
      emitStore(b, acc, scratch.results, {result, column});
  };
  emitFor(b, zero, math.constant(2 * panels), 1, [&](Value number) {
    emitFor(b, zero, math.constant(matmul.op.getPanelWidth()), width,
            [&](Value column) {
              product(math.div(number, 2), math.rem(number, math.constant(2)),
                      column);
            });
  });
}

/// What follows the products of a tile.
void StrassenEmitter::emitResults(const StrassenTile &tile) {
  int64_t packed = matmul.op.getPanelWidth();
  auto select = [&](Value condition, Value then, Value otherwise) {
    return b.createOrFold<arith::SelectOp>(condition, then, otherwise);
  };
  emitFor(
      b, zero, math.constant(kStrassenQuarters * panels), 1, [&](Value number) {
        Value quarter = math.rem(number, math.constant(kStrassenQuarters));
        Value p = math.div(number, kStrassenQuarters);
        Value isBottom =
            math.less(zero, math.rem(quarter, math.constant(TopRight)));
        Value isRight = math.less(math.constant(BottomLeft), quarter);
        MatmulEmitter::Chunk chunk;
        chunk.sums = scratch.results;
        chunk.panel =
            math.add(math.add(step.panel, p),
                     select(isRight, math.constant(plan.pairs), zero));
        Value row = math.add(math.add(rows.first, tile.row),
                             select(isBottom, rows.half, zero));
        Value limit;
        if (tile.isLimited)
          limit = math.add(rows.first, select(isBottom, rows.count, rows.half));
        Start whole;
        whole.row = getResultRow(p, quarter, tile.row);
        whole.isWhole = true;
        emitFor(b, zero, math.constant(packed), width, [&](Value column) {
          whole.column = column;
          matmul.emitTile(b, chunk, row, tile.rows,
                          math.add(math.mul(chunk.panel, packed), column),
                          limit, whole);
        });
      });
}
