//===- NarrowConvLines.cpp - Windows of narrow convolutions in lines ---===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tile registers read windows from copies of lines of the input, with pads on
// both sides: pixel by pixel, since neighbours see all but one of the same.
//
//===----------------------------------------------------------------------===//

#include "Conv/Copies.h"
#include "Conv/NarrowConv.h"
#include "MicroKernels/AmxMicroKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Blocks of positions go on from line to line; what is between two lines is
/// multiplied and not stored.
void NarrowConvKernel::emitInLines(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  const int64_t chunk = facts.countChunkLines(plan.getChunkRows());
  Value zero = math.constant(0), all = math.constant(facts.countOutputLines());
  const int64_t panels = facts.panels;
  if (plan.getThreads() == ConvSharing::Filters) {
    Lines lines{zero, zero, all, emitLineMemory(b, chunk)};
    emitParallel(b, {countInputLines(b, all)},
                 [&](ValueRange ivs) { emitCopyOfLine(b, lines, ivs[0]); });
    emitParallel(b, {math.constant(panels)},
                 [&](ValueRange ivs) { emitLineBlocks(b, lines, ivs[0]); });
    memref::DeallocOp::create(b, lines.memory);
    return;
  }
  emitParallel(
      b, {evaluator.getSize(0), math.ceilDiv(all, chunk)}, [&](ValueRange ivs) {
        Value first = math.mul(ivs[1], chunk);
        Value count = math.min(math.sub(all, first), math.constant(chunk));
        Lines lines{ivs[0], first, count, emitLineMemory(b, chunk)};
        emitFor(b, zero, countInputLines(b, count), 1,
                [&](Value line) { emitCopyOfLine(b, lines, line); });
        emitFor(b, zero, math.constant(panels), 1,
                [&](Value panel) { emitLineBlocks(b, lines, panel); });
        memref::DeallocOp::create(b, lines.memory);
      });
}

/// The lines of the input that `count` output lines see.
Value NarrowConvKernel::countInputLines(ImplicitLocOpBuilder &b, Value count) {
  IndexMath math(b);
  return math.add(count, (op.getKernelShape()[0] - 1) * op.getDilations()[0]);
}

/// Memory for what `lines` output lines see, and for a block that begins with
/// their last position.
Value NarrowConvKernel::emitLineMemory(ImplicitLocOpBuilder &b, int64_t lines) {
  const int64_t below = (op.getKernelShape()[0] - 1) * op.getDilations()[0];
  const int64_t pixels = (lines + below) * facts.getPitch() + kBlockRows;
  return emitBuffer(b,
                    MemRefType::get({1, pixels * facts.channels},
                                    op.getInput().getType().getElementType()));
}

/// Copies line `line` of those that `lines` see, or fills it with the padding.
void NarrowConvKernel::emitCopyOfLine(ImplicitLocOpBuilder &b,
                                      const Lines &lines, Value line) {
  IndexMath math(b);
  constexpr int64_t kLineDim = 0, kPixelDim = 1;
  const int64_t channels = facts.channels, pitch = facts.getPitch();
  const int64_t before = op.getPadsBegin()[kPixelDim];
  const int64_t width = op.getInput().getType().getDimSize(2);
  // Negative pads leave pixels out.
  const int64_t left = std::clamp<int64_t>(before, 0, pitch),
                skipped = std::max<int64_t>(-before, 0);
  const int64_t inside = std::clamp<int64_t>(width - skipped, 0, pitch - left);
  const int64_t right = pitch - left - inside;
  Value row = math.constant(0);
  Value to = math.mul(line, pitch * channels);
  Value at = math.sub(math.add(lines.first, line),
                      math.constant(op.getPadsBegin()[kLineDim]));
  auto fill = [&](int64_t from, int64_t pixels) {
    if (pixels > 0)
      emitFill(b, op.getPadding(), lines.memory, row,
               math.add(to, from * channels), pixels * channels);
  };
  emitIf(
      b, windows.isInside(b, kLineDim, at),
      [&] {
        fill(0, left);
        Value from = math.mul(
            math.add(
                math.mul(windows.append(b, lines.image, kLineDim, at), width),
                skipped),
            channels);
        if (inside > 0)
          emitCopy(b, flatInput, from, lines.memory, row,
                   math.add(to, left * channels), inside * channels);
        fill(left + inside, right);
      },
      [&] { fill(0, pitch); });
}

/// All positions of some lines by a panel, a block of tile registers at a time.
void NarrowConvKernel::emitLineBlocks(ImplicitLocOpBuilder &b,
                                      const Lines &lines, Value panel) {
  IndexMath math(b);
  Value zero = math.constant(0);
  Type element = op.getInput().getType().getElementType();
  const int64_t pixelBytes =
      facts.channels * element.getIntOrFloatBitWidth() / 8;
  const int64_t pitch = facts.getPitch(), width = facts.getLinePositions();
  const int64_t tileRows = plan.getTileRows();
  auto i64 = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  TileLines steps{op.getKernelShape()[1] * pixelBytes / kTileBytes,
                  i64(op.getDilations()[0] * pitch * pixelBytes)};
  Value sums = emitSumMemory(b);
  std::optional<TileOperand> start = emitStart(b, zero, panel, sums);
  Rows rows{zero, zero, allRows, nullptr, nullptr, nullptr, nullptr};
  // Positions that exist among the first `position`, pads counted.
  auto countBefore = [&](Value position) {
    return math.add(math.mul(math.div(position, pitch), width),
                    math.min(math.rem(position, math.constant(pitch)),
                             math.constant(width)));
  };
  Value firstRow = math.mul(
      math.add(math.mul(lines.image, facts.countOutputLines()), lines.first),
      width);
  Value positions =
      math.add(math.mul(math.sub(lines.count, math.constant(1)), pitch), width);
  Value whole = math.mul(lines.count, width);
  emitFor(b, zero, positions, kBlockRows, [&](Value position) {
    TileOperand lhs = getTileOperand(
        b, lines.memory, {zero, math.mul(position, facts.channels)});
    lhs.stride = i64(pixelBytes);
    auto fetchNext = [&](Value step) {
      emitFetchOfNextPanel(b, panel, math.div(position, kBlockRows),
                           math.ceilDiv(positions, kBlockRows), step, firstRow);
    };
    function_ref<void(Value)> fetch;
    if (flatWeights)
      fetch = fetchNext;
    emitTileProduct(b, element, kBlockRows / kTileRows,
                    math.constant(facts.getRowBytes() / kTileBytes), lhs,
                    getTileOperand(b, weights, {panel, zero, zero}),
                    getTileOperand(b, sums, {zero, zero}), start, fetch, steps);
    Value from = countBefore(position);
    Value to = math.min(countBefore(math.add(position, kBlockRows)), whole);
    auto emitTiles = [&](Value first, Value end, int64_t count) {
      emitFor(b, first, end, count, [&](Value row) {
        // The line of a row, and the one after it if the tile reaches that.
        Value line = math.div(row, width),
              inLine = math.rem(row, math.constant(width));
        Value sumRow =
            math.sub(math.add(row, math.mul(line, pitch - width)), position);
        SmallVector<Value> sumRows;
        for (int64_t r = 0; r < count; ++r) {
          Value isNext =
              math.less(math.constant(width - 1), math.add(inLine, r));
          Value skipped = arith::SelectOp::create(
              b, isNext, math.constant(r + pitch - width), math.constant(r));
          sumRows.push_back(r ? math.add(sumRow, skipped) : sumRow);
        }
        forEachColumn(b, panel, [&](Value column) {
          emitTile(b, rows, panel, 1, column, math.add(firstRow, row), count,
                   nullptr, sums, sumRows);
        });
      });
    };
    Value end = math.add(from, math.roundDown(math.sub(to, from), tileRows));
    emitTiles(from, end, tileRows);
    emitTiles(end, to, 1);
  });
  memref::DeallocOp::create(b, sums);
}
