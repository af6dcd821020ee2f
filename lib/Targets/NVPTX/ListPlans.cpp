//===- ListPlans.cpp - All plans of a kernel ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ListPlans.h"

#include "Attention/AttentionPlan.h"
#include "Matmul/FewRows.h"
#include "Matmul/MatmulPlan.h"
#include "Matmul/ProductKernel.h"
#include "Matmul/RowPrologue.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// How many blocks share a tile.
static constexpr int64_t kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16};

Operation *nv::findAnyProduct(func::FuncOp kernel) {
  if (auto ops = findProducts<sdx::MatmulOp>(kernel); !ops.empty())
    return ops.front();
  if (auto op = findProduct<sdx::ConvOp>(kernel))
    return op;
  if (auto op = findProduct<ConvOp>(kernel))
    return op;
  auto op = findProduct<sdx::DequantMatmulOp>(kernel);
  return op && hasTiles(op) ? op.getOperation() : nullptr;
}

bool nv::isOnlyForFewRows(Operation *product) {
  Value lhs = product->getOperand(0);
  return (lhs.getDefiningOp() && !KernelBody::hasBuffer(lhs)) ||
         (isa<sdx::MatmulOp, sdx::DequantMatmulOp>(product) &&
          HeadEpilogue::isNeeded(product->getResult(0))) ||
         llvm::any_of(*product->getBlock(), [&](Operation &op) {
           return &op != product && op.getName() == product->getName();
         });
}

static void listProductPlans(Operation *op, TargetAttr target,
                             SmallVectorImpl<Attribute> &plans) {
  if (chooseFewRows(op, target))
    for (int64_t lanes : {4, 8, 16, 32}) {
      auto plan = FewRowsPlanAttr::get(op->getContext(), lanes);
      if (whyNot(cast<sdx::MatmulOp>(op), plan).empty())
        plans.push_back(plan);
    }
  if (isOnlyForFewRows(op))
    return;
  for (MatmulPlanAttr tiles : listTiles(op, target))
    for (int64_t split : kSplits) {
      if (split > mostSplits(op, tiles, target))
        break;
      const MatmulPlanAttr plan = withSplit(tiles, split);
      if (whyNot(op, plan, target).empty())
        plans.push_back(plan);
    }
  auto matmul = dyn_cast<sdx::MatmulOp>(op);
  std::optional<MatmulPlanAttr> clusters =
      matmul ? findCluster(matmul, target) : std::nullopt;
  if (clusters && whyNot(op, *clusters, target).empty())
    plans.push_back(*clusters);
}

static void listAttentionPlans(sdx::AttentionOp op, TargetAttr target,
                               SmallVectorImpl<Attribute> &plans) {
  // Where sizes are open the host counts the blocks that share keys.
  const bool isCounted = [&] {
    std::optional<AttentionPlanAttr> chosen = choosePlan(op, target);
    return chosen && chosen->getSplit() == 0;
  }();
  struct Form {
    ProductForm form;
    SmallVector<int64_t> queries, keys;
  };
  const Form forms[] = {
      {ProductForm::Fma, {4, 8, 16, 32, 64}, {16, 32, 64}},
      {ProductForm::Mma, {16, 32, 64, 128}, {32, 64, 128}},
      {ProductForm::Wgmma, {64, 128}, {64, 80, 96, 112, 128, 160, 176}}};
  for (const Form &form : forms)
    for (int64_t queries : form.queries)
      for (int64_t keys : form.keys)
        for (int64_t split : kSplits) {
          auto plan = AttentionPlanAttr::get(
              op.getContext(), form.form, queries, keys, isCounted ? 0 : split);
          if (!whyNot(op, plan, target).empty() ||
              split > (isCounted ? 1 : mostSplits(op, plan, target)))
            break;
          plans.push_back(plan);
        }
}

void nv::listPlans(func::FuncOp kernel, SmallVectorImpl<Attribute> &plans) {
  TargetAttr target = getTargetOrDefault(kernel);
  if (Operation *product = findAnyProduct(kernel))
    listProductPlans(product, target, plans);
  else if (auto attention = findProduct<sdx::AttentionOp>(kernel))
    if (!attention.isOfBytes())
      listAttentionPlans(attention, target, plans);
}
