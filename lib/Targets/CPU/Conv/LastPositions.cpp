//===- LastPositions.cpp - The last positions of a convolution by panels --===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is left after whole panels may be a few positions: one of 7x7, four of
// 14x14. With positions in the lanes a tile takes as long for them as for all
// lanes. Weights of a tile's filters lie next to each other, so filters are in
// the lanes here, and each position is a multiply-add.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Lanes of the vectors that results of a filter are stored by.
static constexpr int64_t kStored = 4;

/// The most positions that are computed with filters in the lanes: so many take
/// half of the time that a vector of positions takes. 0: none.
int64_t ConvEmitter::countLastPositions() {
  // Results go one filter at a time, which takes as long as some tens of
  // multiply-adds.
  constexpr int64_t kLeastDepth = 64, kLeastTiles = 4;
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  if (plan.getPacking() == ConvPacking::Never || shape.rows < kStored ||
      !llvm::isPowerOf2_64(shape.rows) || !filters ||
      *filters < kLeastTiles * shape.rows ||
      IndexMath::known(depth).value_or(0) < kLeastDepth)
    return 0;
  int64_t registersOfTile = llvm::divideCeil(shape.rows, lanes);
  return std::min(kStored, shape.rows / (2 * registersOfTile));
}

/// The results of a chunk's tiles for its `left` positions, of which there are
/// `positions` at most. What they read is packed.
void ConvEmitter::emitLastPositions(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                    Value left, int64_t positions) {
  IndexMath math(b);
  // Sums that hide a multiply-add's latency.
  constexpr int64_t kMostTiles = 8;
  const int64_t most =
      std::max<int64_t>(1, std::min(kMostTiles, registers / (2 * positions)));
  Value sums = emitBuffer(
      b, MemRefType::get({most, positions, shape.rows}, b.getF32Type()));
  auto emitTiles = [&](Value tile, int64_t count) {
    emitFilterLanes(b, chunk, tile, count, sums);
    emitFilterRows(b, chunk, tile, count, left, sums);
  };
  Value last =
      math.add(chunk.firstTile,
               math.roundDown(math.sub(chunk.endTile, chunk.firstTile), most));
  emitFor(b, chunk.firstTile, last, most,
          [&](Value tile) { emitTiles(tile, most); });
  emitFor(b, last, chunk.endTile, 1, [&](Value tile) { emitTiles(tile, 1); });
  memref::DeallocOp::create(b, sums);
}

/// sums[tile][position][filter] of `count` tiles from `tile` on.
void ConvEmitter::emitFilterLanes(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                  Value tile, int64_t count, Value sums) {
  IndexMath math(b);
  const int64_t positions = cast<MemRefType>(sums.getType()).getDimSize(1);
  auto type = VectorType::get({shape.rows}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  SmallVector<std::pair<Value, Value>> places;
  for (int64_t i = 0; i < count; ++i)
    places.push_back(findTile(b, math.add(tile, i)));
  SmallVector<Value> accs = emitContractionLoop(
      b, depth, positions, count, SmallVector<Value>(positions * count, zero),
      [&](Value k, int64_t position) -> Value {
        return memref::LoadOp::create(b, chunk.scratch,
                                      ValueRange{k, math.constant(position)});
      },
      [&](Value k, int64_t i) -> Value {
        return emitLoad(b, weights,
                        {chunk.group, places[i].first, k, places[i].second},
                        shape.rows);
      });
  for (auto [n, acc] : llvm::enumerate(accs))
    emitStore(
        b, acc, sums,
        {math.constant(n % count), math.constant(n / count), math.constant(0)});
}

/// Puts out the `sums` of `count` tiles, one filter after another.
void ConvEmitter::emitFilterRows(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                 Value tile, int64_t count, Value left,
                                 Value sums) {
  IndexMath math(b);
  const int64_t positions = cast<MemRefType>(sums.getType()).getDimSize(1);
  Value first = math.mul(tile, shape.rows);
  Value filters = math.min(math.constant(count * shape.rows),
                           math.sub(groupFilters, first));
  Value mask = emitTailMask(b, left, kStored);
  emitFor(b, math.constant(0), filters, 1, [&](Value row) {
    Value number = math.div(row, shape.rows);
    Value lane = math.sub(row, math.mul(number, shape.rows));
    auto type = VectorType::get({kStored}, b.getF32Type());
    Value value;
    for (int64_t p = 0; p < positions; ++p) {
      Value sum = memref::LoadOp::create(
          b, sums, ValueRange{number, math.constant(p), lane});
      value = p == 0 ? vector::BroadcastOp::create(b, type, sum).getResult()
                     : vector::InsertOp::create(b, sum, value, p).getResult();
    }
    Tile place;
    place.index = {chunk.image, math.add(math.mul(chunk.group, groupFilters),
                                         math.add(first, row))};
    place.position = chunk.position;
    place.width = kStored;
    place.mask = mask;
    evaluator.emitStores(b, place, emitOntoInit(b, place, value));
  });
}
