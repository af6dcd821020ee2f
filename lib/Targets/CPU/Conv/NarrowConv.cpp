//===- NarrowConv.cpp - Narrow convolutions with channels last
//--------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of windows, the rows, by packed filters. The windows of a chunk of
// positions are copied to scratch memory that stays in the L2 cache, one after
// the other (im2col), and all filters pass; those of one tap are read from
// where they lie, and tile registers read others from lines with pads.
//
//===----------------------------------------------------------------------===//

#include "Conv/NarrowConv.h"
#include "Conv/Copies.h"
#include "MicroKernels/AmxMicroKernel.h"

#include "lib/Dispatch/Utils.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

NarrowConvKernel::NarrowConvKernel(const NarrowConvFacts &facts,
                                   NarrowConvPlanAttr plan, KernelBody &body)
    : facts(facts), plan(plan), op(facts.getOp()), body(body),
      evaluator(body, facts.getOp()->getResult(0), /*rowDim=*/0,
                facts.getOp().getNumSpatialDims() + 1),
      windows(op.getStrides(), op.getPadsBegin()),
      micro(*findMicroKernel(plan.getMicro())),
      vectors(micro.getUnit() == MicroKernel::Unit::Vectors
                  ? micro
                  : *selectMicroKernel(facts.packing.getElement(), facts.target,
                                       MicroKernel::Unit::Vectors)),
      startsFromOneRow(evaluator.hasEqualRows(op.getInit())) {}

LogicalResult NarrowConvKernel::verify() {
  if (!KernelBody::hasBuffer(op.getInput()) ||
      !KernelBody::hasBuffer(op.getWeights()))
    return op.emitOpError("has an operand that is computed in its own kernel");
  return evaluator.verify(op.getInit());
}

void NarrowConvKernel::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Value input = body.getBuffer(op.getInput());
  weights = body.getBuffer(op.getWeights());
  evaluator.prepare(b, op.getInit());
  flatInput = emitCollapse(b, input, 0);
  if (Prefetch::pays(weights))
    flatWeights = emitCollapse(b, weights, 0);
  SmallVector<Value> sizes;
  allRows = math.constant(1);
  for (int64_t dim = 0; dim <= windows.rank(); ++dim) {
    sizes.push_back(evaluator.getSize(dim));
    allRows = math.mul(allRows, sizes.back());
  }
  windows.prepare(b, input, sizes);
  if (isInLines())
    return emitInLines(b);
  if (plan.getInPlace()) {
    SmallVector<ReassociationIndices> groups(2);
    for (int64_t dim = 0; dim <= windows.rank(); ++dim)
      groups[0].push_back(dim);
    groups[1].push_back(windows.rank() + 1);
    inputRows = memref::CollapseShapeOp::create(b, input, groups);
  }
  if (plan.getThreads() == ConvSharing::Filters)
    return emitFiltersShared(b);
  Value chunks = math.ceilDiv(allRows, plan.getChunkRows());
  emitParallel(b, {math.constant(facts.group), chunks}, [&](ValueRange ivs) {
    Value first = math.mul(ivs[1], plan.getChunkRows());
    Value end = math.min(math.add(first, plan.getChunkRows()), allRows);
    Value scratch =
        plan.getInPlace() ? Value() : emitScratch(b, plan.getChunkRows());
    Rows rows = begin(b, ivs[0], first, end, scratch);
    if (scratch)
      emitPack(b, rows, first, end);
    emitLastRows(b, rows);
    emitPanelGroups(b, rows);
    for (Value memory : {scratch, rows.last})
      if (memory)
        memref::DeallocOp::create(b, memory);
  });
}

/// All windows are copied, by all threads, before these share the filters.
void NarrowConvKernel::emitFiltersShared(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Value zero = math.constant(0);
  Value scratch =
      plan.getInPlace() ? Value() : emitScratch(b, plan.getChunkRows());
  emitFor(b, zero, math.constant(facts.group), 1, [&](Value group) {
    Rows rows = begin(b, group, zero, allRows, scratch);
    constexpr int64_t kRowsOfTask = 16;
    if (scratch)
      emitParallel(b, {math.ceilDiv(allRows, kRowsOfTask)},
                   [&](ValueRange ivs) {
                     Value from = math.mul(ivs[0], kRowsOfTask);
                     emitPack(b, rows, from,
                              math.min(math.add(from, kRowsOfTask), allRows));
                   });
    emitLastRows(b, rows);
    const int64_t panels = plan.getPanels();
    emitParallel(b, {math.constant(facts.panels / panels)},
                 [&](ValueRange ivs) {
                   emitPanels(b, rows, math.mul(ivs[0], panels), panels);
                 });
    for (int64_t p = facts.panels / panels * panels; p < facts.panels; ++p)
      emitPanels(b, rows, math.constant(p), 1);
    if (rows.last)
      memref::DeallocOp::create(b, rows.last);
  });
  if (scratch)
    memref::DeallocOp::create(b, scratch);
}

/// Memory for the windows of so many rows.
Value NarrowConvKernel::emitScratch(ImplicitLocOpBuilder &b, int64_t rows) {
  return emitBuffer(b,
                    MemRefType::get({rows, facts.getRowElements()},
                                    op.getInput().getType().getElementType()));
}

/// Copies the rows that fill no block of tile registers, if they are read in
/// place.
void NarrowConvKernel::emitLastRows(ImplicitLocOpBuilder &b, Rows &rows) {
  if (!plan.getInPlace() || micro.getUnit() != MicroKernel::Unit::Tiles)
    return;
  IndexMath math(b);
  Rows copied = rows;
  copied.lhs = rows.last = emitScratch(b, kBlockRows);
  copied.firstOfLhs = math.constant(0);
  copied.first = math.add(
      rows.first, math.roundDown(math.sub(rows.end, rows.first), kBlockRows));
  emitPack(b, copied, copied.first, rows.end);
}

NarrowConvKernel::Rows NarrowConvKernel::begin(ImplicitLocOpBuilder &b,
                                               Value group, Value first,
                                               Value end, Value scratch) {
  IndexMath math(b);
  Rows rows{group,  first, end, scratch, math.constant(0), math.constant(0),
            nullptr};
  if (!scratch) {
    rows.lhs = inputRows;
    rows.firstOfLhs = first;
    rows.offset = math.mul(group, facts.channels);
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// Copies of windows
//===----------------------------------------------------------------------===//

/// Copies the windows of the positions `from` to `to`.
void NarrowConvKernel::emitPack(ImplicitLocOpBuilder &b, const Rows &rows,
                                Value from, Value to) {
  IndexMath math(b);
  emitFor(b, from, to, 1, [&](Value position) {
    Value row = math.add(rows.firstOfLhs, math.sub(position, rows.first));
    SmallVector<Value> at = windows.split(b, position);
    SmallVector<Value> starts;
    for (int64_t dim = 0; dim < windows.rank(); ++dim)
      starts.push_back(windows.getStart(b, dim, at[1 + dim]));
    emitPackedTaps(b, rows, row, starts, 0, at[0], nullptr, math.constant(0));
    // Weights there are zero; of floats it must be numbers that they meet.
    const int64_t rest = facts.getRowElements() - facts.depth;
    if (rest > 0 && facts.packing.getElement() == PackedElement::BF16)
      emitFill(b, /*value=*/0, rows.lhs, row, math.constant(facts.depth), rest);
  });
}

/// The taps from spatial dimension `dim` on. `line` is the number of the image,
/// or of its row so far, of which `inside` tells whether it exists (null: it
/// does); `tap` is the number of taps before.
void NarrowConvKernel::emitPackedTaps(ImplicitLocOpBuilder &b, const Rows &rows,
                                      Value row, ArrayRef<Value> starts,
                                      int64_t dim, Value line, Value inside,
                                      Value tap) {
  IndexMath math(b);
  if (dim == windows.rank() - 1)
    return emitPackedRun(b, rows, row, starts[dim], line, inside, tap);
  emitFor(b, math.constant(0), math.constant(op.getKernelShape()[dim]), 1,
          [&](Value k) {
            Value at =
                math.add(starts[dim], math.mul(k, op.getDilations()[dim]));
            Value isHere = windows.isInside(b, dim, at);
            if (inside)
              isHere = b.createOrFold<arith::AndIOp>(inside, isHere);
            Value next =
                math.mul(math.add(tap, k), op.getKernelShape()[dim + 1]);
            emitPackedTaps(b, rows, row, starts, dim + 1,
                           windows.append(b, line, dim, at), isHere, next);
          });
}

/// The taps of one line of the kernel, which begins at `first` in a line of the
/// image. Where all of them are inside and beside each other, with all
/// channels, they are copied at once.
void NarrowConvKernel::emitPackedRun(ImplicitLocOpBuilder &b, const Rows &rows,
                                     Value row, Value first, Value line,
                                     Value inside, Value tap) {
  IndexMath math(b);
  const int64_t last = windows.rank() - 1;
  const int64_t taps = op.getKernelShape()[last],
                dilation = op.getDilations()[last];
  const int64_t channels = facts.channels * facts.group;
  Value column = math.mul(tap, facts.channels);
  Value channel = math.mul(rows.group, facts.channels);
  auto place = [&](Value at) {
    return math.add(math.mul(windows.append(b, line, last, at), channels),
                    channel);
  };
  auto copyTap = [&](int64_t k) {
    Value at = math.add(first, k * dilation);
    Value to = math.add(column, k * facts.channels);
    Value isHere = windows.isInside(b, last, at);
    if (inside)
      isHere = b.createOrFold<arith::AndIOp>(inside, isHere);
    emitIf(
        b, isHere,
        [&] {
          emitCopy(b, flatInput, place(at), rows.lhs, row, to, facts.channels);
        },
        [&] {
          emitFill(b, op.getPadding(), rows.lhs, row, to, facts.channels);
        });
  };
  auto copyTaps = [&] {
    for (int64_t k = 0; k < taps; ++k)
      copyTap(k);
  };
  if (taps == 1 || dilation != 1 || facts.group != 1)
    return copyTaps();
  Value isWhole = b.createOrFold<arith::AndIOp>(
      windows.isInside(b, last, first),
      windows.isInside(b, last, math.add(first, taps - 1)));
  if (inside)
    isWhole = b.createOrFold<arith::AndIOp>(inside, isWhole);
  emitIf(
      b, isWhole,
      [&] {
        emitCopy(b, flatInput, place(first), rows.lhs, row, column,
                 taps * facts.channels);
      },
      copyTaps);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// All panels of the group, several at once as long as there are that many.
void NarrowConvKernel::emitPanelGroups(ImplicitLocOpBuilder &b,
                                       const Rows &rows) {
  IndexMath math(b);
  const int64_t panels = plan.getPanels();
  const int64_t whole = facts.panels / panels * panels;
  emitFor(b, math.constant(0), math.constant(whole), panels,
          [&](Value panel) { emitPanels(b, rows, panel, panels); });
  emitFor(b, math.constant(whole), math.constant(facts.panels), 1,
          [&](Value panel) { emitPanels(b, rows, panel, 1); });
}

/// All rows by `count` panels.
void NarrowConvKernel::emitPanels(ImplicitLocOpBuilder &b, const Rows &rows,
                                  Value panel, int64_t count) {
  IndexMath math(b);
  if (micro.getUnit() == MicroKernel::Unit::Tiles)
    return emitBlocks(b, rows, panel);
  Value first = rows.first;
  const int64_t height = plan.getTileRows();
  auto emitTiles = [&](Value row, int64_t tileRows, Value rowLimit) {
    forEachColumn(b, panel, [&](Value column) {
      emitTile(b, rows, panel, count, column, row, tileRows, rowLimit);
    });
  };
  Value whole =
      math.add(first, math.roundDown(math.sub(rows.end, first), height));
  emitFor(b, first, whole, height,
          [&](Value row) { emitTiles(row, height, nullptr); });
  // Chunks are whole tiles but for the last.
  const int64_t rest = facts.rows ? *facts.rows % height : -1;
  if (rest == 0)
    return;
  emitIf(b, math.less(whole, rows.end), [&] {
    if (rest > 0)
      emitTiles(whole, rest, nullptr);
    else
      emitTiles(whole, height, rows.end);
  });
}

/// The first columns of a panel's tiles, but those past the filters.
void NarrowConvKernel::forEachColumn(ImplicitLocOpBuilder &b, Value panel,
                                     function_ref<void(Value)> emit) {
  IndexMath math(b);
  const int64_t inLast = facts.filters - (facts.panels - 1) * kPanelWidth;
  for (int64_t column = 0; column < kPanelWidth;
       column += plan.getTileColumns()) {
    Value first = math.constant(column);
    if (column < inLast)
      emit(first);
    else
      emitIf(b, math.less(panel, math.constant(facts.panels - 1)),
             [&] { emit(first); });
  }
}

/// All rows by a panel in tile registers, a block at a time. The last one may
/// multiply more than there are. If their number is open its sums are stored
/// one by one, since that is less code.
void NarrowConvKernel::emitBlocks(ImplicitLocOpBuilder &b, const Rows &rows,
                                  Value panel) {
  IndexMath math(b);
  Value zero = math.constant(0);
  Value sums = emitSumMemory(b);
  std::optional<TileOperand> start = emitStart(b, rows.group, panel, sums);
  Value weightPanel = math.add(math.mul(rows.group, facts.panels), panel);
  Value blocks =
      math.ceilDiv(math.sub(rows.end, rows.first), math.constant(kBlockRows));
  auto emitProduct = [&](Value row, int64_t rowTiles, TileOperand lhs) {
    auto fetchNext = [&](Value step) {
      emitFetchOfNextPanel(b, weightPanel,
                           math.div(math.sub(row, rows.first), kBlockRows),
                           blocks, step, rows.first);
    };
    function_ref<void(Value)> fetch;
    if (flatWeights)
      fetch = fetchNext;
    emitTileProduct(b, op.getInput().getType().getElementType(), rowTiles,
                    math.constant(facts.getRowBytes() / kTileBytes), lhs,
                    getTileOperand(b, weights, {weightPanel, zero, zero}),
                    getTileOperand(b, sums, {zero, zero}), start, fetch);
  };
  auto emitTiles = [&](Value row, Value from, Value to, int64_t tileRows) {
    emitFor(b, from, to, tileRows, [&](Value inBlock) {
      forEachColumn(b, panel, [&](Value column) {
        SmallVector<Value> sumRows;
        for (int64_t r = 0; r < tileRows; ++r)
          sumRows.push_back(math.add(inBlock, r));
        emitTile(b, rows, panel, 1, column, math.add(row, inBlock), tileRows,
                 nullptr, sums, sumRows);
      });
    });
  };
  auto lhsOf = [&](Value row) {
    Value inLhs = math.add(rows.firstOfLhs, math.sub(row, rows.first));
    return getTileOperand(b, rows.lhs, {inLhs, rows.offset});
  };
  const int64_t height = plan.getTileRows();
  Value end = math.add(
      rows.first, math.roundDown(math.sub(rows.end, rows.first), kBlockRows));
  emitFor(b, rows.first, end, kBlockRows, [&](Value row) {
    emitProduct(row, kBlockRows / kTileRows, lhsOf(row));
    emitTiles(row, zero, math.constant(kBlockRows), height);
  });
  // Chunks are whole blocks but for the last.
  const int64_t rest = facts.rows ? *facts.rows % kBlockRows : kBlockRows - 1;
  if (rest != 0)
    emitIf(b, math.less(end, rows.end), [&] {
      emitProduct(end, llvm::divideCeil(rest, kTileRows),
                  rows.last ? getTileOperand(b, rows.last, {zero, zero})
                            : lhsOf(end));
      if (!facts.rows)
        return emitTiles(end, zero, math.sub(rows.end, end), /*tileRows=*/1);
      Value whole = math.constant(rest / height * height);
      emitTiles(end, zero, whole, height);
      if (rest % height != 0)
        emitTiles(end, whole, math.constant(rest), rest % height);
    });
  memref::DeallocOp::create(b, sums);
}

/// Memory for the sums of a block, and a row more for what they start from.
Value NarrowConvKernel::emitSumMemory(ImplicitLocOpBuilder &b) {
  return emitBuffer(b,
                    MemRefType::get({kBlockRows + 1, kPanelWidth},
                                    op.getInit().getType().getElementType()));
}

/// Puts what the sums of a panel start from, if it is the same in all rows,
/// into the last row of `sums`, so that tile registers start from it.
std::optional<TileOperand> NarrowConvKernel::emitStart(ImplicitLocOpBuilder &b,
                                                       Value group, Value panel,
                                                       Value sums) {
  if (!startsFromOneRow || isZeroFilled(op.getInit()))
    return std::nullopt;
  IndexMath math(b);
  Value zero = math.constant(0), row = math.constant(kBlockRows);
  forEachColumn(b, panel, [&](Value column) {
    Tile tile = getTile(b, group, panel, column, zero, nullptr);
    Value start = evaluator.emitInit(b, op.getInit(), tile, 1).front();
    emitStore(b, start, sums, {row, column});
  });
  TileOperand start = getTileOperand(b, sums, {row, zero});
  start.stride = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
  return start;
}

/// Fetches of the panel after `panel` what step `step` of block `block` is to:
/// all blocks of `blocks` have their share of its lines. The chunk of positions
/// begins with `position`: weights that stay in the cache come with the first.
void NarrowConvKernel::emitFetchOfNextPanel(ImplicitLocOpBuilder &b,
                                            Value panel, Value block,
                                            Value blocks, Value step,
                                            Value position) {
  IndexMath math(b);
  // A step multiplies as many lines as a tile register has rows.
  constexpr int64_t kLinesOfStep = kColumnTiles * kTileRows;
  const int64_t steps = facts.getRowBytes() / kTileBytes;
  const int64_t lineElements =
      kTileBytes * 8 / op.getInput().getType().getElementTypeBitWidth();
  const int64_t lines = steps * kLinesOfStep;
  Value share = math.ceilDiv(math.constant(kLinesOfStep), blocks);
  if (facts.getWeightBytes() <= facts.target.getL2Bytes() / 2)
    share = arith::SelectOp::create(b, math.less(math.constant(0), position),
                                    math.constant(0), share);
  Value first = math.mul(math.add(math.mul(block, steps), step), share);
  Value panelStart = math.mul(math.add(panel, 1), lines);
  emitFor(b, math.constant(0), share, 1, [&](Value i) {
    Value line = math.add(panelStart, math.add(first, i));
    emitFetch(b, flatWeights, {math.mul(line, lineElements)}, /*locality=*/2);
  });
}

/// What the tile at `row` fetches of the panels after its own, those of its
/// columns: a share of them.
Prefetch NarrowConvKernel::prefetchNextPanels(ImplicitLocOpBuilder &b,
                                              const Rows &rows,
                                              const PackedTile &tile,
                                              Value row) {
  IndexMath math(b);
  const int64_t rowSize = facts.packing.getRowSize();
  // A group takes as much room as one f32.
  const int64_t lines = std::max<int64_t>(1, tile.width / Prefetch::kLine);
  Value next =
      math.mul(math.add(tile.panel, tile.panels), facts.groups * rowSize);
  Value first =
      math.add(next, math.mul(tile.column, facts.packing.getDepthGroup()));
  const int64_t depth = *IndexMath::known(tile.groups);
  return Prefetch::share(
      b,
      {flatWeights, first, rowSize / lines, depth * lines * tile.panels,
       plan.getChunkRows() / plan.getTileRows(), depth},
      math.div(math.sub(row, rows.first), plan.getTileRows()));
}

/// The rows from `row` on by the plan's columns from `column` of `panel` on.
Tile NarrowConvKernel::getTile(ImplicitLocOpBuilder &b, Value group,
                               Value panel, Value column, Value row,
                               Value rowLimit) {
  IndexMath math(b);
  Tile tile;
  tile.index = {row};
  tile.position = math.add(math.mul(group, facts.filters),
                           math.add(math.mul(panel, kPanelWidth), column));
  tile.width = plan.getTileColumns();
  tile.rowLimit = rowLimit;
  Value end = math.mul(math.add(group, 1), facts.filters);
  if (facts.filters % tile.width != 0)
    tile.mask = emitTailMask(b, math.sub(end, tile.position), tile.width);
  return tile;
}

/// A register tile: `count` rows from `row` on by columns from `column` on of
/// each of `panels` panels. With `sums` the products are there, in `sumRows`.
/// Rows from `rowLimit` on repeat the last, and are not stored.
void NarrowConvKernel::emitTile(ImplicitLocOpBuilder &b, const Rows &rows,
                                Value panel, int64_t panels, Value column,
                                Value row, int64_t count, Value rowLimit,
                                Value sums, ValueRange sumRows) {
  IndexMath math(b);
  const int64_t width = plan.getTileColumns();
  const bool haveStart = sums && startsFromOneRow;
  SmallVector<Tile> tiles;
  SmallVector<Value> accs(count * panels);
  for (int64_t p = 0; p < panels; ++p) {
    Tile tile =
        getTile(b, rows.group, math.add(panel, p), column, row, rowLimit);
    tiles.push_back(tile);
    if (haveStart)
      continue;
    for (auto [r, init] :
         llvm::enumerate(evaluator.emitInit(b, op.getInit(), tile, count)))
      accs[r * panels + p] = init;
  }
  if (sums) {
    for (auto [r, acc] : llvm::enumerate(accs)) {
      Value sum = emitLoad(b, sums, {sumRows[r], column}, width);
      if (haveStart)
        acc = sum;
      else
        acc = facts.packing.isOfBytes()
                  ? Value(arith::AddIOp::create(b, acc, sum))
                  : Value(arith::AddFOp::create(b, acc, sum));
    }
  } else {
    SmallVector<Value> lhsRows;
    for (int64_t r = 0; r < count; ++r) {
      Value at = math.add(row, r);
      if (rowLimit && r)
        at = math.min(at, math.sub(rowLimit, math.constant(1)));
      lhsRows.push_back(math.add(rows.firstOfLhs, math.sub(at, rows.first)));
    }
    PackedTile packed;
    packed.target = facts.target;
    packed.packing = op.getPacking();
    packed.rhs = weights;
    packed.rows = count;
    packed.width = width;
    packed.panel = math.add(math.mul(rows.group, facts.panels), panel);
    packed.panels = panels;
    packed.column = column;
    // Copied rows go on to the end of a group, where weights are zero.
    const int64_t size = facts.packing.getDepthGroup();
    packed.depth =
        plan.getInPlace() ? facts.depth : llvm::alignTo(facts.depth, size);
    packed.groups = math.constant(llvm::divideCeil(*packed.depth, size));
    auto left = [&](Value group, int64_t r, int64_t values) {
      Value at = math.add(rows.offset, math.mul(group, size));
      return emitLoadGroup(b, rows.lhs, {lhsRows[r], at}, values);
    };
    packed.lhs = left;
    SmallVector<Prefetch> next;
    if (flatWeights && count == plan.getTileRows() && !rowLimit)
      next.push_back(prefetchNextPanels(b, rows, packed, row));
    packed.prefetches = next;
    accs = vectors.emit(b, packed, std::move(accs));
  }
  for (int64_t p = 0; p < panels; ++p) {
    SmallVector<Value> ofPanel;
    for (int64_t r = 0; r < count; ++r)
      ofPanel.push_back(accs[r * panels + p]);
    evaluator.emitStores(b, tiles[p], ofPanel);
  }
}
