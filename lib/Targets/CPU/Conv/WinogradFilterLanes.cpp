//===- WinogradFilterLanes.cpp - Filters in lanes ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A picture of one register of tiles uses a weight sixteen times, and takes as
// long as memory takes to give it. So filters are in the lanes, tiles in the
// rows of accumulators, and weights may be integers of 24 bits. Each tile of
// accumulators unpacks them anew: that takes less than to keep what was
// unpacked, which is too much for the L1 cache.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"
#include "Conv/WinogradConv.h"

#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Some tiles and filters of the product of one block of filters and one of the
/// values that they have become.
struct ConvEmitter::WinogradLanes {
  Value block;
  WinogradProduct product;
  int64_t firstTile, tiles, firstFilter, filters;
  /// Which one of that product's loops it is, and of how many.
  int64_t loop, loops;
};

/// The sums over channels, a vector of filters for each tile.
SmallVector<Value> ConvEmitter::emitWinogradLaneSums(ImplicitLocOpBuilder &b,
                                                     const WinogradPanel &panel,
                                                     const WinogradLanes &at) {
  IndexMath math(b);
  Value number = at.product.number, tap = at.product.tap;
  Value product = math.add(math.mul(at.block, winograd->taps()), tap);
  Prefetch next;
  if (std::optional<int64_t> channels = IndexMath::known(groupChannels)) {
    int64_t size = *channels * op.getWeights().getType().getShape().back();
    next = prefetchWeights(b, math.mul(math.add(product, 1), size), size,
                           math.constant(at.loop), at.loops, *channels);
  }
  auto left = [&](Value k, int64_t r) -> Value {
    return memref::LoadOp::create(b, panel.inputs,
                                  ValueRange{panel.slot[0], panel.slot[1],
                                             number, k,
                                             math.constant(at.firstTile + r)});
  };
  Value firstK = math.mul(tap, groupChannels);
  auto right = [&](Value k, int64_t) -> Value {
    return emitLoad(b, weights,
                    {math.constant(0), at.block, math.add(firstK, k),
                     math.constant(at.firstFilter)},
                    at.filters);
  };
  return emitContractionOfBlocks(
      b, groupChannels, getWinogradSumDepth(IndexMath::known(groupChannels)),
      at.tiles, 1, VectorType::get({at.filters}, b.getF32Type()), left, right,
      next);
}

/// The products of one block of filters with the tiles of a panel, transposed
/// to [tap, filter, tile].
void ConvEmitter::emitWinogradLaneTiles(ImplicitLocOpBuilder &b,
                                        const WinogradPanel &panel, Value block,
                                        Value products) {
  IndexMath math(b);
  int64_t blockRows = op.getBlockRows(), width = panel.width;
  int64_t rows = std::gcd(shape.rows, width);
  int64_t filters = shape.width;
  int64_t parts = blockRows / filters, loops = parts * width / rows;
  Value sums =
      emitBuffer(b, MemRefType::get({width, blockRows}, b.getF32Type()));
  emitFor(
      b, math.constant(0), math.constant(winograd->products()), 1,
      [&](Value n) {
        WinogradProduct product = findWinogradProduct(b, n);
        for (int64_t loop = 0; loop < loops; ++loop) {
          int64_t tile = loop / parts * rows, filter = loop % parts * filters;
          WinogradLanes at{block,  product, tile, rows,
                           filter, filters, loop, loops};
          for (auto [r, vector] :
               llvm::enumerate(emitWinogradLaneSums(b, panel, at)))
            emitStore(b, vector, sums,
                      {math.constant(tile + r), math.constant(filter)});
        }
        int64_t square = std::gcd(width, blockRows);
        for (int64_t tile = 0; tile < width; tile += square)
          for (int64_t filter = 0; filter < blockRows; filter += square) {
            SmallVector<Value> tiles;
            for (int64_t r = 0; r < square; ++r)
              tiles.push_back(emitLoad(
                  b, sums, {math.constant(tile + r), math.constant(filter)},
                  square));
            for (auto [c, column] : llvm::enumerate(emitTranspose(b, tiles)))
              emitStore(b, column, products,
                        {product.number, math.constant(filter + c),
                         math.constant(tile)});
          }
      });
  memref::DeallocOp::create(b, sums);
}
