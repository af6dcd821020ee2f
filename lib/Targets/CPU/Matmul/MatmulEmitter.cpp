//===- MatmulEmitter.cpp - The loops of a matrix product ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops around the tiles of a product (MatmulTile.cpp): for a number of
// rows that is known or open, over chunks, and over their rows.
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulEmitter.h"
#include "MicroKernels/DequantNumbers.h"
#include "MicroKernels/Half.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

LogicalResult MatmulKernel::verify() {
  if (!KernelBody::hasBuffer(op.getLhs()) ||
      !KernelBody::hasBuffer(op.getRhs()) ||
      (op.getScales() && !KernelBody::hasBuffer(op.getScales())))
    return op.emitOpError("has an operand that is computed in its own kernel");
  return evaluator.verify(op.getInit());
}

MatmulOperands MatmulKernel::getOperands(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  MatmulOperands operands;
  operands.lhs = body.getBuffer(op.getLhs());
  operands.rhs = body.getBuffer(op.getRhs());
  evaluator.prepare(b, op.getInit());
  int64_t rank = op.isBatched() ? 3 : 2;
  operands.m = evaluator.getSize(rank - 2);
  operands.n = evaluator.getSize(rank - 1);
  int64_t rhsRank = cast<MemRefType>(operands.rhs.getType()).getRank();
  operands.k = op.getDepthGroup() == 1 ? math.dim(operands.lhs, rank - 1)
                                       : math.dim(operands.rhs, rhsRank - 2);
  operands.panelCount = math.ceilDiv(operands.n, op.getPanelWidth());
  if (op.getScales())
    operands.scales = body.getBuffer(op.getScales());
  else if (facts.comesFromMemory)
    operands.flatRhs = emitCollapse(b, operands.rhs, 0);
  return operands;
}

void MatmulKernel::emit(ImplicitLocOpBuilder &b) {
  emitCases(b, getOperands(b), plan.getCases(), /*before=*/0);
}

/// The first case whose number of rows is not exceeded; `before` are those of
/// the case before the first.
void MatmulKernel::emitCases(ImplicitLocOpBuilder &b,
                             const MatmulOperands &operands,
                             ArrayRef<MatmulCaseAttr> cases, int64_t before) {
  IndexMath math(b);
  const int64_t maxRows = cases.front().getMaxRows();
  const MatmulFacts known = facts.getFactsOfCase(maxRows, before);
  auto emitCase = [&](const MatmulOperands &of) {
    std::optional<MatmulPlan> direct;
    if (cases.size() == 1 && plan.getDirect())
      direct = MatmulPlan::get(known, plan.getDirect());
    MatmulEmitter(op, evaluator, known, of,
                  MatmulPlan::get(known, cases.front()),
                  direct ? &*direct : nullptr)
        .emit(b);
  };
  if (cases.size() == 1)
    return emitCase(operands);
  auto others = [&] { emitCases(b, operands, cases.drop_front(), maxRows); };
  if (maxRows > 1)
    return emitIf(
        b, math.less(operands.m, math.constant(maxRows + 1)),
        [&] { emitCase(operands); }, others);
  Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, operands.m,
                                      math.constant(1));
  auto one = [&] {
    MatmulOperands row = operands;
    row.m = math.constant(1);
    emitCase(row);
  };
  emitIf(b, isOne, one, others);
}

/// The same product where the plan's algorithm does not pay.
void MatmulEmitter::emitDirect(ImplicitLocOpBuilder &b) {
  MatmulOperands operands{lhs, rhs, scales, m, n, panelCount, k, flatRhs};
  MatmulEmitter(op, evaluator, facts, operands, *direct).emit(b);
}

Value MatmulEmitter::getDepth(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  return facts.depth ? math.constant(*facts.depth)
                     : math.dim(lhs, op.isBatched() ? 2 : 1);
}

Value MatmulEmitter::countTileSteps(ImplicitLocOpBuilder &b) {
  return IndexMath(b).div(getDepth(b), kTileRows * depthGroup);
}

void MatmulEmitter::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  if (plan.usesStrassen)
    return emitStrassenLoops(b);
  if (vectors.roundsRows())
    return emitRoundedRows(b);
  if (!plan.usesBf16x3())
    return emitChunks(b);
  // The rows may yet be too few, and nothing may be there to add up.
  Value isLarge;
  auto require = [&](Value size, int64_t least) {
    if (IndexMath::known(size))
      return;
    Value isThere = math.less(math.constant(least - 1), size);
    isLarge = isLarge ? arith::AndIOp::create(b, isLarge, isThere) : isThere;
  };
  if (facts.minRows < kBlockRows)
    require(m, kBlockRows);
  require(k, 1);
  if (!isLarge)
    return emitBf16x3Loops(b);
  emitIf(b, isLarge, [&] { emitBf16x3Loops(b); }, [&] { emitDirect(b); });
}

/// All rows become bytes before.
void MatmulEmitter::emitRoundedRows(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  rounded = emitRoundedBuffers(b, m, *facts.depth, facts.block, target);
  auto emitRow = [&](Value row) {
    emitRoundedRow(b, lhs, row, *facts.depth, facts.block, target, rounded);
  };
  // Few rows take less than to wake threads.
  if (plan.rows <= kFewRows)
    emitFor(b, math.constant(0), m, 1, emitRow);
  else
    emitParallel(b, {m}, [&](ValueRange ivs) { emitRow(ivs[0]); });
  emitChunks(b);
  memref::DeallocOp::create(b, rounded.bytes);
  memref::DeallocOp::create(b, rounded.scales);
}

/// The loops around multiply-adds, or products of narrow numbers.
void MatmulEmitter::emitChunks(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  SmallVector<Value> sizes;
  if (op.isBatched())
    sizes.push_back(evaluator.getSize(0));
  int64_t chunkRows = plan.chunkTiles * shape.rows;
  sizes.push_back(math.ceilDiv(panelCount, plan.panelsPerTile));
  const bool rowsOuter = plan.order == MatmulOrder::RowsOuter;
  sizes.insert(rowsOuter ? sizes.end() - 1 : sizes.end(),
               math.ceilDiv(m, chunkRows));
  emitParallel(b, sizes, [&](ValueRange ivs) {
    Chunk chunk;
    if (op.isBatched()) {
      chunk.batch = ivs.front();
      ivs = ivs.drop_front();
    }
    chunk.panel = math.mul(ivs[rowsOuter ? 1 : 0], plan.panelsPerTile);
    chunk.firstRow = math.mul(ivs[rowsOuter ? 0 : 1], chunkRows);
    chunk.endRow = math.min(math.add(chunk.firstRow, chunkRows), m);
    if (plan.usesTiles())
      chunk.sums = emitBuffer(
          b, MemRefType::get({kBlockRows, op.getPanelWidth()},
                             op.getInit().getType().getElementType()));
    emitPanelGroup(b, chunk);
    if (plan.usesTiles())
      memref::DeallocOp::create(b, chunk.sums);
  });
}

/// The rows of a chunk times its panels: several at once, as long as there are
/// that many.
void MatmulEmitter::emitPanelGroup(ImplicitLocOpBuilder &b, Chunk chunk) {
  IndexMath math(b);
  std::optional<int64_t> count = IndexMath::known(panelCount);
  Value end = math.add(chunk.panel, plan.panelsPerTile);
  auto whole = [&] {
    chunk.panels = plan.panelsPerTile;
    emitRows(b, chunk);
  };
  if (plan.panelsPerTile == 1 || (count && *count % plan.panelsPerTile == 0))
    return whole();
  auto part = [&] {
    chunk.panels = 1;
    emitFor(b, chunk.panel, panelCount, 1, [&](Value panel) {
      Chunk single = chunk;
      single.panel = panel;
      emitRows(b, single);
    });
  };
  emitIf(b, math.less(panelCount, end), part, whole);
}

/// The tiles of some rows: one where it is as wide as a panel. Of narrower ones
/// all are done before the next rows, while the lines of the panel that they
/// share are near.
void MatmulEmitter::emitTiles(ImplicitLocOpBuilder &b, const Chunk &chunk,
                              Value row, int64_t rows, Value rowLimit) {
  IndexMath math(b);
  int64_t packed = op.getPanelWidth();
  Value first = math.mul(chunk.panel, packed);
  auto tile = [&](Value column) {
    emitTile(b, chunk, row, rows, column, rowLimit);
  };
  if (shape.width == packed)
    return tile(first);
  // Where a column's integers lie in their bytes is an operand of instructions.
  if (facts.packing.isQuantized() && !chunk.unpacked) {
    for (int64_t column = 0; column < packed; column += shape.width) {
      Value at = math.add(first, column);
      emitIf(b, math.less(at, n), [&] { tile(at); });
    }
    return;
  }
  Value end = math.min(math.add(first, packed), n);
  emitFor(b, first, end, shape.width, tile);
}

/// The rows that fill tile registers; gives the first that is left.
Value MatmulEmitter::emitBlocks(
    ImplicitLocOpBuilder &b, const Chunk &chunk,
    function_ref<void(Value row, int64_t rowTiles)> emitBlock) {
  IndexMath math(b);
  Value count = math.sub(chunk.endRow, chunk.firstRow);
  Value end = math.add(chunk.firstRow, math.roundDown(count, kBlockRows));
  std::optional<int64_t> rows = IndexMath::known(m);
  if (!rows || *rows >= kBlockRows)
    emitFor(b, chunk.firstRow, end, kBlockRows,
            [&](Value row) { emitBlock(row, kBlockRows / kTileRows); });
  if (rows && *rows % kBlockRows < kTileRows)
    return end;
  Value last = math.add(chunk.firstRow, math.roundDown(count, kTileRows));
  emitIf(b, math.less(end, last), [&] { emitBlock(end, 1); });
  return last;
}

/// The blocks of a chunk fetch the next panel, as many lines in each step.
void MatmulEmitter::fetchNextPanel(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                   Value row, Value step) {
  if (plan.prefetch == MatmulPrefetch::None || !flatRhs)
    return;
  IndexMath math(b);
  constexpr int64_t kMostLines = 16;
  const int64_t bytes = op.getPanelWidth() * 4; // of a group of values of k
  const int64_t lines = facts.k.value() * bytes / Prefetch::kLineBytes;
  const int64_t line = depthGroup * Prefetch::kLineBytes / 4; // in elements
  // Where the other chunks of a panel come next they fetch their share.
  const bool sharesPanel = plan.order == MatmulOrder::PanelsOuter;
  const int64_t chunkRows = plan.chunkTiles * shape.rows;
  const int64_t rows = sharesPanel ? plan.rows : std::min(plan.rows, chunkRows);
  const int64_t steps = facts.countTileSteps();
  const int64_t blocks = llvm::divideCeil(rows, kBlockRows);
  const int64_t share = llvm::divideCeil(lines, blocks * steps);
  const int64_t ofStep = std::min({share, kMostLines, lines});
  Value inRows = sharesPanel ? row : math.sub(row, chunk.firstRow);
  Value block = math.div(inRows, kBlockRows);
  Value first = math.mul(math.add(math.mul(block, steps), step), ofStep);
  // Blocks that have nothing left to fetch fetch the last lines again.
  first = math.min(first, math.constant(lines - ofStep));
  Value panel = math.mul(math.add(chunk.panel, 1), lines);
  Value place = math.mul(math.add(panel, first), line);
  for (int64_t i = 0; i < ofStep; ++i)
    emitFetch(b, flatRhs, math.add(place, i * line), /*locality=*/2);
}

/// Tile registers sum up the values of k that fill them; register tiles add
/// the others and go on from there. Results of the first `missing` rows are
/// there already (null: none).
void MatmulEmitter::emitBlock(ImplicitLocOpBuilder &b, const Chunk &chunk,
                              Value row, int64_t rowTiles, Value missing) {
  IndexMath math(b);
  Value zero = math.constant(0);
  SmallVector<Value> left, right;
  if (chunk.batch)
    left.push_back(chunk.batch);
  left.append({row, zero});
  if (op.isRhsBatched())
    right.push_back(chunk.batch);
  right.append({chunk.panel, zero, zero});
  emitTileProduct(b, op.getLhs().getType().getElementType(), rowTiles,
                  countTileSteps(b), getTileOperand(b, lhs, left),
                  getTileOperand(b, rhs, right),
                  getTileOperand(b, chunk.sums, {zero, zero}),
                  /*start=*/std::nullopt, [&](Value step) {
                    if (!missing)
                      fetchNextPanel(b, chunk, row, step);
                  });
  Start start;
  start.group = math.mul(countTileSteps(b), kTileRows);
  Value column = math.mul(chunk.panel, op.getPanelWidth());
  auto emitResults = [&](Value inBlock, int64_t rows, Value rowLimit) {
    start.row = inBlock;
    emitTile(b, chunk, math.add(row, inBlock), rows, column, rowLimit, start);
  };
  const int64_t rows = rowTiles * kTileRows;
  if (!missing)
    return emitFor(
        b, zero, math.constant(rows), shape.rows,
        [&](Value inBlock) { emitResults(inBlock, shape.rows, nullptr); });
  std::optional<int64_t> known = IndexMath::known(missing);
  if (!known)
    return emitFor(
        b, missing, math.constant(rows), shape.rows,
        [&](Value inBlock) { emitResults(inBlock, shape.rows, chunk.endRow); });
  for (int64_t from = *known; from < rows; from += shape.rows)
    emitResults(math.constant(from), std::min(shape.rows, rows - from),
                nullptr);
}

/// The panels of a chunk as f32.
Value MatmulEmitter::emitUnpackedPanels(ImplicitLocOpBuilder &b,
                                        const Chunk &chunk) {
  IndexMath math(b);
  Value zero = math.constant(0);
  const int64_t width = op.getPanelWidth();
  const int64_t groups = llvm::divideCeil(*facts.depth, kQuantizedGroup);
  Value panels = emitBuffer(
      b, MemRefType::get({chunk.panels, groups * kQuantizedGroup, width},
                         b.getF32Type()));
  for (int64_t p = 0; p < chunk.panels; ++p) {
    PackedTile tile = getPackedTile(chunk, /*rows=*/0, width);
    tile.panel = math.add(chunk.panel, p);
    tile.column = zero;
    auto store = [&](Value numbers, Value k) {
      emitStore(b, numbers, panels, {math.constant(p), k, zero});
    };
    if (facts.packing.getElement() == PackedElement::F16) {
      emitFor(b, zero, math.constant(*facts.depth), 1,
              [&](Value k) { store(emitHalves(b, tile, tile.panel, k), k); });
      continue;
    }
    if (facts.block % kQuantizedGroup && facts.block < *facts.depth) {
      emitFor(b, zero, math.constant(*facts.depth), 1,
              [&](Value k) { store(emitDequantized(b, tile, k), k); });
      continue;
    }
    emitFor(b, zero, math.constant(groups), 1, [&](Value group) {
      Value k = math.mul(group, kQuantizedGroup);
      for (auto [i, numbers] : llvm::enumerate(
               emitDequantizedGroup(b, tile, group, /*isScaled=*/true)))
        store(numbers, math.add(k, i));
    });
  }
  return panels;
}

void MatmulEmitter::emitRows(ImplicitLocOpBuilder &b, const Chunk &chunk) {
  if (plan.unpacksPanels(facts)) {
    Chunk unpacked = chunk;
    unpacked.unpacked = emitUnpackedPanels(b, chunk);
    emitRestOfRows(b, unpacked, chunk.firstRow);
    memref::DeallocOp::create(b, unpacked.unpacked);
    return;
  }
  if (!plan.usesTiles())
    return emitRestOfRows(b, chunk, chunk.firstRow);
  IndexMath math(b);
  Value first = emitBlocks(b, chunk, [&](Value row, int64_t rowTiles) {
    emitBlock(b, chunk, row, rowTiles);
  });
  // What fills no tile register is among the last rows that do.
  std::optional<int64_t> rows = IndexMath::known(m);
  if (rows && *rows % kTileRows == 0)
    return;
  auto last = [&] {
    Value from = math.sub(chunk.endRow, math.constant(kTileRows));
    emitBlock(b, chunk, from, /*rowTiles=*/1,
              rows ? math.constant(kTileRows - *rows % kTileRows)
                   : math.sub(first, from));
  };
  auto rest = [&] { emitRestOfRows(b, chunk, first); };
  if (rows && *rows < kTileRows)
    return rest();
  const int64_t least = rows.value_or(facts.minRows);
  emitIf(b, math.less(first, chunk.endRow), [&] {
    if (least >= kTileRows)
      return last();
    emitIf(b, math.less(m, math.constant(kTileRows)), rest, last);
  });
}

/// The rows from `first` on, which tile registers do not take.
void MatmulEmitter::emitRestOfRows(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                   Value first) {
  IndexMath math(b);
  std::optional<int64_t> rows = IndexMath::known(m);
  if (rows && (plan.usesTiles() || plan.usesBf16x3()))
    rows = *rows % kTileRows;
  if (facts.maxRows > 1 && facts.maxRows <= shape.rows)
    return emitRowTail(b, chunk, first);
  Value count = math.sub(chunk.endRow, first);
  Value full = math.roundDown(count, shape.rows);
  // One or two rows more than tiles of six take as long as four: with a tile
  // less there are seven or eight, which fill two of these.
  if (shape.rows == kUnevenRows) {
    Value rest = math.sub(count, full);
    Value isShort = b.createOrFold<arith::AndIOp>(
        math.less(math.constant(0), rest),
        math.less(rest, math.constant(kLowRows - 1)));
    Value without = math.max(full, math.constant(shape.rows));
    full = b.createOrFold<arith::SelectOp>(
        isShort, math.sub(without, math.constant(shape.rows)), full);
  }
  full = math.add(first, full);
  if (!rows || *rows >= shape.rows)
    emitFor(b, first, full, shape.rows,
            [&](Value row) { emitTiles(b, chunk, row, shape.rows, nullptr); });
  if (rows && *rows % shape.rows == 0)
    return;
  emitIf(b, math.less(full, chunk.endRow),
         [&] { emitRowTail(b, chunk, full); });
}

/// The rows that do not fill a tile. A known number gets tiles of its own
/// height; otherwise there is one for a single row (which is common: one
/// token, one image) and tiles whose missing rows repeat the last.
void MatmulEmitter::emitRowTail(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                Value row) {
  IndexMath math(b);
  if (std::optional<int64_t> rows = IndexMath::known(m)) {
    int64_t rest = *rows % shape.rows;
    auto oneTile = [&] { emitTiles(b, chunk, row, rest, nullptr); };
    if (shape.rows != kUnevenRows || *rows < shape.rows || rest >= kLowRows - 1)
      return oneTile();
    // A chunk that has no whole tile has nothing to add to its rest.
    return emitIf(
        b, math.less(math.add(row, shape.rows), chunk.endRow),
        [&] {
          emitTiles(b, chunk, row, kLowRows, nullptr);
          emitTiles(b, chunk, math.add(row, kLowRows),
                    rest + shape.rows - kLowRows, nullptr);
        },
        oneTile);
  }
  auto atMost = [&](int64_t count) {
    return math.less(chunk.endRow, math.add(row, count + 1));
  };
  auto several = [&] {
    auto tile = [&](int64_t rows) {
      emitTiles(b, chunk, row, rows, chunk.endRow);
    };
    if (shape.rows <= kLowRows)
      return tile(shape.rows);
    if (shape.rows != kUnevenRows)
      return emitIf(
          b, atMost(kLowRows), [&] { tile(kLowRows); },
          [&] { tile(shape.rows); });
    Value isFive = b.createOrFold<arith::AndIOp>(
        math.less(math.add(row, kLowRows), chunk.endRow), atMost(shape.rows));
    emitIf(
        b, isFive, [&] { tile(shape.rows); },
        [&] {
          emitFor(b, row, chunk.endRow, kLowRows, [&](Value first) {
            emitTiles(b, chunk, first, kLowRows, chunk.endRow);
          });
        });
  };
  // A case of its own has a single row of all.
  if (facts.minRows > 1)
    return several();
  emitIf(b, atMost(1), [&] { emitTiles(b, chunk, row, 1, nullptr); }, several);
}
