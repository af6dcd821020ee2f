//===- AttentionPlan.cpp - How attention is computed ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionPlan.h"
#include "Kernel/Vectorize.h"
#include "MicroKernels/AmxMicroKernel.h"

#include "dialects/SDX/RoundedType.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The fewest lanes of a vector: a register of 128 bits.
static constexpr int64_t kMinLanes = 4;
/// The most queries of a task, and keys of a block, that a plan may ask for.
static constexpr int64_t kMostRows = 4096;

static AttentionFacts::Products findProducts(sdx::AttentionOp op,
                                             TargetAttr target) {
  using Products = AttentionFacts::Products;
  auto isBf16 = [](Value operand) {
    return getElementTypeOrSelf(operand).isBF16();
  };
  const Type rounded = sdx::getRoundedType(op);
  if (op.isOfBytes())
    return Products::F32;
  const bool areBf16 =
      (rounded && rounded.isBF16()) ||
      (isBf16(op.getQuery()) && isBf16(op.getKey()) && isBf16(op.getValue()));
  if (!areBf16 || target.getLanes() != kTileRows)
    return Products::F32;
  switch (target.getBf16()) {
  case Bf16Product::Generic:
    return Products::F32;
  case Bf16Product::Dot:
    return Products::Pairs;
  case Bf16Product::Amx:
    return Products::Tiles;
  }
}

/// Accumulators of two vectors each leave room for two vectors of keys or
/// values and for a query that is broadcast.
static int64_t countTileRows(TargetAttr target,
                             AttentionFacts::Products products) {
  if (products == AttentionFacts::Products::Tiles)
    return kTileRows;
  return target.countVectorRegisters() >= 32 ? 8 : 6;
}

AttentionFacts::AttentionFacts(sdx::AttentionOp op, TargetAttr target)
    : target(target), products(findProducts(op, target)),
      lanes(std::max(kMinLanes, target.getLanes())), panel(2 * lanes),
      tileRows(countTileRows(target, products)), pairs(1), queries(1),
      keys(ShapedType::kDynamic),
      depth(op.getQuery().getType().getShape().back()),
      columns(op.getValue().getType().getShape().back()), op(op) {
  auto multiply = [](int64_t &product, int64_t size) {
    product = ShapedType::isDynamic(product) || ShapedType::isDynamic(size)
                  ? ShapedType::kDynamic
                  : product * size;
  };
  for (auto [loop, size] : llvm::enumerate(op.getLoopSizes())) {
    if (loop == op.getKeyLoop())
      keys = size;
    else if (loop < op.getKeyLoop())
      multiply(op.isOfKeys(loop) ? pairs : queries, size);
  }
}

/// Bytes that a task uses again and again.
static int64_t countBytes(const AttentionFacts &facts, int64_t queries,
                          int64_t rows, int64_t keys) {
  const int64_t row = facts.depth + facts.paddedColumns();
  const int64_t bytes = ((queries + keys) * row + rows * keys) * 4;
  return facts.areBf16() ? bytes / 2 + queries * facts.paddedColumns() * 2
                         : bytes;
}

AttentionPlanAttr cpu::selectPlan(const AttentionFacts &facts) {
  constexpr int64_t kKeys = 128, kRows = 64;
  // Where products are fast packing counts.
  const int64_t mostQueries = facts.areTiles() ? 1024 : 256;
  int64_t keys = kKeys, rows = llvm::alignTo(kRows, facts.tileRows);
  if (!ShapedType::isDynamic(facts.keys))
    keys = std::clamp<int64_t>(llvm::alignTo(facts.keys, facts.panel),
                               facts.panel, kKeys);
  const bool isOpen = ShapedType::isDynamic(facts.queries);
  const int64_t known = std::max<int64_t>(facts.queries, 1);
  // Sets of rows, and tasks, of about the same size.
  if (!isOpen)
    rows =
        llvm::alignTo(llvm::divideCeil(known, llvm::divideCeil(known, kRows)),
                      facts.tileRows);
  int64_t sets = mostQueries / kRows;
  if (!isOpen) {
    const int64_t all = llvm::divideCeil(known, rows);
    sets = llvm::divideCeil(all, llvm::divideCeil(all, sets));
  }
  // Keys are packed again for each task, which pays from some queries on.
  auto isLarge = [&] {
    return countBytes(facts, sets * rows, rows, keys) >
           facts.target.getL2Bytes() * 3 / 4;
  };
  auto areTasksFew = [&] {
    constexpr int64_t kMinTasks = 16;
    return !isOpen && !ShapedType::isDynamic(facts.pairs) &&
           facts.pairs * int64_t(llvm::divideCeil(known, sets * rows)) <
               kMinTasks;
  };
  while (sets > 1 && (isLarge() || areTasksFew()))
    sets = llvm::divideCeil(sets, 2);
  return AttentionPlanAttr::get(facts.getOp().getContext(), sets * rows, rows,
                                keys);
}

std::string cpu::whyNot(const AttentionFacts &facts, AttentionPlanAttr plan) {
  if (ShapedType::isDynamic(facts.depth) ||
      ShapedType::isDynamic(facts.columns) || facts.depth == 0 ||
      facts.columns == 0)
    return "queries, keys and values of open length";
  Block &body = facts.getOp().getBody().front();
  if (!isVectorizableBody(body) || mayTrapOnPadding(body))
    return "scores that are not changed on vectors";
  if (facts.getOp().getInit().getType().getRank() < 2)
    return "a result of one dimension";
  auto isMultiple = [](int64_t number, int64_t of) {
    return number >= of && number <= kMostRows && number % of == 0;
  };
  const std::string most = " up to " + std::to_string(kMostRows);
  if (!isMultiple(plan.getRows(), facts.tileRows))
    return "'rows' must be a multiple of " + std::to_string(facts.tileRows) +
           most;
  if (!isMultiple(plan.getQueries(), plan.getRows()))
    return "'queries' must be a multiple of 'rows'" + most;
  if (!isMultiple(plan.getKeys(), facts.panel))
    return "'keys' must be a multiple of " + std::to_string(facts.panel) + most;
  return "";
}
