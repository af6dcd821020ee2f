//===- StrassenEmitter.cpp - Seven products of halves ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of the algorithm that StrassenMatmul.cpp describes. Its phases, each
// over all tiles of rows:
//
//   u = a11 b11            keep u
//   c11 = u + a12 b21
//   x = s1 t1              keep x
//   y = s3 t3              keep y
//   v = u + s2 t2          w = v + y   c22 = w + x     keep w and v + x
//   c21 = w + a22 t4
//   c12 = v + x + s4 b22
//
// The columns of a phase stay in the L1 cache as far as they fit, and rows and
// their sums in L2 from step to step. Weights come there beside the products of
// the phase before the one that wants them.
//
//===----------------------------------------------------------------------===//

#include "StrassenEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

StrassenEmitter::StrassenEmitter(MatmulEmitter &matmul, ImplicitLocOpBuilder &b,
                                 const StrassenRows &rows,
                                 const StrassenScratch &scratch,
                                 const StrassenStep &step)
    : matmul(matmul), b(b), math(b), rows(rows), scratch(scratch), step(step),
      plan(matmul.strassen), tileRows(matmul.shape.rows),
      width(matmul.shape.width), panels(matmul.panelsPerTile),
      rest(getStrassenRest(b, rows, tileRows)), zero(math.constant(0)) {}

void StrassenEmitter::emit() {
  emitIf(b, step.needsSums, [&] {
    forEachTile(rows.firstTile, [&](const StrassenTile &tile) {
      emitRowSums(math.div(tile.row, tileRows));
    });
  });

  auto upperRows = [&](bool isLater) {
    return [&, isLater](const StrassenTile &tile) {
      return getUpperRows(tile, isLater);
    };
  };
  auto rowSums = [&](int64_t number) {
    return [&, number](const StrassenTile &tile) {
      return getRowSums(tile, number);
    };
  };
  auto zeros = [&](const StrassenProducts &at) { return makeZeros(at.tile); };
  auto kept = [&](int64_t which) {
    return [&, which](const StrassenProducts &at) {
      Accumulators accs = makeZeros(at.tile);
      forEach(at.tile, accs, [&](Value &acc, int64_t r, int64_t p) {
        acc = getKept(at, which, r, p);
      });
      return accs;
    };
  };
  auto keepAs = [&](int64_t which) {
    return [&, which](const StrassenProducts &at, Accumulators &accs) {
      forEach(at.tile, accs, [&](Value &acc, int64_t r, int64_t p) {
        keep(at, acc, which, r, p);
      });
    };
  };
  auto storeTo = [&](StrassenQuarter quarter) {
    return [&, quarter](const StrassenProducts &at, Accumulators &accs) {
      forEach(at.tile, accs, [&](Value &acc, int64_t r, int64_t p) {
        store(at, addResult(at, acc, quarter, r, p), quarter, r, p);
      });
    };
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(b, x, y);
  };
  auto keepSums = [&](const StrassenProducts &at, Accumulators &accs) {
    forEach(at.tile, accs, [&](Value &v, int64_t r, int64_t p) {
      Value x = getKept(at, kStateX, r, p);
      Value w = add(v, getKept(at, kStateY, r, p));
      keep(at, w, kStateY, r, p);
      keep(at, add(v, x), kStateX, r, p);
      store(at, addResult(at, add(w, x), BottomRight, r, p), BottomRight, r, p);
    });
  };
  Value right = math.add(step.panel, plan.pairs);
  Value later = getDepth(/*isLater=*/true);
  emitPhase({ColumnSum::B11, upperRows(false), zeros, keepAs(kStateU),
             getFetch(step.panel, later)});
  emitPhase({ColumnSum::B21, upperRows(true), kept(kStateU), storeTo(TopLeft),
             getFetch(right, step.depth)});
  emitPhase({ColumnSum::T1, rowSums(0), zeros, keepAs(kStateX),
             getFetch(right, later)});
  emitPhase({ColumnSum::T3, rowSums(2), zeros, keepAs(kStateY), {}});
  emitPhase({ColumnSum::T2, rowSums(1), kept(kStateU), keepSums, {}});
  emitPhase({ColumnSum::T4,
             rowSums(kCopyOfRows),
             kept(kStateY),
             storeTo(BottomLeft),
             {}});
  emitPhase({ColumnSum::B22, rowSums(3), kept(kStateX), storeTo(TopRight),
             getFetch(step.nextPanel, step.nextDepth, step.hasNext),
             /*isLast=*/true});
}

/// Calls `body` for the tiles from `first` on.
void StrassenEmitter::forEachTile(
    Value first, function_ref<void(const StrassenTile &)> body) {
  // Rows as such are what LLVM makes good addresses of.
  emitFor(b, math.mul(first, tileRows), math.mul(rows.endOfFull, tileRows),
          tileRows, [&](Value row) {
            body({row, tileRows, rest.areTilesLimited,
                  math.sub(math.div(row, tileRows), rows.firstTile)});
          });
  if (rest.rows > 0)
    emitIf(b, math.less(rest.firstTile, rows.endTile), [&] {
      Value row = math.mul(rest.firstTile, tileRows);
      body({row, rest.rows, rest.isLimited, nullptr});
    });
}

/// Whether the rows of a tile go by way of sums.
Value StrassenEmitter::isGood(const StrassenTile &tile) {
  Value bad = memref::LoadOp::create(b, rows.bad, math.div(tile.row, tileRows));
  return arith::XOrIOp::create(
      b, bad, arith::ConstantOp::create(b, b.getBoolAttr(true)));
}

Value StrassenEmitter::countFullTiles() {
  return math.sub(rows.endOfFull, rows.firstTile);
}

void StrassenEmitter::emitPhase(const StrassenPhase &phase) {
  auto piece = [&](Value number) {
    Value column = math.mul(number, width);
    Value isLastPiece = math.less(math.constant(plan.pieces - 2), number);
    Value before = math.mul(number, countFullTiles());
    auto emitProduct = [&](const StrassenProducts &at, const Operand &columns) {
      Accumulators accs = phase.begin(at);
      multiply(at, accs, phase.rows(at.tile), columns, [&](Value period) {
        fetchWeights(phase.fetch, at.loop, period);
        if (phase.isLast)
          fetchResults(at, period);
      });
      phase.end(at, accs);
    };
    // What follows the last product of a tile.
    auto finish = [&](const StrassenTile &tile) {
      if (!phase.isLast)
        return;
      emitIf(b, b.createOrFold<arith::AndIOp>(isLastPiece, step.isLast),
             [&] { emitResults(tile); });
    };
    auto otherwise = [&](const StrassenTile &tile) {
      if (phase.isLast)
        emitIf(b, isLastPiece, [&] { emitDirect(tile); });
    };

    StrassenTile first{math.mul(rows.firstTile, tileRows), tileRows,
                       rest.areTilesLimited, zero};
    StrassenProducts ofFirst{first, number, column, before};
    Value second = rows.firstTile;
    const bool isMade = makesColumns(phase.columns);
    if (isMade) {
      Value isFull = math.less(rows.firstTile, rows.endOfFull);
      Value isUsed = b.createOrFold<arith::AndIOp>(isFull, isGood(first));
      Operand make = makeColumns(ofFirst, phase.columns);
      emitIf(
          b, isUsed, [&] { emitProduct(ofFirst, make); },
          [&] {
            emitFor(b, zero, math.constant(plan.half()), 1, [&](Value k) {
              for (int64_t p = 0; p < panels; ++p)
                make(k, p);
            });
            if (phase.isLast)
              emitIf(b, isFull, [&] { otherwise(first); });
          });
      if (phase.isLast)
        emitIf(b, isFull, [&] { finish(first); });
      second = math.add(second, b.createOrFold<arith::SelectOp>(
                                    isFull, math.constant(1), zero));
    }
    forEachTile(second, [&](const StrassenTile &tile) {
      Value loop;
      if (tile.number)
        loop = math.add(before, tile.number);
      StrassenProducts at{tile, number, column, loop};
      emitIf(
          b, isGood(tile),
          [&] {
            emitProduct(at, isMade ? getColumns(at)
                                   : makeColumns(at, phase.columns));
          },
          [&] { otherwise(tile); });
      finish(tile);
    });
  };
  if (plan.pieces == 1)
    return piece(zero);
  emitFor(b, zero, math.constant(plan.pieces), 1, piece);
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
  Value view = emitView(b, rows.sums, {math.constant(number), tile.row, zero},
                        {1, tile.rows, plan.half()});
  return [this, view](Value k, int64_t r) -> Value {
    return memref::LoadOp::create(b, view,
                                  ValueRange{zero, math.constant(r), k});
  };
}

StrassenEmitter::Operand StrassenEmitter::getWeights(const StrassenProducts &at,
                                                     bool isRight,
                                                     bool isLater) {
  Value panel = math.add(step.panel, isRight ? plan.pairs : 0);
  Value view = emitView(b, matmul.rhs, {panel, getDepth(isLater), at.column},
                        {panels, plan.half(), width});
  return [this, view](Value k, int64_t p) -> Value {
    return emitLoad(b, view, {math.constant(p), k, zero}, width);
  };
}

/// The columns of a phase, once they are made.
StrassenEmitter::Operand
StrassenEmitter::getColumns(const StrassenProducts &at) {
  Value view = emitView(b, scratch.columns, {at.piece, zero, zero, zero},
                        {1, panels, plan.half(), width});
  return [this, view](Value k, int64_t p) -> Value {
    return emitLoad(b, view, {zero, math.constant(p), k, zero}, width);
  };
}

/// Adds one of a tile's products to its accumulators, with something `beside`
/// before each period.
void StrassenEmitter::multiply(const StrassenProducts &at, Accumulators &accs,
                               const Operand &left, const Operand &right,
                               function_ref<void(Value)> beside) {
  auto loop = scf::ForOp::create(b, zero, math.constant(plan.half()),
                                 math.constant(plan.period), accs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  beside(math.div(first, plan.period));
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

//===----------------------------------------------------------------------===//
// What is fetched
//===----------------------------------------------------------------------===//

/// The quarter of a group's weights from `panel` and `depth` on: all of it or,
/// if it is not due, nothing.
StrassenFetch StrassenEmitter::getFetch(Value panel, Value depth, Value isDue) {
  int64_t lines = panels * plan.half();
  Value count = math.constant(lines);
  if (isDue)
    count = b.createOrFold<arith::SelectOp>(isDue, count, zero);
  Value periods = math.mul(countFullTiles(), plan.pieces * plan.periods());
  Value share = math.ceilDiv(math.constant(lines * kStrassenShareUnit),
                             math.max(periods, math.constant(1)));
  return {panel, depth, count, share};
}

/// Asks for what is due in a period of a loop.
void StrassenEmitter::fetchWeights(const StrassenFetch &fetch, Value loop,
                                   Value period) {
  if (!fetch.panel || !loop || !matmul.comesFromMemory)
    return;
  auto row = [&](Value number) {
    return math.min(math.div(math.mul(number, fetch.share), kStrassenShareUnit),
                    fetch.count);
  };
  Value number = math.add(math.mul(loop, plan.periods()), period);
  emitFor(b, row(number), row(math.add(number, 1)), 1, [&](Value row) {
    Value p = panels == 1 ? zero : math.div(row, plan.half());
    Value k = panels == 1 ? row : math.sub(row, math.mul(p, plan.half()));
    int64_t packed = matmul.op.getPanelWidth();
    for (int64_t i = 0; i < packed; i += Prefetch::kLine)
      emitFetch(b, matmul.rhs,
                {math.add(fetch.panel, p), math.add(fetch.depth, k),
                 math.constant(i)},
                /*locality=*/2);
  });
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
    const StrassenTile &tile, Accumulators &accs,
    function_ref<void(Value &acc, int64_t r, int64_t p)> body) {
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t p = 0; p < panels; ++p)
      body(accs[r * panels + p], r, p);
}

void StrassenEmitter::keep(const StrassenProducts &at, Value acc, int64_t which,
                           int64_t r, int64_t p) {
  emitStore(b, acc, scratch.kept,
            {math.constant(which), math.constant(p), math.add(at.tile.row, r),
             at.column});
}

Value StrassenEmitter::getKept(const StrassenProducts &at, int64_t which,
                               int64_t r, int64_t p) {
  return emitLoad(b, scratch.kept,
                  {math.constant(which), math.constant(p),
                   math.add(at.tile.row, r), at.column},
                  width);
}

/// Adds what the ranges of k before have given.
Value StrassenEmitter::addResult(const StrassenProducts &at, Value acc,
                                 StrassenQuarter quarter, int64_t r,
                                 int64_t p) {
  if (!step.isAdded)
    return acc;
  Value row = getResultRow(math.constant(p), math.constant(quarter),
                           math.add(at.tile.row, r));
  return arith::AddFOp::create(
      b, acc, emitLoad(b, scratch.results, {row, at.column}, width));
}

void StrassenEmitter::store(const StrassenProducts &at, Value acc,
                            StrassenQuarter quarter, int64_t r, int64_t p) {
  Value row = getResultRow(math.constant(p), math.constant(quarter),
                           math.add(at.tile.row, r));
  emitStore(b, acc, scratch.results, {row, at.column});
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
  emitIf(b, b.createOrFold<arith::AndIOp>(step.isLast, isDue), [&] {
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
        auto columns = [&] {
          emitFor(b, zero, math.constant(packed), width, [&](Value column) {
            whole.column = column;
            matmul.emitTile(b, chunk, row, tile.rows,
                            math.add(math.mul(chunk.panel, packed), column),
                            limit, whole);
          });
        };
        // Of an odd number of rows the lower half may have none of a tile's,
        // which `emitTile` takes its first for granted of.
        if (!limit)
          return columns();
        emitIf(b, math.less(row, limit), columns);
      });
}
