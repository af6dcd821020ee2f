//===- DepthwiseConv.cpp - Convolutions of single channels ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group of one input channel has no sum over channels that would pay for
// packing. Its input is read in place, by vectors along the innermost
// dimension; several rows of a plane share what they read.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Emits the loops of a convolution of single channels.
class ConvEmitter::DepthwiseLoops {
public:
  explicit DepthwiseLoops(ConvEmitter &conv) : conv(conv) {}
  void emit(ImplicitLocOpBuilder &b);

private:
  /// Output columns of one channel that a depthwise convolution computes at
  /// once, and what all their rows share.
  struct Column {
    Tile tile; // position: the first column
    /// Group, block and row within it of the channel's weights.
    SmallVector<Value, 3> weight;
    /// Where the first tap of the first lane lies in a row of the input.
    Value start;
    /// Whether all its lanes are inside of the output, and read inside of the
    /// input.
    bool isInner = false;
    /// For each load of a row, the lanes inside of the input; null: all.
    SmallVector<Value> masks;
    /// Of three taps of stride 2, where in a row the last lane's third lies (or
    /// the last element), and all lanes if it is inside; null: not so.
    Value last, lastInside;
  };

  /// Whether one load of twice the length serves two taps of a row.
  bool readsPairs() {
    int64_t last = conv.spatial - 1;
    return conv.stride(last) == 2 && conv.dilation(last) == 1;
  }
  bool goesInBlocks();
  std::pair<int64_t, int64_t> findInnerColumns(int64_t width);
  void emitColumns(ImplicitLocOpBuilder &b, Column &column);
  void emitPairs(ImplicitLocOpBuilder &b, const Column &column, int64_t count,
                 int64_t from, int64_t end);
  void prepareColumn(ImplicitLocOpBuilder &b, Column &column);
  void emitRowsOf(ImplicitLocOpBuilder &b, ArrayRef<Column> columns);
  void emitRows(ImplicitLocOpBuilder &b, const Column &column,
                SmallVectorImpl<Value> &outer, Value from, Value to);
  void emitRow(ImplicitLocOpBuilder &b, const Column &column, ValueRange outer);
  void fetchNextChannel(ImplicitLocOpBuilder &b, const Column &column,
                        Value row);
  void emitBlock(ImplicitLocOpBuilder &b, ArrayRef<Column> columns, Value row,
                 int64_t rows);
  SmallVector<Value> emitTaps(ImplicitLocOpBuilder &b, const Column &column,
                              ValueRange outer, ValueRange indices, Value tap,
                              SmallVector<Value> sums, int64_t d);
  SmallVector<Value> emitRowLoads(ImplicitLocOpBuilder &b, const Column &column,
                                  ValueRange indices);
  Value emitWeight(ImplicitLocOpBuilder &b, const Column &column, Value tap);

  ConvEmitter &conv;
};

void ConvEmitter::emitDepthwise(ImplicitLocOpBuilder &b) {
  DepthwiseLoops(*this).emit(b);
}

void ConvEmitter::DepthwiseLoops::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  // Half a vector of columns is as quick in a register of that size, and
  // quicker where wide registers go through the multipliers in halves.
  constexpr int64_t kNarrowest = 4;
  int64_t width = conv.lanes;
  if (auto columns = IndexMath::known(conv.outSize(conv.spatial - 1)))
    while (width > kNarrowest && width / 2 >= *columns)
      width /= 2;
  SmallVector<Value> sizes = {conv.evaluator.getSize(0),
                              conv.evaluator.getSize(1)};
  emitParallel(b, sizes, [&](ValueRange ivs) {
    Column column;
    column.tile.index = {ivs[0], ivs[1]};
    column.tile.width = width;
    Value groupIndex = math.div(ivs[1], conv.groupFilters);
    Value filter = math.sub(ivs[1], math.mul(groupIndex, conv.groupFilters));
    Value block = math.div(filter, conv.op.getBlockRows());
    column.weight = {groupIndex, block,
                     math.sub(filter, math.mul(block, conv.op.getBlockRows()))};
    emitColumns(b, column);
  });
}

/// The columns, in steps of `width`, that have results and read inputs in all
/// their lanes: from the first to the end of the last; none where sizes are
/// open.
std::pair<int64_t, int64_t>
ConvEmitter::DepthwiseLoops::findInnerColumns(int64_t width) {
  int64_t d = conv.spatial - 1;
  std::optional<int64_t> columns = IndexMath::known(conv.outSize(d));
  std::optional<int64_t> inputs = IndexMath::known(conv.inSizes[d]);
  bool pairs = readsPairs();
  if (!columns || !inputs || (conv.stride(d) != 1 && !pairs))
    return {0, 0};
  int64_t lastTap = pairs ? (conv.kernel(d) - 1) / 2 * 2 : conv.kernel(d) - 1;
  int64_t reach = lastTap * conv.dilation(d) + (pairs ? 2 : 1) * width;
  int64_t from =
      llvm::alignTo(llvm::divideCeil(conv.pad(d), conv.stride(d)), width);
  int64_t room = *inputs + conv.pad(d) - reach;
  if (room < 0 || *columns < width)
    return {0, 0};
  int64_t last =
      std::min(room / conv.stride(d), *columns - width) / width * width;
  return from <= last ? std::pair(from, last + width)
                      : std::pair<int64_t, int64_t>(0, 0);
}

/// All columns of a plane: outside of the rows, so that the masks of the edges
/// are made once. Where masks are not in registers of their own, the columns at
/// the edges of a plane of known sizes have constant ones, and others none.
void ConvEmitter::DepthwiseLoops::emitColumns(ImplicitLocOpBuilder &b,
                                              Column &column) {
  IndexMath math(b);
  constexpr int64_t kMaxEdges = 4;
  int64_t width = column.tile.width;
  Value all = conv.outSize(conv.spatial - 1);
  std::optional<int64_t> known = IndexMath::known(all);
  int64_t from, end;
  std::tie(from, end) = findInnerColumns(width);
  auto emitAt = [&](Value at) {
    column.tile.position = at;
    prepareColumn(b, column);
    emitRowsOf(b, column);
  };
  auto emitRange = [&](int64_t from, Value to) {
    emitFor(b, math.constant(from), to, width, emitAt);
  };
  // More taps than registers are read once for two vectors of columns.
  constexpr int64_t kMostInRegisters = 16;
  if (known && conv.lanes >= 16 && goesInBlocks() &&
      conv.kernel(0) * conv.kernel(1) > kMostInRegisters)
    return emitPairs(b, column, *known, from, end);
  if (conv.lanes >= 16 || !known ||
      llvm::divideCeil(*known - (end - from), width) > kMaxEdges)
    return emitRange(0, all);
  auto emitEdges = [&](int64_t from, int64_t end) {
    for (int64_t at = from; at < end; at += width)
      emitAt(math.constant(at));
  };
  emitEdges(0, from);
  if (from < end) {
    column.isInner = true;
    emitRange(from, math.constant(end));
    column.isInner = false;
  }
  emitEdges(end, *known);
}

/// All `count` columns of a plane by two vectors at a time, of which those from
/// `from` to `end` are inner ones. The masks of two vectors at the edges would
/// not find room in registers.
void ConvEmitter::DepthwiseLoops::emitPairs(ImplicitLocOpBuilder &b,
                                            const Column &column, int64_t count,
                                            int64_t from, int64_t end) {
  IndexMath math(b);
  const int64_t width = column.tile.width;
  auto isInner = [&](int64_t at) { return from <= at && at < end; };
  auto emitAt = [&](Value at, ArrayRef<bool> areInner) {
    SmallVector<Column> columns(areInner.size(), column);
    for (auto [i, one] : llvm::enumerate(columns)) {
      one.tile.position = math.add(at, i * width);
      one.isInner = areInner[i];
      prepareColumn(b, one);
    }
    emitRowsOf(b, columns);
  };
  for (int64_t at = 0; at < count;) {
    int64_t next = at;
    while (isInner(next) && isInner(next + width))
      next += 2 * width;
    if (next > at)
      emitFor(b, math.constant(at), math.constant(next), 2 * width,
              [&](Value at) { emitAt(at, {true, true}); });
    else if (next = at + 2 * width; at + width < count)
      emitAt(math.constant(at), {isInner(at), isInner(at + width)});
    else
      emitAt(math.constant(at), {isInner(at)});
    at = next;
  }
}

/// Whether blocks of rows share what they read; of more taps they would be too
/// much code.
bool ConvEmitter::DepthwiseLoops::goesInBlocks() {
  constexpr int64_t kMaxTaps = 49;
  return conv.spatial == 2 && conv.kernel(0) * conv.kernel(1) <= kMaxTaps;
}

/// What all rows of a column at `column.tile.position` share.
void ConvEmitter::DepthwiseLoops::prepareColumn(ImplicitLocOpBuilder &b,
                                                Column &column) {
  IndexMath math(b);
  int64_t last = conv.spatial - 1, lanes = column.tile.width;
  column.tile.mask = nullptr;
  std::optional<int64_t> columns = IndexMath::known(conv.outSize(last));
  if (!column.isInner && (!columns || *columns % lanes != 0))
    column.tile.mask = emitTailMask(
        b, math.sub(conv.outSize(last), column.tile.position), lanes);
  column.start = math.sub(math.mul(column.tile.position, conv.stride(last)),
                          math.constant(conv.pad(last)));

  // With stride 2, one load of twice the length serves two taps. A third tap
  // sees one element more: the first, moved by a lane (with AVX-512 an
  // instruction; another load is two, and most of them are in two lines).
  column.masks.clear();
  column.last = column.lastInside = nullptr;
  bool pairs = readsPairs();
  int64_t width = pairs ? 2 * lanes : lanes;
  int64_t loaded = conv.kernel(last);
  bool hasElements = IndexMath::known(conv.inSizes[last]).value_or(0) > 0;
  bool isBehindPadding = conv.pad(last) <= width;
  if (pairs && conv.kernel(last) == 3 && lanes >= 16 && hasElements &&
      isBehindPadding) {
    loaded = 2;
    Value at = math.add(column.start, width);
    column.last = math.min(at, math.sub(conv.inSizes[last], math.constant(1)));
    column.lastInside =
        vector::BroadcastOp::create(b, VectorType::get({lanes}, b.getI1Type()),
                                    math.less(at, conv.inSizes[last]));
  }
  for (int64_t k = 0; k < loaded; k += pairs ? 2 : 1) {
    if (column.isInner) {
      column.masks.push_back(nullptr);
      continue;
    }
    Value first = math.add(column.start, k * conv.dilation(last));
    Value mask = emitInside(b, first, width, conv.inSizes[last],
                            pairs ? 1 : conv.stride(last));
    if (column.tile.mask && !pairs)
      mask = arith::AndIOp::create(b, mask, column.tile.mask);
    column.masks.push_back(mask);
  }
}

/// All rows of some columns.
void ConvEmitter::DepthwiseLoops::emitRowsOf(ImplicitLocOpBuilder &b,
                                             ArrayRef<Column> columns) {
  IndexMath math(b);
  auto emitEach = [&](Value from, Value to) {
    SmallVector<Value> outer;
    for (const Column &column : columns)
      emitRows(b, column, outer, from, to);
  };
  if (!goesInBlocks())
    return emitEach(math.constant(0),
                    conv.spatial > 1 ? conv.outSize(0) : math.constant(1));
  int64_t lanes = columns.front().tile.width;

  // Rows whose taps all lie inside of the input go in blocks.
  int64_t reach = (conv.kernel(0) - 1) * conv.dilation(0);
  int64_t block = lanes >= 8 ? 4 : 2;
  Value rows = conv.outSize(0);
  Value from = math.min(
      math.constant(llvm::divideCeil(conv.pad(0), conv.stride(0))), rows);
  Value fitting = math.max(
      math.sub(math.add(conv.inSizes[0], conv.pad(0)), math.constant(reach)),
      math.constant(0));
  Value to =
      math.max(math.min(math.ceilDiv(fitting, conv.stride(0)), rows), from);
  to = math.add(from, math.roundDown(math.sub(to, from), block));
  // The rows at the edges are one block, too, if all is known about them: taps
  // outside are just left out.
  constexpr int64_t kMaxRows = 8;
  auto edge = [&](Value begin, Value end) {
    std::optional<int64_t> count = IndexMath::known(math.sub(end, begin));
    if (!count || *count > kMaxRows || !IndexMath::known(begin) ||
        !IndexMath::known(conv.inSizes[0]))
      emitEach(begin, end);
    else if (*count > 0)
      emitBlock(b, columns, begin, *count);
  };
  if (auto known = IndexMath::known(rows); known && *known <= kMaxRows)
    return edge(math.constant(0), rows);
  edge(math.constant(0), from);
  emitFor(b, from, to, block,
          [&](Value row) { emitBlock(b, columns, row, block); });
  edge(to, rows);
}

/// The rows [from, to) of the dimension that follows `outer`, one by one.
void ConvEmitter::DepthwiseLoops::emitRows(ImplicitLocOpBuilder &b,
                                           const Column &column,
                                           SmallVectorImpl<Value> &outer,
                                           Value from, Value to) {
  IndexMath math(b);
  if (int64_t(outer.size()) == conv.spatial - 1)
    return emitRow(b, column, outer);
  emitFor(b, from, to, 1, [&](Value at) {
    outer.push_back(at);
    int64_t d = outer.size();
    emitRows(b, column, outer, math.constant(0),
             d < conv.spatial - 1 ? conv.outSize(d) : math.constant(1));
    outer.pop_back();
  });
}

void ConvEmitter::DepthwiseLoops::emitRow(ImplicitLocOpBuilder &b,
                                          const Column &column,
                                          ValueRange outer) {
  IndexMath math(b);
  Tile tile = column.tile;
  Value position = math.constant(0);
  for (auto [d, at] : llvm::enumerate(outer))
    position = math.mul(math.add(position, at), conv.outSize(d + 1));
  tile.position = math.add(position, column.tile.position);
  // In one sum each multiply-add would wait for the one before.
  constexpr int64_t kMaxSums = 4;
  SmallVector<Value> sums =
      conv.evaluator.emitInit(b, conv.op.getInit(), tile, 1);
  Value zero =
      arith::ConstantOp::create(b, b.getZeroAttr(sums.front().getType()));
  sums.resize(std::min(kMaxSums, conv.kernel(conv.spatial - 1)), zero);
  SmallVector<Value> indices = {tile.index[0], column.weight[0]};
  sums = emitTaps(b, column, outer, indices, math.constant(0), sums, 0);
  Value acc = sums.front();
  for (Value sum : ArrayRef(sums).drop_front())
    acc = arith::AddFOp::create(b, acc, sum);
  conv.evaluator.emitStores(b, tile, acc);
}

/// Adds the taps of kernel dimensions from `d` on to sums in turn. Rows outside
/// of the input are left out of the loops, columns by masks.
SmallVector<Value> ConvEmitter::DepthwiseLoops::emitTaps(
    ImplicitLocOpBuilder &b, const Column &column, ValueRange outer,
    ValueRange indices, Value tap, SmallVector<Value> sums, int64_t d) {
  IndexMath math(b);
  if (d == conv.spatial - 1) {
    tap = math.mul(tap, conv.kernel(d));
    SmallVector<Value> loads = emitRowLoads(b, column, indices);
    for (auto [k, load] : llvm::enumerate(loads)) {
      Value &sum = sums[k % sums.size()];
      sum = vector::FMAOp::create(b, emitWeight(b, column, math.add(tap, k)),
                                  load, sum);
    }
    return sums;
  }
  // 0 <= at + k * dilation - pad < size
  Value at = math.mul(outer[d], conv.stride(d));
  auto bound = [&](Value distance) {
    return math.ceilDiv(math.max(distance, math.constant(0)), conv.dilation(d));
  };
  Value from = bound(math.sub(math.constant(conv.pad(d)), at));
  Value to =
      math.min(bound(math.sub(math.add(conv.inSizes[d], conv.pad(d)), at)),
               math.constant(conv.kernel(d)));
  auto loop = scf::ForOp::create(b, from, to, math.constant(1), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value k = loop.getInductionVar();
  SmallVector<Value> next(indices);
  next.push_back(math.sub(math.add(at, math.mul(k, conv.dilation(d))),
                          math.constant(conv.pad(d))));
  Value nextTap = math.add(math.mul(tap, conv.kernel(d)), k);
  ValueRange before = loop.getRegionIterArgs();
  scf::YieldOp::create(b, emitTaps(b, column, outer, next, nextTap,
                                   SmallVector<Value>(before), d + 1));
  return llvm::to_vector_of<Value>(loop.getResults());
}

/// Asks for what a column reads of row `row` of the next channel, where another
/// core may have written it, or memory has it: a line or two of each row, which
/// processors do not foresee.
void ConvEmitter::DepthwiseLoops::fetchNextChannel(ImplicitLocOpBuilder &b,
                                                   const Column &column,
                                                   Value row) {
  if (!conv.isFar(cast<MemRefType>(conv.input.getType())))
    return;
  IndexMath math(b);
  Value next = math.add(column.weight[0], 1);
  Value first = math.mul(column.tile.position, conv.stride(1));
  for (int64_t at = 0; at < column.tile.width * conv.stride(1);
       at += Prefetch::kLine)
    emitFetch(b, conv.input,
              {column.tile.index[0], next, row, math.add(first, at)},
              /*locality=*/2);
}

/// `rows` rows of a plane from `row` on. All taps are inside unless `row` is
/// known. A row of the input is read once for all that use it.
void ConvEmitter::DepthwiseLoops::emitBlock(ImplicitLocOpBuilder &b,
                                            ArrayRef<Column> columns, Value row,
                                            int64_t rows) {
  IndexMath math(b);
  // Of row r and column c: number r * (number of columns) + c.
  SmallVector<Tile> tiles;
  SmallVector<Value> accs;
  for (int64_t r = 0; r < rows; ++r)
    for (const Column &column : columns) {
      Tile tile = column.tile;
      tile.position = math.add(math.mul(math.add(row, r), conv.outSize(1)),
                               column.tile.position);
      accs.push_back(
          conv.evaluator.emitInit(b, conv.op.getInit(), tile, 1).front());
      tiles.push_back(tile);
    }
  const Column &first = columns.front();
  SmallVector<Value> taps;
  for (int64_t k = 0; k < conv.kernel(0) * conv.kernel(1); ++k)
    taps.push_back(emitWeight(b, first, math.constant(k)));
  Value top =
      math.sub(math.mul(row, conv.stride(0)), math.constant(conv.pad(0)));
  std::optional<int64_t> knownTop = IndexMath::known(top);
  std::optional<int64_t> inRows = IndexMath::known(conv.inSizes[0]);
  int64_t height =
      (rows - 1) * conv.stride(0) + (conv.kernel(0) - 1) * conv.dilation(0) + 1;
  for (int64_t h = 0; h < height; ++h) {
    if (knownTop && (*knownTop + h < 0 || (inRows && *knownTop + h >= *inRows)))
      continue;
    SmallVector<SmallVector<Value>> loads;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t distance = h - r * conv.stride(0);
      if (distance < 0 || distance % conv.dilation(0) != 0 ||
          distance / conv.dilation(0) >= conv.kernel(0))
        continue;
      Value at = math.add(top, h);
      for (const Column &column : columns)
        if (loads.size() < columns.size()) {
          loads.push_back(emitRowLoads(
              b, column, {column.tile.index[0], column.weight[0], at}));
          // The first rows of a block were others' before.
          if (h >= height - rows * conv.stride(0))
            fetchNextChannel(b, column, at);
        }
      int64_t tap = distance / conv.dilation(0) * conv.kernel(1);
      for (int64_t k = 0; k < conv.kernel(1); ++k)
        for (auto [c, load] : llvm::enumerate(loads)) {
          Value &acc = accs[r * columns.size() + c];
          acc = vector::FMAOp::create(b, taps[tap + k], load[k], acc);
        }
    }
  }
  for (auto [tile, acc] : llvm::zip(tiles, accs))
    conv.evaluator.emitStores(b, tile, acc);
}

/// For each tap along the row at `indices`, the inputs of all lanes.
SmallVector<Value> ConvEmitter::DepthwiseLoops::emitRowLoads(
    ImplicitLocOpBuilder &b, const Column &column, ValueRange indices) {
  IndexMath math(b);
  int64_t d = conv.spatial - 1, lanes = column.tile.width;
  auto type = VectorType::get({lanes}, b.getF32Type());
  SmallVector<Value> loads;
  auto at = [&](int64_t k) {
    SmallVector<Value> result(indices);
    result.push_back(math.add(column.start, k * conv.dilation(d)));
    return result;
  };
  if (readsPairs()) {
    for (int64_t k = 0; k < (column.last ? 2 : conv.kernel(d)); k += 2) {
      Value both =
          emitLoad(b, conv.input, at(k), 2 * lanes, column.masks[k / 2]);
      for (int64_t i = 0; i < 2 && k + i < conv.kernel(d); ++i)
        loads.push_back(emitPick(b, both, both, i, 2, lanes));
    }
    if (column.last) {
      SmallVector<Value> place(indices);
      place.push_back(column.last);
      Value next = vector::BroadcastOp::create(
          b, type, memref::LoadOp::create(b, conv.input, place));
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
      next = arith::SelectOp::create(b, column.lastInside, next, zero);
      loads.push_back(emitPick(b, loads[0], next, 1, 1, lanes));
    }
    return loads;
  }
  for (int64_t k = 0; k < conv.kernel(d); ++k) {
    if (conv.stride(d) == 1) {
      loads.push_back(emitLoad(b, conv.input, at(k), lanes, column.masks[k]));
      continue;
    }
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    loads.push_back(vector::GatherOp::create(
        b, type, conv.input, at(k), emitLanes(b, lanes, conv.stride(d)),
        column.masks[k], zero));
  }
  return loads;
}

Value ConvEmitter::DepthwiseLoops::emitWeight(ImplicitLocOpBuilder &b,
                                              const Column &column, Value tap) {
  Value scalar = memref::LoadOp::create(
      b, conv.weights,
      ValueRange{column.weight[0], column.weight[1], tap, column.weight[2]});
  return vector::BroadcastOp::create(
      b, VectorType::get({column.tile.width}, b.getF32Type()), scalar);
}
