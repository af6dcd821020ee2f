//===- ChannelLanesConv.cpp - Convolutions with few output positions ------===//
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

#include "ConvEmitter.h"
#include "IndexMath.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Positions in a vector once a block of channels is done.
static constexpr int64_t kSquare = 16;

bool ConvEmitter::hasChannelLanes() {
  std::optional<int64_t> positions = IndexMath::known(outPositions);
  return op.getBlockRows() == sdx::kPanelWidth && positions &&
         *positions <= kMaxChannelLanePositions;
}

/// Rows of the tiles that cover `positions` with the least work. A tile of
/// fewer than four rows takes as long as one of four.
static int64_t chooseRows(int64_t positions, int64_t most) {
  int64_t best = most, leastWork = INT64_MAX;
  for (int64_t rows = most; rows >= std::min<int64_t>(4, most); --rows) {
    int64_t tail = positions % rows;
    int64_t work = positions - tail + (tail ? std::max<int64_t>(tail, 4) : 0);
    if (work < leastWork)
      std::tie(best, leastWork) = std::pair(rows, work);
  }
  return best;
}

void ConvEmitter::emitChannelLanes(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  constexpr int64_t kBlocksPerChunk = 4;
  int64_t positions = *IndexMath::known(outPositions);
  int64_t blockWidth = op.getBlockRows();
  Value blocks = math.ceilDiv(groupFilters, blockWidth);
  SmallVector<Value> sizes = {evaluator.getSize(0), math.constant(group),
                              math.ceilDiv(blocks, kBlocksPerChunk)};
  emitParallel(b, sizes, [&](ValueRange ivs) {
    Chunk chunk;
    chunk.image = ivs[0];
    chunk.group = ivs[1];
    chunk.position = math.constant(0);
    chunk.width = llvm::alignTo(positions, kSquare);
    chunk.mask = emitTailMask(b, outPositions, chunk.width);
    chunk.scratch = emitScratch(b, chunk.width);
    auto allocate = [&](int64_t rows, int64_t columns) -> Value {
      return memref::AllocOp::create(
          b, MemRefType::get({rows, columns}, b.getF32Type()), ValueRange(),
          b.getI64IntegerAttr(64));
    };
    Value sums = allocate(chunk.width, blockWidth);
    Value outputs = allocate(blockWidth, chunk.width);
    emitPack(b, chunk);
    Value first = math.mul(ivs[2], kBlocksPerChunk);
    Value end = math.min(math.add(first, kBlocksPerChunk), blocks);
    emitFor(b, first, end, 1, [&](Value block) {
      emitChannelLaneSums(b, chunk, block, sums);
      emitChannelLaneOutputs(b, chunk, block, sums, outputs);
    });
    memref::DeallocOp::create(b, outputs);
    memref::DeallocOp::create(b, sums);
    memref::DeallocOp::create(b, chunk.scratch);
  });
}

/// sums[position][channel] of a block of channels.
void ConvEmitter::emitChannelLaneSums(ImplicitLocOpBuilder &b,
                                      const Chunk &chunk, Value block,
                                      Value sums) {
  IndexMath math(b);
  int64_t positions = *IndexMath::known(outPositions);
  int64_t height = chooseRows(positions, shape.rows);
  int64_t tail = positions % height;
  auto type = VectorType::get({shape.width}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  for (int64_t part = 0; part < op.getBlockRows(); part += shape.width) {
    auto tile = [&](Value position, int64_t rows) {
      SmallVector<Value> accs(rows, zero);
      accs = emitContractionLoop(
          b, depth, rows, 1, accs,
          [&](Value k, int64_t r) -> Value {
            return memref::LoadOp::create(b, chunk.scratch,
                                          ValueRange{k, math.add(position, r)});
          },
          [&](Value k, int64_t) -> Value {
            return emitLoad(b, weights,
                            {chunk.group, block, k, math.constant(part)},
                            shape.width);
          });
      for (auto [r, acc] : llvm::enumerate(accs))
        emitStore(b, acc, sums, {math.add(position, r), math.constant(part)});
    };
    if (positions >= height)
      emitFor(b, math.constant(0), math.constant(positions - tail), height,
              [&](Value position) { tile(position, height); });
    if (tail)
      tile(math.constant(positions - tail), tail);
  }
}

/// Transposes a block's sums and puts the channels out.
void ConvEmitter::emitChannelLaneOutputs(ImplicitLocOpBuilder &b,
                                         const Chunk &chunk, Value block,
                                         Value sums, Value outputs) {
  IndexMath math(b);
  int64_t blockWidth = op.getBlockRows();
  emitFor(
      b, math.constant(0), math.constant(chunk.width), kSquare,
      [&](Value position) {
        emitFor(
            b, math.constant(0), math.constant(blockWidth), kSquare,
            [&](Value channel) {
              SmallVector<Value> rows;
              for (int64_t r = 0; r < kSquare; ++r)
                rows.push_back(emitLoad(
                    b, sums, {math.add(position, r), channel}, kSquare));
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
    tile.mask = chunk.mask;
    Value value = emitLoad(b, outputs, {row, math.constant(0)}, chunk.width);
    evaluator.emitStores(b, tile, emitOntoInit(b, tile, value));
  });
}
