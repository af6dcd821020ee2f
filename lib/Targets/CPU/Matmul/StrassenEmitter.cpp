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
//   0  u = a11 b11           keep u
//   1  c11 = u + a12 b21
//   2  x = s1 t1             keep x
//   3  y = s3 t3             keep y
//   4  v = u + s2 t2         w = v + y   c22 = w + x     keep w and v + x
//   5  c21 = w + a22 t4
//   6  c12 = v + x + s4 b22
//
// They are one loop: what they differ in is chosen by their number, so that
// there is one code for the products of a tile. s3 and t3 have the other sign,
// which makes a difference of each sum of columns.
//
// The columns of a phase stay in the L1 cache as far as they fit, and rows and
// their sums in L2 from step to step. Weights come there beside the products of
// the phase before the one that wants them.
//
//===----------------------------------------------------------------------===//

#include "Matmul/StrassenEmitter.h"

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
    forEachTile([&](const StrassenTile &tile) {
      emitRowSums(math.div(tile.row, tileRows));
    });
  });

  emitFor(b, zero, math.constant(kStrassenProducts), 1, [&](Value number) {
    StrassenPhase phase = getPhase(number);
    if (plan.pieces == 1)
      return emitPiece(phase, zero);
    emitFor(b, zero, math.constant(plan.pieces), 1,
            [&](Value piece) { emitPiece(phase, piece); });
  });
}

/// The one of seven small numbers that is a phase's.
Value StrassenEmitter::ofPhase(Value number, ArrayRef<int64_t> values) {
  constexpr int64_t kBits = 8;
  assert(values.size() == kStrassenProducts);
  int64_t all = 0;
  for (auto [phase, value] : llvm::enumerate(values))
    all |= value << (phase * kBits);
  Value shifted = b.createOrFold<arith::ShRUIOp>(math.constant(all),
                                                 math.mul(number, kBits));
  return b.createOrFold<arith::AndIOp>(shifted,
                                       math.constant((1 << kBits) - 1));
}

StrassenPhase StrassenEmitter::getPhase(Value number) {
  auto isOneOf = [&](ArrayRef<int64_t> values) {
    return math.less(zero, ofPhase(number, values));
  };
  StrassenPhase phase;
  phase.number = number;
  phase.isOfRows = math.less(number, math.constant(kPhasesOfRows));
  phase.isSum = isOneOf({0, 0, 1, 1, 1, 1, 0});
  phase.isSumOfMade = isOneOf({0, 0, 0, 0, 1, 1, 0});
  phase.startsFromState = isOneOf({0, 1, 0, 0, 1, 1, 1});
  phase.endsInState = isOneOf({1, 0, 1, 1, 0, 0, 0});
  phase.endsInSums = isOneOf({0, 0, 0, 0, 1, 0, 0});
  phase.isLast = isOneOf({0, 0, 0, 0, 0, 0, 1});
  phase.fetch = getFetch(phase);
  return phase;
}

/// Calls `body` for the tiles of the thread.
void StrassenEmitter::forEachTile(
    function_ref<void(const StrassenTile &)> body) {
  // Rows as such are what LLVM makes good addresses of.
  emitFor(b, math.mul(rows.firstTile, tileRows),
          math.mul(rows.endOfFull, tileRows), tileRows, [&](Value row) {
            body({row, tileRows, rest.areTilesLimited,
                  math.sub(math.div(row, tileRows), rows.firstTile)});
          });
  if (rest.rows > 0)
    emitIf(b, math.less(rest.firstTile, rows.endTile), [&] {
      Value row = math.mul(rest.firstTile, tileRows);
      body({row, rest.rows, rest.isLimited, nullptr});
    });
}

/// Whether the rows of a tile must be multiplied directly.
Value StrassenEmitter::isBad(const StrassenTile &tile) {
  return memref::LoadOp::create(b, rows.bad, math.div(tile.row, tileRows));
}

Value StrassenEmitter::isGood(const StrassenTile &tile) {
  return arith::XOrIOp::create(
      b, isBad(tile), arith::ConstantOp::create(b, b.getBoolAttr(true)));
}

Value StrassenEmitter::countFullTiles() {
  return math.sub(rows.endOfFull, rows.firstTile);
}

/// A phase with a piece of the panels of all tiles.
void StrassenEmitter::emitPiece(const StrassenPhase &phase, Value piece) {
  auto both = [&](Value x, Value y) {
    return b.createOrFold<arith::AndIOp>(x, y);
  };
  Value column = math.mul(piece, width);
  Value before = math.mul(piece, countFullTiles());
  Value isEnd =
      both(phase.isLast, math.less(math.constant(plan.pieces - 2), piece));

  // The first tile makes columns as it multiplies by them, or nobody
  // multiplies meanwhile.
  StrassenTile first{math.mul(rows.firstTile, tileRows), tileRows,
                     rest.areTilesLimited, zero};
  Value isMade = makesColumns(phase);
  Value isUsed = both(math.less(rows.firstTile, rows.endOfFull), isGood(first));
  Value isMadeBeside = both(isMade, isUsed);
  emitIf(b, b.createOrFold<arith::XOrIOp>(isMade, isMadeBeside), [&] {
    makeColumns(phase, {first, piece, column, {}}, {},
                [&](const Operand &make, bool) -> Accumulators {
                  emitFor(b, zero, math.constant(plan.half()), 1, [&](Value k) {
                    for (int64_t p = 0; p < panels; ++p)
                      make(k, p);
                  });
                  return {};
                });
  });

  emitIf(b, isEnd, [&] { emitDirectTiles(); });
  forEachTile([&](const StrassenTile &tile) {
    Value loop, isMaker;
    if (tile.number) {
      loop = math.add(before, tile.number);
      isMaker = both(isMadeBeside, math.less(tile.number, math.constant(1)));
    }
    emitIf(b, isGood(tile),
           [&] { emitProducts(phase, {tile, piece, column, loop}, isMaker); });
    emitIf(b, both(isEnd, step.isLast), [&] { emitResults(tile); });
  });
}

/// The products of a tile in a phase. If `isMaker`, the tile makes the columns;
/// null: it does not.
void StrassenEmitter::emitProducts(const StrassenPhase &phase,
                                   const StrassenProducts &at, Value isMaker) {
  Accumulators accs = begin(phase, at);
  SmallVector<Type> types(accs.size(), accs.front().getType());
  auto product = [&](const Operand &left, const Operand &right,
                     bool mayBeLast) {
    return multiply(at, accs, left, right, [&](Value period) {
      fetchWeights(phase.fetch, at.loop, period);
      if (mayBeLast)
        emitIf(b, phase.isLast, [&] { fetchResults(at, period); });
    });
  };
  auto byRowSums = [&](const Operand &right, bool mayBeLast) {
    return product(getRowSums(phase, at.tile), right, mayBeLast);
  };
  auto byAnyRows = [&](const Operand &right) {
    return choose(
        types, phase.isOfRows,
        [&] {
          return product(getUpperRows(phase, at.tile), right,
                         /*mayBeLast=*/false);
        },
        [&] { return byRowSums(right, /*mayBeLast=*/true); });
  };
  auto byMadeSums = [&](const Operand &sums) {
    return byRowSums(sums, /*mayBeLast=*/false);
  };
  auto make = [&] {
    return makeColumns(
        phase, at, types, [&](const Operand &columns, bool areSums) {
          return areSums ? byMadeSums(columns) : byAnyRows(columns);
        });
  };
  auto useMade = [&] {
    if (plan.pieces > 1)
      return byAnyRows(getColumns(at));
    return choose(
        types, phase.isSum, [&] { return byMadeSums(getColumns(at)); },
        [&] { return byAnyRows(getFirstWeights(phase, at)); });
  };
  accs = isMaker ? choose(types, isMaker, make, useMade) : useMade();
  end(phase, at, accs);
}

/// What one of two branches gives.
StrassenEmitter::Accumulators
StrassenEmitter::choose(TypeRange types, Value condition,
                        function_ref<Accumulators()> then,
                        function_ref<Accumulators()> otherwise) {
  auto branch = scf::IfOp::create(b, types, condition, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (auto [block, body] : {std::pair(branch.thenBlock(), then),
                             std::pair(branch.elseBlock(), otherwise)}) {
    b.setInsertionPointToStart(block);
    Accumulators results = body();
    scf::YieldOp::create(b, results);
  }
  return branch.getResults();
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

/// Rows of the upper half, or of the lower where a tile is past the end of
/// that.
StrassenEmitter::Operand
StrassenEmitter::getUpperRows(const StrassenPhase &phase,
                              const StrassenTile &tile) {
  Value isLater = ofPhase(phase.number, {0, 1, 0, 0, 0, 0, 0});
  Value depth = math.add(step.depth, math.mul(isLater, plan.half()));
  Value view = emitView(b, matmul.lhs, {math.add(rows.first, tile.row), depth},
                        {tile.rows, plan.half()});
  return [this, view](Value k, int64_t r) -> Value {
    return memref::LoadOp::create(b, view, ValueRange{math.constant(r), k});
  };
}

StrassenEmitter::Operand StrassenEmitter::getRowSums(const StrassenPhase &phase,
                                                     const StrassenTile &tile) {
  Value number = math.sub(phase.number, math.constant(kPhasesOfRows));
  Value view = emitView(b, rows.sums, {number, tile.row, zero},
                        {1, tile.rows, plan.half()});
  return [this, view](Value k, int64_t r) -> Value {
    return memref::LoadOp::create(b, view,
                                  ValueRange{zero, math.constant(r), k});
  };
}

/// A quarter of a group's weights; the right one and the later one if these
/// are 1, not 0.
StrassenEmitter::Operand StrassenEmitter::getWeights(const StrassenProducts &at,
                                                     Value isRight,
                                                     Value isLater) {
  Value panel = math.add(step.panel, math.mul(isRight, plan.pairs));
  Value depth = math.add(step.depth, math.mul(isLater, plan.half()));
  Value view = emitView(b, matmul.rhs, {panel, depth, at.column},
                        {panels, plan.half(), width});
  return [this, view](Value k, int64_t p) -> Value {
    return emitLoad(b, view, {math.constant(p), k, zero}, width);
  };
}

/// The weights that a phase multiplies by, or from which it subtracts others.
StrassenEmitter::Operand
StrassenEmitter::getFirstWeights(const StrassenPhase &phase,
                                 const StrassenProducts &at) {
  return getWeights(at, ofPhase(phase.number, {0, 0, 1, 1, 0, 0, 1}),
                    ofPhase(phase.number, {0, 1, 0, 0, 0, 1, 1}));
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
StrassenEmitter::Accumulators
StrassenEmitter::multiply(const StrassenProducts &at, const Accumulators &accs,
                          const Operand &left, const Operand &right,
                          function_ref<void(Value)> beside) {
  auto loop = scf::ForOp::create(b, zero, math.constant(plan.periods()),
                                 math.constant(1), accs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value period = loop.getInductionVar();
  Value first = math.mul(period, plan.period);
  beside(period);
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
  return loop.getResults();
}

//===----------------------------------------------------------------------===//
// What is fetched
//===----------------------------------------------------------------------===//

/// The quarter of the weights that the next phase is the first to read: b21,
/// b12, b22 and, beside the last, what the next step begins with.
StrassenFetch StrassenEmitter::getFetch(const StrassenPhase &phase) {
  auto select = [&](Value then, Value otherwise) {
    return b.createOrFold<arith::SelectOp>(phase.isLast, then, otherwise);
  };
  const int64_t lines = panels * plan.half();
  Value right =
      math.mul(ofPhase(phase.number, {0, 1, 1, 0, 0, 0, 0}), plan.pairs);
  Value later =
      math.mul(ofPhase(phase.number, {1, 0, 1, 0, 0, 0, 0}), plan.half());
  Value isNextDue =
      b.createOrFold<arith::IndexCastUIOp>(b.getIndexType(), step.hasNext);
  Value isDue = select(isNextDue, ofPhase(phase.number, {1, 1, 1, 0, 0, 0, 0}));
  Value periods = math.mul(countFullTiles(), plan.pieces * plan.periods());
  Value share = math.ceilDiv(math.constant(lines * kStrassenShareUnit),
                             math.max(periods, math.constant(1)));
  return {select(step.nextPanel, math.add(step.panel, right)),
          select(step.nextDepth, math.add(step.depth, later)),
          math.mul(isDue, share)};
}

/// Asks for what is due in a period of a loop.
void StrassenEmitter::fetchWeights(const StrassenFetch &fetch, Value loop,
                                   Value period) {
  if (!loop || !matmul.comesFromMemory)
    return;
  auto row = [&](Value number) {
    return math.div(math.mul(number, fetch.share), kStrassenShareUnit);
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
