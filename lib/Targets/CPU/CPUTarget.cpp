//===- CPUTarget.cpp - How code for processors is made --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Targets/CPU/CPUTarget.h"
#include "dialects/CPU/CPU.h"
#include "sardonyx/Dispatch/Passes.h"
#include "sardonyx/Objects/Facts.h"
#include "sardonyx/Targets/CPU/Passes.h"
#include "sardonyx/Targets/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace sardonyx;

namespace {

class CPUTarget : public TargetInterface {
public:
  using TargetInterface::TargetInterface;

  void buildLayoutPasses(OpPassManager &module,
                         const LayoutOptions &options) const override {
    const Numerics numerics = options.numerics;
    CPURoundOperandsOptions rounding;
    rounding.precision = options.precision;
    module.addPass(createCPURoundOperands(rounding));
    module.addPass(createCPUAssignLayouts());
    module.addPass(createSDXWidenIntegerConvs());
    if (numerics == Numerics::F32)
      module.addNestedPass<func::FuncOp>(createCPUKeepConvsDirect());
    // What is split for Winograd's algorithm stays whole without it.
    if (numerics != Numerics::Exact)
      module.addNestedPass<func::FuncOp>(createCPUSplitDepth());
    module.addNestedPass<func::FuncOp>(createCPUSplitTaps());
    if (numerics != Numerics::Exact)
      module.addNestedPass<func::FuncOp>(createCPUSplitDilations());
    module.addPass(createCPUPackConvs());
    module.addPass(createCPUPackDequantMatmuls());
    // Before products of operands that are there are packed.
    module.addPass(createSDXFormAttention());
    // Which form a convolution takes decides how its weights are packed, which
    // must be known before they are hoisted.
    CPUChooseConvFormOptions forms;
    forms.numerics = numerics;
    module.addNestedPass<func::FuncOp>(createCPUChooseConvForm(forms));
    CPUPackContractionsOptions packing;
    packing.numerics = numerics;
    module.addPass(createCPUPackContractions(packing));
  }

  void buildPlanPasses(OpPassManager &module) const override {
    module.addPass(createCPUShareInitPackingKernels());
    module.addPass(createSDXDedupKernels());
    SDXApplyPlansOptions given;
    given.plan = cpu::kPlanAttr.str();
    module.addPass(createSDXApplyPlans(given));
    module.addNestedPass<func::FuncOp>(createCPUSelectPlans());
  }

  StringRef getPlanName() const override { return cpu::kPlanAttr; }

  /// Kernels become loops over vectors; the first pass that knows a kernel's
  /// form takes it, and the last takes any.
  void buildCodegenPasses(OpPassManager &module) const override {
    OpPassManager &kernels = module.nest<func::FuncOp>();
    kernels.addPass(createCPUDecomposePackedOps());
    kernels.addPass(createCPULowerContractions());
    kernels.addPass(createCPULowerConv());
    kernels.addPass(createCPUStartFromAddends());
    kernels.addPass(createCPULowerNarrowConv());
    kernels.addPass(createCPULowerChannelWindows());
    kernels.addPass(createCPULowerPool());
    kernels.addPass(createCPULowerAttention());
    kernels.addPass(createCPULowerPacking());
    kernels.addPass(createCPULowerRows());
    kernels.addPass(createCPULowerLoops());
    kernels.addPass(createCPUApproximateMath());
    kernels.addPass(createCanonicalizerPass());
    kernels.addPass(createCSEPass());
  }

  sdx::TargetAttrInterface limit(sdx::TargetAttrInterface machine,
                                 const MachineLimits &limits) const override {
    auto result = cast<cpu::TargetAttr>(machine);
    if (limits.withoutTiles)
      result = result.withoutTiles();
    if (limits.withoutSplitFloats)
      result = result.withF32Product(cpu::F32Product::Fma);
    return result;
  }
};

} // namespace

static void registerTarget(DialectRegistry &registry) {
  registry.insert<cpu::CPUDialect>();
  registerCPUBufferization(registry);
  registry.addExtension(+[](MLIRContext *, cpu::CPUDialect *dialect) {
    dialect->addInterfaces<CPUTarget>();
  });
}

static void registerPasses() { registerSardonyxTargetsCPUPasses(); }

static sdx::TargetAttrInterface describe(MLIRContext *context,
                                         const TargetOptions &options) {
  context->getOrLoadDialect<cpu::CPUDialect>();
  return getTargetAttr(context, options);
}

TargetInfo sardonyx::getCPUTarget() {
  return {"cpu", registerTarget, registerPasses, describe};
}
