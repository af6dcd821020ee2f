//===- VerifyMatmulPlan.cpp - Which plans fit a product -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that the loops of Matmul/ ask of a plan. What is slow but right fits.
//
//===----------------------------------------------------------------------===//

#include "Plan/MatmulPlan.h"

#include "MicroKernels/AmxMicroKernel.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Bounds that keep code, and memory of a chunk, at a size that can be.
static constexpr int64_t kMaxRows = 1 << 20, kMaxChunkTiles = 1 << 16,
                         kMaxPart = 1 << 16, kMaxPartBytes = 64 << 20;

static bool isWithin(int64_t value, int64_t least, int64_t most) {
  return value >= least && value <= most;
}

static std::string whyNotMicro(const MatmulFacts &facts, StringRef name) {
  const MicroKernel *micro = findMicroKernel(name);
  if (!micro)
    return ("there is no micro-kernel '" + name + "'").str();
  if (!micro->takes(facts.packing.getElement()))
    return ("micro-kernel '" + name + "' does not take weights of " +
            stringifyPackedElement(facts.packing.getElement()))
        .str();
  if (!micro->isSupported(facts.target))
    return ("the processor has no instructions for micro-kernel '" + name + "'")
        .str();
  if (!facts.suits(*micro))
    return ("its operands are not those of micro-kernel '" + name + "'").str();
  return "";
}

/// Columns of a tile, by how the panel is read.
static std::string whyNotColumns(const MatmulFacts &facts,
                                 const MatmulPlan &plan) {
  const int64_t panel = facts.packing.getPanel(), width = plan.shape.width;
  if (width < 1 || panel % width)
    return "a panel of " + std::to_string(panel) +
           " columns has no whole tiles of " + std::to_string(width);
  if (width == panel)
    return "";
  if (facts.packing.isCompressed())
    return "a tile has all columns of a compressed panel";
  if (plan.panelsPerTile != 1)
    return "a tile of several panels has all of their columns";
  if (plan.micro->getUnit() != MicroKernel::Unit::Vectors)
    return "beside tile registers a tile has all columns of a panel";
  if (!facts.packing.isQuantized())
    return "";
  // Columns whose integers share bytes with others lie apart.
  const int64_t part = panel * facts.packing.getBits() / 8;
  const int64_t parts = width / std::min(width, part);
  if (width <= part ? part % width
                    : width % part || !llvm::isPowerOf2_64(parts))
    return "integers of " + std::to_string(width) + " columns do not lie in " +
           "whole bytes";
  return "";
}

static std::string whyNotTile(const MatmulFacts &facts,
                              const MatmulPlan &plan) {
  if (plan.panelsPerTile < 1)
    return "a tile has one panel or more";
  if (std::string reason = whyNotColumns(facts, plan); !reason.empty())
    return reason;
  const int64_t most = 2 * facts.target.countVectorRegisters();
  const int64_t rows = std::min(plan.shape.rows, facts.m.value_or(kMaxRows));
  const int64_t perRow =
      llvm::divideCeil(plan.shape.width, facts.target.getLanes());
  if (plan.shape.rows < 1 || plan.panelsPerTile > most || perRow > most ||
      !isWithin(plan.shape.rows, 1, kMaxRows) ||
      rows * perRow * plan.panelsPerTile > most)
    return "a tile takes one to " + std::to_string(most) +
           " vector registers of sums";
  return "";
}

/// What tile registers ask for, with operands as such or split.
static std::string whyNotTileRegisters(const MatmulFacts &facts,
                                       const MatmulPlan &plan) {
  if (facts.packing.getPanel() != kBlockColumns)
    return "tile registers take panels of 32 columns";
  if (plan.panelsPerTile != 1)
    return "tile registers take one panel at a time";
  if (kTileRows % plan.shape.rows)
    return "beside tile registers a tile has 1, 2, 4, 8 or 16 rows";
  if (plan.usesTiles()) {
    if (!facts.mayFillTiles())
      return "there are too few values of k for tile registers";
    if (plan.chunkTiles * plan.shape.rows % kBlockRows)
      return "beside tile registers a chunk has a multiple of 32 rows";
    return "";
  }
  if (facts.m && *facts.m < kBlockRows)
    return "tile registers take 32 rows or more of f32";
  if (facts.k && *facts.k < 1)
    return "there are no values of k";
  if (!isWithin(plan.partRows, 1, kMaxPart) || plan.partRows % kBlockRows ||
      !isWithin(plan.partDepth, 1, kMaxPart) || plan.partDepth % kStepDepth ||
      !isWithin(plan.partPanels, 1, kMaxPart) ||
      plan.partRows * plan.partDepth * kBf16x3Terms * 2 > kMaxPartBytes)
    return "'part_rows' and 'part_depth' are multiples of 32, of at most 64 "
           "MiB of bf16, and 'part_panels' is 1 or more";
  if (plan.micro->getForm().scalesSums && plan.partDepth % facts.block &&
      facts.block % plan.partDepth)
    return "'part_depth' is some blocks that share scales, or a part of one";
  return "";
}

static std::string whyNotStrassen(const MatmulFacts &facts,
                                  const MatmulPlan &plan, int64_t depth) {
  if (!facts.strassen || !facts.panels || !facts.k)
    return "its weights are not known to be even enough for Strassen's "
           "algorithm";
  if (depth != *facts.strassen)
    return "Strassen's algorithm adds halves of " +
           std::to_string(*facts.strassen) + " values of k of these weights";
  if (plan.micro->getUnit() != MicroKernel::Unit::Vectors)
    return "Strassen's algorithm multiplies on vectors";
  if (facts.target.getVectorBits() < 256)
    return "Strassen's algorithm is for vectors of 256 bits or more";
  if (plan.shape.rows != 4 && plan.shape.rows != 6 && plan.shape.rows != 8)
    return "tiles of Strassen's algorithm have 4, 6 or 8 rows";
  if (*facts.panels / 2 % plan.panelsPerTile)
    return "Strassen's algorithm leaves no odd panel over";
  if (facts.m && *facts.m < getMinStrassenRows(plan.shape))
    return "there are too few rows for Strassen's algorithm";
  return "";
}

/// Whether a case fits where `facts` hold.
static std::string whyNotCase(const MatmulFacts &facts, MatmulCaseAttr of,
                              bool isDirect) {
  if (std::string reason = whyNotMicro(facts, of.getMicro()); !reason.empty())
    return reason;
  const MatmulPlan plan = MatmulPlan::read(of);
  if (!isWithin(of.getRows(), 1, kMaxRows))
    return "'rows' is 1 to " + std::to_string(kMaxRows);
  if (!isWithin(of.getChunkTiles(), 1, kMaxChunkTiles))
    return "'chunk_tiles' is 1 to " + std::to_string(kMaxChunkTiles);
  if (std::string reason = whyNotTile(facts, plan); !reason.empty())
    return reason;
  if (plan.prefetch != MatmulPrefetch::None && !canPrefetch(facts, plan))
    return "only panels of known size, without scales, that come from memory "
           "are fetched";
  if (isDirect && (plan.usesBf16x3() || of.getStrassen()))
    return "a direct case is neither by split tiles nor by Strassen's "
           "algorithm";
  if (plan.micro->getUnit() != MicroKernel::Unit::Vectors)
    if (std::string reason = whyNotTileRegisters(facts, plan); !reason.empty())
      return reason;
  if (!plan.usesBf16x3() &&
      (plan.partRows || plan.partDepth || plan.partPanels))
    return "parts of rows, values of k and panels are for split tiles";
  return of.getStrassen() ? whyNotStrassen(facts, plan, of.getStrassen()) : "";
}

std::string cpu::whyNot(const MatmulFacts &facts, MatmulPlanAttr plan) {
  ArrayRef<MatmulCaseAttr> cases = plan.getCases();
  if (facts.m && cases.size() > 1)
    return "its number of rows is known, so that it has one case";
  int64_t before = 0;
  for (auto [i, of] : llvm::enumerate(cases)) {
    MatmulFacts known = facts.getFactsOfCase(of.getMaxRows(), before);
    before = of.getMaxRows();
    if (std::string reason = whyNotCase(known, of, /*isDirect=*/false);
        !reason.empty())
      return reason;
    const bool isLast = i + 1 == cases.size();
    const bool needsDirect = needsDirectCase(known, MatmulPlan::get(known, of));
    if (needsDirect && (!isLast || !plan.getDirect()))
      return "a case by split tiles or Strassen's algorithm is the last, and "
             "wants a direct one beside it";
    if (isLast && !needsDirect && plan.getDirect())
      return "no run takes its direct case";
    if (isLast && plan.getDirect())
      return whyNotCase(known, plan.getDirect(), /*isDirect=*/true);
  }
  return "";
}
