//===- LowerNarrowConv.cpp - Narrow convolutions as register tiles
//----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conv/NarrowConv.h"
#include "Kernel/RootKernel.h"
#include "Plan/Plan.h"

#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERNARROWCONV
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

struct LowerNarrowConvPass
    : sardonyx::impl::CPULowerNarrowConvBase<LowerNarrowConvPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    FailureOr<NarrowConvOp> root = findRoot<NarrowConvOp>(func, "contraction");
    if (failed(root))
      return signalPassFailure();
    if (!*root)
      return;
    NarrowConvFacts facts(*root, cpu::getTargetOrDefault(func));
    FailureOr<NarrowConvPlanAttr> plan =
        getPlan<NarrowConvPlanAttr>(func, *root, facts);
    if (failed(plan))
      return signalPassFailure();
    func->removeAttr(kPlanAttr);
    KernelBody body(func);
    NarrowConvKernel kernel(facts, *plan, body);
    if (failed(emitKernel(func, *root, body, kernel)))
      signalPassFailure();
  }
};

} // namespace
