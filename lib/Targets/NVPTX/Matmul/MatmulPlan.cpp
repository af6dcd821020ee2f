//===- MatmulPlan.cpp - Which tiles a product goes by ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulPlan.h"

#include "Matmul/BlockTile.h"
#include "Matmul/PackedWeights.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// What an open size is taken for.
static constexpr int64_t kUsualSize = 256, kUsualSide = 32;

namespace {
struct Tiles {
  int64_t m, n, partM, partN, stages;
};
} // namespace

/// From large to small: large ones read less memory, small ones leave no
/// multiprocessor without work.
static constexpr Tiles kMmaTiles[] = {{128, 128, 64, 64, 3},
                                      {64, 64, 32, 32, 4},
                                      {32, 64, 16, 32, 4},
                                      {16, 64, 16, 16, 4}};
static constexpr Tiles kFmaTiles[] = {{128, 128, 8, 8, 3},
                                      {64, 64, 4, 4, 3},
                                      {32, 64, 4, 4, 3},
                                      {32, 32, 4, 4, 3}};
static constexpr int64_t kFmaDepth = 16;

/// Filters of a group that are worth a tile: fewer leave most of it empty.
static constexpr int64_t kFewestFilters = 8;

/// `transposed`: the right-hand side follows itself along K.
static std::optional<ProductForm> findForm(Operation *op, Type lhs, Type rhs,
                                           Type sum, bool transposed) {
  if (lhs.isF32() && rhs.isF32() && sum.isF32() && op->hasAttr(kTF32Attr))
    return ProductForm::Mma;
  if (lhs == sum && rhs == sum && (sum.isF32() || sum.isF64()))
    return ProductForm::Fma;
  if (lhs == rhs && (lhs.isF16() || lhs.isBF16()) && sum.isF32())
    return ProductForm::Mma;
  // Bytes are loaded along K only.
  if (lhs.isInteger(8) && rhs.isInteger(8) && sum.isInteger(32) && transposed)
    return ProductForm::Mma;
  return std::nullopt;
}

static std::optional<ProductForm> findForm(sdx::MatmulOp op) {
  return findForm(op, op.getLhs().getType().getElementType(),
                  op.getRhs().getType().getElementType(),
                  op.getInit().getType().getElementType(), op.getTransposed());
}

static std::optional<ProductForm> findForm(sdx::ConvOp op) {
  // Code counts on the numbers of filters and channels.
  auto weights = cast<ShapedType>(op.getWeights().getType());
  const int64_t groups = op.getGroup();
  if (!weights.hasStaticShape() ||
      weights.getDimSize(0) / groups < kFewestFilters)
    return std::nullopt;
  return findForm(op, op.getWeights().getType().getElementType(),
                  op.getInput().getType().getElementType(),
                  op.getInit().getType().getElementType(),
                  /*transposed=*/false);
}

bool nv::hasTiles(sdx::MatmulOp op) { return findForm(op).has_value(); }
bool nv::hasTiles(sdx::ConvOp op) { return findForm(op).has_value(); }

bool nv::hasTiles(sdx::DequantMatmulOp op) {
  return canUnpack(op) && op.getDepth() > 0 && op.getColumns() > 0;
}

static int64_t usually(int64_t size) {
  return ShapedType::isDynamic(size) ? kUsualSize : size;
}

/// The most blocks that share a tile's products, and the fewest steps along K
/// that are worth a block.
static constexpr int64_t kMostSplits = 16, kFewestSteps = 4;

/// The largest tiles that leave no multiprocessor without work. Where even the
/// smallest are too few, blocks share them. `k`: 0 if it is open.
static MatmulPlanAttr choose(ProductForm form, Type type, int64_t pairs,
                             int64_t m, int64_t n, int64_t k,
                             TargetAttr target) {
  const bool isMma = form == ProductForm::Mma;
  ArrayRef<Tiles> choices = isMma ? ArrayRef(kMmaTiles) : ArrayRef(kFmaTiles);
  // Sums of f64 take up the registers of two.
  const int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  if (bytes == 8)
    choices = choices.drop_front();
  const int64_t wanted = target.countMultiprocessors();
  auto countBlocks = [&](const Tiles &tiles) {
    return std::max<int64_t>(1, pairs * llvm::divideCeil(m, tiles.m) *
                                    llvm::divideCeil(n, tiles.n));
  };
  const Tiles *chosen = &choices.back();
  for (const Tiles &tiles : choices)
    if (countBlocks(tiles) >= wanted) {
      chosen = &tiles;
      break;
    }
  const int64_t depth = isMma ? 128 / bytes : kFmaDepth;
  const int64_t most =
      std::min<int64_t>(kMostSplits, llvm::divideCeil(k, depth) / kFewestSteps);
  const int64_t split = std::clamp<int64_t>(wanted / countBlocks(*chosen), 1,
                                            std::max<int64_t>(most, 1));
  return MatmulPlanAttr::get(type.getContext(), form, chosen->m, chosen->n,
                             depth, chosen->partM, chosen->partN,
                             chosen->stages, split);
}

std::optional<MatmulPlanAttr> nv::chooseMatmulPlan(sdx::MatmulOp op,
                                                   TargetAttr target) {
  std::optional<ProductForm> form = findForm(op);
  if (!form)
    return std::nullopt;
  ArrayRef<int64_t> result = op.getInit().getType().getShape();
  const int64_t k = op.getLhs().getType().getShape().back();
  return choose(*form, op.getLhs().getType().getElementType(),
                op.isBatched() ? usually(result[0]) : 1,
                usually(result[result.size() - 2]), usually(result.back()),
                ShapedType::isDynamic(k) ? 0 : k, target);
}

std::optional<MatmulPlanAttr> nv::chooseDequantPlan(sdx::DequantMatmulOp op,
                                                    TargetAttr target) {
  Type type = op.getLhs().getType().getElementType();
  std::optional<ProductForm> form =
      findForm(type, type, op.getInit().getType().getElementType(),
               /*transposed=*/true);
  if (!form)
    return std::nullopt;
  return choose(*form, type, /*pairs=*/1,
                usually(op.getInit().getType().getDimSize(0)), op.getColumns(),
                op.getDepth(), target);
}

std::optional<MatmulPlanAttr> nv::chooseConvPlan(sdx::ConvOp op,
                                                 TargetAttr target) {
  std::optional<ProductForm> form = findForm(op);
  if (!form)
    return std::nullopt;
  ArrayRef<int64_t> result = op.getInit().getType().getShape();
  int64_t positions = 1;
  for (int64_t size : result.drop_front(2))
    positions *= ShapedType::isDynamic(size) ? kUsualSide : size;
  const int64_t images = ShapedType::isDynamic(result[0]) ? 1 : result[0];
  const int64_t groups = op.getGroup();
  ArrayRef<int64_t> weights = op.getWeights().getType().getShape();
  int64_t k = 1;
  for (int64_t size : weights.drop_front())
    k *= size;
  return choose(*form, op.getInput().getType().getElementType(),
                images * groups, weights[0] / groups, positions, k, target);
}
