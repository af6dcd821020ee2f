//===- OutputChannelConv.cpp - Convolutions with few output positions -----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seven by seven positions fill three quarters of four vectors, and one
// position a sixteenth of one. Such outputs have many channels instead: here
// the vectors run across channels and the rows of a tile are positions, of
// which any number is fine.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Positions, in multiples of which a block of channels is transposed.
static constexpr int64_t kSquare = 16;

/// Rows of the tiles that cover `positions` with the least work. A tile of
/// fewer than `fewest` rows takes as long as one of so many.
static int64_t chooseRows(int64_t positions, int64_t most, int64_t fewest) {
  int64_t best = most, leastWork = INT64_MAX;
  for (int64_t rows = most; rows >= std::min(fewest, most); --rows) {
    int64_t tail = positions % rows;
    int64_t work = positions - tail + (tail ? std::max(tail, fewest) : 0);
    if (work < leastWork)
      std::tie(best, leastWork) = std::pair(rows, work);
  }
  return best;
}

/// Threads share the channels. All inputs are packed first, and once; of many
/// groups a thread takes one with all that it needs.
void ConvEmitter::emitOutputChannels(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  constexpr int64_t kManyGroups = 8, kPackedChannels = 16;
  Value zero = math.constant(0);
  Value blocks = math.ceilDiv(groupFilters, op.getBlockRows());
  Chunk chunk;
  auto begin = [&](Value image, Value ofGroup) {
    chunk.image = image;
    chunk.group = ofGroup;
    chunk.position = zero;
    chunk.width = llvm::alignTo(*IndexMath::known(outPositions), kSquare);
    chunk.masks = {emitTailMask(b, outPositions, chunk.width)};
    chunk.scratch = emitScratch(b, chunk.width);
  };
  Value images = evaluator.getSize(0);
  if (group >= kManyGroups)
    return emitParallel(b, {images, math.constant(group)}, [&](ValueRange ivs) {
      begin(ivs[0], ivs[1]);
      emitPack(b, chunk, zero, groupChannels);
      emitChannelLaneBlocks(b, chunk, zero, blocks);
      memref::DeallocOp::create(b, chunk.scratch);
    });
  emitFor(b, zero, images, 1, [&](Value image) {
    emitFor(b, zero, math.constant(group), 1, [&](Value ofGroup) {
      begin(image, ofGroup);
      emitParallel(
          b, {math.ceilDiv(groupChannels, kPackedChannels)},
          [&](ValueRange ivs) {
            Value first = math.mul(ivs[0], kPackedChannels);
            emitPack(b, chunk, first,
                     math.min(math.add(first, kPackedChannels), groupChannels));
          });
      int64_t most = plan.getColumns();
      emitParallel(b, {math.ceilDiv(blocks, most)}, [&](ValueRange ivs) {
        Value first = math.mul(ivs[0], most);
        emitChannelLaneBlocks(b, chunk, first,
                              math.min(math.add(first, most), blocks));
      });
      memref::DeallocOp::create(b, chunk.scratch);
    });
  });
}

/// The results of some blocks of channels.
void ConvEmitter::emitChannelLaneBlocks(ImplicitLocOpBuilder &b,
                                        const Chunk &chunk, Value first,
                                        Value end) {
  IndexMath math(b);
  int64_t blockWidth = op.getBlockRows(), most = plan.getColumns();
  auto allocate = [&](ArrayRef<int64_t> shape) {
    return emitBuffer(b, MemRefType::get(shape, b.getF32Type()));
  };
  Value sums = allocate({most, chunk.width, blockWidth});
  Value outputs = allocate({blockWidth, chunk.width});
  auto emitBlocks = [&](Value block, int64_t count) {
    emitChannelLaneSums(b, chunk, block, count, sums);
    for (int64_t i = 0; i < count; ++i)
      emitChannelLaneOutputs(b, chunk, math.add(block, i), i, sums, outputs);
  };
  Value last = math.add(first, math.roundDown(math.sub(end, first), most));
  emitFor(b, first, last, most, [&](Value block) { emitBlocks(block, most); });
  int64_t filters = IndexMath::known(groupFilters).value_or(0);
  if (llvm::divideCeil(filters, blockWidth) % most)
    emitFor(b, last, end, 1, [&](Value block) { emitBlocks(block, 1); });
  memref::DeallocOp::create(b, outputs);
  memref::DeallocOp::create(b, sums);
}

/// Values of k whose weights, of two blocks, stay in the L1 cache while all
/// positions use them: the largest divisor of the depth that is not too
/// large, or all of them.
static int64_t chooseDepthBlock(int64_t depth) {
  constexpr int64_t kSmallest = 64, kLargest = 128, kMultiple = 8;
  for (int64_t block = kLargest; block >= kSmallest; block -= kMultiple)
    if (depth % block == 0)
      return block;
  return depth;
}

/// sums[i][position][channel] of `blocks` blocks of channels.
void ConvEmitter::emitChannelLaneSums(ImplicitLocOpBuilder &b,
                                      const Chunk &chunk, Value block,
                                      int64_t blocks, Value sums) {
  IndexMath math(b);
  int64_t positions = *IndexMath::known(outPositions);
  // Of few positions a block is not cut into parts.
  int64_t width = shape.width;
  while (width < op.getBlockRows() &&
         positions * blocks * width < kMinConvSums * lanes)
    width *= 2;
  int64_t registers = blocks * width / lanes;
  // Of six rows and as many columns as there are registers for.
  constexpr int64_t kMaxRows = 6;
  bool hasRoom = blocks > 1 || lanes == 8;
  int64_t height = chooseRows(positions, hasRoom ? kMaxRows : shape.rows,
                              std::max<int64_t>(1, kMinConvSums / registers));
  int64_t tail = positions % height;
  int64_t tiles = positions / height;
  int64_t allDepth = cast<MemRefType>(weights.getType()).getDimSize(2);
  auto type = VectorType::get({width}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  bool isKnown = !ShapedType::isDynamic(allDepth);
  int64_t depthBlock = isKnown ? chooseDepthBlock(allDepth) : 0;
  bool isCut = isKnown && depthBlock < allDepth;

  // What is multiplied next: the next values of k, or the next blocks' first.
  auto prefetchNext = [&](Value begin, Value loop, int64_t loops, int64_t i) {
    Value next = math.add(begin, depthBlock);
    Value number = math.add(math.mul(chunk.group, math.dim(weights, 1)),
                            math.add(block, i));
    Value row = math.add(math.mul(number, allDepth), next);
    Value isLast = math.less(math.constant(allDepth - 1), next);
    row = arith::SelectOp::create(
        b, isLast, math.mul(math.add(number, blocks), math.constant(allDepth)),
        row);
    return prefetchWeights(b, math.mul(row, op.getBlockRows()),
                           depthBlock * op.getBlockRows(), loop, loops,
                           depthBlock);
  };
  // One tile of sums for some values of k, `begin` the first of them.
  auto emitTile = [&](Value begin, Value position, int64_t rows, int64_t part) {
    // A single position reads as many streams as there are blocks, which
    // processors foresee.
    SmallVector<Prefetch> next;
    int64_t parts = op.getBlockRows() / width;
    if (isKnown && rows == height && positions > 1)
      for (int64_t i = 0; i < blocks; ++i)
        next.push_back(prefetchNext(
            begin, math.add(math.div(position, height), part / width * tiles),
            tiles * parts, i));
    SmallVector<Value> accs(rows * blocks, zero);
    auto place = [&](int64_t acc) -> SmallVector<Value> {
      return {math.constant(acc % blocks), math.add(position, acc / blocks),
              math.constant(part)};
    };
    if (isCut)
      for (auto [i, acc] : llvm::enumerate(accs))
        acc = emitLoad(b, sums, place(i), width);
    accs = emitContractionLoop(
        b, isCut ? math.constant(depthBlock) : depth, rows, blocks, accs,
        [&](Value k, int64_t r) -> Value {
          return memref::LoadOp::create(
              b, chunk.scratch,
              ValueRange{math.add(begin, k), math.add(position, r)});
        },
        [&](Value k, int64_t i) -> Value {
          return emitLoad(b, weights,
                          {chunk.group, math.add(block, i), math.add(begin, k),
                           math.constant(part)},
                          width);
        },
        next);
    for (auto [i, acc] : llvm::enumerate(accs))
      emitStore(b, acc, sums, place(i));
  };
  auto emitTiles = [&](Value begin) {
    for (int64_t part = 0; part < op.getBlockRows(); part += width) {
      if (tiles > 0)
        emitFor(
            b, math.constant(0), math.constant(positions - tail), height,
            [&](Value position) { emitTile(begin, position, height, part); });
      if (tail)
        emitTile(begin, math.constant(positions - tail), tail, part);
    }
  };
  if (!isCut)
    return emitTiles(math.constant(0));
  for (int64_t i = 0; i < blocks; ++i)
    emitFor(b, math.constant(0), math.constant(positions), 1, [&](Value row) {
      for (int64_t part = 0; part < op.getBlockRows(); part += width)
        emitStore(b, zero, sums, {math.constant(i), row, math.constant(part)});
    });
  emitFor(b, math.constant(0), math.constant(allDepth), depthBlock, emitTiles);
}

/// Transposes the sums of a block, `number` of those that were computed
/// together, and puts the channels out.
void ConvEmitter::emitChannelLaneOutputs(ImplicitLocOpBuilder &b,
                                         const Chunk &chunk, Value block,
                                         int64_t number, Value sums,
                                         Value outputs) {
  IndexMath math(b);
  int64_t blockWidth = op.getBlockRows();
  // As many rows as registers.
  const int64_t square = lanes < 16 ? kSquare / 2 : kSquare;
  emitFor(
      b, math.constant(0), math.constant(chunk.width), square,
      [&](Value position) {
        emitFor(
            b, math.constant(0), math.constant(blockWidth), square,
            [&](Value channel) {
              SmallVector<Value> rows;
              for (int64_t r = 0; r < square; ++r)
                rows.push_back(emitLoad(
                    b, sums,
                    {math.constant(number), math.add(position, r), channel},
                    square));
              for (auto [c, column] : llvm::enumerate(emitTranspose(b, rows)))
                emitStore(b, column, outputs, {math.add(channel, c), position});
            });
      });
  Value firstFilter = math.mul(block, blockWidth);
  Value count =
      math.min(math.constant(blockWidth), math.sub(groupFilters, firstFilter));
  emitFor(b, math.constant(0), count, 1, [&](Value row) {
    Tile tile;
    Value filter = math.add(math.mul(chunk.group, groupFilters),
                            math.add(firstFilter, row));
    tile.index = {chunk.image, filter};
    tile.position = chunk.position;
    tile.width = chunk.width;
    tile.mask = chunk.masks.front();
    Value value = emitLoad(b, outputs, {row, math.constant(0)}, chunk.width);
    evaluator.emitStores(b, tile, emitOntoInit(b, tile, value));
  });
}
