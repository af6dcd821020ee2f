//===- Bf16x3Matmul.cpp - Products of f32 by parts of bf16 ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulEmitter.h"
#include "MicroKernels/DequantNumbers.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Pairs of a group of values of k of a quantised right-hand side.
static constexpr int64_t kGroupPairs = kQuantizedGroup / 2;

/// [panel, row, column] as [row, column].
static Value emitRowsOfPanels(ImplicitLocOpBuilder &b, Value sums) {
  SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
  return memref::CollapseShapeOp::create(b, sums, groups);
}

/// Sets flag number `at` of `flags` if `flag` is, and unless `k`, where it was
/// found, is the first value of all, keeps it where it is set; gives that.
static Value mergeFlag(ImplicitLocOpBuilder &b, Value flag, Value flags,
                       Value at, Value k) {
  IndexMath math(b);
  Value before = memref::LoadOp::create(b, flags, at);
  Value isFirst = math.less(k, math.constant(1));
  Value none = arith::ConstantOp::create(b, b.getBoolAttr(false));
  flag = arith::OrIOp::create(
      b, flag, arith::SelectOp::create(b, isFirst, none, before));
  memref::StoreOp::create(b, flag, flags, at);
  return flag;
}

/// Rows are split into parts once, then each panel for all of them; of a long
/// product one range of k after the other.
void MatmulEmitter::emitBf16x3Loops(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Value zero = math.constant(0), one = math.constant(1);
  Value ranges = math.ceilDiv(k, plan.partDepth);
  // Batches with weights have few rows each, and threads share these.
  bool isOuterParallel = op.isRhsBatched();
  auto emitInner = [&](Value count, function_ref<void(Value)> body) {
    if (isOuterParallel)
      return emitFor(b, zero, count, 1, body);
    emitParallel(b, {count}, [&](ValueRange ivs) { body(ivs[0]); });
  };
  auto emitRowsOf = [&](Value batch, Value number) {
    Chunk chunk;
    chunk.batch = batch;
    chunk.firstRow = math.mul(number, plan.partRows);
    chunk.endRow = math.min(math.add(chunk.firstRow, plan.partRows), m);
    int64_t blocks = plan.partRows / kBlockRows;
    Bf16x3Buffers buffers;
    buffers.rows = emitBuffer(b, getSplitRowsType(b.getContext(), blocks,
                                                  plan.partDepth / kStepDepth,
                                                  form.rowParts));
    buffers.rowFlags = emitBuffer(b, MemRefType::get({blocks}, b.getI1Type()));
    SmallVector<Value> open;
    std::optional<int64_t> panels = IndexMath::known(panelCount);
    if (!panels)
      open.push_back(panelCount);
    int64_t count = panels.value_or(ShapedType::kDynamic);
    if (IndexMath::known(ranges) != 1) {
      buffers.panelFlags =
          emitBuffer(b, MemRefType::get({count}, b.getI1Type()), open);
      buffers.sums =
          emitBuffer(b,
                     MemRefType::get({count, plan.partRows, kBlockColumns},
                                     b.getF32Type()),
                     open);
    }
    emitFor(b, zero, ranges, 1, [&](Value range) {
      Value rows = math.sub(chunk.endRow, chunk.firstRow);
      emitInner(math.ceilDiv(rows, kBlockRows), [&](Value block) {
        SmallVector<Value> lead;
        if (batch)
          lead.push_back(batch);
        Value row = math.add(chunk.firstRow, math.mul(block, kBlockRows));
        DepthRange depth = getDepthRange(b, range);
        Value bad = emitRowParts(b, lhs, lead, row, chunk.endRow, depth,
                                 hasFullSteps(), buffers.rows, block);
        mergeFlag(b, bad, buffers.rowFlags, block, depth.first);
      });
      emitInner(math.ceilDiv(panelCount, plan.partPanels), [&](Value group) {
        Value first = math.mul(group, plan.partPanels);
        Value end = math.min(math.add(first, plan.partPanels), panelCount);
        emitBf16x3Panels(b, chunk, buffers, range, first, end);
      });
    });
    for (Value buffer :
         {buffers.rows, buffers.rowFlags, buffers.sums, buffers.panelFlags})
      if (buffer)
        memref::DeallocOp::create(b, buffer);
  };
  Value count = math.ceilDiv(m, plan.partRows);
  Value batches = op.isBatched() ? evaluator.getSize(0) : one;
  auto emitOuter = [&](Value batch, Value number) {
    emitRowsOf(op.isBatched() ? batch : Value(), number);
  };
  if (isOuterParallel)
    return emitParallel(b, {batches, count},
                        [&](ValueRange ivs) { emitOuter(ivs[0], ivs[1]); });
  emitFor(b, zero, batches, 1, [&](Value batch) {
    emitFor(b, zero, count, 1, [&](Value number) { emitOuter(batch, number); });
  });
}

/// Number `range` of the ranges of k.
DepthRange MatmulEmitter::getDepthRange(ImplicitLocOpBuilder &b, Value range) {
  IndexMath math(b);
  DepthRange depth;
  depth.first = math.mul(range, plan.partDepth);
  depth.end = math.min(math.add(depth.first, plan.partDepth), k);
  depth.steps = math.ceilDiv(math.sub(depth.end, depth.first), kStepDepth);
  return depth;
}

/// One range of k of the products of some panels with some rows; after the last
/// what follows them. Only the first panel is split before: each other is while
/// tile registers multiply the one before it, which leaves vector registers
/// idle.
void MatmulEmitter::emitBf16x3Panels(ImplicitLocOpBuilder &b, Chunk chunk,
                                     const Bf16x3Buffers &buffers, Value range,
                                     Value firstPanel, Value endPanel) {
  IndexMath math(b);
  Value zero = math.constant(0), one = math.constant(1);
  DepthRange depth = getDepthRange(b, range);
  SmallVector<Value> local;
  auto allocate = [&](MemRefType type) {
    return local.emplace_back(emitBuffer(b, type));
  };
  ColumnParts columns;
  columns.parts = allocate(getSplitColumnsType(b.getContext(), /*slots=*/2,
                                               plan.partDepth / kStepDepth,
                                               form.columnParts));
  columns.magnitudes = allocate(getMagnitudesType(b.getContext(), /*slots=*/2));
  columns.slot = zero;
  bool isSummed = bool(buffers.sums);
  auto tiles = MemRefType::get({kBlockRows, kBlockColumns}, b.getF32Type());
  chunk.sums = isSummed ? emitRowsOfPanels(b, buffers.sums) : allocate(tiles);
  if (form.scalesSums)
    chunk.unscaled = allocate(MemRefType::get(
        {countScaledPieces(), kBlockRows, kBlockColumns}, b.getF32Type()));
  emitClearMagnitudes(b, columns);
  emitPanelParts(b, chunk, firstPanel, depth, zero,
                 math.mul(depth.steps, kStepPairs), columns);
  emitFor(b, firstPanel, endPanel, 1, [&](Value panel) {
    chunk.panel = panel;
    columns.slot = math.rem(math.sub(panel, firstPanel), math.constant(2));
    Value badPanel = emitAreColumnsBad(b, columns);
    if (isSummed)
      badPanel = mergeFlag(b, badPanel, buffers.panelFlags, panel, depth.first);
    ColumnParts next = columns;
    next.slot = math.sub(one, columns.slot);
    emitClearMagnitudes(b, next);

    auto emitBlock = [&](Value row, int64_t rowTiles, Value rowLimit) {
      Value inChunk = math.sub(row, chunk.firstRow);
      Bf16x3Block block{row, rowTiles, math.div(inChunk, kBlockRows), zero,
                        rowLimit};
      if (isSummed)
        block.sum = math.add(math.mul(panel, plan.partRows), inChunk);
      emitBf16x3Block(b, chunk, buffers, block, depth, columns, next);
      emitAfterLastRange(b, range, [&] {
        Value isBad = arith::OrIOp::create(
            b, badPanel,
            memref::LoadOp::create(b, buffers.rowFlags, block.number));
        emitBf16x3Results(b, chunk, block, isBad);
      });
    };
    if (facts.packing.isQuantized())
      return emitFilledBlocks(b, chunk, emitBlock);
    Value rest = emitBlocks(b, chunk, [&](Value row, int64_t rowTiles) {
      emitBlock(row, rowTiles, /*rowLimit=*/nullptr);
    });
    emitAfterLastRange(b, range, [&] { emitRestOfRows(b, chunk, rest); });
  });
  for (Value buffer : local)
    memref::DeallocOp::create(b, buffer);
}

/// All rows of a chunk in blocks, of which the last may have fewer: rows that
/// tile registers have for nothing take less than to unpack weights on vectors.
void MatmulEmitter::emitFilledBlocks(
    ImplicitLocOpBuilder &b, const Chunk &chunk,
    function_ref<void(Value row, int64_t rowTiles, Value rowLimit)> emitBlock) {
  IndexMath math(b);
  Value end = math.add(
      chunk.firstRow,
      math.roundDown(math.sub(chunk.endRow, chunk.firstRow), kBlockRows));
  emitFor(b, chunk.firstRow, end, kBlockRows, [&](Value row) {
    emitBlock(row, kBlockRows / kTileRows, /*rowLimit=*/nullptr);
  });
  const std::optional<int64_t> rows = IndexMath::known(m);
  if (rows && *rows % kBlockRows == 0)
    return;
  auto emitLast = [&](int64_t rowTiles) {
    emitBlock(end, rowTiles, chunk.endRow);
  };
  emitIf(b, math.less(end, chunk.endRow), [&] {
    if (rows)
      return emitLast(llvm::divideCeil(*rows % kBlockRows, kTileRows));
    emitIf(
        b, math.less(math.add(end, kTileRows), chunk.endRow),
        [&] { emitLast(kBlockRows / kTileRows); }, [&] { emitLast(1); });
  });
}

/// Splits some pairs of values of k of a panel.
void MatmulEmitter::emitPanelParts(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                   Value panel, const DepthRange &depth,
                                   Value firstPair, Value endPair,
                                   const ColumnParts &to) {
  IndexMath math(b);
  auto getHalf = [&](int64_t half) {
    Chunk single = chunk;
    single.panel = panel;
    PackedTile tile = getPackedTile(single, /*rows=*/0, kTileRows);
    tile.column = math.constant(half * kTileRows);
    return tile;
  };
  if (form.columnParts == 1) {
    emitFor(
        b, math.div(firstPair, kGroupPairs), math.div(endPair, kGroupPairs), 1,
        [&](Value inRange) {
          // Rows have zeros past the last value of k.
          Value group =
              math.add(math.div(depth.first, kQuantizedGroup), inRange);
          group = math.min(group, math.sub(math.dim(rhs, 1), math.constant(1)));
          Value pair = math.mul(inRange, kGroupPairs);
          Value step = math.div(pair, kStepPairs), zero = math.constant(0);
          for (int64_t half = 0; half < kColumnTiles; ++half) {
            auto numbers = emitDequantizedGroup(b, getHalf(half), group,
                                                /*isScaled=*/!form.scalesSums);
            for (int64_t i = 0; i < kGroupPairs; ++i)
              emitStore(b,
                        emitBf16Pairs(b, numbers[2 * i], numbers[2 * i + 1],
                                      /*isRounded=*/!form.scalesSums),
                        to.parts,
                        {to.slot, step, zero, math.constant(half),
                         math.add(math.rem(pair, math.constant(kStepPairs)), i),
                         zero});
          }
        });
    return;
  }
  auto load = [&](Value inRange, int64_t half) {
    if (facts.packing.isQuantized())
      return emitDequantized(b, getHalf(half),
                             math.min(math.add(depth.first, inRange),
                                      math.sub(k, math.constant(1))));
    Value zero = math.constant(0), row = math.add(depth.first, inRange), mask;
    if (!hasFullSteps()) {
      Value inside = math.less(row, depth.end);
      Value count = b.createOrFold<arith::SelectOp>(
          inside, math.constant(kTileRows), zero);
      mask = emitTailMask(b, count, kTileRows);
      row = b.createOrFold<arith::SelectOp>(inside, row, zero);
    }
    SmallVector<Value> at;
    if (op.isRhsBatched())
      at.push_back(chunk.batch);
    at.append({panel, row, math.constant(half * kTileRows)});
    return emitLoad(b, rhs, at, kTileRows, mask);
  };
  emitColumnParts(b, firstPair, endPair, load, to);
}

/// Emits `body` so that it runs in the last range of k only.
void MatmulEmitter::emitAfterLastRange(ImplicitLocOpBuilder &b, Value range,
                                       function_ref<void()> body) {
  IndexMath math(b);
  Value ranges = math.ceilDiv(k, plan.partDepth);
  if (IndexMath::known(ranges) == 1)
    return body();
  emitIf(b, math.less(math.add(range, 1), ranges), [] {}, body);
}

/// The sums of one block of rows over a range of k. In each step it splits a
/// share of the next panel.
void MatmulEmitter::emitBf16x3Block(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                    const Bf16x3Buffers &buffers,
                                    const Bf16x3Block &block,
                                    const DepthRange &depth,
                                    const ColumnParts &columns,
                                    const ColumnParts &next) {
  IndexMath math(b);
  Value zero = math.constant(0), one = math.constant(1);
  auto clear = [&] {
    Value none = arith::ConstantOp::create(
        b, b.getZeroAttr(VectorType::get({kBlockColumns}, b.getF32Type())));
    emitFor(b, zero, math.constant(block.rowTiles * kTileRows), 1,
            [&](Value row) {
              emitStore(b, none, chunk.sums, {math.add(block.sum, row), zero});
            });
  };
  if (buffers.sums)
    emitIf(b, math.less(depth.first, one), clear);
  else if (form.scalesSums)
    clear();
  Value rows = math.sub(chunk.endRow, chunk.firstRow);
  Value blocks = math.max(math.div(math.add(rows, kTileRows), kBlockRows), one);
  // One after the other, so that the processor fetches them ahead of time.
  Value share = math.div(math.add(blocks, kStepPairs - 1), blocks);
  if (form.columnParts == 1)
    share = math.mul(math.ceilDiv(share, kGroupPairs), kGroupPairs);
  Value pairs = math.mul(depth.steps, kStepPairs);
  Value firstStep = math.mul(block.number, depth.steps);
  Value nextPanel =
      math.min(math.add(chunk.panel, 1), math.sub(panelCount, one));
  Tile tile =
      getTile(b, chunk, block.row, math.mul(chunk.panel, kBlockColumns));
  std::optional<int64_t> steps = IndexMath::known(depth.steps);
  auto meanwhile = [&](Value step, int64_t product) {
    if (product == 0 && steps && !buffers.sums)
      evaluator.prefetchShare(b, tile, block.rowTiles * kTileRows, step, *steps,
                              target.getL2Bytes() / 8);
    // Where there is a second product it hides the splitting better.
    if (product != (form.rowParts == 1 ? 0 : 1))
      return;
    Value first = math.mul(math.add(firstStep, step), share);
    emitPanelParts(b, chunk, nextPanel, depth, math.min(first, pairs),
                   math.min(math.add(first, share), pairs), next);
  };
  if (form.scalesSums)
    return emitScaledProducts(b, chunk, buffers, block, depth, columns,
                              meanwhile);
  emitBf16x3Product(b, block.rowTiles, depth.steps,
                    /*startsFromZero=*/!buffers.sums,
                    {buffers.rows, block.number}, {columns.parts, columns.slot},
                    getTileOperand(b, chunk.sums, {block.sum, zero}),
                    meanwhile);
}

/// Sums of how many blocks of values of k are scaled at a time: as many as make
/// `kScaledDepth`, so that what is summed up is not read and written so often.
int64_t MatmulEmitter::countScaledPieces() const {
  constexpr int64_t kScaledDepth = 128;
  const int64_t piece = std::min(facts.block, plan.partDepth);
  int64_t count = std::max<int64_t>(kScaledDepth / piece, 1);
  while (plan.partDepth % (count * piece) || *facts.depth % (count * piece))
    if (--count == 1)
      break;
  return count;
}

/// The same where columns are integers: scales multiply the sums of the values
/// of k that share them.
void MatmulEmitter::emitScaledProducts(
    ImplicitLocOpBuilder &b, const Chunk &chunk, const Bf16x3Buffers &buffers,
    const Bf16x3Block &block, const DepthRange &depth,
    const ColumnParts &columns,
    function_ref<void(Value step, int64_t product)> meanwhile) {
  IndexMath math(b);
  Value zero = math.constant(0);
  const int64_t steps = std::min(facts.block, plan.partDepth) / kStepDepth;
  const int64_t pieces = countScaledPieces();
  auto emitPiece = [&](Value first, Value slot) {
    Value count = math.constant(steps);
    if (*facts.depth % (steps * kStepDepth))
      count = math.min(count, math.sub(depth.steps, first));
    emitBf16x3Product(b, block.rowTiles, count, /*startsFromZero=*/true,
                      {buffers.rows, block.number, first},
                      {columns.parts, columns.slot, kColumnTiles, first},
                      getTileOperand(b, chunk.unscaled, {slot, zero, zero}),
                      [&](Value step, int64_t product) {
                        meanwhile(math.add(first, step), product);
                      });
  };
  Value groups = math.ceilDiv(depth.steps, pieces * steps);
  emitFor(b, zero, groups, 1, [&](Value group) {
    Value first = math.mul(group, pieces * steps);
    emitFor(b, zero, math.constant(pieces), 1, [&](Value slot) {
      emitPiece(math.add(first, math.mul(slot, steps)), slot);
    });
    Value k = math.add(depth.first, math.mul(first, kStepDepth));
    Value number = math.div(k, facts.block);
    SmallVector<Value> scale;
    for (int64_t piece = 0; piece < pieces; ++piece)
      scale.push_back(emitLoadParameters(
          b, scales, {chunk.panel, math.add(number, piece), zero, zero},
          kBlockColumns));
    emitFor(b, zero, math.constant(block.rowTiles * kTileRows), 1,
            [&](Value row) {
              SmallVector<Value> at{math.add(block.sum, row), zero};
              Value sum = emitLoad(b, chunk.sums, at, kBlockColumns);
              for (int64_t piece = 0; piece < pieces; ++piece)
                sum = vector::FMAOp::create(
                    b,
                    emitLoad(b, chunk.unscaled,
                             {math.constant(piece), row, zero}, kBlockColumns),
                    scale[piece], sum);
              emitStore(b, sum, chunk.sums, at);
            });
  });
}

/// What follows the products of a block of rows; where parts would make them
/// wrong, these as well.
void MatmulEmitter::emitBf16x3Results(ImplicitLocOpBuilder &b,
                                      const Chunk &chunk,
                                      const Bf16x3Block &block, Value isBad) {
  IndexMath math(b);
  Value column = math.mul(chunk.panel, kBlockColumns);
  Value areRight =
      arith::XOrIOp::create(b, isBad, arith::ConstantIntOp::create(b, 1, 1));
  emitFor(b, math.constant(0), math.constant(block.rowTiles * kTileRows),
          shape.rows, [&](Value r) {
            Value row = math.add(block.row, r);
            Start whole;
            whole.row = math.add(block.sum, r);
            whole.isWhole = true;
            whole.areRight = areRight;
            auto emitResults = [&] {
              emitTile(b, chunk, row, shape.rows, column, block.rowLimit,
                       whole);
            };
            if (!block.rowLimit)
              return emitResults();
            emitIf(b, math.less(row, block.rowLimit), emitResults);
          });
}
