//===- Im2colConv.cpp - Convolutions by panels of output positions --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The general form: a convolution is the product of its filters with a matrix
// of inputs that has a row for each channel and tap and a column for each
// output position. A panel is some columns of it, which are packed into one
// piece of memory and multiplied by all filters. Positions are in the lanes of
// vectors.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"
#include "dialects/SDX/RareElse.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// As many tiles as the plan says, or a part of them where more than a quarter
/// of the threads would wait for the others. `otherChunks`: how many chunks
/// there are of all tiles.
Value ConvEmitter::emitTilesPerChunk(ImplicitLocOpBuilder &b,
                                     Value otherChunks) {
  IndexMath math(b);
  // Each packs its panel, or at least reads it.
  constexpr int64_t kMinChannels = 32;
  int64_t most = plan.getChunkTiles();
  int64_t least = std::min(most, kMinChannels / shape.rows);
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  // Each chunk must begin with a whole tile.
  if (!filters || *filters % shape.rows != 0 || least == most)
    return math.constant(most);
  Value threads = sdx::ThreadCountOp::create(b);
  SmallVector<int64_t> choices;
  for (int64_t tiles = most; tiles > least; tiles = llvm::divideCeil(tiles, 2))
    choices.push_back(tiles);
  Value chosen = math.constant(least);
  for (int64_t tiles : llvm::reverse(choices)) {
    Value chunks =
        math.mul(otherChunks, llvm::divideCeil(*filters / shape.rows, tiles));
    Value turns = math.mul(math.ceilDiv(chunks, threads), threads);
    Value isBusy =
        math.less(math.mul(turns, 3), math.add(math.mul(chunks, 4), 1));
    chosen =
        b.createOrFold<arith::SelectOp>(isBusy, math.constant(tiles), chosen);
  }
  return chosen;
}

void ConvEmitter::emitIm2col(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Value allTiles = math.ceilDiv(groupFilters, shape.rows);
  std::optional<int64_t> positions = IndexMath::known(outPositions);
  Value panels = math.ceilDiv(outPositions, panelWidth());
  Value images = evaluator.getSize(0);
  Value tiles = emitTilesPerChunk(b, math.mul(math.mul(images, group), panels));
  // Channels outermost: a chunk's weights stay in the L2 cache for all panels,
  // and each thread reads its part of them only.
  SmallVector<Value> sizes = {images, math.constant(group),
                              math.ceilDiv(allTiles, tiles), panels};
  emitParallel(b, sizes, [&](ValueRange ivs) {
    Chunk chunk;
    chunk.image = ivs[0];
    chunk.group = ivs[1];
    chunk.firstTile = math.mul(ivs[2], tiles);
    chunk.position = math.mul(ivs[3], panelWidth());
    chunk.endTile = math.min(math.add(chunk.firstTile, tiles), allTiles);
    chunk.width = lanes;
    ConvPacking packing = plan.getPacking();
    if (packing != ConvPacking::Never)
      chunk.scratch = emitScratch(b, panelWidth());
    // A last panel of fewer columns has tiles of its own.
    int64_t tail = positions ? *positions % panelWidth() : 0;
    int64_t tailColumns = llvm::divideCeil(tail, lanes);
    const int64_t few = countLastPositions();
    auto panel = [&](int64_t columns, bool masked, ConvPacking how) {
      chunk.packing = how;
      chunk.masks.assign(columns, Value());
      for (int64_t c = 0; masked && c < columns; ++c)
        if (!positions || c + 1 == columns)
          chunk.masks[c] = emitTailMask(
              b, math.sub(outPositions, math.add(chunk.position, c * lanes)),
              lanes);
      if (how == ConvPacking::Before)
        emitPack(b, chunk, math.constant(0), groupChannels);
      if (few == 0 || columns > 1 || !masked || how != ConvPacking::Before)
        return emitChannels(b, chunk);
      emitLastVector(b, chunk, few);
    };
    bool masked = tail % lanes;
    if (!positions) {
      // The last panel is computed column by column: it may be the only one, of
      // a short line.
      Value begin = chunk.position, end = math.add(begin, panelWidth());
      emitIf(
          b, math.less(outPositions, end),
          [&] {
            bool packs = packing != ConvPacking::Never;
            emitFor(b, begin, outPositions, lanes, [&](Value first) {
              chunk.position = first;
              panel(1, /*masked=*/true, packs ? ConvPacking::Before : packing);
            });
          },
          [&] {
            chunk.position = begin;
            panel(columns, /*masked=*/false, packing);
          });
    } else if (!tail || tailColumns == columns || *positions < panelWidth()) {
      panel(tail ? tailColumns : columns, masked, packing);
    } else {
      // One panel of many is not worth the code of a first tile, nor of several
      // steps in a row.
      constexpr int64_t kMany = 4;
      bool isRare = *positions >= kMany * panelWidth();
      emitIf(
          b, math.less(chunk.position, math.constant(*positions - tail)),
          [&] { panel(columns, /*masked=*/false, packing); },
          [&] {
            chunk.position = math.constant(*positions - tail);
            chunk.isTail = isRare;
            bool packs = (isRare || (tailColumns == 1 && tail <= few)) &&
                         packing != ConvPacking::Never;
            panel(tailColumns, masked, packs ? ConvPacking::Before : packing);
          });
    }
    if (chunk.scratch)
      memref::DeallocOp::create(b, chunk.scratch);
  });
}

/// The results of a chunk of one packed vector of positions, which has a mask:
/// in another way where they are `few` or less.
void ConvEmitter::emitLastVector(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                 int64_t few) {
  IndexMath math(b);
  Value left = math.sub(outPositions, chunk.position);
  if (auto known = IndexMath::known(left)) {
    if (*known > few)
      return emitChannels(b, chunk);
    return emitLastPositions(b, chunk, left, *known);
  }
  auto isAtMost = [&](int64_t most) {
    return math.less(left, math.constant(most + 1));
  };
  emitIf(
      b, isAtMost(few),
      [&] {
        emitIf(
            b, isAtMost(1),
            [&] { emitLastPositions(b, chunk, math.constant(1), 1); },
            [&] { emitLastPositions(b, chunk, left, few); });
      },
      [&] { emitChannels(b, chunk); });
}

/// Memory for one packed panel.
Value ConvEmitter::emitScratch(ImplicitLocOpBuilder &b, int64_t width) {
  std::optional<int64_t> rows = IndexMath::known(depth);
  auto type = MemRefType::get({rows.value_or(ShapedType::kDynamic), width},
                              b.getF32Type());
  SmallVector<Value> dynamic;
  if (!rows)
    dynamic.push_back(depth);
  return emitBuffer(b, type, dynamic);
}

/// Fills the scratch with the inputs of a panel, one row for each k of some
/// channels of the group.
void ConvEmitter::emitPack(ImplicitLocOpBuilder &b, const Chunk &chunk,
                           Value firstChannel, Value endChannel) {
  IndexMath math(b);
  int64_t taps = facts.countTaps();
  emitTaps(b, chunk, {}, [&](const Tap &tap, ValueRange) {
    emitFor(b, firstChannel, endChannel, 1, [&](Value channel) {
      for (int64_t c = 0; c < chunk.getColumns(); ++c)
        emitStore(b, emitInputs(b, chunk, tap, channel, c), chunk.scratch,
                  {math.add(math.mul(channel, taps), tap.number),
                   math.constant(c * chunk.width)});
    });
    return SmallVector<Value>();
  });
}

/// Whether inputs that a tap reads may lie in the padding of dimension `d`.
bool ConvEmitter::masksPadding(int64_t d) {
  return isPadded(d) && (!phases || (d == 1 && !facts.hasTapPhases()));
}

/// Calls `visit` in the loops over the kernel, or once for a single tap. It
/// takes the values of one iteration, at first `init`, to those of the next;
/// returns the last.
SmallVector<Value> ConvEmitter::emitTaps(ImplicitLocOpBuilder &b,
                                         const Chunk &chunk, ValueRange init,
                                         TapVisitor visit) {
  IndexMath math(b);
  int64_t width = chunk.width;
  bool shift = isShift();
  bool needsCoordinates = !shift;
  for (int64_t d = 0; d < spatial; ++d)
    needsCoordinates |= masksPadding(d);
  Tap first;
  first.phase = first.number = math.constant(0);
  SmallVector<Coordinates> base;
  for (int64_t c = 0; c < chunk.getColumns(); ++c) {
    Value position = math.add(chunk.position, c * width);
    base.push_back(needsCoordinates ? emitCoordinates(b, position, width)
                                    : Coordinates(spatial));
    first.offsets.push_back(shift ? position : Value());
    first.masks.push_back(chunk.masks[c]);
    if (needsCoordinates && !chunk.masks[c])
      first.masks[c] = arith::ConstantOp::create(
          b, DenseElementsAttr::get(VectorType::get({width}, b.getI1Type()),
                                    true));
  }
  return emitTapLoop(b, chunk, base, first, 0, init, visit);
}

/// The coordinates of the inputs that the first tap reads for the `width`
/// outputs from `position` on.
ConvEmitter::Coordinates ConvEmitter::emitCoordinates(ImplicitLocOpBuilder &b,
                                                      Value position,
                                                      int64_t width) {
  IndexMath math(b);
  Coordinates result(spatial);
  Value rest = arith::AddIOp::create(b, emitSplat32(b, position, width),
                                     emitLanes(b, width, 1));
  for (int64_t d = spatial - 1; d >= 0; --d) {
    Value coordinate = rest;
    if (d > 0) {
      Value size = emitSplat32(b, outSize(d), width);
      Value quotient = arith::DivUIOp::create(b, rest, size);
      coordinate = arith::SubIOp::create(
          b, rest, arith::MulIOp::create(b, quotient, size));
      rest = quotient;
    }
    if (stride(d) != 1)
      coordinate = arith::MulIOp::create(
          b, coordinate, emitSplat32(b, math.constant(stride(d)), width));
    if (pad(d))
      coordinate = arith::SubIOp::create(
          b, coordinate, emitSplat32(b, math.constant(pad(d)), width));
    result[d] = coordinate;
  }
  return result;
}

/// The loop over dimension `d` of the kernel, and those within it.
SmallVector<Value> ConvEmitter::emitTapLoop(ImplicitLocOpBuilder &b,
                                            const Chunk &chunk,
                                            ArrayRef<Coordinates> base,
                                            const Tap &tap, int64_t d,
                                            ValueRange init, TapVisitor visit) {
  IndexMath math(b);
  if (d == spatial)
    return visit(tap, init);
  int64_t width = chunk.width;
  auto step = [&](Value k, ValueRange values) {
    Tap next = tap;
    Value distance = math.mul(k, dilation(d));
    Value jump;
    if (phases) {
      Value plane;
      std::tie(jump, plane) = findPhase(b, k, d);
      int64_t planes = d == 0 ? countRowPhases() : listColumnPhases().size();
      next.phase = math.add(math.mul(tap.phase, planes), plane);
    } else if (isShift()) {
      jump = math.sub(distance, math.constant(pad(d)));
      for (int64_t e = d + 1; e < spatial; ++e)
        jump = math.mul(jump, inSizes[e]);
    }
    for (int64_t c = 0; c < chunk.getColumns(); ++c) {
      Value coordinate = base[c][d];
      if (coordinate)
        coordinate = arith::AddIOp::create(b, coordinate,
                                           emitSplat32(b, distance, width));
      if (masksPadding(d)) {
        // Unsigned, so that positions before the start are out as well.
        Value inside =
            arith::CmpIOp::create(b, arith::CmpIPredicate::ult, coordinate,
                                  emitSplat32(b, inSizes[d], width));
        next.masks[c] = arith::AndIOp::create(b, tap.masks[c], inside);
      }
      Value &offset = next.offsets[c];
      if (jump)
        offset = math.add(offset, jump);
      else if (offset)
        offset = arith::AddIOp::create(
            b,
            arith::MulIOp::create(b, offset, emitSplat32(b, inSizes[d], width)),
            coordinate);
      else
        offset = coordinate;
    }
    next.number = math.add(math.mul(tap.number, kernel(d)), k);
    return emitTapLoop(b, chunk, base, next, d + 1, values, visit);
  };
  if (kernel(d) == 1)
    return step(math.constant(0), init);
  auto loop = scf::ForOp::create(b, math.constant(0), math.constant(kernel(d)),
                                 math.constant(1), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  auto values = step(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!values.empty())
    scf::YieldOp::create(b, values);
  return loop.getResults();
}

/// What one tap of a channel of the group reads for column `c` of a panel.
Value ConvEmitter::emitInputs(ImplicitLocOpBuilder &b, const Chunk &chunk,
                              const Tap &tap, Value channel, int64_t c) {
  IndexMath math(b);
  SmallVector<Value> indices = {
      chunk.image, math.add(math.mul(chunk.group, groupChannels), channel)};
  if (phases) {
    indices.append({tap.phase, tap.offsets[c]});
    return emitLoad(b, phases, indices, chunk.width, tap.masks[c]);
  }
  if (isShift()) {
    indices.push_back(tap.offsets[c]);
    return emitLoad(b, flatInput, indices, chunk.width, tap.masks[c]);
  }
  indices.push_back(math.constant(0));
  auto type = VectorType::get({chunk.width}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return vector::GatherOp::create(b, type, flatInput, indices, tap.offsets[c],
                                  tap.masks[c], zero);
}

void ConvEmitter::emitChannels(ImplicitLocOpBuilder &b, const Chunk &chunk) {
  IndexMath math(b);
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  int64_t full = filters ? *filters / shape.rows : 0;
  Value first = chunk.firstTile, end = chunk.endTile;
  if (filters)
    end = math.min(end, math.constant(full));
  if (!filters || full > 0)
    emitFor(b, first, end, 1, [&](Value tile) {
      emitTile(b, chunk, tile, shape.rows, /*limited=*/!filters);
    });
  int64_t tail = filters ? *filters % shape.rows : 0;
  if (tail > 0)
    emitIf(b, math.less(math.constant(full), chunk.endTile), [&] {
      emitTile(b, chunk, math.constant(full), tail, /*limited=*/false);
    });
}

/// What loop number `loop` of tile number `tile`, one of `loops` over `steps`
/// values of k, fetches of the inputs of the next panel: some channels.
Prefetch ConvEmitter::prefetchInputs(ImplicitLocOpBuilder &b,
                                     const Chunk &chunk, Value tile, Value loop,
                                     int64_t loops, int64_t steps) {
  IndexMath math(b);
  auto type = cast<MemRefType>(allInputs.getType());
  std::optional<int64_t> channels = IndexMath::known(groupChannels);
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  if (!isShift() || !channels || !filters || !isFar(type))
    return {};
  int64_t images = IndexMath::known(evaluator.getSize(0)).value_or(0);
  int64_t rows = *channels * (phases ? countPhases() : 1);
  int64_t stride = type.getNumElements() / (images * group * rows);
  int64_t tiles = std::min<int64_t>(plan.getChunkTiles(),
                                    llvm::divideCeil(*filters, shape.rows));
  Value image = math.add(math.mul(chunk.image, group), chunk.group);
  Value from = math.add(math.mul(image, rows * stride),
                        math.add(chunk.position, chunk.getPositions()));
  int64_t lines = llvm::divideCeil(chunk.getPositions(), Prefetch::kLine);
  return Prefetch::share(
      b, {allInputs, from, stride, rows, tiles * loops, steps, lines},
      math.add(math.mul(math.sub(tile, chunk.firstTile), loops), loop));
}

std::pair<Value, Value> ConvEmitter::findTile(ImplicitLocOpBuilder &b,
                                              Value tile) {
  IndexMath math(b);
  int64_t tilesPerBlock = op.getBlockRows() / shape.rows;
  Value block = math.div(tile, tilesPerBlock);
  return {block,
          math.mul(math.sub(tile, math.mul(block, tilesPerBlock)), shape.rows)};
}

SmallVector<Value> ConvEmitter::emitInits(ImplicitLocOpBuilder &b,
                                          ArrayRef<Tile> tiles, int64_t rows) {
  SmallVector<Value> accs(rows * tiles.size());
  for (auto [c, tile] : llvm::enumerate(tiles)) {
    auto init = evaluator.emitInit(b, op.getInit(), tile, rows);
    for (auto [r, acc] : llvm::enumerate(init))
      accs[r * tiles.size() + c] = acc;
  }
  return accs;
}

void ConvEmitter::emitStores(ImplicitLocOpBuilder &b, ArrayRef<Tile> tiles,
                             ValueRange accs, int64_t rows) {
  for (auto [c, tile] : llvm::enumerate(tiles)) {
    SmallVector<Value> column;
    for (int64_t r = 0; r < rows; ++r)
      column.push_back(accs[r * tiles.size() + c]);
    evaluator.emitStores(b, tile, column);
  }
}

/// A tile of the filters, times the panel.
void ConvEmitter::emitTile(ImplicitLocOpBuilder &b, const Chunk &chunk,
                           Value tileIndex, int64_t rows, bool limited) {
  IndexMath math(b);
  Value firstFilter = math.mul(chunk.group, groupFilters);
  auto getTile = [&](int64_t firstColumn, int64_t width, Value mask) {
    Tile tile;
    tile.index = {chunk.image,
                  math.add(firstFilter, math.mul(tileIndex, shape.rows))};
    tile.position = math.add(chunk.position, firstColumn * chunk.width);
    tile.width = width;
    tile.mask = mask;
    if (limited)
      tile.rowLimit = math.add(firstFilter, groupFilters);
    return tile;
  };
  Tile panel = getTile(0, chunk.getPositions(), nullptr);
  SmallVector<Tile> tiles;
  for (auto [c, mask] : llvm::enumerate(chunk.masks))
    tiles.push_back(getTile(c, chunk.width, mask));
  SmallVector<Value> accs = emitInits(b, tiles, rows);
  auto emitSums = [&](bool readsInputs) {
    return emitTileSums(b, chunk, tileIndex, panel, rows, readsInputs, accs);
  };
  // Only a whole tile is the first one. What becomes of the sums is the larger
  // part of the code, and is there once.
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  const bool isWhole = rows == shape.rows;
  const bool isOnly = isWhole && filters && *filters < 2 * rows;
  if (chunk.packing != ConvPacking::InFirstTile || !isWhole || isOnly) {
    accs = emitSums(chunk.packing == ConvPacking::Never ||
                    (isOnly && chunk.packing == ConvPacking::InFirstTile));
  } else {
    Value isLater = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                          tileIndex, chunk.firstTile);
    auto branch = emitIf(
        b, TypeRange(ValueRange(accs)), isLater,
        [&] { return emitSums(/*readsInputs=*/false); },
        [&] { return emitSums(/*readsInputs=*/true); });
    branch->setAttr(sdx::kRareElseAttr, b.getUnitAttr());
    accs = branch.getResults();
  }
  emitStores(b, tiles, accs, rows);
}

/// The sums `init` and those of a tile of the filters, times the panel: what
/// was packed, or inputs that it reads from where they lie and, if it is the
/// first of several, packs.
SmallVector<Value> ConvEmitter::emitTileSums(ImplicitLocOpBuilder &b,
                                             const Chunk &chunk,
                                             Value tileIndex, const Tile &panel,
                                             int64_t rows, bool readsInputs,
                                             ValueRange init) {
  IndexMath math(b);
  const bool packs = chunk.packing == ConvPacking::InFirstTile && readsInputs;
  int64_t tilesPerBlock = op.getBlockRows() / shape.rows;
  Value block, rowInBlock;
  std::tie(block, rowInBlock) = findTile(b, tileIndex);

  // A tile is one loop over k, or as many as the kernel has taps, over `steps`
  // values each. What loop number `loop` fetches:
  const bool fetches =
      IndexMath::known(depth) && rows == shape.rows && !chunk.isTail;
  const int64_t taps = readsInputs ? facts.countTaps() : 1;
  const int64_t steps = IndexMath::known(depth).value_or(0) / taps;
  auto prefetch = [&](Value loop) {
    SmallVector<Prefetch> next;
    if (!fetches)
      return next;
    int64_t blockSize = *IndexMath::known(depth) * op.getBlockRows();
    Value blocks = math.add(math.mul(chunk.group, math.dim(weights, 1)), block);
    Value tileInBlock = math.div(rowInBlock, shape.rows);
    next.push_back(prefetchWeights(b, math.mul(math.add(blocks, 1), blockSize),
                                   blockSize,
                                   math.add(math.mul(tileInBlock, taps), loop),
                                   tilesPerBlock * taps, steps));
    next.push_back(prefetchInputs(b, chunk, tileIndex, loop, taps, steps));
    return next;
  };
  SmallVector<Prefetch> ahead;
  if (fetches)
    ahead = evaluator.prefetchNextOutputs(b, panel, rows, farBytes(), steps);
  // Nobody has asked for what the first tile writes. Of pictures of any size it
  // gains nothing.
  if (IndexMath::known(outPositions) && (ahead.empty() || packs))
    evaluator.prefetchOutputs(b, panel, rows, target.getL2Bytes() / 2);

  int64_t columns = chunk.getColumns();
  // The sums over `size` values, number i of which is k(i).
  auto emitSums = [&](Value size, function_ref<Value(Value)> k, const Tap *tap,
                      ValueRange init, ArrayRef<Prefetch> prefetches) {
    return emitContractionLoop(
        b, size, rows, columns, init,
        [&](Value i, int64_t r) -> Value {
          return memref::LoadOp::create(
              b, weights,
              ValueRange{chunk.group, block, k(i), math.add(rowInBlock, r)});
        },
        [&](Value i, int64_t c) -> Value {
          SmallVector<Value> packed = {k(i), math.constant(c * chunk.width)};
          if (!tap)
            return emitLoad(b, chunk.scratch, packed, chunk.width);
          Value inputs = emitInputs(b, chunk, *tap, i, c);
          if (packs)
            emitStore(b, inputs, chunk.scratch, packed);
          return inputs;
        },
        prefetches);
  };
  if (readsInputs)
    return emitTaps(b, chunk, init, [&](const Tap &tap, ValueRange init) {
      auto k = [&](Value channel) {
        return math.add(math.mul(channel, taps), tap.number);
      };
      auto next = prefetch(tap.number);
      llvm::append_range(next, ahead);
      return emitSums(groupChannels, k, &tap, init, next);
    });
  auto next = prefetch(math.constant(0));
  llvm::append_range(next, ahead);
  return emitSums(depth, [](Value k) { return k; }, nullptr, init, next);
}
