//===- NVPTXTarget.cpp - How code for NVIDIA's GPUs is made ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Targets/NVPTX/NVPTXTarget.h"

#include "Assemble.h"
#include "EmitPTX.h"
#include "ListPlans.h"
#include "dialects/NV/NV.h"
#include "sardonyx/Dispatch/Passes.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace sardonyx;

namespace {

class NVPTXTarget : public TargetInterface {
public:
  using TargetInterface::TargetInterface;

  void buildLayoutPasses(OpPassManager &module,
                         const LayoutOptions &options) const override {
    module.addPass(createNVSetThreadCount());
    module.addPass(createSDXWidenIntegerConvs());
    module.addPass(createNVPreparePools());
    NVRoundOperandsOptions rounding;
    rounding.precision = options.precision;
    module.addPass(createNVRoundOperands(rounding));
    module.addPass(createNVPrepareProducts());
    // Afterwards, when operands are what is in memory.
    module.addPass(createNVAssignLayouts());
    module.addPass(createSDXFormAttention());
    module.addPass(createNVComputeSlices());
  }

  void buildFusionPasses(OpPassManager &module) const override {
    module.addPass(createNVFuseIntoProducts());
  }

  void buildPlanPasses(OpPassManager &module) const override {
    SDXApplyPlansOptions given;
    given.plan = nv::kPlanAttr.str();
    module.addPass(createSDXApplyPlans(given));
    module.addNestedPass<func::FuncOp>(createNVSelectPlans());
  }

  StringRef getPlanName() const override { return nv::kPlanAttr; }

  void listPlans(func::FuncOp kernel,
                 SmallVectorImpl<Attribute> &plans) const override {
    nv::listPlans(kernel, plans);
  }

  /// Kernels become functions that start kernels of the device, which are made
  /// of their loops.
  void buildCodegenPasses(OpPassManager &module) const override {
    OpPassManager &kernels = module.nest<func::FuncOp>();
    kernels.addPass(createNVLowerMatmul());
    kernels.addPass(createNVLowerDequantMatmul());
    kernels.addPass(createNVLowerConv());
    kernels.addPass(createNVLowerAttention());
    kernels.addPass(createNVLowerWindows());
    kernels.addPass(createNVLowerRows());
    kernels.addPass(createNVLowerTranspose());
    kernels.addPass(createNVLowerGather());
    kernels.addPass(createNVLowerUpdates());
    kernels.addPass(createNVLowerScan());
    kernels.addPass(createNVLowerTopK());
    kernels.addPass(createNVLowerElementwise());
    // Not canonicalised: loops of one iteration are kernels, too.
    kernels.addPass(createNVLowerLoops());
    kernels.addPass(createCSEPass());
    module.addPass(createNVMergeLaunches());
    module.addPass(createNVOutlineKernels());
    OpPassManager &host = module.nest<func::FuncOp>();
    host.addPass(createCanonicalizerPass());
    host.addPass(createCSEPass());
    OpPassManager &device = module.nest<gpu::GPUModuleOp>();
    device.addPass(createCanonicalizerPass());
    device.addPass(createCSEPass());
    device.addPass(createNVExpandMath());
    device.addPass(createNVConvertToNVVM());
    device.addPass(createCanonicalizerPass());
    device.addPass(createCSEPass());
    device.addPass(createNVVerify());
  }

  LogicalResult emit(ModuleOp module,
                     SmallVectorImpl<Image> &images) const override {
    return nv::emitImages(module, images);
  }
};

} // namespace

static void registerTarget(DialectRegistry &registry) {
  registry.insert<nv::NVDialect>();
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  registry.addExtension(+[](MLIRContext *, nv::NVDialect *dialect) {
    dialect->addInterfaces<NVPTXTarget>();
  });
}

static void registerPasses() { registerSardonyxTargetsNVPTXPasses(); }

/// Every kernel can be computed from sm_80 on, whose code runs on all devices.
static sdx::TargetAttrInterface describe(MLIRContext *context,
                                         const TargetOptions &options) {
  context->getOrLoadDialect<nv::NVDialect>();
  StringRef device = options.device;
  return nv::findDevice(context, device.empty() ? "sm_80" : device);
}

TargetInfo sardonyx::getNVPTXTarget() {
  return {"nvidia", registerTarget,   registerPasses,
          describe, /*load=*/nullptr, nv::assemble};
}
