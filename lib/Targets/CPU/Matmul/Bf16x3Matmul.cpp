//===- Bf16x3Matmul.cpp - Products of f32 by parts of bf16 ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

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
                                                  plan.partDepth / kStepDepth));
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
                                               plan.partDepth / kStepDepth));
  columns.magnitudes = allocate(getMagnitudesType(b.getContext(), /*slots=*/2));
  columns.slot = zero;
  bool isSummed = bool(buffers.sums);
  chunk.sums = isSummed ? emitRowsOfPanels(b, buffers.sums)
                        : allocate(MemRefType::get({kBlockRows, kBlockColumns},
                                                   b.getF32Type()));
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

    Value rest = emitBlocks(b, chunk, [&](Value row, int64_t rowTiles) {
      Value inChunk = math.sub(row, chunk.firstRow);
      Bf16x3Block block{row, rowTiles, math.div(inChunk, kBlockRows), zero};
      if (isSummed)
        block.sum = math.add(math.mul(panel, plan.partRows), inChunk);
      emitBf16x3Block(b, chunk, buffers, block, depth, columns, next);
      emitAfterLastRange(b, range, [&] {
        Value isBad = arith::OrIOp::create(
            b, badPanel,
            memref::LoadOp::create(b, buffers.rowFlags, block.number));
        emitBf16x3Results(b, chunk, block, isBad);
      });
    });
    emitAfterLastRange(b, range, [&] { emitRestOfRows(b, chunk, rest); });
  });
  for (Value buffer : local)
    memref::DeallocOp::create(b, buffer);
}

/// Splits some pairs of values of k of a panel.
void MatmulEmitter::emitPanelParts(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                   Value panel, const DepthRange &depth,
                                   Value firstPair, Value endPair,
                                   const ColumnParts &to) {
  IndexMath math(b);
  auto load = [&](Value inRange, int64_t half) {
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
  if (buffers.sums)
    emitIf(b, math.less(depth.first, one), [&] {
      Value none = arith::ConstantOp::create(
          b, b.getZeroAttr(VectorType::get({kBlockColumns}, b.getF32Type())));
      emitFor(b, zero, math.constant(block.rowTiles * kTileRows), 1,
              [&](Value row) {
                emitStore(b, none, chunk.sums,
                          {math.add(block.sum, row), zero});
              });
    });
  Value rows = math.sub(chunk.endRow, chunk.firstRow);
  Value blocks = math.max(math.div(math.add(rows, kTileRows), kBlockRows), one);
  // One after the other, so that the processor fetches them ahead of time.
  Value share = math.div(math.add(blocks, kStepPairs - 1), blocks);
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
    if (product != 1)
      return;
    Value first = math.mul(math.add(firstStep, step), share);
    emitPanelParts(b, chunk, nextPanel, depth, math.min(first, pairs),
                   math.min(math.add(first, share), pairs), next);
  };
  emitBf16x3Product(b, block.rowTiles, depth.steps,
                    /*startsFromZero=*/!buffers.sums,
                    {buffers.rows, block.number}, {columns.parts, columns.slot},
                    getTileOperand(b, chunk.sums, {block.sum, zero}),
                    meanwhile);
}

/// What follows the products of a block of rows; where parts would make them
/// wrong, these as well.
void MatmulEmitter::emitBf16x3Results(ImplicitLocOpBuilder &b,
                                      const Chunk &chunk,
                                      const Bf16x3Block &block, Value isBad) {
  IndexMath math(b);
  Value column = math.mul(chunk.panel, kBlockColumns);
  emitFor(b, math.constant(0), math.constant(block.rowTiles * kTileRows),
          shape.rows, [&](Value r) {
            Value row = math.add(block.row, r);
            Start whole;
            whole.row = math.add(block.sum, r);
            whole.isWhole = true;
            emitIf(
                b, isBad,
                [&] { emitTile(b, chunk, row, shape.rows, column, nullptr); },
                [&] {
                  emitTile(b, chunk, row, shape.rows, column, nullptr, whole);
                });
          });
}
