//===- RowBufferConv.cpp - Convolutions of few channels -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first convolution of a network has three channels: so few values of k
// that packing them for a panel of positions takes a third as long as
// multiplying them. But all the inputs that some rows of the output read stay
// in the L1 cache, and every tap can read them there.
//
// A line is a row of a channel of the padded input, or with stride 2 its even
// and its odd columns after one another, so that the inputs of neighbouring
// outputs are neighbours: with stride s, element i of part p of a line is
// column s * i + p - pad, and tap x of output o reads element o + x / s of part
// x mod s.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// What a line looks like, and how many of each channel a chunk reads.
struct ConvEmitter::Lines {
  int64_t channels, parts;
  Value partLength, perChannel, outputRows;
  /// [channel and row, part and column].
  Value memory;
};

ConvEmitter::Lines ConvEmitter::planRowBuffer(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Lines lines;
  lines.channels = *IndexMath::known(groupChannels);
  lines.parts = stride(1);
  lines.partLength = math.mul(
      math.ceilDiv(math.add(math.mul(math.ceilDiv(outSize(1), lanes), lanes),
                            (kernel(1) - 1) / stride(1)),
                   lanes),
      lanes);
  // Of three channels of 224 columns 28 KiB are 9 rows, for 4 of the output. Of
  // what is too long for the cache there is one row of outputs.
  Value most = math.div(
      math.constant(target.getBytesBesideTile() / int64_t(sizeof(float))),
      math.max(math.mul(lines.partLength, lines.channels * lines.parts),
               math.constant(1)));
  Value more = math.div(
      math.max(math.sub(most, math.constant(kernel(0))), math.constant(0)),
      stride(0));
  lines.outputRows = math.max(
      math.min(math.add(more, 1), math.ceilDiv(outSize(0), kMinConvChunks)),
      math.constant(1));
  lines.perChannel = math.add(
      math.mul(math.sub(lines.outputRows, math.constant(1)), stride(0)),
      kernel(0));
  return lines;
}

/// Copies row `source` of `channel` into line number `line`.
void ConvEmitter::emitLine(ImplicitLocOpBuilder &b, const Lines &lines,
                           ValueRange channel, Value source, Value line) {
  IndexMath math(b);
  int64_t step = lanes * lines.parts;
  auto store = [&](Value both, Value column) {
    for (int64_t p = 0; p < lines.parts; ++p)
      emitStore(b,
                lines.parts == 1
                    ? both
                    : emitPick(b, both, both, p, lines.parts, lanes),
                lines.memory,
                {line, math.add(column, math.mul(lines.partLength, p))});
  };
  auto copy = [&](Value vector, bool isWhole) {
    Value first = math.sub(math.mul(vector, step), math.constant(pad(1)));
    Value mask = isWhole ? Value() : emitInside(b, first, step, inSizes[1]);
    Value from = math.add(math.mul(source, inSizes[1]), first);
    store(emitLoad(b, flatInput, {channel[0], channel[1], from}, step, mask),
          math.mul(vector, lanes));
  };
  Value vectors = math.div(lines.partLength, lanes);
  Value firstWhole =
      math.min(vectors, math.constant(llvm::divideCeil(pad(1), step)));
  Value endWhole = math.min(
      math.max(math.div(math.add(inSizes[1], pad(1)), step), firstWhole),
      vectors);
  auto copyAll = [&] {
    auto run = [&](Value from, Value end, bool isWhole) {
      emitFor(b, from, end, 1, [&](Value v) { copy(v, isWhole); });
    };
    run(math.constant(0), firstWhole, /*isWhole=*/false);
    run(firstWhole, endWhole, /*isWhole=*/true);
    run(endWhole, vectors, /*isWhole=*/false);
  };
  auto clear = [&] {
    auto type = VectorType::get({step}, b.getF32Type());
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    emitFor(b, math.constant(0), vectors, 1,
            [&](Value v) { store(zero, math.mul(v, lanes)); });
  };
  emitIf(
      b,
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, source, inSizes[0]),
      copyAll, clear);
}

void ConvEmitter::emitRowBuffer(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Lines lines = planRowBuffer(b);
  int64_t filters = *IndexMath::known(groupFilters);
  int64_t full = filters / shape.rows, rest = filters % shape.rows;
  Value chunks = math.ceilDiv(outSize(0), lines.outputRows);
  emitParallel(b, {evaluator.getSize(0), chunks}, [&](ValueRange ivs) {
    Value image = ivs[0];
    Value firstRow = math.mul(ivs[1], lines.outputRows);
    Value rows = math.min(lines.outputRows, math.sub(outSize(0), firstRow));
    SmallVector<int64_t> sizes;
    SmallVector<Value> dynamic;
    for (Value size : {math.mul(lines.perChannel, lines.channels),
                       math.mul(lines.partLength, lines.parts)}) {
      sizes.push_back(IndexMath::known(size).value_or(ShapedType::kDynamic));
      if (ShapedType::isDynamic(sizes.back()))
        dynamic.push_back(size);
    }
    lines.memory =
        emitBuffer(b, MemRefType::get(sizes, b.getF32Type()), dynamic);
    Value firstSource =
        math.sub(math.mul(firstRow, stride(0)), math.constant(pad(0)));
    emitFor(b, math.constant(0), math.constant(lines.channels), 1,
            [&](Value channel) {
              emitFor(b, math.constant(0), lines.perChannel, 1, [&](Value row) {
                Value line = math.add(math.mul(channel, lines.perChannel), row);
                emitLine(b, lines, {image, channel}, math.add(firstSource, row),
                         line);
              });
            });
    auto tile = [&](Value number, int64_t filtersOfTile) {
      emitFor(b, math.constant(0), rows, 1, [&](Value row) {
        LineTile at;
        at.image = image;
        at.number = number;
        at.filters = filtersOfTile;
        at.outputRow = math.add(firstRow, row);
        at.line = math.mul(row, stride(0));
        emitLineTiles(b, lines, at);
      });
    };
    emitFor(b, math.constant(0), math.constant(full), 1,
            [&](Value number) { tile(number, shape.rows); });
    if (rest)
      tile(math.constant(full), rest);
    memref::DeallocOp::create(b, lines.memory);
  });
}

/// All columns of a row, `columns` vectors at a time. A single vector left over
/// would have too few sums to keep the multipliers busy.
void ConvEmitter::emitLineTiles(ImplicitLocOpBuilder &b, const Lines &lines,
                                const LineTile &at) {
  IndexMath math(b);
  std::optional<int64_t> known = IndexMath::known(outSize(1));
  if (!known) {
    Value end = math.roundDown(outSize(1), columns * lanes);
    emitFor(b, math.constant(0), math.div(end, lanes), columns,
            [&](Value vector) {
              emitLineTile(b, lines, at, vector, columns, /*isCut=*/false);
            });
    emitFor(b, math.div(end, lanes), math.ceilDiv(outSize(1), lanes), 1,
            [&](Value vector) {
              emitLineTile(b, lines, at, vector, 1, /*isCut=*/true);
            });
    return;
  }
  int64_t width = *known;
  int64_t vectors = llvm::divideCeil(width, lanes);
  int64_t last = vectors % columns;
  if (last == 1 && columns > 2 && vectors > columns)
    last += columns;
  int64_t wide = vectors - last;
  bool isCut = width % lanes != 0;
  // The last vector may be a tile's that is not as wide as the others.
  if (!last && isCut) {
    last = columns;
    wide -= columns;
  }
  emitFor(b, math.constant(0), math.constant(wide), columns, [&](Value vector) {
    emitLineTile(b, lines, at, vector, columns, /*isCut=*/false);
  });
  while (last > 0) {
    int64_t count = last > columns ? llvm::divideCeil(last, 2) : last;
    last -= count;
    emitLineTile(b, lines, at, math.constant(vectors - last - count), count,
                 isCut && last == 0);
  }
}

/// Some filters times `count` vectors of a row.
void ConvEmitter::emitLineTile(ImplicitLocOpBuilder &b, const Lines &lines,
                               const LineTile &at, Value vector, int64_t count,
                               bool isCut) {
  IndexMath math(b);
  Value block, rowInBlock;
  std::tie(block, rowInBlock) = findTile(b, at.number);
  Value column = math.mul(vector, lanes);
  Value position = math.add(math.mul(at.outputRow, outSize(1)), column);
  SmallVector<Tile> tiles(count);
  for (auto [c, tile] : llvm::enumerate(tiles)) {
    tile.index = {at.image, math.mul(at.number, shape.rows)};
    tile.position = math.add(position, c * lanes);
    tile.width = lanes;
    if (isCut && static_cast<int64_t>(c) + 1 == count)
      tile.mask = emitTailMask(
          b, math.sub(outSize(1), math.add(column, c * lanes)), lanes);
  }

  // Lines of the cache that the next tile of these filters writes.
  Tile next = tiles.front();
  next.position = math.add(position, count * lanes);
  next.width = count * lanes;
  next.mask = nullptr;
  auto loop = scf::ForOp::create(
      b, math.constant(0), math.constant(lines.channels * kernel(0)),
      math.constant(1), emitInits(b, tiles, at.filters));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value tapRow = loop.getInductionVar();
    Value channel = math.div(tapRow, kernel(0));
    Value line =
        math.add(math.add(at.line, tapRow),
                 math.mul(channel, math.sub(lines.perChannel,
                                            math.constant(kernel(0)))));
    Tile asked = next;
    asked.index[1] = math.add(asked.index[1],
                              math.min(tapRow, math.constant(at.filters - 1)));
    evaluator.prefetchOutputs(b, asked, /*rows=*/1, farBytes());
    SmallVector<Value> sums(loop.getRegionIterArgs());
    for (int64_t x = 0; x < kernel(1); ++x) {
      Value start =
          math.add(column, math.add(math.mul(lines.partLength, x % stride(1)),
                                    x / stride(1)));
      emitContractionStep(
          b, math.add(math.mul(tapRow, kernel(1)), x), at.filters, count, sums,
          [&](Value k, int64_t f) -> Value {
            return memref::LoadOp::create(b, weights,
                                          ValueRange{math.constant(0), block, k,
                                                     math.add(rowInBlock, f)});
          },
          [&](Value, int64_t c) {
            return emitLoad(b, lines.memory, {line, math.add(start, c * lanes)},
                            lanes);
          },
          emitFusedMultiplyAdd);
    }
    scf::YieldOp::create(b, sums);
  }
  emitStores(b, tiles, loop.getResults(), at.filters);
}
