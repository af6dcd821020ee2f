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
    if (op.isOfBytes())
      return;
    KernelBody body(func);
    AttentionKernel kernel(
        op, chooseAttentionPlan(op, getTargetOrDefault(func)), body);
    if (kernel.isPossible() &&
        failed(body.replaceWith([&](auto &b) { kernel.emit(b); })))
      signalPassFailure();
  }
};

} // namespace
