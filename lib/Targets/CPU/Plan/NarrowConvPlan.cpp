//===- NarrowConvPlan.cpp - How narrow convolutions are computed ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/NarrowConvPlan.h"
#include "MicroKernels/AmxMicroKernel.h"

#include <limits>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// What an open number of positions is taken for.
static constexpr int64_t kLikelyRows = 3136;

/// Rows of a register tile of windows in lines: positions of a line do not fill
/// blocks.
static constexpr int64_t kLineTileRows = 4;

NarrowConvFacts::NarrowConvFacts(NarrowConvOp op, TargetAttr target)
    : target(target), group(op.getGroup()), channels(op.getGroupChannels()),
      filters(op.getGroupFilters()), packing(op.getPacking()),
      depth(op.getDepth()), groups(op.getWeights().getType().getDimSize(1)),
      panels(llvm::divideCeil(op.getGroupFilters(), op.getPanelWidth())),
      op(op) {
  ArrayRef<int64_t> positions = op.getInit().getType().getShape().drop_back();
  if (!ShapedType::isDynamicShape(positions))
    rows = ShapedType::getNumElements(positions);
}

bool NarrowConvFacts::canBeInPlace() const {
  auto all = [](ArrayRef<int64_t> values, int64_t value) {
    return llvm::all_of(values, [&](int64_t v) { return v == value; });
  };
  NarrowConvOp conv = op;
  return depth == channels && all(conv.getStrides(), 1) &&
         all(conv.getPadsBegin(), 0) && all(conv.getPadsEnd(), 0);
}

bool NarrowConvFacts::fillsTilesInPlace() const {
  return depth % (kTileBytes / 4 * packing.getDepthGroup()) == 0;
}

bool NarrowConvFacts::canBeInLines() const {
  NarrowConvOp conv = op;
  constexpr int64_t kSpatialDims = 2;
  ArrayRef<int64_t> input = conv.getInput().getType().getShape(),
                    output = conv.getInit().getType().getShape();
  const int64_t bytes = channels * 32 / (8 * packing.getDepthGroup());
  return conv.getNumSpatialDims() == kSpatialDims && group == 1 &&
         llvm::all_of(conv.getStrides(), [](int64_t s) { return s == 1; }) &&
         conv.getDilations().back() == 1 && bytes % kTileBytes == 0 &&
         !ShapedType::isDynamicShape(input.drop_front()) &&
         !ShapedType::isDynamicShape(output.drop_front()) &&
         countOutputLines() > 0 && getLinePositions() >= kLineTileRows;
}

bool NarrowConvFacts::hasOneImage() const {
  NarrowConvOp conv = op;
  return conv.getInit().getType().getDimSize(0) == 1;
}

int64_t NarrowConvFacts::getPitch() const {
  NarrowConvOp conv = op;
  return getLinePositions() + conv.getKernelShape().back() - 1;
}

int64_t NarrowConvFacts::getLinePositions() const {
  NarrowConvOp conv = op;
  return conv.getInit().getType().getDimSize(2);
}

int64_t NarrowConvFacts::countOutputLines() const {
  NarrowConvOp conv = op;
  return conv.getInit().getType().getDimSize(1);
}

int64_t NarrowConvFacts::countChunkLines(int64_t chunkRows) const {
  return std::clamp<int64_t>(chunkRows / getLinePositions(), 1,
                             countOutputLines());
}

/// Positions whose lines are copied at once: a part of an image, so that
/// threads share it, in which blocks of tile registers go on from line to line.
static int64_t chooseLineChunk(const NarrowConvFacts &facts) {
  constexpr int64_t kFewestChunks = 4, kMostChunks = 8;
  const int64_t lines = facts.countOutputLines();
  int64_t best = lines, fewest = std::numeric_limits<int64_t>::max();
  for (int64_t chunks = kFewestChunks; chunks <= kMostChunks; ++chunks) {
    const int64_t size = llvm::divideCeil(lines, chunks);
    const int64_t positions =
        (size - 1) * facts.getPitch() + facts.getLinePositions();
    const int64_t blocks =
        llvm::divideCeil(lines, size) * llvm::divideCeil(positions, kBlockRows);
    if (blocks < fewest) {
      fewest = blocks;
      best = size;
    }
  }
  return best * facts.getLinePositions();
}

/// Rows that tiles of a plan cannot do without: those of a block of tile
/// registers, or of a register tile. Of windows in lines a chunk is whole
/// lines.
static int64_t getUnit(const MicroKernel &micro, int64_t tileRows) {
  return micro.getUnit() == MicroKernel::Unit::Tiles ? kBlockRows : tileRows;
}

namespace {
struct Tile {
  int64_t rows, columns, panels;
};
} // namespace

/// As many accumulators as registers leave, the more columns to a value of the
/// input the better.
static Tile chooseTile(const NarrowConvFacts &facts, const MicroKernel &micro) {
  const int64_t lanes = facts.target.getLanes();
  const bool isWide = facts.target.countVectorRegisters() >= 32;
  TileShape shape = TileShape::get(facts.target, kPanelWidth);
  if (micro.getUnit() == MicroKernel::Unit::Tiles)
    return {shape.rows, kPanelWidth, 1};
  if (!micro.isShort())
    return {shape.rows, shape.width, 1};
  if (!isWide || shape.width < kPanelWidth)
    return {6, std::min(shape.width, 2 * lanes), 1};
  // 24 sums of six rows and two panels, or of twelve rows and one.
  return facts.panels > 1 ? Tile{6, kPanelWidth, 2} : Tile{12, kPanelWidth, 1};
}

/// Positions whose windows are copied, and stay in the L2 cache while filters
/// pass: enough chunks for threads. Tile registers are sooner done with a
/// chunk.
static int64_t chooseChunk(const NarrowConvFacts &facts, bool usesTiles,
                           int64_t unit) {
  constexpr int64_t kMostRows = 512;
  const int64_t minChunks = usesTiles ? 8 : 16;
  const int64_t rows = facts.rows.value_or(kLikelyRows);
  const int64_t cached =
      facts.target.getL2Bytes() / 4 / std::max<int64_t>(facts.getRowBytes(), 1);
  const int64_t share = llvm::divideCeil(std::max<int64_t>(rows, 1), minChunks);
  const int64_t most = std::min({cached, share + unit - 1, kMostRows});
  return std::max(most / unit * unit, unit);
}

NarrowConvPlanAttr cpu::selectPlan(const NarrowConvFacts &facts) {
  const PackedElement element = facts.packing.getElement();
  const MicroKernel *micro =
      selectMicroKernel(element, facts.target, MicroKernel::Unit::Vectors);
  const int64_t rows = facts.rows.value_or(kLikelyRows);
  if (const MicroKernel *tiles =
          selectMicroKernel(element, facts.target, MicroKernel::Unit::Tiles);
      tiles && rows >= kTileRows && facts.getRowBytes() % kTileBytes == 0)
    micro = tiles;
  const bool usesTiles = micro->getUnit() == MicroKernel::Unit::Tiles;
  const bool inLines =
      usesTiles && !facts.canBeInPlace() && facts.canBeInLines();
  const bool inPlace = inLines || (facts.canBeInPlace() &&
                                   (!usesTiles || facts.fillsTilesInPlace()));
  Tile tile = chooseTile(facts, *micro);
  if (inLines)
    tile.rows = kLineTileRows;
  const int64_t unit =
      inLines ? facts.getLinePositions() : getUnit(*micro, tile.rows);
  int64_t chunk =
      inLines ? chooseLineChunk(facts) : chooseChunk(facts, usesTiles, unit);
  ConvSharing threads = ConvSharing::Panels;
  // Large weights come once if all positions are there, and tile registers wait
  // for smaller ones.
  const int64_t large = facts.target.getL2Bytes() / (usesTiles ? 8 : 4);
  if (facts.rows && (!inLines || facts.hasOneImage()) &&
      facts.getWeightBytes() >= large &&
      rows * facts.getRowBytes() <= facts.target.getL2Bytes() / 2) {
    threads = ConvSharing::Filters;
    chunk = llvm::alignTo(std::max<int64_t>(rows, 1), unit);
  }
  return NarrowConvPlanAttr::get(facts.getOp().getContext(), micro->getName(),
                                 tile.rows, tile.columns, tile.panels, chunk,
                                 inPlace, threads);
}

std::string cpu::whyNot(const NarrowConvFacts &facts, NarrowConvPlanAttr plan) {
  if (facts.depth == 0 || facts.filters == 0)
    return "it has no channels";
  const MicroKernel *micro = findMicroKernel(plan.getMicro());
  if (!micro || !micro->takes(facts.packing.getElement()) ||
      !micro->isSupported(facts.target))
    return "the machine has no micro-kernel '" + plan.getMicro().str() +
           "' for such numbers";
  const bool usesTiles = micro->getUnit() == MicroKernel::Unit::Tiles;
  const int64_t lanes = facts.target.getLanes(), rows = plan.getTileRows(),
                columns = plan.getTileColumns(), panels = plan.getPanels();
  constexpr int64_t kMostRows = 16;
  if (rows < 1 || rows > kMostRows)
    return "'tile_rows' must be 1 to " + std::to_string(kMostRows);
  if (usesTiles && kBlockRows % rows != 0)
    return "'tile_rows' must divide " + std::to_string(kBlockRows) +
           ", the rows of a block of tile registers";
  if (columns < std::min<int64_t>(lanes, kPanelWidth) ||
      kPanelWidth % columns != 0)
    return "'tile_columns' must divide a panel of " +
           std::to_string(kPanelWidth) + " and fill a vector";
  if (panels < 1 || panels > facts.panels ||
      (panels > 1 && (columns != kPanelWidth || usesTiles)))
    return "'panels' must be 1, or up to those that there are in tiles of "
           "whole "
           "panels";
  constexpr int64_t kMostSums = 64;
  if (rows * panels * (columns / lanes) > kMostSums)
    return "a tile has more than " + std::to_string(kMostSums) + " sums";
  const bool inLines = plan.getInPlace() && !facts.canBeInPlace();
  if (inLines && (!usesTiles || !facts.canBeInLines()))
    return "windows are no rows of the input: 'in_place' is for kernels of one "
           "tap without strides and pads, and with tile registers for those of "
           "images of known sizes without strides whose pixels fill such";
  if (inLines && rows > facts.getLinePositions())
    return "'tile_rows' must be at most the positions of a line, " +
           std::to_string(facts.getLinePositions());
  if (usesTiles &&
      (facts.getRowBytes() % kTileBytes != 0 ||
       (plan.getInPlace() && !inLines && !facts.fillsTilesInPlace())))
    return "rows do not fill tile registers";
  const int64_t unit =
      inLines ? facts.getLinePositions() : getUnit(*micro, rows);
  constexpr int64_t kMostChunk = int64_t(1) << 20;
  if (plan.getChunkRows() < unit || plan.getChunkRows() % unit != 0 ||
      plan.getChunkRows() > kMostChunk)
    return "'chunk_rows' must be a multiple of " + std::to_string(unit) +
           ", at most 2^20";
  if (plan.getThreads() == ConvSharing::Filters &&
      (!facts.rows || plan.getChunkRows() < *facts.rows ||
       (inLines && !facts.hasOneImage())))
    return "threads share filters only where a chunk has all positions";
  return "";
}
