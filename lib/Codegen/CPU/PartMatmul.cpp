//===- PartMatmul.cpp - Products of f32 by parts of bf16 ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Whether `plannedRows` are multiplied by parts, and how many at a time: the
/// parts of these rows have to stay in the L2 cache while all panels pass, each
/// of which is split once for them.
void MatmulEmitter::planParts() {
  // The rows' parts must serve several panels.
  constexpr int64_t kFewestColumns = 8 * kBlockColumns, kMostRows = 256;
  auto atLeast = [](Value size, int64_t least) {
    return IndexMath::known(size).value_or(least) >= least;
  };
  usesParts = floatProduct == FloatProduct::Parts && depthGroup == 1 &&
              vectorBits >= 512 && op.getPanelWidth() == kBlockColumns &&
              plannedRows >= kBlockRows && atLeast(n, kFewestColumns) &&
              atLeast(k, kStepDepth);
  if (!usesParts)
    return;
  auto share = [](int64_t whole, int64_t most, int64_t unit) {
    return llvm::alignTo(llvm::divideCeil(whole, llvm::divideCeil(whole, most)),
                         unit);
  };
  partRows =
      share(IndexMath::known(m).value_or(kMostRows), kMostRows, kBlockRows);
  constexpr int64_t kPartBytes = kParts * 2;
  int64_t most = std::max<int64_t>(
      llvm::alignDown(l2Bytes / 2 / (partRows * kPartBytes), kStepDepth),
      kStepDepth);
  partDepth = share(IndexMath::known(k).value_or(most), most, kStepDepth);
}

/// [panel, row, column] as [row, column].
static Value emitRowsOfPanels(ImplicitLocOpBuilder &b, Value sums) {
  SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
  return memref::CollapseShapeOp::create(b, sums, groups);
}

/// Sets flag number `at` of `flags` if `flag` is, and unless `k`, where it was
/// found, is the first value of all, keeps it where it is set.
static void mergeFlag(ImplicitLocOpBuilder &b, Value flag, Value flags,
                      Value at, Value k) {
  IndexMath math(b);
  Value before = memref::LoadOp::create(b, flags, at);
  Value isFirst = math.less(k, math.constant(1));
  Value none = arith::ConstantOp::create(b, b.getBoolAttr(false));
  flag = arith::OrIOp::create(
      b, flag, arith::SelectOp::create(b, isFirst, none, before));
  memref::StoreOp::create(b, flag, flags, at);
}

/// Rows are split into parts once, then each panel for all of them; of a long
/// product one range of k after the other.
void MatmulEmitter::emitPartLoops(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Value zero = math.constant(0), one = math.constant(1);
  Value ranges = math.ceilDiv(k, partDepth);
  // Batches with weights have few rows each, and threads share these.
  bool isOuterParallel = op.isRhsBatched();
  auto emitInner = [&](Value count, function_ref<void(Value)> body) {
    if (isOuterParallel)
      return emitFor(b, zero, count, 1, body);
    emitParallel(b, {count}, [&](ValueRange ivs) { body(ivs[0]); });
  };
  auto allocate = [&](MemRefType type, ValueRange sizes = {}) -> Value {
    return memref::AllocOp::create(b, type, sizes,
                                   b.getI64IntegerAttr(Prefetch::kLineBytes));
  };
  auto emitRowsOf = [&](Value batch, Value number) {
    Chunk chunk;
    chunk.batch = batch;
    chunk.firstRow = math.mul(number, partRows);
    chunk.endRow = math.min(math.add(chunk.firstRow, partRows), m);
    int64_t blocks = partRows / kBlockRows;
    PartBuffers buffers;
    buffers.rows = allocate(
        getRowPartsType(b.getContext(), blocks, partDepth / kStepDepth));
    buffers.rowFlags = allocate(MemRefType::get({blocks}, b.getI1Type()));
    SmallVector<Value> open;
    std::optional<int64_t> panels = IndexMath::known(panelCount);
    if (!panels)
      open.push_back(panelCount);
    int64_t count = panels.value_or(ShapedType::kDynamic);
    buffers.panelFlags =
        allocate(MemRefType::get({count}, b.getI1Type()), open);
    if (IndexMath::known(ranges) != 1)
      buffers.sums = allocate(
          MemRefType::get({count, partRows, kBlockColumns}, b.getF32Type()),
          open);
    emitFor(b, zero, ranges, 1, [&](Value range) {
      Value rows = math.sub(chunk.endRow, chunk.firstRow);
      emitInner(math.ceilDiv(rows, kBlockRows), [&](Value block) {
        SmallVector<Value> lead;
        if (batch)
          lead.push_back(batch);
        Value row = math.add(chunk.firstRow, math.mul(block, kBlockRows));
        DepthRange depth = getDepthRange(b, range);
        Value bad = emitRowParts(b, lhs, lead, row, chunk.endRow, depth,
                                 buffers.rows, block);
        mergeFlag(b, bad, buffers.rowFlags, block, depth.first);
      });
      emitInner(panelCount, [&](Value panel) {
        Chunk ofPanel = chunk;
        ofPanel.panel = panel;
        emitPartPanel(b, ofPanel, buffers, range);
      });
    });
    for (Value buffer :
         {buffers.rows, buffers.rowFlags, buffers.sums, buffers.panelFlags})
      if (buffer)
        memref::DeallocOp::create(b, buffer);
  };
  Value count = math.ceilDiv(m, partRows);
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
  depth.first = math.mul(range, partDepth);
  depth.end = math.min(math.add(depth.first, partDepth), k);
  depth.steps = math.ceilDiv(math.sub(depth.end, depth.first), kStepDepth);
  return depth;
}

/// One range of k of a panel's products with some rows; after the last what
/// follows them.
void MatmulEmitter::emitPartPanel(ImplicitLocOpBuilder &b, Chunk chunk,
                                  const PartBuffers &buffers, Value range) {
  IndexMath math(b);
  Value zero = math.constant(0);
  DepthRange depth = getDepthRange(b, range);
  SmallVector<Value> local;
  auto allocate = [&](MemRefType type) {
    local.push_back(memref::AllocOp::create(
        b, type, ValueRange(), b.getI64IntegerAttr(Prefetch::kLineBytes)));
    return local.back();
  };
  Value columns =
      allocate(getColumnPartsType(b.getContext(), partDepth / kStepDepth));
  SmallVector<Value> panel;
  if (op.isRhsBatched())
    panel.push_back(chunk.batch);
  panel.push_back(chunk.panel);
  Value bad = emitColumnParts(b, rhs, panel, depth, columns);
  mergeFlag(b, bad, buffers.panelFlags, chunk.panel, depth.first);
  Value badPanel = memref::LoadOp::create(b, buffers.panelFlags, chunk.panel);
  chunk.sums = buffers.sums ? emitRowsOfPanels(b, buffers.sums)
                            : allocate(MemRefType::get(
                                  {kBlockRows, kBlockColumns}, b.getF32Type()));

  Value rest = emitBlocks(b, chunk, [&](Value row, int64_t rowTiles) {
    PartBlock block;
    block.row = row;
    block.rowTiles = rowTiles;
    block.number = math.div(math.sub(row, chunk.firstRow), kBlockRows);
    block.sum = zero;
    if (buffers.sums)
      block.sum = math.add(math.mul(chunk.panel, partRows),
                           math.sub(row, chunk.firstRow));
    emitPartBlock(b, chunk, buffers, block, depth, columns);
    emitAfterLastRange(b, range, [&] {
      Value isBad = arith::OrIOp::create(
          b, badPanel,
          memref::LoadOp::create(b, buffers.rowFlags, block.number));
      emitPartResults(b, chunk, block, isBad);
    });
  });
  emitAfterLastRange(b, range, [&] { emitRestOfRows(b, chunk, rest); });
  for (Value buffer : local)
    memref::DeallocOp::create(b, buffer);
}

/// Emits `body` so that it runs in the last range of k only.
void MatmulEmitter::emitAfterLastRange(ImplicitLocOpBuilder &b, Value range,
                                       function_ref<void()> body) {
  IndexMath math(b);
  Value ranges = math.ceilDiv(k, partDepth);
  if (IndexMath::known(ranges) == 1)
    return body();
  emitIf(b, math.less(math.add(range, 1), ranges), [] {}, body);
}

/// The sums of one block of rows over a range of k.
void MatmulEmitter::emitPartBlock(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                  const PartBuffers &buffers,
                                  const PartBlock &block,
                                  const DepthRange &depth, Value columns) {
  IndexMath math(b);
  Value zero = math.constant(0);
  if (buffers.sums)
    emitIf(b, math.less(depth.first, math.constant(1)), [&] {
      Value none = arith::ConstantOp::create(
          b, b.getZeroAttr(VectorType::get({kBlockColumns}, b.getF32Type())));
      emitFor(b, zero, math.constant(block.rowTiles * kTileRows), 1,
              [&](Value row) {
                emitStore(b, none, chunk.sums,
                          {math.add(block.sum, row), zero});
              });
    });
  Tile tile =
      getTile(b, chunk, block.row, math.mul(chunk.panel, kBlockColumns));
  std::optional<int64_t> steps = IndexMath::known(depth.steps);
  auto fetch = [&](Value step, int64_t part, int64_t parts) {
    fetchNextPanel(b, chunk, block.number, depth, step, part, parts);
    if (!steps || buffers.sums || part > 0)
      return;
    int64_t rows = block.rowTiles * kTileRows;
    int64_t share = llvm::divideCeil(rows, *steps);
    for (int64_t r = 0; r < share; ++r)
      evaluator.prefetchRow(
          b, tile,
          math.min(math.add(math.mul(step, share), r), math.constant(rows - 1)),
          l2Bytes / 8);
  };
  emitPartProduct(b, block.rowTiles, depth.steps,
                  /*startsFromZero=*/!buffers.sums,
                  {buffers.rows, block.number, zero}, columns,
                  getTileOperand(b, chunk.sums, {block.sum, zero}), fetch);
}

/// What follows the products of a block of rows; where parts would make them
/// wrong, these as well.
void MatmulEmitter::emitPartResults(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                    const PartBlock &block, Value isBad) {
  IndexMath math(b);
  Value column = math.mul(chunk.panel, kBlockColumns);
  emitFor(b, math.constant(0), math.constant(block.rowTiles * kTileRows),
          shape.rows, [&](Value r) {
            Value row = math.add(block.row, r);
            Start whole;
            whole.row = math.add(block.sum, r);
            emitIf(
                b, isBad,
                [&] { emitTile(b, chunk, row, shape.rows, column, nullptr); },
                [&] {
                  emitTile(b, chunk, row, shape.rows, column, nullptr, whole);
                });
          });
}

/// Asks for a share of the next panel: that of one of `parts` of a step of a
/// block of rows.
void MatmulEmitter::fetchNextPanel(ImplicitLocOpBuilder &b, const Chunk &chunk,
                                   Value block, const DepthRange &depth,
                                   Value step, int64_t part, int64_t parts) {
  std::optional<int64_t> length = IndexMath::known(k);
  if (!flatRhs || !length)
    return;
  IndexMath math(b);
  constexpr int64_t kLines = kStepDepth * kBlockColumns / Prefetch::kLine;
  int64_t share = llvm::divideCeil(kLines, partRows / kBlockRows);
  Value next = math.min(math.add(chunk.panel, 1),
                        math.sub(panelCount, math.constant(1)));
  Value row = math.add(depth.first, math.mul(step, kStepDepth));
  Value from = math.mul(math.add(math.mul(next, *length), row), kBlockColumns);
  from = math.add(from, math.mul(block, share * Prefetch::kLine));
  for (int64_t i = share * part / parts; i < share * (part + 1) / parts; ++i)
    memref::PrefetchOp::create(
        b, flatRhs, ValueRange{math.add(from, i * Prefetch::kLine)},
        /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
}
