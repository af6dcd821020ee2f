//===- MatmulPlan.cpp - How matrix products are computed ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/MatmulPlan.h"

#include "MicroKernels/AmxMicroKernel.h"
#include "MicroKernels/Bf16x3Product.h"

#include "dialects/SDX/RoundedType.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// A size unless it is open.
static std::optional<int64_t> toKnown(int64_t size) {
  return ShapedType::isDynamic(size) ? std::nullopt
                                     : std::optional<int64_t>(size);
}

/// The size of a dimension of the result, which the kernel's memory may tell.
static std::optional<int64_t> getResultSize(PackedMatmulOp op, int64_t dim) {
  if (auto size = toKnown(op.getInit().getType().getDimSize(dim)))
    return size;
  std::optional<int64_t> size;
  op->getParentOp()->walk([&](bufferization::MaterializeInDestinationOp out) {
    auto type = cast<ShapedType>(out.getDest().getType());
    if (dim < type.getRank())
      size = toKnown(type.getDimSize(dim));
    return WalkResult::interrupt();
  });
  return size;
}

MatmulFacts::MatmulFacts(PackedMatmulOp op, TargetAttr target)
    : packing(op.getPacking()), target(target), strassen(op.getStrassen()) {
  const int64_t rank = op.getInit().getType().getRank();
  m = getResultSize(op, rank - 2);
  n = getResultSize(op, rank - 1);
  minRows = m.value_or(0);
  ArrayRef<int64_t> rhs = op.getRhs().getType().getShape();
  depth = toKnown(op.getLhs().getType().getShape().back());
  k = packing.getDepthGroup() == 1 ? depth : toKnown(rhs[rhs.size() - 2]);
  if (n)
    panels = llvm::divideCeil(*n, packing.getPanel());
  comesFromMemory = !op.isRhsBatched() && Prefetch::pays(op.getRhs());
  block = op.getBlock().value_or(0);
  hasWholeZeros = op.getWholeZeros();
  rounded = sdx::getRoundedType(op);
}

bool MatmulFacts::suits(const MicroKernel &micro) const {
  const SplitForm &form = micro.getForm();
  // So many products of bytes are below 2^31.
  constexpr int64_t kMostBytes = 1 << 15;
  if (micro.roundsRows())
    return rounded && rounded.isInteger(8) && block % kQuantizedGroup == 0 &&
           block <= kMostBytes;
  if (micro.getUnit() != MicroKernel::Unit::SplitTiles)
    return true;
  // bf16 lose less than bytes.
  if (form.rowParts == 1 && !rounded)
    return false;
  if (form.columnParts == 1 && block % kQuantizedGroup && block < *depth)
    return false;
  return !form.scalesSums || (hasWholeZeros && block % kStepDepth == 0);
}

const MicroKernel *MatmulFacts::selectExact() const {
  MatmulFacts exact = *this;
  exact.rounded = nullptr;
  return exact.select(MicroKernel::Unit::Vectors);
}

const MicroKernel *MatmulFacts::select(MicroKernel::Unit unit) const {
  for (const MicroKernel *micro : getMicroKernels())
    if (micro->getUnit() == unit && micro->takes(packing.getElement()) &&
        micro->isSupported(target) && suits(*micro))
      return micro;
  return nullptr;
}

int64_t MatmulFacts::countTileSteps() const {
  return *depth / (kTileRows * packing.getDepthGroup());
}

MatmulFacts MatmulFacts::getFactsOfCase(int64_t maxRows, int64_t before) const {
  MatmulFacts facts = *this;
  if (m)
    return facts;
  facts.maxRows = maxRows;
  if (before > 0)
    facts.minRows = before + 1;
  if (maxRows == 1)
    facts.m = facts.minRows = 1;
  return facts;
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
  const MicroKernel *split = facts.select(MicroKernel::Unit::SplitTiles);
  if (!split || facts.packing.getPanel() != kBlockColumns ||
      plan.rows < kBlockRows || !atLeast(facts.n, kMinColumns) ||
      !atLeast(facts.k, kStepDepth))
    return;
  plan.micro = split;
  auto share = [](int64_t whole, int64_t most, int64_t unit) {
    return llvm::alignTo(llvm::divideCeil(whole, llvm::divideCeil(whole, most)),
                         unit);
  };
  const int64_t rows = facts.packing.isQuantized() ? kMaxRows / 2 : kMaxRows;
  plan.partRows = share(facts.m.value_or(rows), rows, kBlockRows);
  const int64_t bytes = split->getForm().rowParts * 2;
  int64_t most = std::max<int64_t>(
      llvm::alignDown(facts.target.getL2Bytes() / 2 / (plan.partRows * bytes),
                      kStepDepth),
      kStepDepth);
  int64_t unit = kStepDepth;
  if (split->getForm().scalesSums) {
    // Whole blocks, or whole parts of one.
    unit = std::min(facts.block, most);
    while (facts.block % unit)
      unit -= kStepDepth;
    constexpr int64_t kScaledDepth = 128;
    while (unit < kScaledDepth && *facts.depth % (2 * unit) == 0)
      unit *= 2;
    most = facts.block > most ? unit : llvm::alignDown(most, unit);
  }
  plan.partDepth = share(facts.k.value_or(most), most, unit);
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

/// Whether a single row reads one panel after the other, as the stream that a
/// processor of narrow vectors fetches best by itself.
static bool readsOneStream(const MatmulFacts &facts, const MatmulPlan &plan) {
  return facts.m == 1 && plan.shape.width == facts.packing.getPanel() &&
         facts.target.getVectorBits() < 512 &&
         facts.packing.getDepthGroup() == 1 && !facts.hasScales();
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
  // Two panels of triples are as many streams as memory is read best by.
  int64_t mostPanels = readsOneStream(facts, plan)                          ? 1
                       : (facts.packing.getElement() == PackedElement::W21) ? 2
                                                                            : 4;
  if (rows && *rows <= 4 && *rows > 0 && isPanelWide)
    plan.panelsPerTile =
        std::clamp<int64_t>(plan.shape.rows / *rows, 1, mostPanels);
  const MicroKernel *tiles = facts.select(MicroKernel::Unit::Tiles);
  if (tiles && isPanelWide && facts.packing.getPanel() == 2 * kTileRows &&
      facts.mayFillTiles() && plan.rows >= kTileRows)
    plan.micro = tiles;
  // Six rows of four registers need the fewest instructions for each
  // multiply-add that 32 registers allow (34 for 24; 26 for 16 with eight rows
  // of two), which counts where two threads share a core. These panels and the
  // next ones have to stay in the L2 cache, unless there is just one tile.
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
  const bool areMany = plan.rows > MatmulPlan::kFewRows;
  const bool fillOneTile = facts.maxRows > 0 && facts.maxRows <= kRows;
  if (facts.target.getVectorBits() >= 512 && isPanelWide &&
      plan.micro->getUnit() == MicroKernel::Unit::Vectors &&
      plan.micro->isShort() && (areMany || (fillOneTile && !rows)) &&
      facts.panels.value_or(kPanels) >= kPanels &&
      (fillOneTile ||
       2 * kPanels * panelBytes <= facts.target.getL2Bytes() / 2)) {
    plan.shape.rows = kRows;
    plan.panelsPerTile = kPanels;
  } else if (facts.target.getVectorBits() >= 512 && isPanelWide && rows &&
             plan.micro->getUnit() == MicroKernel::Unit::Vectors &&
             plan.micro->isShort() && *rows > plan.shape.rows &&
             *rows <= MatmulPlan::kFewRows) {
    // Tiles as even as can be: in a low one multiply-adds wait for each other.
    // Sums of two registers to a row leave four of 32.
    constexpr int64_t kMostRows = 14;
    plan.shape.rows =
        llvm::divideCeil(*rows, llvm::divideCeil(*rows, kMostRows));
  } else if (facts.target.getVectorBits() == 256 &&
             plan.micro->getUnit() == MicroKernel::Unit::Vectors &&
             plan.micro->isShort() && plan.rows > plan.shape.rows) {
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
  constexpr int64_t kMaxTiles = 64;
  // Tile registers are done with a chunk before the lines of the next are there
  // unless it has many rows.
  const int64_t minChunks = plan.usesTiles() ? 16 : 32;
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
  int64_t split = llvm::divideCeil(minChunks, groups);
  int64_t wanted = llvm::divideCeil(tiles, split);
  int64_t rowBytes = depth * sizeof(float); // any group is as large
  int64_t cached = std::max(facts.target.getL2Bytes() / 2 / rowBytes,
                            MatmulPlan::kLikelyRows) /
                   plan.shape.rows;
  plan.order =
      cached < tiles ? MatmulOrder::RowsOuter : MatmulOrder::PanelsOuter;
  plan.chunkTiles =
      std::min({std::max(std::min(wanted, cached), least), tiles, kMaxTiles});
  // Few rows are done with a panel when the next is there.
  constexpr int64_t kMinPanels = 8; // for all threads
  if (facts.comesFromMemory && plan.rows <= MatmulPlan::kFewRows &&
      groups >= kMinPanels)
    plan.chunkTiles = tiles;
  if (plan.usesTiles())
    plan.chunkTiles =
        llvm::alignTo(plan.chunkTiles, kBlockRows / plan.shape.rows);
}

int64_t cpu::getMinStrassenRows(const TileShape &shape) {
  constexpr int64_t kMinTiles = 8;
  return std::max(cpu::kMinStrassenRows, kMinTiles * shape.rows);
}

StrassenPlan cpu::planStrassen(const MatmulFacts &facts,
                               const MatmulPlan &plan) {
  StrassenPlan result;
  result.depth = *facts.strassen;
  result.pairs = *facts.panels / 2;
  result.pieces = facts.packing.getPanel() / plan.shape.width;
  // Short enough that few lines are asked for at a time.
  constexpr int64_t kLongestPeriod = 16;
  result.period = std::gcd(result.half(), kLongestPeriod);
  return result;
}

/// Whether `plan.rows` go by Strassen's algorithm, and how.
static void chooseStrassen(const MatmulFacts &facts, MatmulPlan &plan) {
  if (!facts.strassen || plan.usesBf16x3() ||
      facts.target.getVectorBits() < 256)
    return;
  // Two panels to a tile as long as there are no odd ones. A tile of one has
  // more rows, of which there may be too few then.
  int64_t panels = plan.panelsPerTile;
  TileShape shape = plan.shape;
  if (panels > 1 && *facts.panels / 2 % panels != 0) {
    panels = 1;
    shape = TileShape::get(facts.target, facts.packing.getPanel());
  }
  plan.usesStrassen = plan.rows >= getMinStrassenRows(shape);
  if (!plan.usesStrassen)
    return;
  plan.panelsPerTile = panels;
  plan.shape = shape;
  plan.strassen = planStrassen(facts, plan);
}

bool cpu::canPrefetch(const MatmulFacts &facts, const MatmulPlan &plan) {
  return facts.comesFromMemory && facts.k && facts.depth &&
         !facts.hasScales() && !plan.usesBf16x3();
}

/// What tiles fetch of the next panel.
static void planPrefetch(const MatmulFacts &facts, MatmulPlan &plan) {
  // Of so many rows memory has to give as much as it can, which L1 has no room
  // for.
  constexpr int64_t kMin = 3, kMax = cpu::kMinStrassenRows;
  if (!canPrefetch(facts, plan) || readsOneStream(facts, plan))
    plan.prefetch = MatmulPrefetch::None;
  else if (plan.rows >= kMin && plan.rows <= kMax)
    plan.prefetch = MatmulPrefetch::L2;
  else
    plan.prefetch = MatmulPrefetch::Near;
}

/// The loops around panels that are unpacked once for many rows.
static void planUnpackedPanels(const MatmulFacts &facts, MatmulPlan &plan) {
  MatmulFacts unpacked = facts;
  unpacked.packing =
      PackingAttr::getF32(facts.packing.getContext(), facts.packing.getPanel());
  plan.micro = findMicroKernel("fma");
  planTiles(unpacked, plan);
  planChunks(unpacked, plan);
  constexpr int64_t kRows = 128; // unpacking takes as long as some ten
  const int64_t tiles = llvm::divideCeil(plan.rows, plan.shape.rows);
  plan.chunkTiles = std::max(
      plan.chunkTiles,
      std::min<int64_t>(tiles, llvm::divideCeil(kRows, plan.shape.rows)));
}

MatmulPlan cpu::planMatmul(const MatmulFacts &facts, int64_t rows,
                           bool isDirect) {
  MatmulPlan plan;
  plan.rows = std::max<int64_t>(rows, 1);
  plan.micro = facts.select(MicroKernel::Unit::Vectors);
  if (!isDirect)
    planBf16x3(facts, plan);
  if (facts.mayUnpack() && facts.depth && !plan.usesBf16x3() &&
      !plan.micro->roundsRows() && plan.rows > MatmulPlan::kFewRows) {
    planUnpackedPanels(facts, plan);
    return plan;
  }
  planTiles(facts, plan);
  if (!isDirect)
    chooseStrassen(facts, plan);
  planChunks(facts, plan);
  planPrefetch(facts, plan);
  return plan;
}

MatmulPlan MatmulPlan::read(MatmulCaseAttr from) {
  MatmulPlan plan;
  plan.rows = from.getRows();
  plan.shape = {from.getTileRows(), from.getTileColumns()};
  plan.panelsPerTile = from.getPanels();
  plan.chunkTiles = from.getChunkTiles();
  plan.order = from.getOrder();
  plan.prefetch = from.getPrefetch();
  plan.micro = findMicroKernel(from.getMicro());
  plan.partRows = from.getPartRows();
  plan.partDepth = from.getPartDepth();
  plan.partPanels = from.getPartPanels();
  plan.usesStrassen = from.getStrassen() != 0;
  return plan;
}

MatmulPlan MatmulPlan::get(const MatmulFacts &facts, MatmulCaseAttr from) {
  MatmulPlan plan = read(from);
  if (plan.usesStrassen)
    plan.strassen = planStrassen(facts, plan);
  return plan;
}

MatmulCaseAttr MatmulPlan::getCase(MLIRContext *context,
                                   int64_t maxRows) const {
  return MatmulCaseAttr::get(context, micro->getName(), rows, maxRows,
                             shape.rows, shape.width, panelsPerTile, chunkTiles,
                             order, prefetch, partRows, partDepth, partPanels,
                             strassen.depth);
}

bool cpu::needsDirectCase(const MatmulFacts &facts, const MatmulPlan &plan) {
  if (plan.usesStrassen)
    return true;
  return plan.usesBf16x3() && (facts.minRows < kBlockRows || !facts.k);
}

MatmulPlanAttr cpu::selectPlan(const MatmulFacts &facts) {
  MLIRContext *context = facts.target.getContext();
  SmallVector<MatmulCaseAttr> cases;
  MatmulFacts last = facts;
  if (!facts.m && facts.comesFromMemory) {
    // Weights come from memory: for a row, for few and for many in other ways.
    auto add = [&](int64_t maxRows, int64_t before, int64_t rows) {
      cases.push_back(planMatmul(facts.getFactsOfCase(maxRows, before), rows)
                          .getCase(context, maxRows));
    };
    add(1, 0, 1);
    int64_t before = 1;
    // A batch of some rows, where wide registers have tiles for it.
    constexpr int64_t kLow = MatmulPlan::kUnevenRows;
    MatmulPlan low = planMatmul(facts.getFactsOfCase(kLow, 1), kLow);
    if (low.panelsPerTile > 1) {
      cases.push_back(low.getCase(context, kLow));
      before = kLow;
    }
    add(MatmulPlan::kFewRows, before, MatmulPlan::kFewRows / 2);
    last = facts.getFactsOfCase(0, MatmulPlan::kFewRows);
  }
  MatmulPlan plan = planMatmul(last, last.m.value_or(MatmulPlan::kLikelyRows));
  cases.push_back(plan.getCase(context));
  MatmulCaseAttr direct;
  if (needsDirectCase(last, plan)) {
    // Of an open number of rows mostly those that are too few for Strassen's
    // algorithm.
    int64_t rows = plan.usesStrassen && !last.m ? getMinStrassenRows(plan.shape)
                                                : plan.rows;
    direct = planMatmul(last, rows, /*isDirect=*/true).getCase(context);
  }
  return MatmulPlanAttr::get(context, cases, direct);
}
