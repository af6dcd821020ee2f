//===- Pipelines.cpp - The phases of the compiler -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of the passes, on one screen a phase.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Pipelines/Pipelines.h"

#include "LLVMLowering.h"

#include "sardonyx/Bridge/Passes.h"
#include "sardonyx/Conversion/Passes.h"
#include "sardonyx/Dispatch/Passes.h"
#include "sardonyx/Host/Passes.h"
#include "sardonyx/Targets/Common/Passes.h"
#include "sardonyx/Targets/Passes.h"
#include "sardonyx/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

#include <chrono>

using namespace mlir;

namespace sardonyx {
namespace {

/// The graph as the model's author drew it, in fewer and larger operators.
void buildOnnxPhase(OpPassManager &pm, const PipelineOptions &) {
  // Shapes hang on the values that calls pass, so bodies come before types.
  pm.addPass(createOnnxInlineFunctions());
  // Types next: everything after wants ranks.
  pm.addPass(createOnnxFoldSequences());
  pm.addPass(createOnnxInferShapes());
  pm.addPass(createOnnxFoldShapes());
  pm.addPass(createCanonicalizerPass());
  // Products are recognised where dequantised operands are next to them.
  pm.addPass(createOnnxPropagateQuantization());
  // Larger operators have better lowerings than the chains exporters make of
  // them; BatchNormalization disappears into the weights.
  pm.addPass(createOnnxRecompose());
  pm.addPass(createOnnxFoldBatchNorm());
  // What has a definition in ONNX's own terms and no lowering here becomes
  // that.
  OnnxExpandFunctionsOptions functions;
  functions.unlowered = true;
  pm.addPass(createOnnxExpandFunctions(functions));
  pm.addPass(createOnnxInferShapes());
  pm.addPass(createOnnxFoldShapes());
  pm.addPass(createCanonicalizerPass());
  // The bodies of com.microsoft's operators on integers are of the same form.
  pm.addPass(createOnnxPropagateQuantization());
  pm.addPass(createCSEPass());
}

void buildLinalgPhase(OpPassManager &pm, const PipelineOptions &) {
  pm.addPass(createConvertONNXToLinalg());
  pm.addPass(createSDXCanonicalize());
  pm.addPass(createSDXMergeEqual());
}

/// The passes that the module's target has for a stage.
std::unique_ptr<Pass> runTarget(TargetStage stage,
                                const PipelineOptions &options) {
  SDXRunTargetOptions target;
  target.stage = stage;
  target.numerics = options.numerics;
  target.precision = options.precision;
  return createSDXRunTarget(target);
}

/// Cut into kernels.
void buildDispatchPhase(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createSDXFoldEmpty());
  pm.addPass(createSDXShareRepeated());
  pm.addPass(createSDXDecomposeTensorOps());
  pm.addPass(createSDXSimplifyTransposes());
  pm.addPass(createSDXNormalizeContractions());
  pm.addPass(runTarget(TargetStage::Layout, options));
  // Constants leave before fusion, so that what runs once isn't fused into what
  // runs always.
  pm.addPass(createSDXHoistConstants());
  pm.addPass(createSDXFuseElementwise());
  pm.addPass(createSDXFoldRequantization());
  pm.addPass(createSDXLinearizeQuantizedSums());
  pm.addPass(createSDXFormDispatches());
  pm.addPass(createSDXLowerObservations());
  pm.addPass(runTarget(TargetStage::Fusion, options));
  pm.addPass(createSDXParameterizeKernels());
  pm.addPass(createSDXDedupKernels());
  pm.addPass(createSDXVerifyDispatch());
}

/// Buffers for the host program.
void buildKernelsPhase(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createSDXBufferizeHost());
  pm.addPass(createSDXPlaceBuffers());
  pm.addPass(createSDXPlanMemory());
  pm.addPass(createSDXOutlineDeviceCopies());
  pm.addPass(runTarget(TargetStage::Plan, options));
  SDXVerifyDispatchOptions bufferized;
  bufferized.bufferized = true;
  pm.addPass(createSDXVerifyDispatch(bufferized));
  // While kernels still say what they compute.
  if (options.profile)
    pm.addPass(createSDXInstrumentHost());
}

/// Kernels become loops or images, and the host program calls of the runtime.
void buildCodegenPhase(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(runTarget(TargetStage::Codegen, options));
  // Both while calls, checks and views still say what they mean.
  if (options.verifyIndices)
    pm.addPass(createSDXVerifyIndices());
  if (options.checkBounds) {
    pm.nest<func::FuncOp>().addPass(createSDXCheckBounds());
    pm.nest<func::FuncOp>().addPass(createCanonicalizerPass());
  }
  pm.addPass(createSDXLowerHostCopies());
  pm.addPass(createSDXLowerDeviceOps());
  pm.addPass(createSDXLowerHostOps());
  pm.nest<func::FuncOp>().addPass(createSDXLowerHostViews());
  pm.nest<func::FuncOp>().addPass(createSDXVerifyCodegen());
  pm.addPass(createSDXLowerHostParallel());
  pm.addPass(createSDXPollHostLoops());
  pm.addPass(createCanonicalizerPass());
}

void buildLLVMPhase(OpPassManager &pm, const PipelineOptions &) {
  buildLLVMLoweringPipeline(pm);
  pm.addPass(createSDXMergeSimilarBodies());
  pm.addPass(createSDXMergeSimilarLoops());
  pm.addPass(createSDXFinalizeHost());
}

void buildNothing(OpPassManager &, const PipelineOptions &) {}

constexpr PhaseInfo phases[] = {
    {Phase::Import, "import", "the onnx dialect, as imported", buildNothing},
    {Phase::Onnx, "onnx", "functions inlined, shapes inferred, simplified",
     buildOnnxPhase},
    {Phase::Linalg, "linalg", "loop nests on tensors", buildLinalgPhase},
    {Phase::Dispatch, "dispatch", "kernels and the host program on tensors",
     buildDispatchPhase},
    {Phase::Kernels, "kernels", "the host program on buffers, memory planned",
     buildKernelsPhase},
    {Phase::Codegen, "codegen", "kernels as loops over vectors",
     buildCodegenPhase},
    {Phase::Llvm, "llvm", "the llvm dialect", buildLLVMPhase},
};

} // namespace

ArrayRef<PhaseInfo> getPhases() { return phases; }

std::optional<Phase> parsePhase(StringRef name) {
  for (const PhaseInfo &info : phases)
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}

StringRef getPhaseName(Phase phase) {
  return phases[static_cast<size_t>(phase)].name;
}

std::string listPhaseNames() {
  return llvm::join(
      llvm::map_range(phases, [](const PhaseInfo &info) { return info.name; }),
      ", ");
}

LogicalResult runPhases(ModuleOp module, Phase from, Phase to,
                        const PipelineOptions &options, PhaseObserver observer,
                        function_ref<LogicalResult(PassManager &)> configure) {
  for (const PhaseInfo &info : phases) {
    if (info.phase <= from || info.phase > to)
      continue;
    auto start = std::chrono::steady_clock::now();
    PassManager pm(module.getContext(), ModuleOp::getOperationName());
    if (configure && failed(configure(pm)))
      return failure();
    info.build(pm, options);
    // Mistakes of a model are found before there are loops.
    bool verifiesEachPass =
        options.verifiesEachPass || info.phase <= Phase::Kernels;
    pm.enableVerifier(verifiesEachPass);
    if (failed(pm.run(module)) || (!verifiesEachPass && failed(verify(module))))
      return failure();
    std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - start;
    if (observer)
      observer(info.name, elapsed.count());
  }
  return success();
}

LogicalResult inlineFunctions(ModuleOp module) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.addPass(createOnnxInlineFunctions());
  return pm.run(module);
}

void registerPipelines() {
  for (const PhaseInfo &info : phases) {
    if (info.phase == Phase::Import)
      continue;
    PassPipelineRegistration<>(
        ("sardonyx-phase-" + info.name).str(), info.summary,
        [build = info.build](OpPassManager &pm) { build(pm, {}); });
  }
}

} // namespace sardonyx
