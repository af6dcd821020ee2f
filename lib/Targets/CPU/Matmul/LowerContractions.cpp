//===- LowerContractions.cpp - Matrix products as register tiles ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/RootKernel.h"
#include "Matmul/MatmulEmitter.h"

#include "sardonyx/Targets/CPU/Passes.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERCONTRACTIONS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

LogicalResult MatmulEmitter::verify() {
  if (!KernelBody::hasBuffer(op.getLhs()) ||
      !KernelBody::hasBuffer(op.getRhs()) ||
      (op.getScales() && !KernelBody::hasBuffer(op.getScales())))
    return op.emitOpError("has an operand that is computed in its own kernel");
  if (depthGroup > 1 &&
      ShapedType::isDynamic(op.getLhs().getType().getShape().back()))
    return op.emitOpError("has narrow elements and an open depth");
  return evaluator.verify(op.getInit());
}

/// Rows that a product whose number of them is open is planned for.
static constexpr int64_t kLikelyRows = 128;
/// Up to so many rows use a weight as fast as memory can give it.
static constexpr int64_t kFewRows = 32;
/// Rows of a tile of which the last ones do best in others (emitRestOfRows),
/// and those of the lowest that keeps the multipliers busy.
static constexpr int64_t kUnevenRows = 6, kLowRows = 4;

/// Whether one instruction multiplies and adds.
bool MatmulEmitter::multipliesAtOnce() {
  if (depthGroup == 1)
    return true;
  return isOfBytes() ? target.getInt8() >= cpu::Int8Product::Vnni
                     : target.getBf16() != cpu::Bf16Product::Generic;
}

/// Of narrow vectors few rows take more, so that their sums keep the
/// multipliers busy and panels are read as they lie.
void MatmulEmitter::widenFewRows() {
  constexpr int64_t kMostRows = 2;
  std::optional<int64_t> rows = IndexMath::known(m);
  if (target.getVectorBits() >= 512 || depthGroup != 1 || op.getScales() ||
      !rows || *rows <= 0 || *rows > kMostRows)
    return;
  int64_t registers = target.countVectorRegisters();
  int64_t sums = registers * 3 / 4,
          columns = sums / *rows * target.getVectorBits() / 32;
  while (2 * shape.width <= columns &&
         op.getPanelWidth() % (2 * shape.width) == 0)
    shape.width *= 2;
  shape.rows = std::max<int64_t>(1, columns / shape.width) * *rows;
}

/// The tile for `plannedRows`.
void MatmulEmitter::planTiles() {
  shape = TileShape::get(target, op.getPanelWidth());
  panelsPerTile = 1;
  // A row of a panel is read as a whole where its numbers straddle registers.
  if (op.isShort())
    shape = {
        std::max<int64_t>(1, shape.rows * shape.width / op.getPanelWidth()),
        op.getPanelWidth()};
  std::optional<int64_t> rows = IndexMath::known(m);
  widenFewRows();
  bool isPanelWide = shape.width == op.getPanelWidth();
  readsOneStream = rows == 1 && isPanelWide && target.getVectorBits() < 512 &&
                   depthGroup == 1 && !op.getScales();
  // Two panels of triples are as many streams as memory is read best by.
  int64_t mostPanels = readsOneStream ? 1 : op.isOfTriples() ? 2 : 4;
  if (rows && *rows <= 4 && *rows > 0 && isPanelWide)
    panelsPerTile = std::clamp<int64_t>(shape.rows / *rows, 1, mostPanels);
  bool hasTiles = isOfBytes() ? target.getInt8() == cpu::Int8Product::Amx
                              : target.getBf16() == cpu::Bf16Product::Amx;
  usesTiles = depthGroup > 1 && hasTiles && isPanelWide &&
              op.getPanelWidth() == 2 * kTileRows && countTileSteps() > 0 &&
              plannedRows >= kTileRows;
  // Six rows of four registers need the fewest instructions for each
  // multiply-add that 32 registers allow (34 for 24; 26 for 16 with eight rows
  // of two), which counts where two threads share a core. These panels and the
  // next ones have to stay in the L2 cache.
  constexpr int64_t kRows = kUnevenRows, kPanels = 2;
  int64_t panelBytes = IndexMath::known(k).value_or(0) * op.getPanelWidth() *
                       int64_t(sizeof(float)); // any group is as large
  // Scales and offsets take the registers of more rows or columns; those that
  // one row leaves over take the other half of a panel.
  if (op.getScales()) {
    if (rows && *rows == 1 && target.getVectorBits() == 256)
      shape.width = op.getPanelWidth();
    return;
  }
  if (target.getVectorBits() >= 512 && isPanelWide && !usesTiles &&
      !usesParts && multipliesAtOnce() && plannedRows > kFewRows &&
      IndexMath::known(panelCount).value_or(kPanels) >= kPanels &&
      2 * kPanels * panelBytes <= target.getL2Bytes() / 2) {
    shape.rows = kRows;
    panelsPerTile = kPanels;
  } else if (target.getVectorBits() == 256 && depthGroup == 1 &&
             plannedRows > shape.rows) {
    // Sixteen registers have room for six rows of two, with one to spare.
    shape.rows = kRows;
  }
}

/// A chunk multiplies some rows by the panels of a tile. The more rows, the
/// longer these are used once they are there; but chunks must suffice for all
/// threads, and the rows, which the next panels need again, must stay in the L2
/// cache.
void MatmulEmitter::planChunks() {
  constexpr int64_t kWork = 256 * 1024; // multiplications worth a hand-over
  constexpr int64_t kEnoughChunks = 32, kMostTiles = 64;
  auto known = [](Value size, int64_t otherwise) {
    return std::max<int64_t>(IndexMath::known(size).value_or(otherwise), 1);
  };
  int64_t depth = known(k, 1024);
  int64_t tiles = llvm::divideCeil(plannedRows, shape.rows);
  int64_t groups = llvm::divideCeil(known(panelCount, 16), panelsPerTile);
  int64_t tileWidth = panelsPerTile * op.getPanelWidth();
  int64_t least =
      std::max<int64_t>(1, kWork / (depth * shape.rows * tileWidth));
  int64_t split = llvm::divideCeil(kEnoughChunks, groups);
  int64_t wanted = llvm::divideCeil(tiles, split);
  int64_t rowBytes = depth * sizeof(float); // any group is as large
  int64_t cached =
      std::max(target.getL2Bytes() / 2 / rowBytes, kLikelyRows) / shape.rows;
  rowsFirst = cached < tiles;
  chunkTiles =
      std::min({std::max(std::min(wanted, cached), least), tiles, kMostTiles});
  // Few rows are done with a panel when the next is there.
  constexpr int64_t kEnoughPanels = 8; // for all threads
  if (comesFromMemory && plannedRows <= kFewRows && groups >= kEnoughPanels)
    chunkTiles = tiles;
  if (usesTiles)
    chunkTiles = llvm::alignTo(chunkTiles, kBlockRows / shape.rows);
}

/// The tiles of a chunk fetch the next panel, each its share.
Prefetch MatmulEmitter::prefetchNextPanel(ImplicitLocOpBuilder &b,
                                          const Chunk &chunk, Value row,
                                          Value columnInPanel) {
  std::optional<int64_t> depth = IndexMath::known(k);
  if (!flatRhs || !depth || usesParts)
    return {};
  IndexMath math(b);
  int64_t packed = op.getPanelWidth();
  // A group takes as much room as one f32.
  int64_t linesOfRow = std::max<int64_t>(1, shape.width / Prefetch::kLine);
  Value nextPanel =
      math.mul(math.add(chunk.panel, chunk.panels), *depth * packed);
  Value first = math.mul(math.add(nextPanel, columnInPanel), depthGroup);
  // Lower tiles in the place of the last whole one are tiles, too.
  int64_t rounded = shape.rows == kUnevenRows ? kUnevenRows - kLowRows : 0;
  Value tile =
      math.div(math.add(math.sub(row, chunk.firstRow), rounded), shape.rows);
  Prefetch next =
      Prefetch::share(b,
                      {flatRhs, first, packed * depthGroup / linesOfRow,
                       *depth * linesOfRow * chunk.panels, chunkTiles, *depth},
                      tile);
  // Memory has to give as much as it can then, which L1 has no room for.
  constexpr int64_t kFewest = 3, kMost = cpu::kFewestStrassenRows;
  next.isForL2 = plannedRows >= kFewest && plannedRows <= kMost;
  return next;
}

void MatmulEmitter::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  lhs = body.getBuffer(op.getLhs());
  rhs = body.getBuffer(op.getRhs());
  evaluator.prepare(b, op.getInit());
  int64_t rank = op.isBatched() ? 3 : 2;
  m = evaluator.getSize(rank - 2);
  n = evaluator.getSize(rank - 1);
  int64_t rhsRank = cast<MemRefType>(rhs.getType()).getRank();
  k = depthGroup == 1 ? math.dim(lhs, rank - 1) : math.dim(rhs, rhsRank - 2);
  int64_t packed = op.getPanelWidth();
  panelCount = math.ceilDiv(n, packed);

  // What another kernel has just made is in the cache, weights are not.
  comesFromMemory = !op.isRhsBatched() && Prefetch::pays(rhs);
  if (op.getScales())
    scales = body.getBuffer(op.getScales());
  else if (comesFromMemory)
    flatRhs = emitCollapse(b, rhs, 0);
  std::optional<int64_t> rows = IndexMath::known(m);
  if (rows || !comesFromMemory)
    return emitLoops(b, rows.value_or(kLikelyRows));
  // Weights come from memory: for a row, for few and for many in other ways.
  Value open = m;
  Value isOne =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, m, math.constant(1));
  auto one = [&] {
    m = math.constant(1);
    emitLoops(b, 1);
    m = open;
  };
  auto several = [&] {
    emitIf(
        b, math.less(m, math.constant(kFewRows + 1)),
        [&] { emitLoops(b, kFewRows / 2); },
        [&] { emitLoops(b, kLikelyRows); });
  };
  emitIf(b, isOne, one, several);
}

/// The loops for a number of rows that is known to be `rows`, or is about that.
void MatmulEmitter::emitLoops(ImplicitLocOpBuilder &b, int64_t rows) {
  IndexMath math(b);
  plannedRows = std::max<int64_t>(rows, 1);
  planParts();
  planTiles();
  planStrassen();
  if (usesStrassen)
    return emitStrassenLoops(b);
  if (!usesParts)
    return emitChunks(b);
  // The rows may yet be too few, and nothing may be there to add up.
  Value isLarge;
  auto require = [&](Value size, int64_t least) {
    if (IndexMath::known(size))
      return;
    Value isThere = math.less(math.constant(least - 1), size);
    isLarge = isLarge ? arith::AndIOp::create(b, isLarge, isThere) : isThere;
  };
  if (!comesFromMemory)
    require(m, kBlockRows);
  require(k, 1);
  if (!isLarge)
    return emitPartLoops(b);
  auto fused = [&] {
    usesParts = false;
    planTiles();
    emitChunks(b);
  };
  emitIf(b, isLarge, [&] { emitPartLoops(b); }, fused);
}

/// The loops around multiply-adds, or products of narrow numbers.
void MatmulEmitter::emitChunks(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  SmallVector<Value> sizes;
  if (op.isBatched())
    sizes.push_back(evaluator.getSize(0));
  planChunks();
  int64_t chunkRows = chunkTiles * shape.rows;
  sizes.push_back(math.ceilDiv(panelCount, panelsPerTile));
  sizes.insert(rowsFirst ? sizes.end() - 1 : sizes.end(),
               math.ceilDiv(m, chunkRows));
  emitParallel(b, sizes, [&](ValueRange ivs) {
    Chunk chunk;
    if (op.isBatched()) {
      chunk.batch = ivs.front();
      ivs = ivs.drop_front();
    }
    chunk.panel = math.mul(ivs[rowsFirst ? 1 : 0], panelsPerTile);
    chunk.firstRow = math.mul(ivs[rowsFirst ? 0 : 1], chunkRows);
    chunk.endRow = math.min(math.add(chunk.firstRow, chunkRows), m);
    if (usesTiles)
      chunk.sums = emitBuffer(
          b, MemRefType::get({kBlockRows, op.getPanelWidth()},
                             op.getInit().getType().getElementType()));
    emitPanelGroup(b, chunk);
    if (usesTiles)
      memref::DeallocOp::create(b, chunk.sums);
  });
}

/// The rows of a chunk times its panels: several at once, as long as there are
/// that many.
void MatmulEmitter::emitPanelGroup(ImplicitLocOpBuilder &b, Chunk chunk) {
  IndexMath math(b);
  std::optional<int64_t> count = IndexMath::known(panelCount);
  Value end = math.add(chunk.panel, panelsPerTile);
  auto whole = [&] {
    chunk.panels = panelsPerTile;
    emitRows(b, chunk);
  };
  if (panelsPerTile == 1 || (count && *count % panelsPerTile == 0))
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

/// Tile registers sum up the values of k that fill them; register tiles add
/// the others and go on from there.
void MatmulEmitter::emitBlock(ImplicitLocOpBuilder &b, const Chunk &chunk,
                              Value row, int64_t rowTiles) {
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
                  math.constant(countTileSteps()), getTileOperand(b, lhs, left),
                  getTileOperand(b, rhs, right),
                  getTileOperand(b, chunk.sums, {zero, zero}));
  Start start;
  start.group = countTileSteps() * kTileRows;
  Value column = math.mul(chunk.panel, op.getPanelWidth());
  emitFor(b, zero, math.constant(rowTiles * kTileRows), shape.rows,
          [&](Value inBlock) {
            start.row = inBlock;
            emitTile(b, chunk, math.add(row, inBlock), shape.rows, column,
                     nullptr, start);
          });
}

void MatmulEmitter::emitRows(ImplicitLocOpBuilder &b, const Chunk &chunk) {
  Value first = chunk.firstRow;
  if (usesTiles)
    first = emitBlocks(b, chunk, [&](Value row, int64_t rowTiles) {
      emitBlock(b, chunk, row, rowTiles);
    });
  emitRestOfRows(b, chunk, first);
}

/// The rows from `first` on, which tile registers do not take.
void MatmulEmitter::emitRestOfRows(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                   Value first) {
  IndexMath math(b);
  std::optional<int64_t> rows = IndexMath::known(m);
  if (rows && (usesTiles || usesParts))
    rows = *rows % kTileRows;
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
  // A version of its own has a single row of all.
  if (comesFromMemory)
    return several();
  emitIf(b, atMost(1), [&] { emitTiles(b, chunk, row, 1, nullptr); }, several);
}

/// What all columns of `row` are multiplied by: the value of k number `depth`,
/// or the group of that number, `count` values that exist, as one i32.
Value MatmulEmitter::emitLhs(ImplicitLocOpBuilder &b, const Chunk &chunk,
                             Value row, Value depth, int64_t count) {
  IndexMath math(b);
  SmallVector<Value> indices;
  if (chunk.batch)
    indices.push_back(chunk.batch);
  indices.push_back(row);
  if (depthGroup == 1) {
    indices.push_back(depth);
    return memref::LoadOp::create(b, lhs, indices);
  }
  auto type =
      VectorType::get({depthGroup}, op.getLhs().getType().getElementType());
  Value first = math.mul(depth, depthGroup);
  Value values;
  if (count == depthGroup) {
    indices.push_back(first);
    values = vector::LoadOp::create(b, type, lhs, indices);
  } else {
    values = arith::ConstantOp::create(b, b.getZeroAttr(type));
    for (int64_t j = 0; j < count; ++j) {
      SmallVector<Value> at(indices);
      at.push_back(math.add(first, j));
      Value value = memref::LoadOp::create(b, lhs, at);
      values = vector::InsertOp::create(b, value, values, j);
    }
  }
  Value lane = vector::BitCastOp::create(
      b, VectorType::get({1}, b.getI32Type()), values);
  return vector::ExtractOp::create(b, lane, 0);
}

Value MatmulEmitter::emitRhs(ImplicitLocOpBuilder &b, const Chunk &chunk,
                             Value panel, Value depth, Value columnInPanel) {
  IndexMath math(b);
  SmallVector<Value> indices;
  if (op.isRhsBatched())
    indices.push_back(chunk.batch);
  indices.append({panel, depth, math.mul(columnInPanel, depthGroup)});
  Value vector = emitLoad(b, rhs, indices, shape.width * depthGroup);
  if (depthGroup == 1)
    return vector;
  return vector::BitCastOp::create(
      b, VectorType::get({shape.width}, b.getI32Type()), vector);
}

/// The accumulators of a tile after the products of its rows with the panels of
/// the chunk.
SmallVector<Value>
MatmulEmitter::emitProducts(ImplicitLocOpBuilder &b, const Chunk &chunk,
                            ArrayRef<Value> rows, Value columnInPanel,
                            SmallVector<Value> accs,
                            ArrayRef<Prefetch> prefetches, int64_t firstGroup) {
  if (op.getScales())
    return emitScaledProducts(b, chunk, rows, columnInPanel, std::move(accs));
  IndexMath math(b);
  int64_t panels = chunk.panels;
  auto right = [&](Value depth, int64_t p) {
    return emitRhs(b, chunk, math.add(chunk.panel, p),
                   math.add(depth, firstGroup), columnInPanel);
  };
  auto left = [&](Value depth, int64_t r) {
    return emitLhs(b, chunk, rows[r], math.add(depth, firstGroup), depthGroup);
  };
  if (depthGroup == 1)
    return emitContractionLoop(b, k, rows.size(), panels, accs, left, right,
                               prefetches);
  auto multiplyAdd = [&](ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                         Value accumulator) {
    if (isOfBytes())
      return emitByteProduct(b, target.getInt8(), target.getVectorBits(), lhs,
                             rhs, accumulator);
    return emitBf16Product(b, target.getBf16(), target.getVectorBits(), lhs,
                           rhs, accumulator);
  };
  int64_t depth = op.getLhs().getType().getShape().back();
  int64_t full = depth / depthGroup - firstGroup, rest = depth % depthGroup;
  // Steps that take many instructions anyway are not worth several in a row,
  // and those of a last group that is not full are too many by one.
  if (!multipliesAtOnce() || rest)
    prefetches = {};
  if (full > 0)
    accs = emitContractionLoop(b, math.constant(full), rows.size(), panels,
                               accs, left, right, prefetches, multiplyAdd);
  if (rest)
    emitContractionStep(
        b, math.constant(full), rows.size(), panels, accs,
        [&](Value depth, int64_t r) {
          return emitLhs(b, chunk, rows[r], math.add(depth, firstGroup), rest);
        },
        right, multiplyAdd);
  return accs;
}

/// The results in rows from `row` on and as many columns as a tile has from
/// `position` on.
Tile MatmulEmitter::getTile(ImplicitLocOpBuilder &b, const Chunk &chunk,
                            Value row, Value position) {
  Tile tile;
  if (chunk.batch)
    tile.index.push_back(chunk.batch);
  tile.index.push_back(row);
  tile.position = position;
  tile.width = shape.width;
  return tile;
}

void MatmulEmitter::emitTile(ImplicitLocOpBuilder &b, const Chunk &chunk,
                             Value row, int64_t rows, Value column,
                             Value rowLimit, Start start) {
  IndexMath math(b);
  int64_t packed = op.getPanelWidth(), panels = chunk.panels;
  SmallVector<Value> rowIndices;
  for (int64_t r = 0; r < rows; ++r) {
    Value index = math.add(row, r);
    if (rowLimit && r)
      index = math.min(index, math.sub(rowLimit, math.constant(1)));
    rowIndices.push_back(index);
  }
  Value columnInPanel = math.sub(column, math.mul(chunk.panel, packed));
  if (shape.width == packed)
    columnInPanel = math.constant(0);

  SmallVector<Tile> tiles;
  SmallVector<SmallVector<Value>> inits;
  std::optional<int64_t> columns = IndexMath::known(n);
  for (int64_t p = 0; p < panels; ++p) {
    Tile tile = getTile(b, chunk, row, math.add(column, p * packed));
    if (!columns || *columns % shape.width != 0)
      tile.mask = emitTailMask(b, math.sub(n, tile.position), shape.width);
    tile.rowLimit = rowLimit;
    inits.push_back(evaluator.emitInit(b, op.getInit(), tile, rows));
    tiles.push_back(tile);
  }
  SmallVector<Value> accs;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t p = 0; p < panels; ++p)
      accs.push_back(inits[p][r]);
  if (start.row)
    for (auto [r, acc] : llvm::enumerate(accs)) {
      Value column = start.column ? start.column : math.constant(0);
      SmallVector<Value> at{math.add(start.row, r), column};
      Value sum = emitLoad(b, chunk.sums, at, shape.width);
      acc = isOfBytes() ? Value(arith::AddIOp::create(b, acc, sum))
                        : Value(arith::AddFOp::create(b, acc, sum));
    }

  SmallVector<Prefetch> next;
  // Of few rows also those that fill no tile are alone with the memory.
  bool isFull = rows == shape.rows && !rowLimit;
  if ((panels == 1 || isFull) && !start.row && !readsOneStream &&
      (isFull || plannedRows <= kFewRows))
    next.push_back(prefetchNextPanel(b, chunk, row, columnInPanel));
  for (const Tile &tile : tiles) {
    if (start.isWhole)
      break;
    SmallVector<Prefetch> ahead;
    if (std::optional<int64_t> depth = IndexMath::known(k); depth && isFull)
      ahead = evaluator.prefetchNextOutputs(b, tile, rows,
                                            target.getL2Bytes() / 2, *depth);
    if (ahead.empty())
      evaluator.prefetchOutputs(b, tile, rows, target.getL2Bytes() / 2);
    llvm::append_range(next, ahead);
  }
  if (!start.isWhole)
    accs = emitProducts(b, chunk, rowIndices, columnInPanel, std::move(accs),
                        next, start.group);

  for (int64_t p = 0; p < panels; ++p) {
    SmallVector<Value> column;
    for (int64_t r = 0; r < rows; ++r)
      column.push_back(accs[r * panels + p]);
    evaluator.emitStores(b, tiles[p], column);
  }
}

namespace {

struct LowerContractionsPass
    : sardonyx::impl::CPULowerContractionsBase<LowerContractionsPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    FailureOr<cpu::PackedMatmulOp> root =
        findRoot<cpu::PackedMatmulOp>(func, "contraction");
    if (failed(root))
      return signalPassFailure();
    if (!*root)
      return;
    KernelBody body(func);
    MatmulEmitter emitter(*root, body, cpu::getTargetOrDefault(func));
    if (failed(emitKernel(func, *root, body, emitter)))
      signalPassFailure();
  }
};

} // namespace
