//===- StrassenResults.cpp - States and results of a tile -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What becomes of a tile's products: states that are kept from phase to phase,
// and quarters of the results. Rows that cannot go by way of sums get theirs
// directly.
//
//===----------------------------------------------------------------------===//

#include "Matmul/StrassenEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

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

/// The accumulators of a tile before its products of a phase.
StrassenEmitter::Accumulators
StrassenEmitter::begin(const StrassenPhase &phase, const StrassenProducts &at) {
  Accumulators zeros = makeZeros(at.tile);
  SmallVector<Type> types(zeros.size(), zeros.front().getType());
  auto state = [&] {
    Value which =
        ofPhase(phase.number, {0, kStateU, 0, 0, kStateU, kStateY, kStateX});
    Accumulators accs = zeros;
    forEach(at.tile, accs, [&](Value &acc, int64_t r, int64_t p) {
      acc = getKept(at, which, r, p);
    });
    return accs;
  };
  return choose(types, phase.startsFromState, state, [&] { return zeros; });
}

/// What becomes of them after it: a state of the tile, or a quarter of the
/// results; in one phase two of each.
void StrassenEmitter::end(const StrassenPhase &phase,
                          const StrassenProducts &at, Accumulators &accs) {
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(b, x, y);
  };
  auto keepSums = [&] {
    Value x = math.constant(kStateX), y = math.constant(kStateY);
    forEach(at.tile, accs, [&](Value &v, int64_t r, int64_t p) {
      Value keptX = getKept(at, x, r, p);
      Value w = add(v, getKept(at, y, r, p));
      keep(at, w, y, r, p);
      keep(at, add(v, keptX), x, r, p);
      store(at, add(w, keptX), math.constant(BottomRight), r, p);
    });
  };
  auto storeResults = [&] {
    Value quarter =
        ofPhase(phase.number, {0, TopLeft, 0, 0, 0, BottomLeft, TopRight});
    forEach(at.tile, accs, [&](Value &acc, int64_t r, int64_t p) {
      store(at, acc, quarter, r, p);
    });
  };
  auto keepState = [&] {
    Value which =
        ofPhase(phase.number, {kStateU, 0, kStateX, kStateY, 0, 0, 0});
    forEach(at.tile, accs, [&](Value &acc, int64_t r, int64_t p) {
      keep(at, acc, which, r, p);
    });
  };
  emitIf(b, phase.endsInState, keepState,
         [&] { emitIf(b, phase.endsInSums, keepSums, storeResults); });
}

void StrassenEmitter::keep(const StrassenProducts &at, Value acc, Value state,
                           int64_t r, int64_t p) {
  emitStore(b, acc, scratch.kept,
            {state, math.constant(p), math.add(at.tile.row, r), at.column});
}

Value StrassenEmitter::getKept(const StrassenProducts &at, Value state,
                               int64_t r, int64_t p) {
  return emitLoad(
      b, scratch.kept,
      {state, math.constant(p), math.add(at.tile.row, r), at.column}, width);
}

/// Adds an accumulator to what the ranges of k before have given of a quarter
/// of the results.
void StrassenEmitter::store(const StrassenProducts &at, Value acc,
                            Value quarter, int64_t r, int64_t p) {
  Value row = getResultRow(math.constant(p), quarter, math.add(at.tile.row, r));
  if (step.isAdded)
    acc = arith::AddFOp::create(
        b, acc, emitLoad(b, scratch.results, {row, at.column}, width));
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

/// The products of rows that cannot go by way of sums.
void StrassenEmitter::emitDirectTiles() {
  emitFor(b, math.mul(rows.firstTile, tileRows),
          math.mul(rows.endTile, tileRows), tileRows, [&](Value row) {
            StrassenTile tile{row, tileRows, /*isLimited=*/true};
            emitIf(b, isBad(tile), [&] { emitDirect(tile); });
          });
}

/// The products of such rows of a tile, and of those below them.
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
