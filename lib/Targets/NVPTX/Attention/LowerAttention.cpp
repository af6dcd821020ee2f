//===- LowerAttention.cpp - Attention by tiles of blocks ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Kernel/Block.h"

#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERATTENTION
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

namespace {

struct LowerAttentionPass
    : sardonyx::impl::NVLowerAttentionBase<LowerAttentionPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!mayHaveBlocks(func) ||
        !llvm::hasSingleElement(func.getOps<sdx::AttentionOp>()))
      return;
    sdx::AttentionOp op = *func.getOps<sdx::AttentionOp>().begin();
    TargetAttr target = getTargetOrDefault(func);
    auto plan = func->getAttrOfType<AttentionPlanAttr>(kPlanAttr);
    if (!plan) {
      std::optional<AttentionPlanAttr> chosen = choosePlan(op, target);
      if (!chosen)
        return;
      plan = *chosen;
    }
    KernelBody body(func);
    AttentionKernel kernel(op, AttentionPlan(plan, op, target), body);
    if (kernel.isPossible() && failed(body.replaceWith([&](auto &b) {
          emit(b, op, body, kernel,
               plan.getForm() == ProductForm::Wgmma && isOpen(op));
        })))
      signalPassFailure();
  }

private:
  /// Where `mayBeShort` the host chooses: the other kernel has no blocks then.
  static void emit(ImplicitLocOpBuilder &b, sdx::AttentionOp op,
                   KernelBody &body, AttentionKernel &kernel, bool mayBeShort) {
    if (!mayBeShort)
      return kernel.emit(b);
    TargetAttr target = getTargetOrDefault(op);
    AttentionKernel warps(
        op, AttentionPlan(chooseWarpPlan(op, target), op, target), body);
    Value isLong = kernel.isLong(b);
    Value isShort = arith::XOrIOp::create(
        b, isLong, arith::ConstantIntOp::create(b, /*value=*/1, /*width=*/1));
    kernel.emit(b, isLong);
    warps.emit(b, isShort);
  }
};

} // namespace
