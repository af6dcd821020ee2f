//===- EmitPTX.cpp - Images of kernels ------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitPTX.h"

#include "dialects/NV/NV.h"
#include "sardonyx/Objects/FatalErrors.h"
#include "sardonyx/Objects/KeepErrors.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace sardonyx;

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

static void initializeNVPTX() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

static std::unique_ptr<llvm::TargetMachine> makeMachine(nv::TargetAttr device,
                                                        std::string &error) {
  initializeNVPTX();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple.str(), error);
  if (!target)
    return nullptr;
  // Of what it does not know LLVM only warns.
  std::unique_ptr<llvm::MCSubtargetInfo> known(
      target->createMCSubtargetInfo(triple, "", ""));
  std::string ptx = "ptx" + std::to_string(device.getPtxVersion());
  bool hasVersion =
      known && llvm::any_of(known->getAllProcessorFeatures(),
                            [&](const llvm::SubtargetFeatureKV &feature) {
                              return ptx == feature.Key;
                            });
  if (!hasVersion || !known->isCPUStringValid(device.getChip())) {
    error = device.getChip() + " with " + ptx + " is not known";
    return nullptr;
  }
  llvm::TargetOptions options;
  // What is asked for as a multiply-add becomes one; nothing else does.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, device.getChip(), "+" + ptx, options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(module, modules);
}

/// The PTX of `device`; where there is none, why.
static std::string makePTX(gpu::GPUModuleOp kernels, nv::TargetAttr device,
                           std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(device, error);
  if (!machine)
    return "";
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<KeepErrors>(error));
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(kernels, context, "sardonyx");
  if (!module) {
    error = "the kernels could not be translated to LLVM IR";
    return "";
  }
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  optimize(*module, *machine);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile)) {
    error = "LLVM emits no PTX";
    return "";
  }
  codegen.run(*module);
  return text.str().str();
}

static void describeKernels(gpu::GPUModuleOp kernels, Image &image) {
  for (auto func : kernels.getOps<LLVM::LLVMFuncOp>()) {
    if (!func->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      continue;
    DeviceKernel kernel;
    kernel.name = func.getName().str();
    if (auto node = func->getAttrOfType<StringAttr>(nv::kNodeAttr))
      kernel.node = node.getValue().str();
    kernel.arguments = func.getNumArguments();
    if (auto shared = func->getAttrOfType<IntegerAttr>(nv::kSharedAttr))
      kernel.sharedBytes = shared.getInt();
    image.kernels.push_back(std::move(kernel));
  }
  auto messages = kernels->getAttrOfType<ArrayAttr>(nv::kMessagesAttr);
  if (!messages)
    return;
  for (auto message : messages.getAsRange<DictionaryAttr>()) {
    Message made;
    if (auto text = message.getAs<StringAttr>("text"))
      made.text = text.getValue().str();
    if (auto kind = message.getAs<IntegerAttr>("kind"))
      made.kind = kind.getInt();
    image.messages.push_back(std::move(made));
  }
}

LogicalResult nv::emitImages(ModuleOp module, SmallVectorImpl<Image> &images) {
  nv::TargetAttr device = nv::getTarget(module);
  if (!device)
    return module.emitError("no 'sdx.target' says which device code is for");
  for (auto kernels :
       llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>())) {
    Image image;
    image.target = "nvidia";
    image.kind = ImageKind::PTX;
    image.architecture = device.getChip();
    std::string error;
    std::optional<std::string> fatal = recoverFatalErrors(
        [&] { image.bytes = makePTX(kernels, device, error); });
    if (fatal || !error.empty())
      return module.emitError("LLVM makes no PTX of the kernels: ")
             << (fatal ? *fatal : error);
    describeKernels(kernels, image);
    images.push_back(std::move(image));
    kernels.erase();
  }
  return success();
}
