//===- MatmulPlan.cpp - Which tiles a product goes by ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/MatmulPlan.h"

#include "Matmul/BlockTile.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// What an open size is taken for.
static constexpr int64_t kUsualSize = 256;

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

static std::optional<ProductForm> findForm(sdx::MatmulOp op) {
  Type lhs = op.getLhs().getType().getElementType();
  Type rhs = op.getRhs().getType().getElementType();
  Type sum = op.getInit().getType().getElementType();
  if (lhs == sum && rhs == sum && (sum.isF32() || sum.isF64()))
    return ProductForm::Fma;
  if (lhs == rhs && (lhs.isF16() || lhs.isBF16()) && sum.isF32())
    return ProductForm::Mma;
  // Bytes are loaded along K only.
  if (lhs.isInteger(8) && rhs.isInteger(8) && sum.isInteger(32) &&
      op.getTransposed())
    return ProductForm::Mma;
  return std::nullopt;
}

bool nv::hasTiles(sdx::MatmulOp op) { return findForm(op).has_value(); }

static int64_t usually(int64_t size) {
  return ShapedType::isDynamic(size) ? kUsualSize : size;
}

std::optional<MatmulPlanAttr> nv::chooseMatmulPlan(sdx::MatmulOp op,
                                                   TargetAttr target) {
  std::optional<ProductForm> form = findForm(op);
  if (!form)
    return std::nullopt;
  ArrayRef<int64_t> result = op.getInit().getType().getShape();
  const int64_t n = usually(result.back());
  const int64_t m = usually(result[result.size() - 2]);
  const int64_t batches = op.isBatched() ? usually(result[0]) : 1;
  const bool isMma = *form == ProductForm::Mma;
  ArrayRef<Tiles> choices = isMma ? ArrayRef(kMmaTiles) : ArrayRef(kFmaTiles);
  // Sums of f64 take up the registers of two.
  const int64_t bytes = op.getLhs().getType().getElementTypeBitWidth() / 8;
  if (bytes == 8)
    choices = choices.drop_front();
  const Tiles *chosen = &choices.back();
  for (const Tiles &tiles : choices) {
    int64_t blocks =
        batches * llvm::divideCeil(m, tiles.m) * llvm::divideCeil(n, tiles.n);
    if (blocks >= target.countMultiprocessors()) {
      chosen = &tiles;
      break;
    }
  }
  const int64_t depth = isMma ? 128 / bytes : kFmaDepth;
  return MatmulPlanAttr::get(op.getContext(), *form, chosen->m, chosen->n,
                             depth, chosen->partM, chosen->partN,
                             chosen->stages);
}
