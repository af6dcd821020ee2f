//===- RoundOperands.cpp - Operands of products in 16 bits ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/ShortOperands.h"
#include "Matmul/MatmulPlan.h"

#include "dialects/NV/NV.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVROUNDOPERANDS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct RoundOperandsPass
    : sardonyx::impl::NVRoundOperandsBase<RoundOperandsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (precision == Precision::F32)
      return;
    Builder b(&getContext());
    OperandRounder rounder(precision == Precision::F16 ? Type(b.getF16Type())
                                                       : Type(b.getBF16Type()));
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (auto matmul = dyn_cast<sdx::MatmulOp>(op);
          matmul && nv::hasTiles(matmul))
        products.push_back(op);
      if (auto conv = dyn_cast<sdx::ConvOp>(op); conv && nv::hasTiles(conv))
        products.push_back(op);
    });
    for (Operation *op : products) {
      const bool isF32 = llvm::all_of(op->getOperands().take_front(2), isOfF32);
      if (!isF32)
        continue;
      if (precision == Precision::TF32)
        op->setAttr(nv::kTF32Attr, b.getUnitAttr());
      else if (precision == Precision::BF16x3)
        op->setAttr(nv::kBF16x3Attr, b.getUnitAttr());
      else
        for (OpOperand &operand : op->getOpOperands().take_front(2))
          rounder.round(operand);
    }
  }

private:
  static bool isOfF32(Value value) {
    return getElementTypeOrSelf(value).isF32();
  }
};

} // namespace
