//===- MatmulPlan.cpp - Tiles and chunks of a matrix product --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Whether one instruction multiplies and adds.
bool MatmulEmitter::multipliesAtOnce() {
  if (depthGroup == 1)
    return true;
  return isOfBytes() ? target.getInt8() >= cpu::Int8Product::Vnni
                     : target.getBf16() != cpu::Bf16Product::Generic;
}

/// Of narrow vectors few rows take more, so that their sums keep the
/// multipliers busy and panels are read as they lie.
void MatmulEmitter::widenFewRows() {
  constexpr int64_t kMaxRows = 2;
  std::optional<int64_t> rows = IndexMath::known(m);
  if (target.getVectorBits() >= 512 || depthGroup != 1 || op.getScales() ||
      !rows || *rows <= 0 || *rows > kMaxRows)
    return;
  int64_t registers = target.countVectorRegisters();
  int64_t sums = registers * 3 / 4,
          columns = sums / *rows * target.getVectorBits() / 32;
  while (2 * shape.width <= columns &&
         op.getPanelWidth() % (2 * shape.width) == 0)
    shape.width *= 2;
  shape.rows = std::max<int64_t>(1, columns / shape.width) * *rows;
}

/// The tile for `plannedRows`.
void MatmulEmitter::planTiles() {
  shape = TileShape::get(target, op.getPanelWidth());
  panelsPerTile = 1;
  // A row of a panel is read as a whole where its numbers straddle registers.
  if (op.isCompressed())
    shape = {
        std::max<int64_t>(1, shape.rows * shape.width / op.getPanelWidth()),
        op.getPanelWidth()};
  std::optional<int64_t> rows = IndexMath::known(m);
  widenFewRows();
  bool isPanelWide = shape.width == op.getPanelWidth();
  readsOneStream = rows == 1 && isPanelWide && target.getVectorBits() < 512 &&
                   depthGroup == 1 && !op.getScales();
  // Two panels of triples are as many streams as memory is read best by.
  int64_t mostPanels = readsOneStream ? 1 : op.isW21() ? 2 : 4;
  if (rows && *rows <= 4 && *rows > 0 && isPanelWide)
    panelsPerTile = std::clamp<int64_t>(shape.rows / *rows, 1, mostPanels);
  bool hasTiles = isOfBytes() ? target.getInt8() == cpu::Int8Product::Amx
                              : target.getBf16() == cpu::Bf16Product::Amx;
  usesTiles = depthGroup > 1 && hasTiles && isPanelWide &&
              op.getPanelWidth() == 2 * kTileRows && countTileSteps() > 0 &&
              plannedRows >= kTileRows;
  // Six rows of four registers need the fewest instructions for each
  // multiply-add that 32 registers allow (34 for 24; 26 for 16 with eight rows
  // of two), which counts where two threads share a core. These panels and the
  // next ones have to stay in the L2 cache.
  constexpr int64_t kRows = kUnevenRows, kPanels = 2;
  int64_t panelBytes = IndexMath::known(k).value_or(0) * op.getPanelWidth() *
                       int64_t(sizeof(float)); // any group is as large
  // Scales and offsets take the registers of more rows or columns; those that
  // one row leaves over take the other half of a panel.
  if (op.getScales()) {
    if (rows && *rows == 1 && target.getVectorBits() == 256)
      shape.width = op.getPanelWidth();
    return;
  }
  if (target.getVectorBits() >= 512 && isPanelWide && !usesTiles &&
      !usesBf16x3 && multipliesAtOnce() && plannedRows > kFewRows &&
      IndexMath::known(panelCount).value_or(kPanels) >= kPanels &&
      2 * kPanels * panelBytes <= target.getL2Bytes() / 2) {
    shape.rows = kRows;
    panelsPerTile = kPanels;
  } else if (target.getVectorBits() == 256 && depthGroup == 1 &&
             plannedRows > shape.rows) {
    // Sixteen registers have room for six rows of two, with one to spare.
    shape.rows = kRows;
  }
}

/// A chunk multiplies some rows by the panels of a tile. The more rows, the
/// longer these are used once they are there; but chunks must suffice for all
/// threads, and the rows, which the next panels need again, must stay in the L2
/// cache.
void MatmulEmitter::planChunks() {
  constexpr int64_t kWork = 256 * 1024; // multiplications worth a hand-over
  constexpr int64_t kMinChunks = 32, kMaxTiles = 64;
  auto known = [](Value size, int64_t otherwise) {
    return std::max<int64_t>(IndexMath::known(size).value_or(otherwise), 1);
  };
  int64_t depth = known(k, 1024);
  int64_t tiles = llvm::divideCeil(plannedRows, shape.rows);
  int64_t groups = llvm::divideCeil(known(panelCount, 16), panelsPerTile);
  int64_t tileWidth = panelsPerTile * op.getPanelWidth();
  int64_t least =
      std::max<int64_t>(1, kWork / (depth * shape.rows * tileWidth));
  int64_t split = llvm::divideCeil(kMinChunks, groups);
  int64_t wanted = llvm::divideCeil(tiles, split);
  int64_t rowBytes = depth * sizeof(float); // any group is as large
  int64_t cached =
      std::max(target.getL2Bytes() / 2 / rowBytes, kLikelyRows) / shape.rows;
  rowsFirst = cached < tiles;
  chunkTiles =
      std::min({std::max(std::min(wanted, cached), least), tiles, kMaxTiles});
  // Few rows are done with a panel when the next is there.
  constexpr int64_t kMinPanels = 8; // for all threads
  if (comesFromMemory && plannedRows <= kFewRows && groups >= kMinPanels)
    chunkTiles = tiles;
  if (usesTiles)
    chunkTiles = llvm::alignTo(chunkTiles, kBlockRows / shape.rows);
}
