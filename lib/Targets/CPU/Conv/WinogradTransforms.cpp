//===- WinogradTransforms.cpp - What Winograd's algorithm transforms ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both factors of B'dB and A'mA are loops of their own, whose halves meet in
// memory of the L1 cache: a tile of 6x6 registers, unrolled, is spilled several
// times. The first factor takes inputs as they lie, consecutive elements of a
// row in the lanes; only then tiles go to the lanes.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"
#include "Conv/WinogradConv.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

//===----------------------------------------------------------------------===//
// Products with small matrices
//===----------------------------------------------------------------------===//

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

/// Whether x[i] is y[i] for the `i` in `same`, and -y[i] for those in
/// `opposite`.
static bool differInSigns(ArrayRef<double> x, ArrayRef<double> y,
                          SmallVector<double> &same,
                          SmallVector<double> &opposite) {
  same.assign(x.size(), 0);
  opposite.assign(x.size(), 0);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] != y[i] && x[i] != -y[i])
      return false;
    (x[i] == y[i] ? same : opposite)[i] = x[i];
  }
  auto isNone = [](double c) { return c == 0; };
  return !llvm::all_of(same, isNone) && !llvm::all_of(opposite, isNone);
}

/// matrix * values, for a matrix of `rows` rows. Two rows or columns that
/// follow each other and differ in signs only share what they compute.
static SmallVector<Value> emitProduct(ImplicitLocOpBuilder &b,
                                      ArrayRef<double> matrix, int64_t rows,
                                      ArrayRef<Value> values) {
  size_t columns = values.size();
  SmallVector<SmallVector<double>> left(rows);
  SmallVector<Value> terms;
  SmallVector<double> same, opposite;
  auto column = [&](size_t c) {
    SmallVector<double> result;
    for (int64_t r = 0; r < rows; ++r)
      result.push_back(matrix[r * columns + c]);
    return result;
  };
  auto add = [&](Value term, ArrayRef<double> coefficients) {
    terms.push_back(term);
    for (int64_t r = 0; r < rows; ++r)
      left[r].push_back(coefficients[r]);
  };
  for (size_t c = 0; c < columns; ++c) {
    if (c + 1 < columns &&
        differInSigns(column(c), column(c + 1), same, opposite)) {
      add(arith::AddFOp::create(b, values[c], values[c + 1]), same);
      add(arith::SubFOp::create(b, values[c], values[c + 1]), opposite);
      ++c;
    } else {
      add(values[c], column(c));
    }
  }

  SmallVector<Value> result;
  for (int64_t r = 0; r < rows; ++r) {
    if (r + 1 == rows || !differInSigns(left[r], left[r + 1], same, opposite)) {
      result.push_back(emitCombination(b, left[r], terms));
      continue;
    }
    // The opposite part for a last coefficient of 1.
    double scale = *llvm::find_if(llvm::reverse(opposite),
                                  [](double c) { return c != 0; });
    for (double &c : opposite)
      c /= scale;
    Value sum = emitCombination(b, same, terms);
    Value difference = emitCombination(b, opposite, terms);
    for (double sign : {1., -1.})
      result.push_back(
          emitCombination(b, {1, sign * scale}, {sum, difference}));
    ++r;
  }
  return result;
}

SmallVector<Value> sardonyx::cpu::emitWinogradSquare(ImplicitLocOpBuilder &b,
                                                     ArrayRef<double> matrix,
                                                     int64_t rows,
                                                     ArrayRef<Value> tile) {
  int64_t columns = matrix.size() / rows;
  SmallVector<Value> half(rows * columns), result;
  for (int64_t c = 0; c < columns; ++c) {
    SmallVector<Value> column;
    for (int64_t r = 0; r < columns; ++r)
      column.push_back(tile[r * columns + c]);
    for (auto [r, value] :
         llvm::enumerate(emitProduct(b, matrix, rows, column)))
      half[r * columns + c] = value;
  }
  for (int64_t r = 0; r < rows; ++r)
    llvm::append_range(result,
                       emitProduct(b, matrix, rows,
                                   ArrayRef(half).slice(r * columns, columns)));
  return result;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

namespace {

/// The inputs of some rows of tiles, B' times their columns:
/// [value, row of tiles, column].
struct InputRowBuffer {
  Value memory;
  /// Columns from one tile to the next, and tiles in a row of a group.
  int64_t step, tiles;

  int64_t run() const { return step * tiles; }
  Value load(ImplicitLocOpBuilder &b, Value value, int64_t row, int64_t column,
             int64_t width) const {
    IndexMath math(b);
    return emitLoad(b, memory,
                    {value, math.constant(row), math.constant(column)}, width);
  }
};

} // namespace

/// Numbers of i32 whose sign bit is set where 0 <= x < size.
static Value emitInsideSigns(ImplicitLocOpBuilder &b, Value x, Value size) {
  Value ones = emitSplat(b, x.getType(), -1);
  return arith::AndIOp::create(b, arith::XOrIOp::create(b, x, ones),
                               arith::SubIOp::create(b, x, size));
}

namespace {

/// Which lanes of some columns exist in rows of a picture. LLVM keeps masks of
/// 256 bits that do not change in bytes, which take three instructions to
/// become a mask again; so there they are numbers, whose signs count, until
/// they are used. With masks of their own one comparison is best: with the
/// width, or with zero in rows that are none.
class InputMasks {
public:
  InputMasks(ImplicitLocOpBuilder &b, int64_t lanes, Value height, Value width)
      : b(b), lanes(lanes), width(emitSplat32(b, width, lanes)),
        height(emitSplat32(b, height, lanes)),
        none(emitSplat(b, this->width.getType(), 0)) {}

  /// The next row is that of index `top`.
  void addRow(Value top) {
    Value signs = emitInsideSigns(b, emitSplat32(b, top, lanes), height);
    if (!hasSigns())
      signs = arith::SelectOp::create(b, isNegative(signs), width, none);
    rows.push_back(signs);
  }

  /// Columns are those from `left` on.
  void setColumns(Value left) {
    columns = arith::AddIOp::create(b, emitSplat32(b, left, lanes),
                                    emitLanes(b, lanes, 1));
    if (hasSigns())
      columns = emitInsideSigns(b, columns, width);
  }

  /// The mask of these in row number `row`.
  Value emit(int64_t row) {
    if (hasSigns())
      return isNegative(arith::AndIOp::create(b, columns, rows[row]));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, columns,
                                 rows[row]);
  }

private:
  bool hasSigns() const { return lanes < 16; }
  Value isNegative(Value x) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, none);
  }

  ImplicitLocOpBuilder &b;
  int64_t lanes;
  Value width, height, none, columns;
  /// Signs, or the width.
  SmallVector<Value> rows;
};

} // namespace

/// `reach` columns of the inputs of a group of tiles, the first in row `first`
/// of the lines, each a vector with those of all tiles.
static SmallVector<Value> emitTileColumns(ImplicitLocOpBuilder &b,
                                          const InputRowBuffer &lines,
                                          Value value, int64_t first,
                                          int64_t reach, int64_t lanes) {
  constexpr int64_t kBlock = 4;
  int64_t step = lines.step, rows = lanes / lines.tiles;
  SmallVector<Value> columns;
  // Blocks of 128 bits, which loads bring to their place, are transposed.
  // Vectors of 512 bits take fewer shuffles from two of them.
  if (step % kBlock == 0 && lanes % kBlock == 0 &&
      (lanes < 16 || step > kBlock)) {
    for (int64_t column = 0; column < reach; column += kBlock) {
      SmallVector<Value> square;
      for (int64_t i = 0; i < kBlock; ++i) {
        SmallVector<Value> blocks;
        for (int64_t tile = i; tile < lanes; tile += kBlock)
          blocks.push_back(lines.load(b, value, first + tile / lines.tiles,
                                      tile % lines.tiles * step + column,
                                      kBlock));
        square.push_back(emitConcatenation(b, blocks));
      }
      llvm::append_range(columns, emitTranspose(b, square));
    }
    columns.truncate(reach);
    return columns;
  }

  SmallVector<Value> parts, ends;
  for (int64_t row = 0; row < rows; ++row)
    parts.push_back(lines.load(b, value, first + row, 0, lines.run()));
  Value all = emitConcatenation(b, parts);
  for (int64_t c = 0; c < step; ++c)
    columns.push_back(emitPick(b, all, all, c, step, lanes));
  // The columns of the next tiles, of which one follows on each row.
  for (int64_t i = 0; i < lanes / step; ++i)
    ends.push_back(
        lines.load(b, value, first + std::min(i, rows - 1), lines.run(), step));
  Value next = emitConcatenation(b, ends);
  for (int64_t c = step; c < reach; ++c) {
    SmallVector<int64_t> order;
    for (int64_t tile = 0; tile < lanes; ++tile)
      order.push_back((tile + 1) % lines.tiles
                          ? tile + 1
                          : lanes + tile / lines.tiles * step + c - step);
    columns.push_back(
        vector::ShuffleOp::create(b, columns[c - step], next, order));
  }
  return columns;
}

void ConvEmitter::emitWinogradInput(ImplicitLocOpBuilder &b,
                                    const WinogradPanel &panel, Value from,
                                    Value to) {
  IndexMath math(b);
  int64_t reach = winograd->inputs(), values = winograd->values();
  int64_t groups = panel.width / lanes, rows = winogradGroupRows();
  InputMasks masks(b, lanes, inSizes[0], inSizes[1]);
  InputRowBuffer lines;
  lines.step = winograd->step();
  lines.tiles = lanes / rows;
  int64_t columns = llvm::alignTo(lines.run() + lines.step, lanes);
  lines.memory = emitBuffer(
      b, MemRefType::get({values, groups * rows, columns}, b.getF32Type()));

  Value zero = math.constant(0);
  SmallVector<Value> lefts, tops;
  for (int64_t index = 0; index < groups; ++index) {
    WinogradGroup group =
        emitWinogradGroup(b, math.add(math.mul(panel.number, groups), index));
    lefts.push_back(math.sub(math.mul(group.firstColumn, lines.step),
                             math.constant(pad(1))));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t r = 0; r < reach; ++r) {
        Value top = math.sub(
            math.add(math.mul(math.add(group.firstRow, row), lines.step), r),
            math.constant(pad(0)));
        tops.push_back(top);
        masks.addRow(top);
      }
  }
  // No prefetcher foresees the rows of the channels to come.
  constexpr int64_t kChannelsAhead = 2;
  auto type = cast<ShapedType>(op.getInput().getType());
  const bool fetches = !type.hasStaticShape() || isFar(type);

  emitFor(b, from, to, 1, [&](Value channel) {
    emitFor(b, zero, math.constant(columns), lanes, [&](Value column) {
      for (int64_t row = 0; row < groups * rows; ++row) {
        Value left = math.add(lefts[row / rows], column);
        masks.setColumns(left);
        SmallVector<Value> inputs;
        for (int64_t r = 0; r < reach; ++r) {
          int64_t line = row * reach + r;
          inputs.push_back(emitLoad(b, input,
                                    {panel.image, channel, tops[line], left},
                                    lanes, masks.emit(line)));
        }
        for (auto [p, value] :
             llvm::enumerate(emitProduct(b, winograd->input, values, inputs)))
          emitStore(b, value, lines.memory,
                    {math.constant(p), math.constant(row), column});
      }
    });
    if (fetches)
      for (auto [i, top] : llvm::enumerate(tops))
        for (int64_t column = 0; column < columns; column += Prefetch::kLine)
          emitFetch(b, input,
                    {panel.image, math.add(channel, kChannelsAhead), top,
                     math.add(lefts[i / (rows * reach)], column)});
    emitFor(b, zero, math.constant(values), 1, [&](Value p) {
      for (int64_t group = 0; group < groups; ++group) {
        SmallVector<Value> tiles =
            emitTileColumns(b, lines, p, group * rows, reach, lanes);
        for (auto [q, value] :
             llvm::enumerate(emitProduct(b, winograd->input, values, tiles))) {
          emitStore(b, value, panel.inputs,
                    {panel.slot[0], panel.slot[1],
                     math.add(math.mul(p, values), q), channel,
                     math.constant(group * lanes)});
        }
      }
    });
  });
  memref::DeallocOp::create(b, lines.memory);
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// The outputs of a row of each tile, column by column, in the order of tiles.
static Value emitTileRows(ImplicitLocOpBuilder &b, ArrayRef<Value> columns,
                          int64_t lanes) {
  int64_t side = columns.size();
  constexpr int64_t kBlock = 4;
  SmallVector<Value> parts;
  if (side == kBlock && lanes % kBlock == 0 && lanes < 16) {
    SmallVector<Value> tiles = emitTranspose(b, columns);
    for (int64_t tile = 0; tile < lanes; ++tile) {
      Value blocks = tiles[tile % kBlock];
      parts.push_back(
          emitPick(b, blocks, blocks, tile / kBlock * kBlock, 1, kBlock));
    }
    return emitConcatenation(b, parts);
  }
  // x0, y0, x1, y1, ...
  auto interleave = [&](Value x, Value y) -> Value {
    int64_t size = cast<VectorType>(x.getType()).getNumElements();
    SmallVector<int64_t> order;
    for (int64_t i = 0; i < size; ++i)
      order.append({i, size + i});
    return vector::ShuffleOp::create(b, x, y, order);
  };
  if (side == 2)
    return interleave(columns[0], columns[1]);
  return interleave(interleave(columns[0], columns[2]),
                    interleave(columns[1], columns[3]));
}

/// The outputs of a group of tiles in one channel. `columns` gives the sums, A'
/// times their columns, of a row of outputs.
void ConvEmitter::emitWinogradRows(
    ImplicitLocOpBuilder &b, const WinogradGroup &group, Value image,
    Value filter, bool isUnrolled,
    function_ref<SmallVector<Value>(Value row)> columns) {
  IndexMath math(b);
  int64_t side = winograd->outputs;
  Tile tile;
  tile.index = {image, filter};
  tile.width = side * group.columns;
  Value left = math.mul(group.firstColumn, side);
  // Branches would keep all registers of an unrolled form.
  Value inside =
      isUnrolled ? emitInside(b, left, tile.width, outSize(1)) : Value();
  auto emitRow = [&](Value r) {
    Value all = emitTileRows(
        b, emitProduct(b, winograd->output, side, columns(r)), lanes);
    for (int64_t segment = 0; segment < group.rows; ++segment) {
      Value top =
          math.add(math.mul(math.add(group.firstRow, segment), side), r);
      auto store = [&] {
        Value value = all;
        if (group.rows > 1)
          value = emitPick(b, all, all, segment * tile.width, 1, tile.width);
        tile.position = math.add(math.mul(top, outSize(1)), left);
        evaluator.emitStores(b, tile, emitOntoInit(b, tile, value));
      };
      if (!isUnrolled) {
        emitIf(b, math.less(top, outSize(0)), store);
        continue;
      }
      tile.mask = emitRowMask(b, inside, top, outSize(0));
      store();
    }
  };
  if (isUnrolled) {
    for (int64_t r = 0; r < side; ++r)
      emitRow(math.constant(r));
    return;
  }
  auto emitRows = [&](Value mask) {
    tile.mask = mask;
    emitFor(b, math.constant(0), math.constant(side), 1, emitRow);
  };
  Value inRow = math.sub(outSize(1), left);
  std::optional<int64_t> width = IndexMath::known(outSize(1));
  if (width && *width % tile.width == 0)
    return emitRows(nullptr);
  if (width && *width < tile.width)
    return emitRows(emitTailMask(b, inRow, tile.width));
  emitIf(
      b, math.less(inRow, math.constant(tile.width)),
      [&] { emitRows(emitTailMask(b, inRow, tile.width)); },
      [&] { emitRows(nullptr); });
}

void ConvEmitter::emitWinogradOutputs(ImplicitLocOpBuilder &b,
                                      const WinogradPanel &panel,
                                      Value firstFilter, Value products) {
  IndexMath math(b);
  int64_t side = winograd->outputs, values = winograd->values();
  int64_t groups = panel.width / lanes;
  Value count = math.min(math.constant(panel.groupRows),
                         math.sub(groupFilters, firstFilter));
  // A' times the sums of a filter, [row of outputs, column of sums, tile], in
  // registers if there are enough.
  constexpr int64_t kManyRegisters = 32, kFewColumns = 6;
  const bool isUnrolled = registers >= kManyRegisters && values <= kFewColumns;
  Value half;
  if (!isUnrolled)
    half =
        emitBuffer(b, MemRefType::get({side, values, lanes}, b.getF32Type()));
  Value zero = math.constant(0);
  emitFor(b, zero, math.constant(groups), 1, [&](Value index) {
    WinogradGroup group =
        emitWinogradGroup(b, math.add(math.mul(panel.number, groups), index));
    Value lane = math.mul(index, lanes);
    emitFor(b, zero, count, 1, [&](Value row) {
      auto sum = [&](Value q) {
        SmallVector<Value> sums;
        for (int64_t p = 0; p < values; ++p)
          sums.push_back(emitLoad(b, products,
                                  {math.add(q, p * values), row, lane}, lanes));
        return emitProduct(b, winograd->output, side, sums);
      };
      Value filter = math.add(firstFilter, row);
      if (isUnrolled) {
        SmallVector<SmallVector<Value>> columns;
        for (int64_t q = 0; q < values; ++q)
          columns.push_back(sum(math.constant(q)));
        return emitWinogradRows(
            b, group, panel.image, filter, isUnrolled, [&](Value r) {
              return llvm::map_to_vector(columns, [&](ArrayRef<Value> column) {
                return column[*IndexMath::known(r)];
              });
            });
      }
      emitFor(b, zero, math.constant(values), 1, [&](Value q) {
        for (auto [r, value] : llvm::enumerate(sum(q)))
          emitStore(b, value, half, {math.constant(r), q, zero});
      });
      emitWinogradRows(b, group, panel.image, filter, isUnrolled, [&](Value r) {
        SmallVector<Value> columns;
        for (int64_t q = 0; q < values; ++q)
          columns.push_back(
              emitLoad(b, half, {r, math.constant(q), zero}, lanes));
        return columns;
      });
    });
  });
  if (half)
    memref::DeallocOp::create(b, half);
}
