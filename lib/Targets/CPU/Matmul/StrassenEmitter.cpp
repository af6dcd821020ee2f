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
// All but the last are one loop: what they differ in is chosen by their number,
// so that there is one code for the products of a tile. The last is apart, for
// it also has what follows the products, which is the kernel's own: other
// kernels share the loop (sdx-merge-similar-loops). s3 and t3 have the other
// sign, which makes a difference of each sum of columns.
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
      plan(matmul.plan.strassen), tileRows(matmul.shape.rows),
      width(matmul.shape.width), panels(matmul.plan.panelsPerTile),
      rest(getStrassenRest(b, rows, tileRows)), zero(math.constant(0)) {}

void StrassenEmitter::emit() {
  emitIf(b, step.needsSums, [&] {
    forEachTile([&](const StrassenTile &tile) {
      emitRowSums(math.div(tile.row, tileRows));
    });
  });

  constexpr int64_t kLast = kStrassenProducts - 1;
  emitFor(b, zero, math.constant(kLast), 1,
          [&](Value number) { emitPhase(getPhase(number, /*isLast=*/false)); });
  emitPhase(getPhase(math.constant(kLast), /*isLast=*/true));
}

void StrassenEmitter::emitPhase(const StrassenPhase &phase) {
  if (plan.pieces == 1)
    return emitPiece(phase, zero);
  emitFor(b, zero, math.constant(plan.pieces), 1,
          [&](Value piece) { emitPiece(phase, piece); });
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

StrassenPhase StrassenEmitter::getPhase(Value number, bool isLast) {
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
  phase.isLast = isLast;
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

  Value isEnd = math.less(math.constant(plan.pieces - 2), piece);
  if (phase.isLast)
    emitIf(b, isEnd, [&] { emitDirectTiles(); });
  forEachTile([&](const StrassenTile &tile) {
    Value loop, isMaker;
    if (tile.number) {
      loop = math.add(before, tile.number);
      isMaker = both(isMadeBeside, math.less(tile.number, math.constant(1)));
    }
    emitIf(b, isGood(tile),
           [&] { emitProducts(phase, {tile, piece, column, loop}, isMaker); });
    if (phase.isLast)
      emitIf(b, both(isEnd, step.isLast), [&] { emitResults(tile); });
  });
}

/// The products of a tile in a phase. If `isMaker`, the tile makes the columns;
/// null: it does not.
void StrassenEmitter::emitProducts(const StrassenPhase &phase,
                                   const StrassenProducts &at, Value isMaker) {
  Accumulators accs = begin(phase, at);
  SmallVector<Type> types(accs.size(), accs.front().getType());
  auto product = [&](const Operand &left, const Operand &right) {
    return multiply(at, accs, left, right, [&](Value period) {
      fetchWeights(phase.fetch, at.loop, period);
      if (phase.isLast)
        fetchResults(at, period);
    });
  };
  auto byRowSums = [&](const Operand &right) {
    return product(getRowSums(phase, at.tile), right);
  };
  auto byAnyRows = [&](const Operand &right) {
    return choose(
        types, phase.isOfRows,
        [&] { return product(getUpperRows(phase, at.tile), right); },
        [&] { return byRowSums(right); });
  };
  auto make = [&] {
    return makeColumns(
        phase, at, types, [&](const Operand &columns, bool areSums) {
          return areSums ? byRowSums(columns) : byAnyRows(columns);
        });
  };
  auto useMade = [&] {
    if (plan.pieces > 1)
      return byAnyRows(getColumns(at));
    return choose(
        types, phase.isSum, [&] { return byRowSums(getColumns(at)); },
        [&] { return byAnyRows(getFirstWeights(phase, at)); });
  };
  accs = isMaker ? choose(types, isMaker, make, useMade) : useMade();
  end(phase, at, accs);
}

/// What one of two branches gives; where it is known which, there is no other.
StrassenEmitter::Accumulators
StrassenEmitter::choose(TypeRange types, Value condition,
                        function_ref<Accumulators()> then,
                        function_ref<Accumulators()> otherwise) {
  APInt known;
  if (matchPattern(condition, m_ConstantInt(&known)))
    return known.isZero() ? otherwise() : then();
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
                                  math.constant(Prefetch::kMaxSteps),
                                  loop.getRegionIterArgs());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(inner.getBody());
    SmallVector<Value> sums(inner.getRegionIterArgs());
    for (int64_t i = 0; i < Prefetch::kMaxSteps; ++i)
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
    return phase.isLast ? then : otherwise;
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
  if (!loop || !matmul.facts.comesFromMemory)
    return;
  auto row = [&](Value number) {
    return math.div(math.mul(number, fetch.share), kStrassenShareUnit);
  };
  Value number = math.add(math.mul(loop, plan.periods()), period);
  emitFor(b, row(number), row(math.add(number, 1)), 1, [&](Value row) {
    // Without a division by a number that kernels which share this code give.
    Value p = zero, k = row;
    for (int64_t i = 1; i < panels; ++i) {
      Value begin = math.constant(i * plan.half());
      Value isBehind = math.less(math.sub(begin, math.constant(1)), row);
      p = b.createOrFold<arith::SelectOp>(isBehind, math.constant(i), p);
      k = b.createOrFold<arith::SelectOp>(isBehind, math.sub(row, begin), k);
    }
    int64_t packed = matmul.op.getPanelWidth();
    for (int64_t i = 0; i < packed; i += Prefetch::kLine)
      emitFetch(b, matmul.rhs,
                {math.add(fetch.panel, p), math.add(fetch.depth, k),
                 math.constant(i)},
                /*locality=*/2);
  });
}
