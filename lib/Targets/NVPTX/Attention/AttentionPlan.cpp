//===- AttentionPlan.cpp - How attention is computed ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionPlan.h"
#include "Kernel/Warpgroup.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// What an open number of keys is taken for.
static constexpr int64_t kUsualKeys = 1024;
/// Two blocks of a multiprocessor share its memory, as far as tiles of some
/// size can; other devices of a generation have less than the first.
static constexpr int64_t kMostBytes = 96 * 1024;
/// Pieces of a tile of keys that a thread copies: their addresses take
/// registers.
static constexpr int64_t kMostPieces = 16;
/// Queries of two warpgroups.
static constexpr int64_t kGroupQueries = 128;

/// The product of the result's dimensions that keys have, or have not; open if
/// one of them is.
static int64_t countLoops(sdx::AttentionOp op, bool ofKeys) {
  int64_t count = 1;
  AffineMap keys = op.getMap(1), map = op.getInitMap();
  ArrayRef<int64_t> shape = op.getInit().getType().getShape();
  for (auto [size, expr] :
       llvm::zip_equal(shape.drop_back(), map.getResults().drop_back())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || keys.isFunctionOfDim(dim.getPosition()) != ofKeys)
      continue;
    if (ShapedType::isDynamic(size))
      return size;
    count *= size;
  }
  return count;
}

static int64_t countKeys(sdx::AttentionOp op) {
  for (auto [size, expr] : llvm::zip_equal(op.getKey().getType().getShape(),
                                           op.getMap(1).getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      if (dim.getPosition() == op.getKeyLoop() && !ShapedType::isDynamic(size))
        return size;
  return kUsualKeys;
}

static int64_t roundUp(int64_t size, int64_t to) {
  return llvm::divideCeil(size, to) * to;
}

AttentionPlan::AttentionPlan(AttentionPlanAttr attr, sdx::AttentionOp op,
                             TargetAttr target)
    : form(attr.getForm()), rows(attr.getQueries()), keys(attr.getKeys()),
      split(attr.getSplit()), multiprocessors(target.countMultiprocessors()),
      cacheBytes(int64_t(target.getL2MiB()) << 20) {
  depth = op.getQuery().getType().getShape().back();
  columns = op.getValue().getType().getShape().back();
  depth = roundUp(depth, isMma() || isWgmma() ? 16 : 4);
  columns = roundUp(columns, !isMma() && columns > 32 ? 64 : 16);
  if (!isMma())
    rowsOfThread = std::clamp<int64_t>(rows / 8, 1, 4);
}

/// Bytes of so many rows in boxes, side by side until they have all columns.
static int64_t countBoxBytes(int64_t rows, int64_t columns) {
  return llvm::divideCeil(columns, kMapRowBytes / 2) * rows * kMapRowBytes;
}

int64_t AttentionPlan::countQueryBytes() const {
  return countBoxBytes(rows, depth);
}

int64_t AttentionPlan::countKeyBytes() const {
  return countBoxBytes(keys, depth);
}

int64_t AttentionPlan::countValueBytes() const {
  return countBoxBytes(keys, columns);
}

int64_t AttentionPlan::countTileBytes() const {
  return countQueryBytes() + stages * (countKeyBytes() + countValueBytes());
}

int64_t AttentionPlan::countSharedBytes() const {
  if (isWgmma())
    return countTileBytes() + (1 + 4 * stages) * kBarrierBytes;
  const int64_t gap = isMma() ? 8 : 4, bytes = isMma() ? 2 : 4;
  int64_t elements =
      (rows + stages * keys) * (depth + gap) + stages * keys * (columns + gap);
  if (isFma())
    elements += rows * (keys + gap);
  return elements * bytes;
}

/// What multiplies, a warp or a thread at a time.
static ProductForm findForm(sdx::AttentionOp op) {
  return op.getQuery().getType().getElementType().isF32() ? ProductForm::Fma
                                                          : ProductForm::Mma;
}

/// How many blocks share keys: enough for all multiprocessors, where there are
/// tiles for them.
static int64_t chooseSplit(sdx::AttentionOp op, const AttentionPlan &plan,
                           int64_t rows, int64_t pairs) {
  // Where the number of queries is open, it may be one.
  if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(pairs))
    return 0;
  const int64_t blocks = pairs * llvm::divideCeil(rows, plan.rows);
  const int64_t tiles = llvm::divideCeil(countKeys(op), plan.keys);
  if (tiles < plan.kFewestShared)
    return 1;
  return std::clamp<int64_t>(
      plan.multiprocessors / std::max<int64_t>(1, blocks), 1,
      std::clamp<int64_t>(tiles / plan.kFewestTiles, 1, plan.kMostSplits));
}

AttentionPlanAttr nv::chooseWarpPlan(sdx::AttentionOp op, TargetAttr target) {
  const ProductForm form = findForm(op);
  const int64_t rows = countLoops(op, /*ofKeys=*/false);
  const int64_t pairs = countLoops(op, /*ofKeys=*/true);
  const int64_t least = form == ProductForm::Mma ? 16 : 4;
  int64_t wanted = least;
  while (wanted < 64 && (wanted < rows || ShapedType::isDynamic(rows)))
    wanted *= 2;
  auto get = [&](int64_t queries, int64_t keys, int64_t split) {
    return AttentionPlanAttr::get(op.getContext(), form, queries, keys, split);
  };
  AttentionPlan plan(get(wanted, 64, 1), op, target);
  const int64_t bytes =
      std::min<int64_t>(kMostBytes, target.getSharedBytesOfBlock());
  // Large tiles read less; those of keys shrink first.
  while (plan.countSharedBytes() > bytes) {
    if (plan.keys > (plan.rows > least ? 32 : 16))
      plan.keys /= 2;
    else if (plan.rows > least)
      plan.rows /= 2;
    else
      break;
  }
  plan = AttentionPlan(get(plan.rows, plan.keys, 1), op, target);
  const int64_t piecesOfKey =
      std::max(plan.depth, plan.columns) / (plan.isMma() ? 8 : 4);
  while (plan.keys > 16 &&
         plan.keys * piecesOfKey > kMostPieces * plan.countThreads())
    plan.keys /= 2;
  return get(plan.rows, plan.keys, chooseSplit(op, plan, rows, pairs));
}

std::optional<unsigned> nv::findQueryLoop(sdx::AttentionOp op) {
  for (unsigned loop = op.getNumOuterLoops(); loop-- > 0;)
    if (!op.isOfKeys(loop))
      return loop;
  return std::nullopt;
}

bool nv::isOpen(sdx::AttentionOp op) {
  const SmallVector<int64_t> sizes = op.getLoopSizes();
  const std::optional<unsigned> queries = findQueryLoop(op);
  return ShapedType::isDynamic(sizes[op.getKeyLoop()]) ||
         (queries && ShapedType::isDynamic(sizes[*queries]));
}

/// Why warpgroups cannot compute the operation, the end of a sentence; empty
/// where they can.
static std::string whyNoWarpgroups(sdx::AttentionOp op, TargetAttr target) {
  constexpr int64_t kMostDepth = 256, kMostRank = 5;
  if (!target.hasWgmma())
    return "no warpgroups of " + target.getChip() + " multiply";
  if (findForm(op) != ProductForm::Mma)
    return "warpgroups multiply matrices of f16 and bf16";
  const std::optional<unsigned> queries = findQueryLoop(op);
  if (!queries || !op.getMap(0).isFunctionOfDim(*queries))
    return "warpgroups have queries of a head, and there is one";
  for (Value operand : {op.getQuery(), op.getKey(), op.getValue()}) {
    auto type = cast<RankedTensorType>(operand.getType());
    const int64_t row = type.getShape().back();
    if (row == 0 || row % 8)
      return "the rows of what warpgroups multiply are multiples of 16 bytes";
    if (row > kMostDepth)
      return "warpgroups have rows of at most " + std::to_string(kMostDepth) +
             " elements";
    if (type.getRank() > kMostRank)
      return "copies by the hardware are of at most 5 dimensions";
  }
  return "";
}

/// The product of all loops but those over queries and keys; open if one of
/// them is.
static int64_t countHeads(sdx::AttentionOp op) {
  const SmallVector<int64_t> sizes = op.getLoopSizes();
  const std::optional<unsigned> queries = findQueryLoop(op);
  int64_t count = 1;
  for (unsigned loop = 0; loop < op.getNumOuterLoops(); ++loop) {
    if (loop == queries)
      continue;
    if (ShapedType::isDynamic(sizes[loop]))
      return ShapedType::kDynamic;
    count *= sizes[loop];
  }
  return count;
}

/// Registers of a thread that are scores, factors and sums of values. With
/// warpgroups there are factors of two tiles.
static int64_t countSums(const AttentionPlan &plan) {
  if (plan.isWgmma())
    return plan.keys + plan.columns / 2;
  return plan.isMma() ? (plan.keys + plan.columns) / 2
                      : plan.rowsOfThread * (plan.keys + plan.columns) / 16;
}

/// What a thread has registers for, beside operands and addresses.
static constexpr int64_t kMostSums = 192;

std::optional<AttentionPlanAttr> nv::choosePlan(sdx::AttentionOp op,
                                                TargetAttr target) {
  if (op.isOfBytes())
    return std::nullopt;
  if (!whyNoWarpgroups(op, target).empty())
    return chooseWarpPlan(op, target);
  const SmallVector<int64_t> sizes = op.getLoopSizes();
  const int64_t queries = sizes[*findQueryLoop(op)];
  const int64_t keys = sizes[op.getKeyLoop()];
  if (!isOpen(op) && (queries < AttentionPlan::kLeastQueries ||
                      queries * keys <= AttentionPlan::kScoresOfWarps))
    return chooseWarpPlan(op, target);
  const int64_t pairs = countHeads(op);
  auto get = [&](int64_t keys, int64_t split) {
    return AttentionPlanAttr::get(op.getContext(), ProductForm::Wgmma,
                                  kGroupQueries, keys, split);
  };
  int64_t keysOfTile = kGroupQueries;
  auto fits = [&] {
    const AttentionPlan plan(get(keysOfTile, 1), op, target);
    return countSums(plan) <= kMostSums &&
           plan.countSharedBytes() <= target.getSharedBytesOfBlock();
  };
  while (keysOfTile > 16 && !fits())
    keysOfTile -= 16;
  const AttentionPlan plan(get(keysOfTile, 1), op, target);
  return get(keysOfTile, chooseSplit(op, plan, queries, pairs));
}

std::string nv::whyNot(sdx::AttentionOp op, AttentionPlanAttr given,
                       TargetAttr target) {
  if (op.isOfBytes())
    return "there are no tiles for what it multiplies";
  if (given.getForm() == ProductForm::Wgmma) {
    if (std::string reason = whyNoWarpgroups(op, target); !reason.empty())
      return reason;
  } else if (given.getForm() != findForm(op))
    return ("what it multiplies goes by " + stringifyProductForm(findForm(op)))
        .str();
  const AttentionPlan plan(given, op, target);
  if (const int64_t sums = countSums(plan); sums > kMostSums)
    return "a thread has " + std::to_string(sums) +
           " scores and sums, at most " + std::to_string(kMostSums) +
           " are in registers";
  const int64_t shared = plan.countSharedBytes();
  if (shared > target.getSharedBytesOfBlock())
    return "its tiles take " + std::to_string(shared) +
           " bytes of shared memory, a block has at most " +
           std::to_string(target.getSharedBytesOfBlock());
  return "";
}

int64_t nv::mostSplits(sdx::AttentionOp op, AttentionPlanAttr given,
                       TargetAttr target) {
  constexpr int64_t kRounds = 4;
  const AttentionPlan plan(given, op, target);
  int64_t rows = countLoops(op, /*ofKeys=*/false);
  int64_t pairs = countLoops(op, /*ofKeys=*/true);
  if (plan.isWgmma()) {
    rows = op.getLoopSizes()[*findQueryLoop(op)];
    pairs = countHeads(op);
  }
  if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(pairs))
    return 1;
  const int64_t blocks =
      std::max<int64_t>(1, pairs * llvm::divideCeil(rows, plan.rows));
  const int64_t tiles = llvm::divideCeil(countKeys(op), plan.keys);
  return std::max<int64_t>(
      1, std::min<int64_t>({plan.kMostSplits, tiles / plan.kFewestTiles,
                            kRounds * plan.multiprocessors / blocks}));
}
