//===- MatmulTile.cpp - A register tile of a matrix product ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulEmitter.h"
#include "dialects/SDX/RareElse.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The tiles of a chunk fetch the next panel, each its share.
Prefetch MatmulEmitter::prefetchNextPanel(ImplicitLocOpBuilder &b,
                                          const Chunk &chunk, Value row,
                                          Value columnInPanel) {
  std::optional<int64_t> depth = IndexMath::known(k);
  if (plan.prefetch == MatmulPrefetch::None)
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
  Prefetch next = Prefetch::share(
      b,
      {flatRhs, first, packed * depthGroup / linesOfRow,
       *depth * linesOfRow * chunk.panels, plan.chunkTiles, *depth},
      tile);
  next.isForL2 = plan.prefetch == MatmulPrefetch::L2;
  return next;
}

/// What all columns of `row` are multiplied by: the value of k number `depth`,
/// or the group of that number, `count` values that exist, as one i32 (see
/// PackedTile::lhs).
Value MatmulEmitter::emitLhs(ImplicitLocOpBuilder &b, const Chunk &chunk,
                             Value row, Value depth, int64_t count) {
  IndexMath math(b);
  if (rounded.bytes)
    return emitLoadGroup(b, rounded.bytes,
                         {row, math.mul(depth, kQuantizedGroup)}, count);
  SmallVector<Value> indices;
  if (chunk.batch)
    indices.push_back(chunk.batch);
  indices.push_back(row);
  if (depthGroup == 1) {
    indices.push_back(depth);
    return memref::LoadOp::create(b, lhs, indices);
  }
  indices.push_back(math.mul(depth, depthGroup));
  if (count == PackedTile::kThoseThere)
    return emitLoadGroupBefore(b, lhs, indices, getDepth(b));
  return emitLoadGroup(b, lhs, indices, count);
}

/// What tiles of the chunk's panels have in common.
PackedTile MatmulEmitter::getPackedTile(const Chunk &chunk, int64_t rows,
                                        int64_t width) {
  PackedTile tile;
  tile.target = target;
  tile.packing = facts.packing;
  tile.rhs = rhs;
  tile.scales = scales;
  tile.block = facts.block;
  if (op.isRhsBatched())
    tile.batch = chunk.batch;
  tile.rows = rows;
  tile.width = width;
  tile.panel = chunk.panel;
  tile.panels = chunk.panels;
  tile.groups = k;
  tile.depth = facts.depth;
  return tile;
}

/// The accumulators of a tile after the products of its rows with the panels of
/// the chunk.
SmallVector<Value>
MatmulEmitter::emitProducts(ImplicitLocOpBuilder &b, const Chunk &chunk,
                            ArrayRef<Value> rows, Value columnInPanel,
                            SmallVector<Value> accs,
                            ArrayRef<Prefetch> prefetches, Value firstGroup) {
  IndexMath math(b);
  auto left = [&](Value group, int64_t row, int64_t count) {
    return emitLhs(b, chunk, rows[row], group, count);
  };
  PackedTile tile = getPackedTile(chunk, rows.size(), shape.width);
  tile.column = columnInPanel;
  if (depthGroup > 1)
    tile.size = getDepth(b);
  if (chunk.unpacked) {
    tile.packing = PackingAttr::getF32(b.getContext(), op.getPanelWidth());
    tile.rhs = chunk.unpacked;
    tile.panel = math.constant(0);
  }
  tile.firstGroup = firstGroup;
  tile.lhs = left;
  auto leftScale = [&](Value block, int64_t row, int64_t which) -> Value {
    return memref::LoadOp::create(
        b, rounded.scales, ValueRange{rows[row], block, math.constant(which)});
  };
  tile.lhsScale = leftScale;
  tile.prefetches = prefetches;
  return vectors.emit(b, tile, std::move(accs));
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
  auto addSums = [&] {
    SmallVector<Value> result;
    for (auto [r, acc] : llvm::enumerate(accs)) {
      Value column = start.column ? start.column : math.constant(0);
      SmallVector<Value> at{math.add(start.row, r), column};
      Value sum = emitLoad(b, chunk.sums, at, shape.width);
      result.push_back(facts.isOfBytes()
                           ? Value(arith::AddIOp::create(b, acc, sum))
                           : Value(arith::AddFOp::create(b, acc, sum)));
    }
    return result;
  };
  if (start.areRight) {
    auto branch =
        emitIf(b, TypeRange(ValueRange(accs)), start.areRight, addSums, [&] {
          return emitProducts(b, chunk, rowIndices, columnInPanel, accs,
                              /*prefetches=*/{}, /*firstGroup=*/{});
        });
    branch->setAttr(sdx::kRareElseAttr, b.getUnitAttr());
    accs = branch.getResults();
  } else if (start.row) {
    accs = addSums();
  }

  SmallVector<Prefetch> next;
  // Of few rows also those that fill no tile are alone with the memory.
  bool isFull = rows == shape.rows && !rowLimit;
  if ((panels == 1 || isFull) && !start.row &&
      (isFull || plan.rows <= kFewRows))
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
