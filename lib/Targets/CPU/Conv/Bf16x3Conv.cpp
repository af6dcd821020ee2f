//===- Bf16x3Conv.cpp - Convolutions by parts of bf16 ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Filters, split into two bf16 each (see cpu.pack_conv_weights), times inputs,
// which a chunk splits into three (Bf16x3Product.h), by tile registers. Inputs
// whose parts would be wrong are multiplied by the sums of the filters' parts.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"
#include "MicroKernels/Bf16x3Product.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

static_assert(cpu::kBf16x2Block == kBlockRows &&
              cpu::kBf16x2Block == kStepDepth);

/// Products of a step.
static constexpr int64_t kProducts = 5;

/// Emits the loops of a convolution by parts.
class ConvEmitter::Bf16x3Loops {
public:
  explicit Bf16x3Loops(ConvEmitter &conv) : conv(conv) {}
  void emit(ImplicitLocOpBuilder &b);

private:
  /// Numbers from `first` on, before `end`.
  struct Span {
    Value first, end;
  };

  /// How a convolution by parts goes: each chunk splits the inputs of some
  /// panels of `kBlockColumns` positions, and multiplies them by some blocks of
  /// filters.
  struct Bf16x3Plan {
    int64_t panels, mostPanels;
    int64_t blocks;
    /// Channels are taken in so many ranges, of so many steps of `kStepDepth`,
    /// so that the inputs' parts of one stay in the L2 cache.
    int64_t ranges, rangeSteps;
    /// Whether threads share the filters first, and then the positions.
    bool sharesFilters;
  };

  /// What a chunk computes, and its memory.
  struct Bf16x3Chunk {
    Bf16x3Plan plan;
    Chunk chunk;
    /// All filters' parts as blocks: [block, step, part, filter, channel].
    Value filters;
    Span blocks, panels;
    /// Parts of its inputs, and for which panels they would be wrong.
    Value parts, magnitudes, areBad;
    /// [row, position]: of the products of one block and panel, or where there
    /// are several ranges of channels, of all.
    Value sums;

    bool hasRanges() const { return plan.ranges > 1; }
  };

  /// Some channels, in steps.
  struct Bf16x3Range {
    Value firstStep, endStep;
    bool isFirst, isLast;
  };

  /// A panel of a chunk, number `slot` of it.
  struct Bf16x3Panel {
    Chunk chunk;
    Value slot;
  };

  /// Some rows of the sums of a block of filters and a panel.
  struct Bf16x3Rows {
    /// The block, of all groups, the first of its rows, and in `sums`, that of
    /// the rows.
    Value block, row, sum;
    SmallVector<Tile> tiles;
  };

  Bf16x3Plan planBf16x3();
  void emitBf16x3Chunk(ImplicitLocOpBuilder &b, Bf16x3Chunk &part);
  void emitBf16x3Range(ImplicitLocOpBuilder &b, const Bf16x3Chunk &part,
                       const Bf16x3Range &range);
  void emitBf16x3Panels(ImplicitLocOpBuilder &b, const Bf16x3Chunk &part,
                        function_ref<void(const Bf16x3Panel &panel)> body);
  void emitBf16x3Inputs(ImplicitLocOpBuilder &b, const Chunk &panel,
                        const Bf16x3Range &range, const ColumnParts &to);
  void emitBf16x3Block(ImplicitLocOpBuilder &b, const Bf16x3Chunk &part,
                       const Bf16x3Range &range, const Bf16x3Panel &panel,
                       Value block, int64_t rows);
  SmallVector<Tile> getBf16x3Tiles(ImplicitLocOpBuilder &b, const Chunk &panel,
                                   Value filter);
  void fetchBf16x3Weights(ImplicitLocOpBuilder &b, const Bf16x3Plan &plan,
                          Value block, Value firstStep, Value turn,
                          int64_t product);
  void emitBf16x3Rows(ImplicitLocOpBuilder &b, const Bf16x3Chunk &part,
                      const Bf16x3Rows &at, int64_t rows);
  void emitFusedRow(ImplicitLocOpBuilder &b, const Bf16x3Chunk &part,
                    const Bf16x3Panel &panel, const Bf16x3Rows &at);

  ConvEmitter &conv;
};

ConvEmitter::Bf16x3Loops::Bf16x3Plan ConvEmitter::Bf16x3Loops::planBf16x3() {
  auto weightsType = cast<MemRefType>(conv.weights.getType());
  Bf16x3Plan plan;
  plan.panels = llvm::divideCeil(conv.facts.positions, kBlockColumns);
  plan.blocks = weightsType.getDimSize(1);
  plan.sharesFilters = conv.plan.getThreads() == ConvSharing::Filters;
  plan.mostPanels = conv.plan.getPanels();
  plan.rangeSteps = conv.plan.getRangeSteps();
  plan.ranges = llvm::divideCeil(
      weightsType.getDimSize(2) / conv.facts.countTaps(), plan.rangeSteps);
  return plan;
}

void ConvEmitter::emitBf16x3(ImplicitLocOpBuilder &b) {
  Bf16x3Loops(*this).emit(b);
}

void ConvEmitter::Bf16x3Loops::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  Bf16x3Plan plan = planBf16x3();
  auto weightsType = cast<MemRefType>(conv.weights.getType());
  SmallVector<ReassociationIndices> groups = {{0, 1}, {2}, {3}};
  Value inSteps = memref::CollapseShapeOp::create(b, conv.weights, groups);
  SmallVector<ReassociationIndices> blocked = {{0}, {1}, {2, 3, 4}};
  int64_t blockShape[] = {conv.group * plan.blocks, weightsType.getDimSize(2),
                          cpu::kBf16x2Terms, kBlockRows, kStepDepth};
  Value filters =
      memref::ExpandShapeOp::create(b, ArrayRef(blockShape), inSteps, blocked);
  Value threads = sdx::ThreadCountOp::create(b);
  Value blocks = math.constant(plan.blocks),
        panels = math.constant(plan.panels);
  Value blocksOfChunk = blocks, shares = math.constant(1);
  if (plan.sharesFilters) {
    blocksOfChunk = math.ceilDiv(blocks, math.min(threads, blocks));
    shares = math.ceilDiv(blocks, blocksOfChunk);
  }
  Value others =
      math.mul(math.mul(conv.evaluator.getSize(0), conv.group), shares);
  Value chunks = math.min(
      panels,
      math.max(math.constant(llvm::divideCeil(plan.panels, plan.mostPanels)),
               math.ceilDiv(threads, math.max(others, math.constant(1)))));
  Value panelsOfChunk = math.ceilDiv(panels, chunks);
  SmallVector<Value> sizes = {conv.evaluator.getSize(0),
                              math.constant(conv.group), shares,
                              math.ceilDiv(panels, panelsOfChunk)};
  emitParallel(b, sizes, [&](ValueRange ivs) {
    auto span = [&](Value number, Value size, Value all) {
      Value first = math.mul(number, size);
      return Span{first, math.min(math.add(first, size), all)};
    };
    Bf16x3Chunk part;
    part.plan = plan;
    part.chunk.image = ivs[0];
    part.chunk.group = ivs[1];
    part.chunk.width = conv.lanes;
    part.filters = filters;
    part.blocks = span(ivs[2], blocksOfChunk, blocks);
    part.panels = span(ivs[3], panelsOfChunk, panels);
    emitBf16x3Chunk(b, part);
  });
}

void ConvEmitter::Bf16x3Loops::emitBf16x3Chunk(ImplicitLocOpBuilder &b,
                                               Bf16x3Chunk &part) {
  IndexMath math(b);
  const Bf16x3Plan &plan = part.plan;
  part.parts = emitBuffer(
      b, getSplitColumnsType(b.getContext(), plan.mostPanels,
                             plan.rangeSteps * conv.facts.countTaps()));
  part.magnitudes =
      emitBuffer(b, getMagnitudesType(b.getContext(), plan.mostPanels));
  part.areBad =
      emitBuffer(b, MemRefType::get({plan.mostPanels}, b.getI1Type()));
  int64_t rows = kBlockRows;
  SmallVector<Value> open;
  if (part.hasRanges()) {
    rows = ShapedType::kDynamic;
    open.push_back(math.mul(math.sub(part.blocks.end, part.blocks.first),
                            plan.mostPanels * kBlockRows));
  }
  part.sums = emitBuffer(
      b, MemRefType::get({rows, kBlockColumns}, b.getF32Type()), open);
  Value channelSteps = math.ceilDiv(conv.groupChannels, kStepDepth);
  auto emitRange = [&](Value number, bool isFirst, bool isLast) {
    Value first = math.mul(number, plan.rangeSteps);
    Value end = math.min(math.add(first, plan.rangeSteps), channelSteps);
    emitBf16x3Range(b, part, {first, end, isFirst, isLast});
  };
  Value zero = math.constant(0), last = math.constant(plan.ranges - 1);
  emitRange(zero, /*isFirst=*/true, /*isLast=*/!part.hasRanges());
  if (part.hasRanges()) {
    emitFor(b, math.constant(1), last, 1, [&](Value number) {
      emitRange(number, /*isFirst=*/false, /*isLast=*/false);
    });
    emitRange(last, /*isFirst=*/false, /*isLast=*/true);
  }
  for (Value buffer : {part.parts, part.magnitudes, part.areBad, part.sums})
    memref::DeallocOp::create(b, buffer);
}

/// Splits the inputs of a range of channels, and adds their products to the
/// sums; after the last what follows them.
void ConvEmitter::Bf16x3Loops::emitBf16x3Range(ImplicitLocOpBuilder &b,
                                               const Bf16x3Chunk &part,
                                               const Bf16x3Range &range) {
  IndexMath math(b);
  emitBf16x3Panels(b, part, [&](const Bf16x3Panel &panel) {
    ColumnParts to = {part.parts, part.magnitudes, panel.slot,
                      panel.chunk.getColumns()};
    emitBf16x3Inputs(b, panel.chunk, range, to);
    Value isBad = emitAreColumnsBad(b, to);
    if (!range.isFirst)
      isBad = arith::OrIOp::create(
          b, isBad, memref::LoadOp::create(b, part.areBad, panel.slot));
    memref::StoreOp::create(b, isBad, part.areBad, panel.slot);
  });
  auto emitBlock = [&](Value block, int64_t rows) {
    emitBf16x3Panels(b, part, [&](const Bf16x3Panel &panel) {
      emitBf16x3Block(b, part, range, panel, block, rows);
    });
  };
  int64_t filters = *IndexMath::known(conv.groupFilters);
  Value whole = math.constant(filters / kBlockRows);
  emitFor(b, part.blocks.first, math.min(part.blocks.end, whole), 1,
          [&](Value block) { emitBlock(block, kBlockRows); });
  if (int64_t rest = filters % kBlockRows)
    emitIf(b, math.less(whole, part.blocks.end),
           [&] { emitBlock(whole, rest); });
}

/// The products of `rows` filters of a block and a panel.
void ConvEmitter::Bf16x3Loops::emitBf16x3Block(ImplicitLocOpBuilder &b,
                                               const Bf16x3Chunk &part,
                                               const Bf16x3Range &range,
                                               const Bf16x3Panel &panel,
                                               Value block, int64_t rows) {
  IndexMath math(b);
  Value zero = math.constant(0);
  Value steps = math.mul(math.sub(range.endStep, range.firstStep),
                         conv.facts.countTaps());
  Value firstStep = math.mul(range.firstStep, conv.facts.countTaps());
  Value ofAll = math.add(math.mul(panel.chunk.group, part.plan.blocks), block);
  Value firstSum = zero;
  if (part.hasRanges()) {
    Value inChunk = math.sub(block, part.blocks.first);
    Value number =
        math.add(math.mul(inChunk, part.plan.mostPanels), panel.slot);
    firstSum = math.mul(number, kBlockRows);
  }
  SmallVector<Tile> tiles =
      getBf16x3Tiles(b, panel.chunk, math.mul(block, kBlockRows));
  auto fetch = [&](Value step, int64_t product) {
    if (!part.hasRanges())
      conv.evaluator.prefetchShare(
          b, tiles, rows, math.add(math.mul(step, kProducts), product),
          *IndexMath::known(steps) * kProducts, conv.farBytes());
    Value turn = math.add(math.mul(step, part.plan.mostPanels), panel.slot);
    fetchBf16x3Weights(b, part.plan, math.add(ofAll, 1), firstStep, turn,
                       product);
  };
  emitBf16x3Product(b, llvm::divideCeil(rows, kTileRows), steps,
                    /*startsFromZero=*/range.isFirst,
                    {part.filters, ofAll, firstStep},
                    {part.parts, panel.slot, panel.chunk.getColumns()},
                    getTileOperand(b, part.sums, {firstSum, zero}), fetch);
  if (!range.isLast)
    return;
  Value isBad = memref::LoadOp::create(b, part.areBad, panel.slot);
  auto find = [&](Value row) {
    Bf16x3Rows at{ofAll, row, math.add(firstSum, row), tiles};
    for (Tile &tile : at.tiles)
      tile.index.back() = math.add(tile.index.back(), row);
    return at;
  };
  // Wrong sums are rare: code for one row after the other is shortest.
  auto emitFused = [&] {
    emitFor(b, zero, math.constant(rows), 1,
            [&](Value row) { emitFusedRow(b, part, panel, find(row)); });
  };
  auto emitSums = [&] {
    int64_t whole = llvm::alignDown(rows, conv.shape.rows);
    emitFor(b, zero, math.constant(whole), conv.shape.rows, [&](Value row) {
      emitBf16x3Rows(b, part, find(row), conv.shape.rows);
    });
    if (rows > whole)
      emitBf16x3Rows(b, part, find(math.constant(whole)), rows - whole);
  };
  emitIf(b, isBad, emitFused, emitSums);
}

/// The tiles of the result that the filters from `filter` on (of the group)
/// have in a panel.
SmallVector<Tile>
ConvEmitter::Bf16x3Loops::getBf16x3Tiles(ImplicitLocOpBuilder &b,
                                         const Chunk &panel, Value filter) {
  IndexMath math(b);
  SmallVector<Tile> tiles;
  for (auto [c, mask] : llvm::enumerate(panel.masks)) {
    Tile tile;
    tile.index = {panel.image,
                  math.add(math.mul(panel.group, conv.groupFilters), filter)};
    tile.position = math.add(panel.position, c * conv.lanes);
    tile.width = conv.lanes;
    tile.mask = mask;
    tiles.push_back(tile);
  }
  return tiles;
}

/// Asks, before a product of a step, for a share of the weights that block
/// number `block` has from step `firstStep` on: number `turn` of the shares of
/// steps and panels.
void ConvEmitter::Bf16x3Loops::fetchBf16x3Weights(ImplicitLocOpBuilder &b,
                                                  const Bf16x3Plan &plan,
                                                  Value block, Value firstStep,
                                                  Value turn, int64_t product) {
  if (!Prefetch::pays(conv.weights))
    return;
  constexpr int64_t kStep = cpu::kBf16x2Terms * kBlockRows * kStepDepth;
  constexpr int64_t kLine = Prefetch::kLineBytes / 2;
  IndexMath math(b);
  int64_t share = llvm::divideCeil(kStep / kLine, kProducts * plan.mostPanels);
  Value step = math.add(math.mul(block, math.dim(conv.weights, 2)), firstStep);
  Value line = math.mul(math.add(math.mul(turn, kProducts), product), share);
  Value at = math.add(math.mul(step, kStep), math.mul(line, kLine));
  for (int64_t i = 0; i < share; ++i)
    emitFetch(b, conv.flatWeights, math.add(at, i * kLine), /*locality=*/2);
}

/// The panels of a chunk: whole ones, and the last of all, which may have fewer
/// columns.
void ConvEmitter::Bf16x3Loops::emitBf16x3Panels(
    ImplicitLocOpBuilder &b, const Bf16x3Chunk &part,
    function_ref<void(const Bf16x3Panel &panel)> body) {
  IndexMath math(b);
  int64_t positions = *IndexMath::known(conv.outPositions);
  Value whole = math.constant(positions / kBlockColumns);
  auto emitPanel = [&](Value number, int64_t columns, Value lastMask) {
    Bf16x3Panel panel{part.chunk, math.sub(number, part.panels.first)};
    panel.chunk.position = math.mul(number, kBlockColumns);
    panel.chunk.masks.assign(columns, Value());
    panel.chunk.masks.back() = lastMask;
    body(panel);
  };
  emitFor(b, part.panels.first, math.min(part.panels.end, whole), 1,
          [&](Value number) { emitPanel(number, kColumnTiles, nullptr); });
  if (int64_t rest = positions % kBlockColumns)
    emitIf(b, math.less(whole, part.panels.end), [&] {
      int64_t columns = llvm::divideCeil(rest, conv.lanes);
      Value inLast = math.constant(rest - (columns - 1) * conv.lanes);
      emitPanel(whole, columns, emitTailMask(b, inLast, conv.lanes));
    });
}

/// Splits a range of the channels of a panel, tap after tap.
void ConvEmitter::Bf16x3Loops::emitBf16x3Inputs(ImplicitLocOpBuilder &b,
                                                const Chunk &panel,
                                                const Bf16x3Range &range,
                                                const ColumnParts &to) {
  IndexMath math(b);
  const int64_t taps = conv.facts.countTaps();
  const int64_t channels = *IndexMath::known(conv.groupChannels);
  const int64_t tail = channels % kStepDepth;
  Value whole = math.constant(channels / kStepDepth);
  emitClearMagnitudes(b, to);
  conv.emitTaps(b, panel, {}, [&](const Tap &tap, ValueRange) {
    auto emitStep = [&](Value step, int64_t depth) {
      Value inRange = math.sub(step, range.firstStep);
      Value from =
          math.mul(math.add(math.mul(inRange, taps), tap.number), kStepPairs);
      Value end = math.add(from, depth / 2);
      emitColumnParts(
          b, from, end,
          [&](Value k, int64_t half) {
            Value inStep = math.sub(k, math.mul(from, 2));
            Value channel = math.add(math.mul(step, kStepDepth), inStep);
            return conv.emitInputs(b, panel, tap, channel, half);
          },
          to);
      if (depth < kStepDepth)
        emitColumnParts(
            b, end, math.add(from, kStepPairs),
            [&](Value, int64_t) -> Value {
              return arith::ConstantOp::create(
                  b,
                  b.getZeroAttr(VectorType::get({conv.lanes}, b.getF32Type())));
            },
            to);
    };
    emitFor(b, range.firstStep, math.min(range.endStep, whole), 1,
            [&](Value step) { emitStep(step, kStepDepth); });
    if (tail)
      emitIf(b, math.less(whole, range.endStep),
             [&] { emitStep(whole, tail); });
    return SmallVector<Value>();
  });
}

/// What becomes of `rows` of the sums.
void ConvEmitter::Bf16x3Loops::emitBf16x3Rows(ImplicitLocOpBuilder &b,
                                              const Bf16x3Chunk &part,
                                              const Bf16x3Rows &at,
                                              int64_t rows) {
  IndexMath math(b);
  SmallVector<Value> accs;
  for (int64_t r = 0; r < rows; ++r)
    for (auto [c, tile] : llvm::enumerate(at.tiles)) {
      Tile one = tile;
      one.index.back() = math.add(tile.index.back(), r);
      Value sum = emitLoad(
          b, part.sums,
          {math.add(at.sum, r), math.constant(int64_t(c) * conv.lanes)},
          conv.lanes);
      accs.push_back(conv.emitOntoInit(b, one, sum));
    }
  conv.emitStores(b, at.tiles, accs, rows);
}

/// A row by multiply-adds, from inputs that parts would make wrong.
void ConvEmitter::Bf16x3Loops::emitFusedRow(ImplicitLocOpBuilder &b,
                                            const Bf16x3Chunk &part,
                                            const Bf16x3Panel &panel,
                                            const Bf16x3Rows &at) {
  IndexMath math(b);
  constexpr int64_t kRows = 1;
  auto loadWeight = [&](const Tap &tap, Value channel) {
    Value step = math.add(
        math.mul(math.div(channel, kStepDepth), conv.facts.countTaps()),
        tap.number);
    Value inStep = math.rem(channel, math.constant(kStepDepth));
    Value sum;
    for (int64_t p = 0; p < cpu::kBf16x2Terms; ++p) {
      Value number = memref::LoadOp::create(
          b, part.filters,
          ValueRange{at.block, step, math.constant(p), at.row, inStep});
      number = arith::ExtFOp::create(b, b.getF32Type(), number);
      sum = sum ? arith::AddFOp::create(b, sum, number) : number;
    }
    return sum;
  };
  auto sums = conv.emitTaps(
      b, panel.chunk, conv.emitInits(b, at.tiles, kRows),
      [&](const Tap &tap, ValueRange init) {
        return emitContractionLoop(
            b, conv.groupChannels, kRows, panel.chunk.getColumns(), init,
            [&](Value channel, int64_t) { return loadWeight(tap, channel); },
            [&](Value channel, int64_t c) {
              return conv.emitInputs(b, panel.chunk, tap, channel, c);
            });
      });
  conv.emitStores(b, at.tiles, sums, kRows);
}
