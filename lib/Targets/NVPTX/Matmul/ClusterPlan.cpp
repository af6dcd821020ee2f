//===- ClusterPlan.cpp - Which blocks of a product are clusters -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel of rows behind a product costs its start, and reads what the product
// has left in memory. Where the blocks of a cluster have whole rows of sums
// they reduce them where they are. But then eight blocks read all of the
// right-hand side for the rows of one tile, where otherwise any number of
// blocks share it. A multiprocessor reads at most 64 bytes of the L2 cache in a
// clock, so of two plans in one wave of blocks that one is faster by which a
// block reads less, as long as it does not cost the kernel of rows: that takes
// as long as some bytes of a block.
//
// Where all multiprocessors have large tiles of their own, they read most of
// what that cache gives. Two blocks with tiles below each other have the same
// tile of the right-hand side, and each reads half of it for both.
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulPlan.h"

#include "Kernel/Block.h"
#include "Kernel/Warpgroup.h"
#include "Rows/RowsKernel.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Rows of a tile, and those and the columns of a warp's part of it: blocks
/// have eight warps, two below each other. Stages of a block.
static constexpr int64_t kRows = 32, kRowsOfWarp = 16, kWarpsOfRow = 4;
static constexpr int64_t kStages = 4;
/// Columns of a tile.
static constexpr int64_t kColumns[] = {64, 128, 192, 256};
/// The fewest steps along K that are worth a block.
static constexpr int64_t kFewestSteps = 4;
/// What a multiprocessor reads of the L2 cache in a clock at most.
static constexpr int64_t kBytesOfClock = 64;
/// The same in the 1.2 µs that a kernel takes to start and to read rows which
/// the one before it has written.
static constexpr int64_t kBytesOfKernel = 128 * 1024;

bool nv::hasRows(func::FuncOp kernel) {
  return llvm::any_of(
      kernel.getOps<linalg::GenericOp>(),
      [](linalg::GenericOp op) { return op.getNumReductionLoops() != 0; });
}

/// Whether all that the kernel of `op` computes behind it is computed of the
/// rows of its result, one by one.
static bool reducesOwnRows(func::FuncOp kernel, sdx::MatmulOp op) {
  KernelBody body(kernel);
  PointEvaluator points(body);
  RowsKernel rows(llvm::to_vector(kernel.getOps<linalg::GenericOp>()), body);
  rows.declare(op->getResult(0), {});
  SmallVector<Value> results;
  for (const KernelBody::Output &output : body.getOutputs())
    results.push_back(output.tensor);
  return points.canEvaluate(op.getInit()) && rows.isPossible(results) &&
         rows.readsOwnRows(op->getResult(0));
}

/// Bytes of both operands that a block of the plan reads.
static int64_t countBytes(MatmulPlanAttr plan, int64_t steps) {
  return (plan.getTileM() + plan.getTileN()) * kMapRowBytes *
         llvm::divideCeil(steps, plan.getSplit());
}

/// The parts of a tile that blocks share are whole boxes, or boxes of whole
/// eight rows.
static std::string whyNoSharers(const ProductTypes &types,
                                MatmulPlanAttr plan) {
  const int64_t part = types.transposed ? 8 : kMapRowBytes / types.rhsBytes();
  const int64_t columns = plan.getClusterM() * part;
  return plan.getTileN() % columns == 0
             ? ""
             : "tile_n is a multiple of " + std::to_string(columns) +
                   " where blocks share the right-hand side";
}

std::string nv::whyNoClusters(Operation *op, MatmulPlanAttr plan,
                              TargetAttr target) {
  if (!target.hasClusters())
    return "blocks of " + target.getChip() + " read their own memory only";
  if (plan.isWgmma())
    return whyNoSharers(getProductTypes(op), plan);
  auto matmul = dyn_cast<sdx::MatmulOp>(op);
  auto kernel = op->getParentOfType<func::FuncOp>();
  if (!matmul || matmul.isBatched() ||
      !matmul.getInit().getType().hasStaticShape() || !kernel ||
      !hasRows(kernel) || !reducesOwnRows(kernel, matmul))
    return "clusters are for what reduces the rows of one product, of known "
           "sizes";
  const int64_t tiles = llvm::divideCeil(
      matmul.getInit().getType().getDimSize(1), plan.getTileN());
  if (plan.getClusterN() != tiles * plan.getSplit())
    return "the blocks that have a row are " +
           std::to_string(tiles * plan.getSplit());
  return "";
}

std::optional<MatmulPlanAttr> nv::findCluster(sdx::MatmulOp op,
                                              TargetAttr target) {
  const ProductTypes types = getProductTypes(op);
  const int64_t depth = op.getLhs().getType().getShape().back();
  if (!target.hasClusters() || op.isBatched() ||
      !op.getInit().getType().hasStaticShape() || ShapedType::isDynamic(depth))
    return std::nullopt;
  const int64_t columns = op.getInit().getType().getDimSize(1);
  const int64_t tileK = kMapRowBytes / types.lhsBytes();
  const int64_t steps = llvm::divideCeil(depth, tileK);
  std::optional<MatmulPlanAttr> best;
  for (int64_t n : kColumns) {
    const int64_t tiles = llvm::divideCeil(columns, n);
    const int64_t most =
        MatmulPlanAttr::kMostOfCluster / std::max<int64_t>(tiles, 1);
    if (most == 0 || tiles == 0)
      continue;
    const int64_t split = std::clamp<int64_t>(steps / kFewestSteps, 1, most);
    if (tiles * split == 1)
      continue;
    auto plan = MatmulPlanAttr::get(op.getContext(), ProductForm::Mma, kRows, n,
                                    tileK, kRowsOfWarp, n / kWarpsOfRow,
                                    kStages, split, 1, tiles * split);
    if (!best || countBytes(plan, steps) < countBytes(*best, steps))
      best = plan;
  }
  return best;
}

std::optional<MatmulPlanAttr>
nv::chooseCluster(sdx::MatmulOp op, MatmulPlanAttr instead, TargetAttr target) {
  std::optional<MatmulPlanAttr> plan = findCluster(op, target);
  if (!plan || instead.getForm() == ProductForm::Fma)
    return std::nullopt;
  const int64_t steps = llvm::divideCeil(
      op.getLhs().getType().getShape().back(), plan->getTileK());
  const int64_t blocks =
      llvm::divideCeil(op.getInit().getType().getDimSize(0), kRows) *
      plan->countCluster();
  if (blocks > target.countMultiprocessors() ||
      countBytes(*plan, steps) - countBytes(instead, steps) > kBytesOfKernel)
    return std::nullopt;
  return plan;
}

static MatmulPlanAttr change(MatmulPlanAttr plan, int64_t split, int64_t m,
                             int64_t n) {
  return MatmulPlanAttr::get(plan.getContext(), plan.getForm(), plan.getTileM(),
                             plan.getTileN(), plan.getTileK(), plan.getPartM(),
                             plan.getPartN(), plan.getStages(), split, m, n);
}

MatmulPlanAttr nv::withSplit(MatmulPlanAttr plan, int64_t split) {
  return change(plan, split, plan.getClusterM(), plan.getClusterN());
}

MatmulPlanAttr nv::withCluster(MatmulPlanAttr plan, int64_t m, int64_t n) {
  return change(plan, plan.getSplit(), m, n);
}

/// For 128x256 sums a block reads 48 KB along 128 bytes of K, for which the
/// tensor cores multiply for 1024 clocks: 48 bytes in a clock. In pairs each
/// reads 32. Two blocks side by side, which would share the smaller tile, read
/// 40.
MatmulPlanAttr nv::chooseSharers(MatmulPlanAttr plan, const Extent &extent,
                                 TargetAttr target) {
  // Sums that the tensor cores multiply for along 128 bytes of K in a clock.
  constexpr int64_t kSumsOfClock = 32;
  const int64_t tileM = plan.getTileM(), tileN = plan.getTileN();
  const int64_t rows = llvm::divideCeil(extent.m, tileM);
  const int64_t items = extent.pairs * llvm::divideCeil(extent.n, tileN);
  const int64_t multiprocessors = target.countMultiprocessors();
  const bool isBusy = items * rows >= multiprocessors;
  const int64_t bytes = (tileM + tileN) * kMapRowBytes;
  const int64_t clocks = tileM * tileN / kSumsOfClock;
  const bool readsMuch = bytes > clocks * kBytesOfClock / 2;
  if (!extent.isKnown || tileM == kGroupRows || !isBusy || !readsMuch)
    return plan;
  // In a last row of a single tile one of the blocks has nothing to do.
  const int64_t rounds = llvm::divideCeil(items * rows, multiprocessors);
  const int64_t roundsOfPairs =
      llvm::divideCeil(items * llvm::divideCeil(rows, 2),
                       std::max<int64_t>(multiprocessors / 2, 1));
  return roundsOfPairs <= rounds ? withCluster(plan, 2, 1) : plan;
}
