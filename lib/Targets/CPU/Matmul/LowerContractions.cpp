//===- LowerContractions.cpp - Matrix products as register tiles ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/RootKernel.h"
#include "Matmul/MatmulEmitter.h"
#include "Plan/Plan.h"

#include "sardonyx/Targets/CPU/Passes.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERCONTRACTIONS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

struct LowerContractionsPass
    : sardonyx::impl::CPULowerContractionsBase<LowerContractionsPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    FailureOr<cpu::PackedMatmulOp> root =
        findRoot<cpu::PackedMatmulOp>(func, "contraction");
    if (failed(root))
      return signalPassFailure();
    if (!*root)
      return;
    MatmulFacts facts(*root, cpu::getTargetOrDefault(func));
    FailureOr<MatmulPlanAttr> plan =
        getPlan<MatmulPlanAttr>(func, *root, facts);
    if (failed(plan))
      return signalPassFailure();
    func->removeAttr(kPlanAttr);
    KernelBody body(func);
    MatmulKernel kernel(*root, facts, *plan, body);
    if (failed(emitKernel(func, *root, body, kernel)))
      signalPassFailure();
  }
};

} // namespace
