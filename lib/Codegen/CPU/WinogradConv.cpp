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
// the result. Vectors run across tiles.
//
//===----------------------------------------------------------------------===//

#include "WinogradConv.h"
#include "ConvEmitter.h"
#include "IndexMath.h"
#include "ShortNumbers.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;
using sdx::Winograd;

/// The sum of coefficients[i] * values[i].
static Value emitCombination(ImplicitLocOpBuilder &b,
                             ArrayRef<double> coefficients,
                             ArrayRef<Value> values) {
  auto type = cast<VectorType>(values.front().getType());
  auto splat = [&](double x) -> Value {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(type, float(x)));
  };
  // A term that needs no multiplication goes first.
  const double *one = llvm::find(coefficients, 1.0);
  size_t first = one != coefficients.end()
                     ? one - coefficients.begin()
                     : llvm::find_if(coefficients, [](double c) {
                         return c != 0;
                       }) - coefficients.begin();
  Value sum = values[first];
  if (coefficients[first] != 1)
    sum = arith::MulFOp::create(b, sum, splat(coefficients[first]));
  for (auto [i, c] : llvm::enumerate(coefficients)) {
    if (i == first || c == 0)
      continue;
    if (c == 1)
      sum = arith::AddFOp::create(b, sum, values[i]);
    else if (c == -1)
      sum = arith::SubFOp::create(b, sum, values[i]);
    else
      sum = vector::FMAOp::create(b, splat(c), values[i], sum);
  }
  return sum;
}

/// matrix * tile * transpose(matrix) of a square tile in row-major order, for
/// a matrix of `rows` rows.
static SmallVector<Value> emitTransform(ImplicitLocOpBuilder &b,
                                        ArrayRef<double> matrix, int64_t rows,
                                        ArrayRef<Value> tile) {
  int64_t columns = matrix.size() / rows;
  SmallVector<Value> half(rows * columns), result;
  for (int64_t c = 0; c < columns; ++c) {
    SmallVector<Value> column;
    for (int64_t r = 0; r < columns; ++r)
      column.push_back(tile[r * columns + c]);
    for (int64_t r = 0; r < rows; ++r)
      half[r * columns + c] =
          emitCombination(b, matrix.slice(r * columns, columns), column);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < rows; ++c)
      result.push_back(
          emitCombination(b, matrix.slice(c * columns, columns),
                          ArrayRef(half).slice(r * columns, columns)));
  return result;
}

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
    for (auto [p, value] : llvm::enumerate(
             emitTransform(b, algorithm.filter, algorithm.inputs(), taps))) {
      SmallVector<Value> to(block);
      to.append({math.add(math.mul(channels, p), channel), math.constant(0)});
      emitStore(b, value, memory, to);
    }
  });
}

void sardonyx::cpu::emitWinogradWeights(ImplicitLocOpBuilder &b,
                                        const Winograd &algorithm, Value source,
                                        Value scales, Value dest,
                                        int64_t lanes) {
  IndexMath math(b);
  Value channels = math.dim(source, 1), zero = math.constant(0);
  int64_t width =
      cast<MemRefType>((scales ? scales : dest).getType()).getShape().back();
  int64_t taps = algorithm.taps();
  Value panels = scales ? emitWinogradPanels(b, dest, taps) : Value();
  emitParallel(b, {math.dim(dest, 1)}, [&](ValueRange block) {
    Value first = math.mul(block[0], width);
    if (!scales)
      return emitFilters(b, algorithm, source, first, width, dest,
                         {zero, block[0]});
    int64_t depth = cast<MemRefType>(dest.getType()).getDimSize(2);
    Value numbers =
        emitBuffer(b, MemRefType::get({depth, width}, b.getF32Type()));
    emitFilters(b, algorithm, source, first, width, numbers, {});
    emitFor(b, zero, math.constant(taps), 1, [&](Value p) {
      Value panel = math.add(math.mul(block[0], taps), p);
      packThreeBytes(b, numbers, math.mul(p, channels), scales, channels,
                     ShortPanel::get(panels, panel, width, lanes));
    });
    memref::DeallocOp::create(b, numbers);
  });
}

Value sardonyx::cpu::emitWinogradPanels(ImplicitLocOpBuilder &b, Value weights,
                                        int64_t taps) {
  auto type = cast<MemRefType>(weights.getType());
  ArrayRef<int64_t> shape = type.getShape();
  auto split = MemRefType::get({shape[1], taps, shape[2] / taps, shape[3]},
                               type.getElementType());
  SmallVector<ReassociationIndices> outer = {{0, 1}, {2}, {3}},
                                    inner = {{0}, {1, 2}, {3}};
  Value blocks = memref::CollapseShapeOp::create(b, weights, outer);
  Value values = memref::ExpandShapeOp::create(b, split, blocks, inner);
  return memref::CollapseShapeOp::create(b, values, outer);
}

//===----------------------------------------------------------------------===//
// Groups of tiles
//===----------------------------------------------------------------------===//

/// The lanes of a vector hold the tiles of `rows` rows of tiles and
/// `lanes / rows` columns, so that their inputs and outputs are runs of
/// consecutive elements.
static int64_t chooseGroupRows(const Winograd &algorithm, int64_t lanes,
                               int64_t height, int64_t width, int64_t &groups) {
  int64_t tileRows = llvm::divideCeil(height, algorithm.outputs);
  int64_t tileColumns = llvm::divideCeil(width, algorithm.outputs);
  int64_t best = 1;
  groups = tileRows * llvm::divideCeil(tileColumns, lanes);
  for (int64_t rows = 2; rows <= std::min<int64_t>(4, lanes); rows *= 2) {
    int64_t count = llvm::divideCeil(tileRows, rows) *
                    llvm::divideCeil(tileColumns, lanes / rows);
    if (count < groups)
      std::tie(best, groups) = std::pair(rows, count);
  }
  return best;
}

int64_t sardonyx::cpu::countWinogradGroups(const Winograd &algorithm,
                                           int64_t lanes, int64_t height,
                                           int64_t width) {
  int64_t groups;
  chooseGroupRows(algorithm, lanes, height, width, groups);
  return groups;
}

/// A group of tiles: its first row of tiles and its first column.
struct ConvEmitter::WinogradGroup {
  int64_t rows, columns;
  Value firstRow, firstColumn;
};

int64_t ConvEmitter::winogradGroupRows() {
  std::optional<int64_t> height = IndexMath::known(outSize(0));
  std::optional<int64_t> width = IndexMath::known(outSize(1));
  int64_t groups;
  return height && width
             ? chooseGroupRows(*winograd, lanes, *height, *width, groups)
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

/// x0, y0, x1, y1, ...
static Value emitInterleave(ImplicitLocOpBuilder &b, Value x, Value y) {
  int64_t size = cast<VectorType>(x.getType()).getNumElements();
  SmallVector<int64_t> lanes;
  for (int64_t i = 0; i < size; ++i)
    lanes.append({i, size + i});
  return vector::ShuffleOp::create(b, x, y, lanes);
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// Filters of a tile of products whose rows have `width` tiles of the picture,
/// and those that go through a tap before the next: as many as there are
/// registers for their sums, unless too many are none.
void ConvEmitter::planWinogradRows(WinogradPanel &panel) {
  panel.tileRows = hasFilterLanes() ? op.getBlockRows() : shape.rows;
  panel.groupRows = panel.tileRows;
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  if (hasFilterLanes() || !filters)
    return;
  int64_t rows = shape.rows, mostWaste = 0;
  if (lanes >= 16 && panel.width == lanes) {
    rows *= 2;
  } else if (lanes == 8) {
    constexpr int64_t kSums = 12, kShareOfWaste = 8;
    rows = kSums * lanes / panel.width;
    mostWaste = *filters / kShareOfWaste;
  }
  int64_t waste =
      llvm::alignTo(*filters, rows) - llvm::alignTo(*filters, shape.rows);
  if (waste > mostWaste)
    return;
  panel.tileRows = panel.groupRows = rows;
  // Inputs of a tap that are in a small first cache are used by whole blocks.
  if (lanes == 8)
    panel.groupRows = std::lcm(rows, op.getBlockRows());
}

void ConvEmitter::emitWinograd(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  constexpr int64_t kCacheBytes = 768 * 1024;
  int64_t rows = winogradGroupRows();
  int64_t outputs = winograd->outputs;
  Value groups = math.mul(math.ceilDiv(outSize(0), outputs * rows),
                          math.ceilDiv(outSize(1), outputs * (lanes / rows)));
  int64_t width = std::max(shape.width, lanes);
  int64_t panelBytes = IndexMath::known(groupChannels).value_or(0) *
                       winograd->taps() * width * 4;
  std::optional<int64_t> known = IndexMath::known(groups);
  if ((known && *known <= 1) || panelBytes > kCacheBytes)
    width = lanes;
  Value images = evaluator.getSize(0);
  Value panels = math.ceilDiv(groups, width / lanes);
  WinogradPanel panel;
  panel.width = width;
  planWinogradRows(panel);
  Value blocks = math.ceilDiv(groupFilters, panel.groupRows);

  // With many panels each is transformed where it is used. With few, all
  // threads transform first, then all multiply.
  int64_t chunks = IndexMath::known(images).value_or(1) *
                   IndexMath::known(panels).value_or(kEnoughChunks);
  Value zero = math.constant(0);
  if (chunks >= kEnoughChunks)
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

/// Memory for transformed inputs: [image, panel, tap, channel, tile].
Value ConvEmitter::emitWinogradBuffer(ImplicitLocOpBuilder &b, Value images,
                                      Value panels, int64_t width) {
  IndexMath math(b);
  SmallVector<int64_t> extents;
  SmallVector<Value> dynamic;
  for (Value size : {images, panels, math.constant(winograd->taps()),
                     // One more, so that the values of a channel do not
                     // all fall into one set of the cache.
                     math.add(groupChannels, 1), math.constant(width)}) {
    extents.push_back(IndexMath::known(size).value_or(ShapedType::kDynamic));
    if (extents.back() == ShapedType::kDynamic)
      dynamic.push_back(size);
  }
  return emitBuffer(b, MemRefType::get(extents, b.getF32Type()), dynamic);
}

/// Transforms the inputs of a panel, for channels [from, to).
void ConvEmitter::emitWinogradInput(ImplicitLocOpBuilder &b,
                                    const WinogradPanel &panel, Value from,
                                    Value to) {
  IndexMath math(b);
  int64_t side = winograd->outputs, reach = winograd->inputs();
  int64_t groups = panel.width / lanes;
  emitFor(b, math.constant(0), math.constant(groups), 1, [&](Value index) {
    WinogradGroup group =
        emitWinogradGroup(b, math.add(math.mul(panel.number, groups), index));
    int64_t run = side * group.columns;
    // The last two inputs of each tile are the first two of the next one, so
    // each row is read at two places: as it is and one tile further.
    Value left =
        math.sub(math.mul(group.firstColumn, side), math.constant(pad(1)));
    Value next = math.add(left, side);
    Value inLeft = emitInside(b, left, run, inSizes[1]);
    Value inNext = emitInside(b, next, run, inSizes[1]);
    SmallVector<Value> tops, masks;
    for (int64_t segment = 0; segment < group.rows; ++segment)
      for (int64_t r = 0; r < reach; ++r) {
        Value at = math.sub(
            math.add(math.mul(math.add(group.firstRow, segment), side), r),
            math.constant(pad(0)));
        tops.push_back(at);
        masks.push_back(emitRowMask(b, inLeft, at, inSizes[0]));
        masks.push_back(emitRowMask(b, inNext, at, inSizes[0]));
      }
    emitFor(b, from, to, 1, [&](Value channel) {
      SmallVector<Value> tile(reach * reach);
      for (int64_t r = 0; r < reach; ++r) {
        SmallVector<Value> here, further;
        for (int64_t segment = 0; segment < group.rows; ++segment) {
          int64_t i = segment * reach + r;
          here.push_back(emitLoad(b, input,
                                  {panel.image, channel, tops[i], left}, run,
                                  masks[2 * i]));
          further.push_back(emitLoad(b, input,
                                     {panel.image, channel, tops[i], next}, run,
                                     masks[2 * i + 1]));
        }
        Value first = emitConcatenation(b, here),
              second = emitConcatenation(b, further);
        for (int64_t c = 0; c < reach; ++c) {
          Value from = c < side ? first : second;
          tile[r * reach + c] = emitPick(b, from, from, c % side, side, lanes);
        }
      }
      Value lane = math.mul(index, lanes);
      for (auto [p, value] :
           llvm::enumerate(emitTransform(b, winograd->input, reach, tile))) {
        Value small = value;
        if (op.getScales())
          small = arith::MulFOp::create(
              b, value,
              emitFloatSplat(b, value.getType(),
                             std::ldexp(1.0f, -kRangeShift)));
        emitStore(
            b, small, panel.inputs,
            {panel.slot[0], panel.slot[1], math.constant(p), channel, lane});
      }
    });
  });
}

/// The products of one group of filters with one panel, [tap, filter, tile].
void ConvEmitter::emitWinogradTiles(ImplicitLocOpBuilder &b,
                                    const WinogradPanel &panel, Value group,
                                    Value products) {
  IndexMath math(b);
  Value first = math.mul(group, panel.groupRows);
  Value tiles = math.ceilDiv(math.sub(groupFilters, first), panel.tileRows);
  tiles = math.min(tiles, math.constant(panel.groupRows / panel.tileRows));
  emitFor(b, math.constant(0), math.constant(winograd->taps()), 1,
          [&](Value p) {
            auto emitTile = [&](Value tile) {
              emitWinogradTile(b, panel, p, first,
                               math.mul(tile, panel.tileRows), products);
            };
            if (panel.groupRows == panel.tileRows)
              return emitTile(math.constant(0));
            emitFor(b, math.constant(0), tiles, 1, emitTile);
          });
}

/// A tile of the products of tap `p`, those of filter `inGroup` of a group that
/// begins with filter `firstOfGroup`, and of the next ones.
void ConvEmitter::emitWinogradTile(ImplicitLocOpBuilder &b,
                                   const WinogradPanel &panel, Value p,
                                   Value firstOfGroup, Value inGroup,
                                   Value products) {
  IndexMath math(b);
  int64_t width = panel.width;
  int64_t rows = panel.tileRows;
  // Where the weights of a row lie.
  int64_t blockRows = op.getBlockRows();
  int64_t rowsOfBlock = std::min(rows, blockRows);
  Value firstRow = math.add(firstOfGroup, inGroup);
  // The last tile may have rows that no block has.
  Value lastRow =
      math.sub(math.mul(math.dim(weights, 1), blockRows), math.constant(1));
  const bool mayPass = blockRows % rows != 0 && rows % blockRows != 0;
  auto packedRow = [&](int64_t r) {
    Value row = math.add(firstRow, r);
    return mayPass ? math.min(row, lastRow) : row;
  };
  auto packedBlock = [&](int64_t r) {
    return math.div(packedRow(r), blockRows);
  };
  auto rowInBlock = [&](int64_t r) {
    return math.sub(packedRow(r), math.mul(packedBlock(r), blockRows));
  };
  auto type = VectorType::get({width}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Value taps = math.constant(winograd->taps());
  Value firstK = math.mul(p, groupChannels);
  SmallVector<Prefetch> next;
  if (std::optional<int64_t> channels = IndexMath::known(groupChannels))
    // The weights of one product are followed by those of the next.
    for (int64_t r = 0; r < (mayPass ? 1 : rows); r += rowsOfBlock) {
      int64_t size = *channels * blockRows;
      Value following =
          math.add(math.add(math.mul(packedBlock(r), taps), p), 1);
      // Of tiles across blocks each fetches that of its first row.
      int64_t loops = mayPass ? 1 : blockRows / rowsOfBlock;
      Value loop =
          mayPass ? math.constant(0) : math.div(rowInBlock(r), rowsOfBlock);
      next.push_back(prefetchWeights(b, math.mul(following, size), size, loop,
                                     loops, *channels));
    }
  SmallVector<Value> accs(rows, zero);
  accs = emitContractionLoop(
      b, groupChannels, rows, 1, accs,
      [&](Value k, int64_t r) -> Value {
        return memref::LoadOp::create(
            b, weights,
            ValueRange{math.constant(0), packedBlock(r), math.add(firstK, k),
                       rowInBlock(r)});
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
      b, MemRefType::get({winograd->taps(), rows, width}, b.getF32Type()));
  if (hasFilterLanes())
    emitWinogradLaneTiles(b, panel, block, products);
  else
    emitWinogradTiles(b, panel, block, products);

  Value count = math.min(math.constant(rows), math.sub(groupFilters, firstRow));
  int64_t groups = width / lanes;
  emitFor(b, math.constant(0), math.constant(groups), 1, [&](Value index) {
    WinogradGroup group =
        emitWinogradGroup(b, math.add(math.mul(panel.number, groups), index));
    emitFor(b, math.constant(0), count, 1, [&](Value row) {
      SmallVector<Value> sums;
      for (int64_t p = 0; p < winograd->taps(); ++p)
        sums.push_back(emitLoad(b, products,
                                {math.constant(p), row, math.mul(index, lanes)},
                                lanes));
      emitWinogradOutput(b, sums, group, panel.image, math.add(firstRow, row));
    });
  });
  memref::DeallocOp::create(b, products);
}

/// The outputs of a group of tiles in one channel.
void ConvEmitter::emitWinogradOutput(ImplicitLocOpBuilder &b,
                                     ArrayRef<Value> sums,
                                     const WinogradGroup &group, Value image,
                                     Value filter) {
  IndexMath math(b);
  int64_t side = winograd->outputs;
  SmallVector<Value> outputs = emitTransform(b, winograd->output, side, sums);
  Tile tile;
  tile.index = {image, filter};
  tile.width = side * group.columns;
  Value left = math.mul(group.firstColumn, side);
  Value inLeft = emitInside(b, left, tile.width, outSize(1));
  for (int64_t r = 0; r < side; ++r) {
    const Value *y = &outputs[r * side];
    Value all = side == 2 ? emitInterleave(b, y[0], y[1])
                          : emitInterleave(b, emitInterleave(b, y[0], y[2]),
                                           emitInterleave(b, y[1], y[3]));
    for (int64_t segment = 0; segment < group.rows; ++segment) {
      Value value = all;
      if (group.rows > 1)
        value = emitPick(b, all, all, segment * tile.width, 1, tile.width);
      Value top =
          math.add(math.mul(math.add(group.firstRow, segment), side), r);
      tile.position = math.add(math.mul(top, outSize(1)), left);
      tile.mask = emitRowMask(b, inLeft, top, outSize(0));
      evaluator.emitStores(b, tile, emitOntoInit(b, tile, value));
    }
  }
}
