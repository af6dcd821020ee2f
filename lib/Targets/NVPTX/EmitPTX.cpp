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
#include "mlir/IR/Threading.h"
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

namespace {
/// The text of some kernels; where there is none, why.
struct EmittedText {
  std::string text, error;
  /// Whether it defines more than kernels: variables that LLVM has made.
  bool hasVariables = false;
};
} // namespace

static bool isDefinition(const llvm::GlobalVariable &variable) {
  return !variable.isDeclaration();
}

static EmittedText emitText(gpu::GPUModuleOp kernels, nv::TargetAttr device) {
  EmittedText emitted;
  std::unique_ptr<llvm::TargetMachine> machine =
      makeMachine(device, emitted.error);
  if (!machine)
    return emitted;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<KeepErrors>(emitted.error));
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(kernels, context, "sardonyx");
  if (!module) {
    emitted.error = "the kernels could not be translated to LLVM IR";
    return emitted;
  }
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  optimize(*module, *machine);
  emitted.hasVariables = llvm::any_of(module->globals(), isDefinition);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile)) {
    emitted.error = "LLVM emits no PTX";
    return emitted;
  }
  codegen.run(*module);
  emitted.text = text.str().str();
  return emitted;
}

/// The same where LLVM may end the work.
static EmittedText emitSafely(gpu::GPUModuleOp kernels, nv::TargetAttr device) {
  EmittedText emitted;
  if (std::optional<std::string> fatal =
          recoverFatalErrors([&] { emitted = emitText(kernels, device); }))
    emitted.error = *fatal;
  return emitted;
}

static bool isKernel(Operation &op) {
  return op.hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
}

/// The kernels in modules of a few, each with all else that the module has.
static SmallVector<OwningOpRef<gpu::GPUModuleOp>>
splitKernels(gpu::GPUModuleOp kernels) {
  // What a thread compiles at a time. The text is the same with any number of
  // threads.
  constexpr size_t kKernelsOfPart = 4;
  SmallVector<Operation *> others, entries;
  for (Operation &op : *kernels.getBody())
    (isKernel(op) ? entries : others).push_back(&op);
  SmallVector<OwningOpRef<gpu::GPUModuleOp>> parts;
  for (size_t begin = 0; begin < entries.size(); begin += kKernelsOfPart) {
    auto part = cast<gpu::GPUModuleOp>(kernels->cloneWithoutRegions());
    Block &body = part.getBodyRegion().emplaceBlock();
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    for (Operation *op : others)
      builder.clone(*op);
    for (Operation *op :
         ArrayRef(entries).drop_front(begin).take_front(kKernelsOfPart))
      builder.clone(*op);
    parts.push_back(part);
  }
  return parts;
}

/// One text of several for the same device: each begins with the same
/// directives, and declares the memory of a block that is as large as a launch
/// says.
static std::string join(ArrayRef<EmittedText> parts) {
  std::string all = parts.front().text;
  constexpr StringLiteral kLast = ".address_size 64\n",
                          kDeclaration = ".extern .shared ";
  bool declaresShared = StringRef(all).contains(kDeclaration);
  for (const EmittedText &part : parts.drop_front()) {
    StringRef rest = StringRef(part.text).split(kLast).second;
    while (!rest.empty()) {
      auto [line, others] = rest.split('\n');
      rest = others;
      const bool isDeclaration = line.starts_with(kDeclaration);
      if (isDeclaration && declaresShared)
        continue;
      declaresShared |= isDeclaration;
      all += line;
      all += '\n';
    }
  }
  return all;
}

/// The PTX of all kernels, by the threads of the context. Where a part has
/// variables, whose names would have to differ, it is made in one piece.
static std::string makePTX(gpu::GPUModuleOp kernels, nv::TargetAttr device,
                           std::string &error) {
  auto emitWhole = [&] {
    EmittedText whole = emitSafely(kernels, device);
    error = whole.error;
    return whole.text;
  };
  SmallVector<OwningOpRef<gpu::GPUModuleOp>> parts = splitKernels(kernels);
  if (parts.size() < 2)
    return emitWhole();
  std::vector<EmittedText> texts(parts.size());
  parallelFor(kernels.getContext(), 0, parts.size(),
              [&](size_t i) { texts[i] = emitSafely(*parts[i], device); });
  for (const EmittedText &text : texts)
    if (!text.error.empty()) {
      error = text.error;
      return "";
    }
  if (llvm::any_of(texts,
                   [](const EmittedText &text) { return text.hasVariables; }))
    return emitWhole();
  return join(texts);
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
    image.bytes = makePTX(kernels, device, error);
    if (!error.empty())
      return module.emitError("LLVM makes no PTX of the kernels: ") << error;
    // The runtime looks for it: machine code that is made of the text has it.
    if (kernels->hasAttr(nv::kWaitsAttr))
      image.bytes += "\n.visible .global .align 1 .b8 sdx_kernels_wait[1];\n";
    describeKernels(kernels, image);
    images.push_back(std::move(image));
    kernels.erase();
  }
  return success();
}
