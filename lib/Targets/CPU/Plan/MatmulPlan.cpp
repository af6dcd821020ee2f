//===- MatmulPlan.cpp - How matrix products are computed ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/MatmulPlan.h"

#include "MicroKernels/AmxMicroKernel.h"
#include "MicroKernels/Bf16x3Product.h"

#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

bool MatmulFacts::multipliesAtOnce() const {
  if (isOfBytes())
    return target.getInt8() >= Int8Product::Vnni;
  return !isOfBf16() || target.getBf16() != Bf16Product::Generic;
}

int64_t MatmulFacts::countTileSteps() const {
  return *depth / (kTileRows * packing.getDepthGroup());
}

/// Whether `plan.rows` are multiplied by parts, and how many at a time: the
/// parts of these rows have to stay in the L2 cache while all panels pass, each
/// of which is split once for them.
static void planBf16x3(const MatmulFacts &facts, MatmulPlan &plan) {
  // The rows' parts must serve several panels.
  constexpr int64_t kMinColumns = 8 * kBlockColumns, kMaxRows = 256;
  auto atLeast = [](std::optional<int64_t> size, int64_t least) {
    return size.value_or(least) >= least;
  };
  plan.usesBf16x3 = facts.target.getF32() == cpu::F32Product::AmxBf16x6 &&
                    facts.packing.getDepthGroup() == 1 && !facts.hasScales() &&
                    facts.target.getVectorBits() >= 512 &&
                    facts.packing.getPanel() == kBlockColumns &&
                    plan.rows >= kBlockRows && atLeast(facts.n, kMinColumns) &&
                    atLeast(facts.k, kStepDepth);
  if (!plan.usesBf16x3)
    return;
  auto share = [](int64_t whole, int64_t most, int64_t unit) {
    return llvm::alignTo(llvm::divideCeil(whole, llvm::divideCeil(whole, most)),
                         unit);
  };
  plan.partRows = share(facts.m.value_or(kMaxRows), kMaxRows, kBlockRows);
  constexpr int64_t kBf16x3Bytes = kBf16x3Terms * 2;
  int64_t most =
      std::max<int64_t>(llvm::alignDown(facts.target.getL2Bytes() / 2 /
                                            (plan.partRows * kBf16x3Bytes),
                                        kStepDepth),
                        kStepDepth);
  plan.partDepth = share(facts.k.value_or(most), most, kStepDepth);
  // Of some panels in a row all but one are split on the side, but they must
  // suffice for all threads.
  constexpr int64_t kMaxPanels = 4, kMinGroups = 6;
  plan.partPanels = std::clamp<int64_t>(
      facts.panels.value_or(kMaxPanels * kMinGroups) / kMinGroups, 1,
      kMaxPanels);
}

/// Of narrow vectors few rows take more, so that their sums keep the
/// multipliers busy and panels are read as they lie.
static void widenFewRows(const MatmulFacts &facts, MatmulPlan &plan) {
  constexpr int64_t kMaxRows = 2;
  std::optional<int64_t> rows = facts.m;
  if (facts.target.getVectorBits() >= 512 ||
      facts.packing.getDepthGroup() != 1 || facts.hasScales() || !rows ||
      *rows <= 0 || *rows > kMaxRows)
    return;
  int64_t registers = facts.target.countVectorRegisters();
  int64_t sums = registers * 3 / 4,
          columns = sums / *rows * facts.target.getVectorBits() / 32;
  while (2 * plan.shape.width <= columns &&
         facts.packing.getPanel() % (2 * plan.shape.width) == 0)
    plan.shape.width *= 2;
  plan.shape.rows = std::max<int64_t>(1, columns / plan.shape.width) * *rows;
}

/// The tile for `plan.rows`.
static void planTiles(const MatmulFacts &facts, MatmulPlan &plan) {
  plan.shape = TileShape::get(facts.target, facts.packing.getPanel());
  plan.panelsPerTile = 1;
  // A row of a panel is read as a whole where its numbers straddle registers.
  if (facts.packing.isCompressed())
    plan.shape = {std::max<int64_t>(1, plan.shape.rows * plan.shape.width /
                                           facts.packing.getPanel()),
                  facts.packing.getPanel()};
  std::optional<int64_t> rows = facts.m;
  widenFewRows(facts, plan);
  bool isPanelWide = plan.shape.width == facts.packing.getPanel();
  plan.readsOneStream =
      rows == 1 && isPanelWide && facts.target.getVectorBits() < 512 &&
      facts.packing.getDepthGroup() == 1 && !facts.hasScales();
  // Two panels of triples are as many streams as memory is read best by.
  int64_t mostPanels = plan.readsOneStream                                  ? 1
                       : (facts.packing.getElement() == PackedElement::W21) ? 2
                                                                            : 4;
  if (rows && *rows <= 4 && *rows > 0 && isPanelWide)
    plan.panelsPerTile =
        std::clamp<int64_t>(plan.shape.rows / *rows, 1, mostPanels);
  bool hasTiles = facts.isOfBytes()
                      ? facts.target.getInt8() == cpu::Int8Product::Amx
                      : facts.target.getBf16() == cpu::Bf16Product::Amx;
  plan.usesTiles = facts.packing.getDepthGroup() > 1 && hasTiles &&
                   isPanelWide && facts.packing.getPanel() == 2 * kTileRows &&
                   facts.countTileSteps() > 0 && plan.rows >= kTileRows;
  // Six rows of four registers need the fewest instructions for each
  // multiply-add that 32 registers allow (34 for 24; 26 for 16 with eight rows
  // of two), which counts where two threads share a core. These panels and the
  // next ones have to stay in the L2 cache.
  constexpr int64_t kRows = MatmulPlan::kUnevenRows, kPanels = 2;
  int64_t panelBytes = facts.k.value_or(0) * facts.packing.getPanel() *
                       int64_t(sizeof(float)); // any group is as large
  // Scales and offsets take the registers of more rows or columns; those that
  // one row leaves over take the other half of a panel.
  if (facts.hasScales()) {
    if (rows && *rows == 1 && facts.target.getVectorBits() == 256)
      plan.shape.width = facts.packing.getPanel();
    return;
  }
  if (facts.target.getVectorBits() >= 512 && isPanelWide && !plan.usesTiles &&
      !plan.usesBf16x3 && facts.multipliesAtOnce() &&
      plan.rows > MatmulPlan::kFewRows &&
      facts.panels.value_or(kPanels) >= kPanels &&
      2 * kPanels * panelBytes <= facts.target.getL2Bytes() / 2) {
    plan.shape.rows = kRows;
    plan.panelsPerTile = kPanels;
  } else if (facts.target.getVectorBits() == 256 &&
             facts.packing.getDepthGroup() == 1 &&
             plan.rows > plan.shape.rows) {
    // Sixteen registers have room for six rows of two, with one to spare.
    plan.shape.rows = kRows;
  }
}

/// A chunk multiplies some rows by the panels of a tile. The more rows, the
/// longer these are used once they are there; but chunks must suffice for all
/// threads, and the rows, which the next panels need again, must stay in the L2
/// cache.
static void planChunks(const MatmulFacts &facts, MatmulPlan &plan) {
  constexpr int64_t kWork = 256 * 1024; // multiplications worth a hand-over
  constexpr int64_t kMinChunks = 32, kMaxTiles = 64;
  auto known = [](std::optional<int64_t> size, int64_t otherwise) {
    return std::max<int64_t>(size.value_or(otherwise), 1);
  };
  int64_t depth = known(facts.k, 1024);
  int64_t tiles = llvm::divideCeil(plan.rows, plan.shape.rows);
  int64_t groups =
      llvm::divideCeil(known(facts.panels, 16), plan.panelsPerTile);
  int64_t tileWidth = plan.panelsPerTile * facts.packing.getPanel();
  int64_t least =
      std::max<int64_t>(1, kWork / (depth * plan.shape.rows * tileWidth));
  int64_t split = llvm::divideCeil(kMinChunks, groups);
  int64_t wanted = llvm::divideCeil(tiles, split);
  int64_t rowBytes = depth * sizeof(float); // any group is as large
  int64_t cached = std::max(facts.target.getL2Bytes() / 2 / rowBytes,
                            MatmulPlan::kLikelyRows) /
                   plan.shape.rows;
  plan.rowsFirst = cached < tiles;
  plan.chunkTiles =
      std::min({std::max(std::min(wanted, cached), least), tiles, kMaxTiles});
  // Few rows are done with a panel when the next is there.
  constexpr int64_t kMinPanels = 8; // for all threads
  if (facts.comesFromMemory && plan.rows <= MatmulPlan::kFewRows &&
      groups >= kMinPanels)
    plan.chunkTiles = tiles;
  if (plan.usesTiles)
    plan.chunkTiles =
        llvm::alignTo(plan.chunkTiles, kBlockRows / plan.shape.rows);
}

int64_t cpu::getMinStrassenRows(const TileShape &shape) {
  constexpr int64_t kMinTiles = 8;
  return std::max(cpu::kMinStrassenRows, kMinTiles * shape.rows);
}

/// Whether `plan.rows` go by Strassen's algorithm.
static void planStrassen(const MatmulFacts &facts, MatmulPlan &plan) {
  plan.usesStrassen = facts.strassen && !plan.usesBf16x3 &&
                      facts.target.getVectorBits() >= 256 &&
                      plan.rows >= getMinStrassenRows(plan.shape);
  if (!plan.usesStrassen)
    return;
  plan.strassen = {};
  plan.strassen.depth = *facts.strassen;
  plan.strassen.pairs = *facts.panels / 2;
  // Two panels to a tile as long as there are no odd ones.
  if (plan.panelsPerTile > 1 && plan.strassen.pairs % plan.panelsPerTile != 0) {
    plan.panelsPerTile = 1;
    plan.shape = TileShape::get(facts.target, facts.packing.getPanel());
  }
  plan.strassen.pieces = facts.packing.getPanel() / plan.shape.width;
  // Short enough that few lines are asked for at a time.
  constexpr int64_t kLongestPeriod = 16;
  plan.strassen.period = std::gcd(plan.strassen.half(), kLongestPeriod);
}

MatmulPlan cpu::planMatmul(const MatmulFacts &facts, int64_t rows,
                           bool isDirect) {
  MatmulPlan plan;
  plan.rows = std::max<int64_t>(rows, 1);
  if (!isDirect)
    planBf16x3(facts, plan);
  planTiles(facts, plan);
  if (!isDirect)
    planStrassen(facts, plan);
  planChunks(facts, plan);
  return plan;
}
