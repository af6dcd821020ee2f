//===- RoundOperands.cpp - Operands of products as bf16 -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where operands may be rounded to bf16 and an instruction multiplies these
// faster than f32: products by weights, and with tile registers convolutions,
// which multiply sixteen times as fast. Convolutions by vectors of bf16 take
// about as long as those of f32 by Winograd's algorithm.
//
//===----------------------------------------------------------------------===//

#include "Common/ShortOperands.h"
#include "Layout/Layout.h"
#include "dialects/SDX/RoundedType.h"
#include "lib/Dispatch/Utils.h"

#include "dialects/CPU/CPU.h"
#include "sardonyx/Targets/CPU/Passes.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUROUNDOPERANDS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

static bool isOfF32(Operation *op) {
  return llvm::all_of(op->getOperandTypes(), [](Type type) {
    return getElementTypeOrSelf(type).isF32();
  });
}

/// Whether a packed product of bf16 takes the place of `op`.
static bool isWorth(sdx::MatmulOp op) {
  ShapedType lhs = op.getLhs().getType(), rhs = op.getRhs().getType();
  return isOfF32(op) && lhs.getRank() == 2 && !lhs.isDynamicDim(1) &&
         rhs.hasStaticShape() && isWeight(op.getRhs()) &&
         isZeroFilled(op.getInit());
}

/// Whether `op` multiplies what is computed, as attention does twice.
static bool isOfComputed(sdx::MatmulOp op) {
  return isOfF32(op) && !isWeight(op.getLhs()) && !isWeight(op.getRhs()) &&
         isZeroFilled(op.getInit());
}

static bool isWorth(sdx::ConvOp op, TargetAttr target) {
  return target.getBf16() == Bf16Product::Amx && isOfF32(op) &&
         isWeight(op.getWeights()) && hasNarrowForm(op);
}

namespace {

struct RoundOperandsPass
    : sardonyx::impl::CPURoundOperandsBase<RoundOperandsPass> {
  using Base::Base;

  void runOnOperation() override {
    const TargetAttr target = cpu::getTargetOrDefault(getOperation());
    if (precision == Precision::F16)
      return roundWeights(target);
    if (precision != Precision::BF16 ||
        target.getBf16() == Bf16Product::Generic)
      return;
    const Type bf16 = BFloat16Type::get(&getContext());
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      // Kernels unpack weights of a few bits, and round them then.
      if (isa<sdx::DequantMatmulOp>(op) && !sdx::getRoundedType(op))
        op->setAttr(sdx::kRoundedAttr, TypeAttr::get(bf16));
      auto matmul = dyn_cast<sdx::MatmulOp>(op);
      auto conv = dyn_cast<sdx::ConvOp>(op);
      if ((matmul && isWorth(matmul)) || (conv && isWorth(conv, target)))
        products.push_back(op);
      if (!matmul || !isOfComputed(matmul))
        return;
      // Where they cannot be rounded where they are made, it is the kernel that
      // does it.
      if (OperandRounder::isMadeHere(matmul.getLhs()) &&
          OperandRounder::isMadeHere(matmul.getRhs()))
        products.push_back(op);
      else
        op->setAttr(sdx::kRoundedAttr, TypeAttr::get(bf16));
    });
    OperandRounder rounder(bf16);
    for (Operation *op : products)
      for (OpOperand &operand : op->getOpOperands().take_front(2))
        rounder.round(operand);
    for (Operation *op : products)
      narrowOperands(op, op->getOpOperand(0), op->getOpOperand(1), bf16);
  }

private:
  /// Weights of few rows, or of an open number, as f16, which become f32 on
  /// their way from memory.
  void roundWeights(TargetAttr target) {
    SmallVector<sdx::MatmulOp> products;
    getOperation().walk([&](sdx::MatmulOp op) {
      const int64_t rows = op.getLhs().getType().getShape().front();
      if (isOfF32(op) && keepsHalves(op, target) &&
          (ShapedType::isDynamic(rows) || rows <= kFewRows))
        products.push_back(op);
    });
    OperandRounder rounder(Float16Type::get(&getContext()));
    for (sdx::MatmulOp op : products)
      rounder.round(op.getRhsMutable());
  }
};

} // namespace
