//===- ShortTail.cpp - The last few positions of a convolution ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pictures of 10x10, 14x14, 18x18, ... positions are some whole vectors of 16
// and four positions, which would take as long as 16. Here a vector has these
// four for each of four values of k. The weights that go with it are shuffled
// from two registers, that is four values of k of eight filters; a filter's
// four sums for a position are added in the end. All this follows the tile of
// the last whole panel that uses the same weights, while they are in the L1
// cache.
//
//===----------------------------------------------------------------------===//

#include "ConvEmitter.h"
#include "IndexMath.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

static constexpr int64_t kShort = kShortTailWidth;

/// How many positions lie after whole panels and go this way; 0: none.
int64_t ConvEmitter::countShortTail() {
  std::optional<int64_t> positions = IndexMath::known(outPositions);
  std::optional<int64_t> steps = IndexMath::known(depth);
  if (!positions || *positions < panelWidth() || !steps || *steps % kShort ||
      !IndexMath::known(groupFilters) || lanes != kShort * kShort ||
      shape.rows != 2 * kShort || op.getBlockRows() != shape.rows)
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
  int64_t filters = op.getBlockRows();
  auto type = VectorType::get({lanes}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Value inputs = emitCollapse(b, chunk.shortTail, 0);
  Value block =
      math.add(math.mul(chunk.group, math.dim(weights, 1)), tileIndex);
  Value first = math.mul(block, math.mul(depth, filters));
  SmallVector<Value> accs(rows, zero);
  auto loop = scf::ForOp::create(b, math.constant(0), depth,
                                 math.constant(kShort), accs);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value k = loop.getInductionVar();
    Value x = emitLoad(b, inputs, {math.mul(k, kShort)}, lanes);
    Value at = math.add(first, math.mul(k, filters));
    Value low = emitLoad(b, flatWeights, {at}, lanes);
    Value high = emitLoad(b, flatWeights, {math.add(at, lanes)}, lanes);
    SmallVector<Value> sums;
    for (int64_t r = 0; r < rows; ++r) {
      SmallVector<int64_t> lanesOfFilter;
      for (int64_t lane = 0; lane < lanes; ++lane)
        lanesOfFilter.push_back(lane / kShort * filters + r);
      Value w = vector::ShuffleOp::create(b, low, high, lanesOfFilter);
      sums.push_back(emitFusedMultiplyAdd(b, w, x, loop.getRegionIterArg(r)));
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
  for (auto [result, sums] : llvm::zip_equal(results, loop.getResults())) {
    // Pairs first, so that the additions wait less for each other.
    auto part = [&](Value vector, int64_t from, int64_t size) -> Value {
      return vector::ExtractStridedSliceOp::create(
          b, vector, ArrayRef<int64_t>{from}, ArrayRef<int64_t>{size},
          ArrayRef<int64_t>{1});
    };
    Value sum = sums;
    for (int64_t size = lanes / 2; size >= kShort; size /= 2)
      sum = arith::AddFOp::create(b, part(sum, 0, size), part(sum, size, size));
    result = arith::AddFOp::create(b, result, sum);
  }
  evaluator.emitStores(b, tile, results);
}
