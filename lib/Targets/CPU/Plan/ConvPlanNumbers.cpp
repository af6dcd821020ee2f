//===- ConvPlanNumbers.cpp - Tiles and chunks of convolutions -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numbers of a form's loops, chosen where a plan leaves them open, and
// which of those that are given fit.
//
//===----------------------------------------------------------------------===//

#include "Plan/ConvPlan.h"

#include "MicroKernels/AmxMicroKernel.h"
#include "Plan/WinogradTiles.h"

#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

TileShape ConvFacts::getTileShape() const {
  TileShape shape = TileShape::get(target, kPanelWidth);
  shape.rows = std::gcd(shape.rows, getOp().getBlockRows());
  return shape;
}

bool ConvFacts::readsShifted(bool polyphase) const {
  if (polyphase)
    return true;
  ConvOp op = getOp();
  for (auto [d, stride] : llvm::enumerate(op.getStrides())) {
    if (stride != 1)
      return false;
    // The size in equals the size out, or does not matter.
    int64_t pads = op.getPadsBegin()[d] + op.getPadsEnd()[d];
    if (d > 0 && pads != op.getDilations()[d] * (op.getKernelShape()[d] - 1))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Panels of positions
//===----------------------------------------------------------------------===//

/// Vectors side by side in a tile. Three need fewer instructions for each
/// multiply-add than two: beside eight rows of 32 registers 35 for 24, two 26
/// for 16; beside four of 16 registers 19 for 12 and 14 for 8, which are also
/// too few sums to keep two multipliers busy. Where memory has to take the
/// results of short loops, two of 512 bits are faster.
static int64_t chooseColumns(const ConvFacts &facts, ConvForm form) {
  const int64_t lanes = facts.target.getLanes();
  if (form != ConvForm::Im2col)
    return lanes >= 16 ? 3 : 2;
  if (lanes < 8)
    return 2;
  constexpr int64_t kFewValues = 64;
  auto results = cast<ShapedType>(facts.getOp().getInit().getType());
  bool isMuch = results.hasStaticShape() &&
                results.getNumElements() * int64_t(sizeof(float)) >
                    facts.target.getL2Bytes() / 2;
  bool isShort = isKnown(facts.depth) && facts.depth <= kFewValues;
  return lanes >= 16 && isMuch && isShort ? 2 : 3;
}

/// Tiles of output channels that a chunk computes: all of them, so that a
/// panel is packed once, unless panels are too few to occupy the threads.
static int64_t chooseChunkTiles(const ConvFacts &facts, int64_t rows,
                                int64_t columns) {
  constexpr int64_t kMinChannels = 128;
  if (!isKnown(facts.filters))
    return 16;
  int64_t tiles = llvm::divideCeil(facts.filters, rows);
  if (!isKnown(facts.positions))
    return std::max<int64_t>(1, tiles);
  int64_t panels =
      llvm::divideCeil(facts.positions, columns * facts.target.getLanes());
  int64_t images = isKnown(facts.images) ? facts.images : 1;
  int64_t chunks =
      std::max<int64_t>(1, images * facts.getOp().getGroup() * panels);
  int64_t split = llvm::divideCeil(kMinConvChunks, chunks);
  return std::clamp<int64_t>(llvm::divideCeil(tiles, split),
                             std::min(tiles, kMinChannels / rows),
                             std::max<int64_t>(1, tiles));
}

/// Whether each chunk of so many tiles begins with a whole one.
static bool beginsWithWholeTiles(const ConvFacts &facts, int64_t rows,
                                 int64_t chunkTiles) {
  int64_t tiles = llvm::divideCeil(facts.filters, rows);
  return (tiles - 1) / chunkTiles * chunkTiles < facts.filters / rows;
}

/// How the inputs of panels come to the tiles.
static ConvPacking choosePacking(const ConvFacts &facts, bool isShift,
                                 int64_t rows, int64_t chunkTiles) {
  const bool hasManyTaps = facts.countTaps() != 1;
  // Gathers, and masks where registers are few, are better done once for all.
  if (hasManyTaps && (!isShift || facts.target.getLanes() < 16))
    return ConvPacking::Before;
  // Few rows of a small picture are in few pages: packing them gains nothing.
  constexpr int64_t kSmallPicture = 256, kFewValues = 128;
  if (!hasManyTaps && isShift && isKnown(facts.positions) &&
      facts.positions <= kSmallPicture && isKnown(facts.depth) &&
      facts.depth <= kFewValues)
    return ConvPacking::Never;
  if (!isKnown(facts.filters))
    return ConvPacking::Before;
  if (hasManyTaps && facts.filters == rows)
    return ConvPacking::Never; // there is one tile to read them
  return beginsWithWholeTiles(facts, rows, chunkTiles)
             ? ConvPacking::InFirstTile
             : ConvPacking::Before;
}

/// Why a panel cannot come to its tiles so.
static std::string whyNotPacking(const ConvFacts &facts, ConvPlanAttr plan) {
  const ConvPacking packing = plan.getPacking();
  if (packing == ConvPacking::Before)
    return "";
  const bool hasManyTaps = facts.countTaps() != 1;
  const bool isShift = facts.readsShifted(plan.getPolyphase());
  if (hasManyTaps && (!isShift || facts.target.getLanes() < 16))
    return "its inputs are packed before its tiles, for they are gathered or "
           "masks take registers";
  if (packing == ConvPacking::Never) {
    if (!isShift)
      return "its inputs are packed, for they are gathered";
    if (hasManyTaps && facts.filters != plan.getTileRows())
      return "its inputs are packed, for several tiles read them";
    return "";
  }
  if (!isKnown(facts.filters) ||
      !beginsWithWholeTiles(facts, plan.getTileRows(), plan.getChunkTiles()))
    return "its inputs are packed before its tiles, for a chunk may have no "
           "whole one";
  return "";
}

//===----------------------------------------------------------------------===//
// Winograd's algorithm
//===----------------------------------------------------------------------===//

/// Vectors of tiles in a panel. Panels of one vector load a weight for each
/// multiply-add, and read all weights twice as often: with few lanes that takes
/// longer (1.4 to 1.8 times as long) than to read inputs from further away.
static int64_t chooseWinogradColumns(const ConvFacts &facts) {
  const int64_t lanes = facts.target.getLanes();
  const int64_t width = std::max(facts.getTileShape().width, lanes);
  const Winograd &winograd = *facts.getOp().getAlgorithm();
  const int64_t channels = isKnown(facts.channels) ? facts.channels : 0;
  const int64_t panelBytes = channels * winograd.products() * width * 4;
  const bool isOne =
      isKnown(facts.out[0]) && isKnown(facts.out[1]) &&
      WinogradGroups::get(winograd, lanes, facts.out[0], facts.out[1]).count <=
          1;
  if (isOne || (lanes >= 16 && panelBytes > facts.target.getBytesOfPanel()))
    return 1;
  return width / lanes;
}

/// Filters of a tile of products whose rows have `columns` vectors of tiles of
/// the picture, and those that go through a tap before the next: as many as
/// there are registers for their sums, unless too many are none.
static std::pair<int64_t, int64_t>
chooseWinogradRows(const ConvFacts &facts, int64_t columns, int64_t tileRows) {
  ConvOp op = facts.getOp();
  const int64_t lanes = facts.target.getLanes();
  if (op.getFilters().getInLanes())
    return {op.getBlockRows(), op.getBlockRows()};
  const int64_t least = facts.getTileShape().rows;
  if (!isKnown(facts.filters))
    return {least, least};
  if (lanes == 8 && op.getBlockRows() == kWinogradRowsOf8Lanes) {
    // Inputs of a tap that are in a small first cache are used by some tiles,
    // by fewer where they fill half of it.
    constexpr int64_t kSums = 12, kBlocks = 4, kManyChannels = 256;
    int64_t rows = kSums / columns;
    if (tileRows == 0)
      tileRows =
          wastesFewRows(facts.filters, rows) ? rows : kWinogradRowsOf8Lanes;
    bool hasManyChannels =
        isKnown(facts.channels) && facts.channels >= kManyChannels;
    int64_t blocks = hasManyChannels && tileRows == kWinogradRowsOf8Lanes
                         ? kBlocks - 1
                         : kBlocks;
    return {tileRows, blocks * kWinogradRowsOf8Lanes};
  }
  if (tileRows == 0) {
    int64_t rows = 2 * least;
    bool fits = llvm::alignTo(facts.filters, rows) ==
                llvm::alignTo(facts.filters, least);
    tileRows = lanes >= 16 && columns == 1 && fits ? rows : least;
  }
  return {tileRows, tileRows};
}

/// With many panels each is transformed where it is used. With few, all threads
/// transform first, then all multiply.
static ConvSharing chooseWinogradSharing(const ConvFacts &facts,
                                         int64_t columns) {
  int64_t panels = kMinConvChunks;
  if (isKnown(facts.out[0]) && isKnown(facts.out[1]))
    panels = llvm::divideCeil(WinogradGroups::get(*facts.getOp().getAlgorithm(),
                                                  facts.target.getLanes(),
                                                  facts.out[0], facts.out[1])
                                  .count,
                              columns);
  const int64_t images = isKnown(facts.images) ? facts.images : 1;
  return images * panels >= kMinConvChunks ? ConvSharing::Panels
                                           : ConvSharing::Filters;
}

static std::string whyNotWinograd(const ConvFacts &facts, ConvPlanAttr plan) {
  ConvOp op = facts.getOp();
  const int64_t lanes = facts.target.getLanes(), columns = plan.getColumns();
  const int64_t most = std::max(facts.getTileShape().width, lanes) / lanes;
  if (columns != 1 && columns != most)
    return "its panels have one or " + std::to_string(most) + " vectors";
  const int64_t rows = plan.getTileRows(), group = plan.getGroupRows();
  if (op.getFilters().getInLanes()) {
    if (rows != op.getBlockRows() || group != rows)
      return "its tiles have all filters of a block, which lie in lanes";
    return "";
  }
  const int64_t least = facts.getTileShape().rows;
  if (lanes == 8 && op.getBlockRows() == kWinogradRowsOf8Lanes &&
      isKnown(facts.filters)) {
    constexpr int64_t kMaxGroup = 96;
    if ((rows != kWinogradRowsOf8Lanes &&
         (rows != 2 * kWinogradRowsOf8Lanes || columns != 1)) ||
        group < rows || group % rows || group > kMaxGroup)
      return "its tiles have 6 filters, or 12 of one vector, and its groups a "
             "multiple of them, 96 at most";
    return "";
  }
  bool isDouble =
      rows == 2 * least && columns == 1 && isKnown(facts.filters) &&
      llvm::alignTo(facts.filters, rows) == llvm::alignTo(facts.filters, least);
  if ((rows != least && !isDouble) || group != rows)
    return "its tiles have " + std::to_string(least) +
           " filters, or twice as many of one vector where they leave none "
           "empty, and its groups as many";
  return "";
}

//===----------------------------------------------------------------------===//
// Channels in lanes, and sums of bf16
//===----------------------------------------------------------------------===//

/// Two blocks at once have tiles of four registers in a row, which need fewer
/// instructions for each multiply-add than those of two. A single position
/// takes as many as it needs to keep the multipliers busy.
static int64_t chooseLaneBlocks(const ConvFacts &facts) {
  ConvOp op = facts.getOp();
  if (!isKnown(facts.filters) || facts.filters <= op.getBlockRows())
    return 1;
  int64_t registers = op.getBlockRows() / facts.target.getLanes();
  int64_t positions = std::max<int64_t>(facts.positions, 1);
  int64_t needed = kMinConvSums / (positions * registers);
  return std::max<int64_t>(needed, facts.target.getLanes() >= 16 ? 2 : 1);
}

/// Steps of 32 channels of filters that are sums of bf16.
static int64_t countChannelSteps(const ConvFacts &facts) {
  return facts.getOp().getWeights().getType().getDimSize(2) / facts.countTaps();
}

/// Bytes of the inputs of a panel and a step of channels, split.
static int64_t getStepBytes(const ConvFacts &facts) {
  return facts.countTaps() * kStepDepth * kBlockColumns * kBf16x3Terms * 2;
}

static ConvPlanAttr completeBf16x3(const ConvFacts &facts, ConvPlanAttr plan) {
  ConvOp op = facts.getOp();
  auto weights = cast<ShapedType>(op.getWeights().getType());
  const int64_t l2 = facts.target.getL2Bytes();
  const int64_t images = isKnown(facts.images) ? facts.images : 1;
  const int64_t allPanels = llvm::divideCeil(facts.positions, kBlockColumns);
  // Filters that do not stay in the L2 cache are better read by one thread, and
  // once, though each thread has to split all inputs then. Where there are many
  // that costs little, and results stay with who computes other channels.
  constexpr int64_t kManyBlocks = 8;
  int64_t weightBytes = weights.getNumElements() / op.getGroup() * 2;
  int64_t inputBytes = images * facts.positions * facts.depth * 4;
  ConvSharing threads = plan.getThreads();
  if (threads == ConvSharing::Chosen)
    threads = weights.getDimSize(1) >= kManyBlocks ||
                      (weightBytes > l2 / 8 && 2 * weightBytes > inputBytes)
                  ? ConvSharing::Filters
                  : ConvSharing::Panels;
  // Filters pass through the L2 cache once for each chunk.
  constexpr int64_t kMaxPanels = 8;
  int64_t most =
      std::clamp<int64_t>(l2 / 2 / getStepBytes(facts), 1, kMaxPanels);
  if (threads == ConvSharing::Panels)
    most = std::clamp<int64_t>(
        images * op.getGroup() * allPanels / kMinConvChunks, 1, most);
  int64_t panels = plan.getPanels();
  if (!panels)
    panels = llvm::divideCeil(allPanels, llvm::divideCeil(allPanels, most));
  int64_t steps = countChannelSteps(facts), rangeSteps = plan.getRangeSteps();
  if (!rangeSteps) {
    int64_t ranges = std::min<int64_t>(
        llvm::divideCeil(panels * steps * getStepBytes(facts), l2 / 2), steps);
    rangeSteps = llvm::divideCeil(steps, ranges);
  }
  int64_t rows =
      plan.getTileRows() ? plan.getTileRows() : facts.getTileShape().rows;
  return ConvPlanAttr::get(plan.getContext(), plan.getForm(),
                           plan.getPolyphase(), rows, 0, 0, ConvPacking::Chosen,
                           0, threads, panels, rangeSteps);
}

//===----------------------------------------------------------------------===//
// All forms
//===----------------------------------------------------------------------===//

ConvPlanAttr cpu::completePlan(const ConvFacts &facts, ConvPlanAttr plan) {
  auto get = [&](int64_t rows, int64_t columns, int64_t chunkTiles = 0,
                 ConvPacking packing = ConvPacking::Chosen, int64_t group = 0,
                 ConvSharing threads = ConvSharing::Chosen) {
    return ConvPlanAttr::get(plan.getContext(), plan.getForm(),
                             plan.getPolyphase(), rows, columns, chunkTiles,
                             packing, group, threads, plan.getPanels(),
                             plan.getRangeSteps());
  };
  auto given = [](int64_t number, int64_t otherwise) {
    return number ? number : otherwise;
  };
  switch (plan.getForm()) {
  case ConvForm::Depthwise:
    return plan;
  case ConvForm::OutputChannels:
    return get(plan.getTileRows(),
               given(plan.getColumns(), chooseLaneBlocks(facts)),
               plan.getChunkTiles(), plan.getPacking(), plan.getGroupRows(),
               plan.getThreads());
  case ConvForm::Bf16x3:
    return facts.hasSizesToSplit() ? completeBf16x3(facts, plan) : plan;
  case ConvForm::Winograd: {
    int64_t columns = given(plan.getColumns(), chooseWinogradColumns(facts));
    auto [rows, group] = chooseWinogradRows(
        facts, std::clamp<int64_t>(columns, 1, 2), plan.getTileRows());
    ConvSharing threads = plan.getThreads() == ConvSharing::Chosen
                              ? chooseWinogradSharing(facts, columns)
                              : plan.getThreads();
    return get(given(plan.getTileRows(), rows), columns, plan.getChunkTiles(),
               plan.getPacking(), given(plan.getGroupRows(), group), threads);
  }
  case ConvForm::RowBuffer:
  case ConvForm::Im2col:
    break;
  }
  int64_t rows = given(plan.getTileRows(), facts.getTileShape().rows);
  int64_t columns =
      given(plan.getColumns(), chooseColumns(facts, plan.getForm()));
  if (plan.getForm() == ConvForm::RowBuffer || rows < 1 || columns < 1)
    return get(rows, columns, plan.getChunkTiles(), plan.getPacking(),
               plan.getGroupRows(), plan.getThreads());
  int64_t tiles =
      given(plan.getChunkTiles(), chooseChunkTiles(facts, rows, columns));
  ConvPacking packing = plan.getPacking();
  if (packing == ConvPacking::Chosen)
    packing = choosePacking(facts, facts.readsShifted(plan.getPolyphase()),
                            rows, std::max<int64_t>(tiles, 1));
  return get(rows, columns, tiles, packing, plan.getGroupRows(),
             plan.getThreads());
}

/// Numbers that a form does not have, as the names of the first.
static StringRef findForeignNumber(ConvPlanAttr plan) {
  const ConvForm form = plan.getForm();
  const bool isIm2col = form == ConvForm::Im2col;
  const bool isWinograd = form == ConvForm::Winograd;
  const bool isBf16x3 = form == ConvForm::Bf16x3;
  const bool isDepthwise = form == ConvForm::Depthwise;
  if (plan.getTileRows() && (isDepthwise || form == ConvForm::OutputChannels))
    return "tile_rows";
  if (plan.getColumns() && (isDepthwise || isBf16x3))
    return "columns";
  if (plan.getChunkTiles() && !isIm2col)
    return "chunk_tiles";
  if (plan.getPacking() != ConvPacking::Chosen && !isIm2col)
    return "packing";
  if (plan.getGroupRows() && !isWinograd)
    return "group_rows";
  if (plan.getThreads() != ConvSharing::Chosen && !isWinograd && !isBf16x3)
    return "threads";
  if (plan.getPanels() && !isBf16x3)
    return "panels";
  if (plan.getRangeSteps() && !isBf16x3)
    return "range_steps";
  return "";
}

std::string cpu::whyNotNumbers(const ConvFacts &facts, ConvPlanAttr given) {
  if (StringRef name = findForeignNumber(given); !name.empty())
    return ("'" + name + "' is not for '" + stringifyConvForm(given.getForm()) +
            "'")
        .str();
  constexpr int64_t kMaxTiles = 1 << 16;
  for (int64_t number :
       {given.getTileRows(), given.getColumns(), given.getChunkTiles(),
        given.getGroupRows(), given.getPanels(), given.getRangeSteps()})
    if (number < 0 || number > kMaxTiles)
      return "a number is 0, for one that is chosen, to " +
             std::to_string(kMaxTiles);
  ConvPlanAttr plan = completePlan(facts, given);
  const int64_t rows = plan.getTileRows(), columns = plan.getColumns();
  auto isWithin = [](int64_t value, int64_t most) {
    return value >= 1 && value <= most;
  };
  const int64_t blockRows = facts.getOp().getBlockRows();
  switch (plan.getForm()) {
  case ConvForm::Depthwise:
    return "";
  case ConvForm::OutputChannels: {
    constexpr int64_t kMaxBlocks = 8;
    if (!isWithin(columns, kMaxBlocks) ||
        (columns > 1 && isKnown(facts.filters) && facts.filters <= blockRows))
      return "its 'columns' are 1 to 8 blocks of filters, 1 where there is one";
    return "";
  }
  case ConvForm::Winograd:
    return whyNotWinograd(facts, plan);
  case ConvForm::Bf16x3: {
    constexpr int64_t kMaxBytes = 64 << 20;
    const int64_t steps = countChannelSteps(facts);
    if (!isWithin(rows, 16) || kTileRows % rows)
      return "its tiles have 1, 2, 4, 8 or 16 filters";
    if (!isWithin(plan.getPanels(), kMaxTiles) ||
        !isWithin(plan.getRangeSteps(), steps) ||
        plan.getPanels() * plan.getRangeSteps() * getStepBytes(facts) >
            kMaxBytes)
      return "its 'range_steps' are 1 to " + std::to_string(steps) +
             ", and those of 'panels' have at most 64 MiB";
    return "";
  }
  case ConvForm::RowBuffer:
  case ConvForm::Im2col:
    break;
  }
  constexpr int64_t kMaxFilters = 16;
  if (!isWithin(rows, kMaxFilters) || blockRows % rows)
    return "its tiles have filters whose number divides " +
           std::to_string(blockRows) + ", 16 at most";
  const int64_t registers = 2 * facts.target.countVectorRegisters();
  if (!isWithin(columns, registers) || rows * columns > registers)
    return "a tile takes one to " + std::to_string(registers) +
           " vector registers of sums";
  if (plan.getForm() == ConvForm::RowBuffer)
    return "";
  if (!isWithin(plan.getChunkTiles(), kMaxTiles))
    return "'chunk_tiles' is 1 to " + std::to_string(kMaxTiles);
  return whyNotPacking(facts, plan);
}
