//===- WinogradConv.cpp - 3x3 convolutions by Winograd's algorithm --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// F(m x m, 3 x 3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks" (2015): a tile of 4x4 outputs takes 36 multiplications a channel
// instead of 144, one of 2x2 16 instead of 36. A tile of inputs d and the
// filter g are transformed to B'dB and GgG'; their products, summed over
// channels, are 36 (or 16) matrix products; and a tile of outputs is A'mA of
// the result. Vectors run across tiles. Strides of 2 have matrices of their own
// (dialects/CPU/Winograd.h).
//
//===----------------------------------------------------------------------===//

#include "Conv/WinogradConv.h"
#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"
#include "Plan/WinogradTiles.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;
using cpu::Winograd;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// What the `width` filters from number `first` on become, at
/// memory[block..., value * channels + channel, :].
static void emitFilters(ImplicitLocOpBuilder &b, const Winograd &algorithm,
                        Value source, Value first, int64_t width, Value memory,
                        ValueRange block) {
  IndexMath math(b);
  Value filters = math.dim(source, 0), channels = math.dim(source, 1);
  Value flat = emitCollapse(b, source, 0);
  auto type = VectorType::get({width}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Value filterSize = math.mul(channels, 9);
  Value offsets = arith::MulIOp::create(b, emitLanes(b, width, 1),
                                        emitSplat32(b, filterSize, width));
  Value mask =
      vector::CreateMaskOp::create(b, VectorType::get({width}, b.getI1Type()),
                                   ValueRange{math.sub(filters, first)});
  Value start = math.mul(first, filterSize);
  emitFor(b, math.constant(0), channels, 1, [&](Value channel) {
    Value at = math.add(start, math.mul(channel, 9));
    SmallVector<Value> taps;
    for (int64_t tap = 0; tap < 9; ++tap)
      taps.push_back(vector::GatherOp::create(
          b, type, flat, ValueRange{math.add(at, tap)}, offsets, mask, zero));
    for (auto [p, value] : llvm::enumerate(emitWinogradSquare(
             b, algorithm.filter, algorithm.numbers(), taps))) {
      SmallVector<Value> to(block);
      to.append({math.add(math.mul(channels, p), channel), math.constant(0)});
      emitStore(b, value, memory, to);
    }
  });
}

void sardonyx::cpu::emitWinogradWeights(ImplicitLocOpBuilder &b,
                                        const Winograd &algorithm, Value source,
                                        Value dest) {
  IndexMath math(b);
  Value zero = math.constant(0);
  int64_t width = cast<MemRefType>(dest.getType()).getShape().back();
  emitParallel(b, {math.dim(dest, 1)}, [&](ValueRange block) {
    emitFilters(b, algorithm, source, math.mul(block[0], width), width, dest,
                {zero, block[0]});
  });
}

//===----------------------------------------------------------------------===//
// Groups of tiles
//===----------------------------------------------------------------------===//

int64_t ConvEmitter::winogradGroupRows() {
  std::optional<int64_t> height = IndexMath::known(outSize(0));
  std::optional<int64_t> width = IndexMath::known(outSize(1));
  return height && width
             ? WinogradGroups::get(*winograd, lanes, *height, *width).rows
             : 1;
}

ConvEmitter::WinogradGroup
ConvEmitter::emitWinogradGroup(ImplicitLocOpBuilder &b, Value number) {
  IndexMath math(b);
  WinogradGroup group;
  group.rows = winogradGroupRows();
  group.columns = lanes / group.rows;
  Value perRow = math.ceilDiv(outSize(1), winograd->outputs * group.columns);
  Value row = math.div(number, perRow);
  Value column = math.sub(number, math.mul(row, perRow));
  group.firstRow = math.mul(row, group.rows);
  group.firstColumn = math.mul(column, group.columns);
  return group;
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

void ConvEmitter::emitWinograd(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  int64_t rows = winogradGroupRows();
  int64_t outputs = winograd->outputs;
  Value groups = math.mul(math.ceilDiv(outSize(0), outputs * rows),
                          math.ceilDiv(outSize(1), outputs * (lanes / rows)));
  const int64_t width = plan.getColumns() * lanes;
  Value images = evaluator.getSize(0);
  Value panels = math.ceilDiv(groups, width / lanes);
  WinogradPanel panel;
  panel.width = width;
  panel.tileRows = plan.getTileRows();
  panel.groupRows = plan.getGroupRows();
  Value blocks = math.ceilDiv(groupFilters, panel.groupRows);

  Value zero = math.constant(0);
  if (plan.getThreads() == ConvSharing::Panels)
    return emitParallel(b, {images, panels}, [&](ValueRange ivs) {
      panel.image = ivs[0];
      panel.number = ivs[1];
      panel.slot[0] = panel.slot[1] = zero;
      panel.inputs =
          emitWinogradBuffer(b, math.constant(1), math.constant(1), width);
      emitWinogradInput(b, panel, zero, groupChannels);
      emitFor(b, zero, blocks, 1,
              [&](Value block) { emitWinogradProducts(b, panel, block); });
      memref::DeallocOp::create(b, panel.inputs);
    });

  constexpr int64_t kChannels = 8;
  Value inputs = emitWinogradBuffer(b, images, panels, width);
  auto slot = [&](ValueRange ivs) -> WinogradPanel {
    WinogradPanel result = panel;
    result.image = result.slot[0] = ivs[0];
    result.number = result.slot[1] = ivs[1];
    result.inputs = inputs;
    return result;
  };
  emitParallel(b, {images, panels, math.ceilDiv(groupChannels, kChannels)},
               [&](ValueRange ivs) {
                 Value from = math.mul(ivs[2], kChannels);
                 Value to = math.min(math.add(from, kChannels), groupChannels);
                 emitWinogradInput(b, slot(ivs), from, to);
               });
  emitParallel(b, {images, panels, blocks}, [&](ValueRange ivs) {
    emitWinogradProducts(b, slot(ivs), ivs[2]);
  });
  memref::DeallocOp::create(b, inputs);
}

/// Memory for transformed inputs: [image, panel, value, channel, tile].
Value ConvEmitter::emitWinogradBuffer(ImplicitLocOpBuilder &b, Value images,
                                      Value panels, int64_t width) {
  IndexMath math(b);
  SmallVector<int64_t> extents;
  SmallVector<Value> dynamic;
  for (Value size : {images, panels, math.constant(winograd->products()),
                     // One more, so that the values of a channel do not
                     // all fall into one set of the cache.
                     math.add(groupChannels, 1), math.constant(width)}) {
    extents.push_back(IndexMath::known(size).value_or(ShapedType::kDynamic));
    if (extents.back() == ShapedType::kDynamic)
      dynamic.push_back(size);
  }
  return emitBuffer(b, MemRefType::get(extents, b.getF32Type()), dynamic);
}

/// Number `n` of the products, in the order of the taps that they are with.
ConvEmitter::WinogradProduct
ConvEmitter::findWinogradProduct(ImplicitLocOpBuilder &b, Value n) {
  IndexMath math(b);
  int64_t values = winograd->values(), numbers = winograd->numbers();
  if (values == numbers)
    return {n, n};
  // All values from the last number on are multiplied by that: rows of them
  // go column by column.
  int64_t rows = values - numbers + 1;
  Value firstLast = math.constant((numbers - 1) * values);
  Value isLast = math.less(math.sub(firstLast, math.constant(1)), n);
  Value ofLast = math.sub(n, firstLast);
  auto choose = [&](Value last, Value other) -> Value {
    return arith::SelectOp::create(b, isLast, last, other);
  };
  Value row = choose(
      math.add(math.sub(ofLast, math.roundDown(ofLast, rows)), numbers - 1),
      math.div(n, values));
  Value column =
      choose(math.div(ofLast, rows), math.sub(n, math.roundDown(n, values)));
  Value last = math.constant(numbers - 1);
  return {
      math.add(math.mul(row, values), column),
      math.add(math.mul(math.min(row, last), numbers), math.min(column, last))};
}

/// The products of one group of filters with one panel,
/// [product, filter, tile].
void ConvEmitter::emitWinogradTiles(ImplicitLocOpBuilder &b,
                                    const WinogradPanel &panel, Value group,
                                    Value products) {
  IndexMath math(b);
  Value first = math.mul(group, panel.groupRows);
  Value tiles = math.ceilDiv(math.sub(groupFilters, first), panel.tileRows);
  tiles = math.min(tiles, math.constant(panel.groupRows / panel.tileRows));
  emitFor(b, math.constant(0), math.constant(winograd->products()), 1,
          [&](Value n) {
            auto emitTile = [&](Value tile) {
              emitWinogradTile(b, panel, findWinogradProduct(b, n), first,
                               math.mul(tile, panel.tileRows), products);
            };
            if (panel.groupRows == panel.tileRows)
              return emitTile(math.constant(0));
            emitFor(b, math.constant(0), tiles, 1, emitTile);
          });
}

/// A tile of `product`, those of filter `inGroup` of a group that begins with
/// filter `firstOfGroup`, and of the next ones.
void ConvEmitter::emitWinogradTile(ImplicitLocOpBuilder &b,
                                   const WinogradPanel &panel,
                                   const WinogradProduct &product,
                                   Value firstOfGroup, Value inGroup,
                                   Value products) {
  IndexMath math(b);
  int64_t width = panel.width;
  int64_t rows = panel.tileRows;
  // A tile is a part of a block of weights, or some blocks, the last of which
  // may be past the end.
  int64_t blockRows = op.getBlockRows();
  int64_t rowsOfBlock = std::min(rows, blockRows);
  Value firstRow = math.add(firstOfGroup, inGroup);
  Value firstBlock = math.div(firstRow, blockRows);
  Value firstInBlock = math.sub(firstRow, math.mul(firstBlock, blockRows));
  Value lastBlock = math.sub(math.dim(weights, 1), math.constant(1));
  auto packedBlock = [&](int64_t r) {
    int64_t further = r / rowsOfBlock;
    return further ? math.min(math.add(firstBlock, further), lastBlock)
                   : firstBlock;
  };
  auto type = VectorType::get({width}, b.getF32Type());
  Value taps = math.constant(winograd->taps());
  Value p = product.number, tap = product.tap;
  Value firstK = math.mul(tap, groupChannels);
  SmallVector<Prefetch> next;
  if (std::optional<int64_t> channels = IndexMath::known(groupChannels))
    // The weights of one product are followed by those of the next.
    for (int64_t r = 0; r < rows; r += rowsOfBlock) {
      int64_t size = *channels * blockRows;
      Value following =
          math.add(math.add(math.mul(packedBlock(r), taps), tap), 1);
      next.push_back(prefetchWeights(b, math.mul(following, size), size,
                                     math.div(firstInBlock, rowsOfBlock),
                                     blockRows / rowsOfBlock, *channels));
    }
  SmallVector<Value> accs = emitContractionOfBlocks(
      b, groupChannels, getWinogradSumDepth(IndexMath::known(groupChannels)),
      rows, 1, type,
      [&](Value k, int64_t r) -> Value {
        return memref::LoadOp::create(
            b, weights,
            ValueRange{math.constant(0), packedBlock(r), math.add(firstK, k),
                       math.add(firstInBlock, r % rowsOfBlock)});
      },
      [&](Value k, int64_t) -> Value {
        return emitLoad(b, panel.inputs,
                        {panel.slot[0], panel.slot[1], p, k, math.constant(0)},
                        width);
      },
      next);
  for (auto [r, acc] : llvm::enumerate(accs))
    emitStore(b, acc, products, {p, math.add(inGroup, r), math.constant(0)});
}

/// The products of one group of filters with one panel, and the outputs
/// that follow from them.
void ConvEmitter::emitWinogradProducts(ImplicitLocOpBuilder &b,
                                       const WinogradPanel &panel,
                                       Value block) {
  IndexMath math(b);
  int64_t width = panel.width;
  int64_t rows = panel.groupRows;
  Value firstRow = math.mul(block, rows);
  Value products = emitBuffer(
      b, MemRefType::get({winograd->products(), rows, width}, b.getF32Type()));
  if (hasFilterLanes())
    emitWinogradLaneTiles(b, panel, block, products);
  else
    emitWinogradTiles(b, panel, block, products);

  emitWinogradOutputs(b, panel, firstRow, products);
  memref::DeallocOp::create(b, products);
}
