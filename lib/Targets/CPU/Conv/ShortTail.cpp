//===- ShortTail.cpp - The last few positions of a convolution ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pictures of 10x10, 14x14, 18x18, ... positions are some whole panels and four
// positions, which would take as long as a register of them. Here a vector of
// 512 bits has these four for each of four values of k, one of 256 bits for
// each of two. The weights that go with it are shuffled from two registers; a
// filter's sums for a position are added in the end. All this follows the tile
// of the last whole panel that uses the same weights, while they are in the L1
// cache.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

static constexpr int64_t kShort = kShortTailWidth;

/// How many positions lie after whole panels and go this way; 0: none.
int64_t ConvEmitter::countShortTail() {
  std::optional<int64_t> positions = IndexMath::known(outPositions);
  std::optional<int64_t> steps = IndexMath::known(depth);
  if (!positions || *positions < panelWidth() || !steps || *steps % kShort ||
      !IndexMath::known(groupFilters))
    return 0;
  // What the shuffles are for.
  bool isWide = lanes == 4 * kShort && shape.rows == 2 * kShort &&
                op.getBlockRows() == shape.rows;
  bool isNarrow = lanes == 2 * kShort && shape.rows == kShort;
  if (!isWide && !isNarrow)
    return 0;
  int64_t tail = *positions % panelWidth();
  return tail <= kShort ? tail : 0;
}

/// Packs the last positions: a row of four for each k.
void ConvEmitter::emitShortTailPack(ImplicitLocOpBuilder &b,
                                    const Chunk &chunk) {
  IndexMath math(b);
  int64_t positions = *IndexMath::known(outPositions);
  Chunk tail = chunk;
  tail.position = math.constant(positions - countShortTail());
  tail.width = kShort;
  tail.masks = {emitTailMask(b, math.constant(countShortTail()), kShort)};
  tail.scratch = chunk.shortTail;
  emitPack(b, tail, math.constant(0), groupChannels);
}

/// The last positions of the filters of a tile.
void ConvEmitter::emitShortTail(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                Value tileIndex, int64_t rows) {
  IndexMath math(b);
  const int64_t filters = op.getBlockRows();
  // Values of k in a vector, and vectors to four of them.
  const int64_t values = lanes / kShort, vectors = kShort / values;
  Value zero = emitFloatSplat(b, VectorType::get({lanes}, b.getF32Type()), 0);
  Value inputs = emitCollapse(b, chunk.shortTail, 0);
  Value block, rowInBlock;
  std::tie(block, rowInBlock) = findTile(b, tileIndex);
  block = math.add(math.mul(chunk.group, math.dim(weights, 1)), block);
  Value first = math.add(math.mul(block, math.mul(depth, filters)), rowInBlock);
  SmallVector<Value> accs(rows * vectors, zero);
  auto loop = scf::ForOp::create(b, math.constant(0), depth,
                                 math.constant(kShort), accs);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> sums(loop.getRegionIterArgs());
    for (int64_t v = 0; v < vectors; ++v) {
      Value k = math.add(loop.getInductionVar(), v * values);
      Value x = emitLoad(b, inputs, {math.mul(k, kShort)}, lanes);
      // Two registers of the tile's filters for consecutive values of k.
      Value at = math.add(first, math.mul(k, filters));
      int64_t half = values * shape.rows / 2;
      Value low = emitLoad(b, flatWeights, {at}, half);
      Value high =
          emitLoad(b, flatWeights, {math.add(at, values / 2 * filters)}, half);
      for (int64_t r = 0; r < rows; ++r) {
        SmallVector<int64_t> lanesOfFilter;
        for (int64_t lane = 0; lane < lanes; ++lane)
          lanesOfFilter.push_back(lane / kShort * shape.rows + r);
        Value w = vector::ShuffleOp::create(b, low, high, lanesOfFilter);
        Value &sum = sums[r * vectors + v];
        sum = emitFusedMultiplyAdd(b, w, x, sum);
      }
    }
    scf::YieldOp::create(b, sums);
  }
  Tile tile;
  tile.index = {chunk.image, math.add(math.mul(chunk.group, groupFilters),
                                      math.mul(tileIndex, shape.rows))};
  int64_t count = countShortTail();
  tile.position = math.constant(*IndexMath::known(outPositions) - count);
  tile.width = kShort;
  tile.mask = emitTailMask(b, math.constant(count), kShort);
  SmallVector<Value> results = evaluator.emitInit(b, op.getInit(), tile, rows);
  for (auto [r, result] : llvm::enumerate(results)) {
    Value sum = loop.getResult(r * vectors);
    for (int64_t v = 1; v < vectors; ++v)
      sum = arith::AddFOp::create(b, sum, loop.getResult(r * vectors + v));
    // Pairs first, so that the additions wait less for each other.
    auto part = [&](Value vector, int64_t from, int64_t size) -> Value {
      return vector::ExtractStridedSliceOp::create(
          b, vector, ArrayRef<int64_t>{from}, ArrayRef<int64_t>{size},
          ArrayRef<int64_t>{1});
    };
    for (int64_t size = lanes / 2; size >= kShort; size /= 2)
      sum = arith::AddFOp::create(b, part(sum, 0, size), part(sum, size, size));
    result = arith::AddFOp::create(b, result, sum);
  }
  evaluator.emitStores(b, tile, results);
}
