//===- AttentionPlan.cpp - How attention is computed ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionPlan.h"

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

/// Bytes of shared memory that a block needs; tiles of keys and values are
/// there twice.
static int64_t countBytes(const AttentionPlan &plan) {
  const int64_t gap = plan.isMma ? 8 : 4, bytes = plan.isMma ? 2 : 4;
  int64_t elements = (plan.rows + 2 * plan.keys) * (plan.depth + gap) +
                     2 * plan.keys * (plan.columns + gap);
  if (!plan.isMma)
    elements += plan.rows * (plan.keys + gap);
  return elements * bytes;
}

static int64_t roundUp(int64_t size, int64_t to) {
  return llvm::divideCeil(size, to) * to;
}

AttentionPlan nv::chooseAttentionPlan(sdx::AttentionOp op, TargetAttr target) {
  AttentionPlan plan;
  plan.isMma = !op.getQuery().getType().getElementType().isF32();
  const int64_t depth = op.getQuery().getType().getShape().back();
  const int64_t columns = op.getValue().getType().getShape().back();
  plan.depth = roundUp(depth, plan.isMma ? 16 : 4);
  plan.columns = roundUp(columns, !plan.isMma && columns > 32 ? 64 : 16);
  const int64_t rows = countLoops(op, /*ofKeys=*/false);
  const int64_t pairs = countLoops(op, /*ofKeys=*/true);
  const int64_t least = plan.isMma ? 16 : 4;
  int64_t wanted = least;
  while (wanted < 64 && (wanted < rows || ShapedType::isDynamic(rows)))
    wanted *= 2;
  const int64_t bytes =
      std::min<int64_t>(kMostBytes, target.getSharedBytesOfBlock());
  // Large tiles read less; those of keys shrink first.
  for (plan.rows = wanted, plan.keys = 64; countBytes(plan) > bytes;) {
    if (plan.keys > (plan.rows > least ? 32 : 16))
      plan.keys /= 2;
    else if (plan.rows > least)
      plan.rows /= 2;
    else
      break;
  }
  if (!plan.isMma)
    plan.rowsOfThread = std::clamp<int64_t>(plan.rows / 8, 1, 4);
  const int64_t piecesOfKey =
      std::max(plan.depth, plan.columns) / (plan.isMma ? 8 : 4);
  while (plan.keys > 16 &&
         plan.keys * piecesOfKey > kMostPieces * plan.countThreads())
    plan.keys /= 2;
  plan.multiprocessors = target.countMultiprocessors();
  // Where the number of queries is open, it may be one.
  if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(pairs)) {
    plan.split = 0;
    return plan;
  }
  const int64_t blocks = pairs * llvm::divideCeil(rows, plan.rows);
  const int64_t tiles = llvm::divideCeil(countKeys(op), plan.keys);
  plan.split = 1;
  if (tiles < plan.kFewestShared)
    return plan;
  plan.split = std::clamp<int64_t>(
      plan.multiprocessors / std::max<int64_t>(1, blocks), 1,
      std::clamp<int64_t>(tiles / plan.kFewestTiles, 1, plan.kMostSplits));
  return plan;
}
