//===- Target.cpp - From the llvm dialect to objects ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Objects/Objects.h"
#include "ExpandShortFloats.h"
#include "FetchIntoL1.h"
#include "Optimize.h"
#include "Partition.h"
#include "ScalarizeSingleLanes.h"
#include "SplitLongBlocks.h"
#include "SplitMaskedLoads.h"
#include "SplitMaskedStores.h"
#include "SplitWideCompares.h"
#include "TargetMachine.h"
#include "sardonyx/Objects/Facts.h"
#include "sardonyx/Objects/FatalErrors.h"
#include "sardonyx/Objects/KeepErrors.h"
#include "sardonyx/Runtime/ProcessorFeatures.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace mlir;

namespace sardonyx {

static void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

bool requestTileRegisters() { return runtime::requestTileRegisters(); }

/// The machines that code may be for, whichever this one is; a process needs
/// them once. Named one by one: LLVM has twenty more, which a program that
/// holds LLVM would carry along.
static void initializeOtherTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
#define SARDONYX_INITIALIZE(NAME)                                              \
  LLVMInitialize##NAME##TargetInfo();                                          \
  LLVMInitialize##NAME##Target();                                              \
  LLVMInitialize##NAME##TargetMC();                                            \
  LLVMInitialize##NAME##AsmPrinter();                                          \
  LLVMInitialize##NAME##AsmParser();
    SARDONYX_INITIALIZE(X86)
    SARDONYX_INITIALIZE(AArch64)
    SARDONYX_INITIALIZE(WebAssembly)
#undef SARDONYX_INITIALIZE
  });
}

/// Whether code is for another kind of processor than this machine's.
static bool isForeign(const llvm::Triple &triple) {
  return triple.getArch() !=
         llvm::Triple(llvm::sys::getProcessTriple()).getArch();
}

TargetOptions resolveTarget(TargetOptions options) {
  if (options.triple.empty())
    options.triple = llvm::sys::getProcessTriple();
  llvm::Triple triple(options.triple);
  if (triple.isWasm() && !StringRef(options.features).contains("simd128"))
    options.features += options.features.empty() ? "+simd128" : ",+simd128";
  if (!options.cpu.empty())
    return options;
  if (isForeign(triple)) {
    options.cpu = "generic";
    return options;
  }
  const llvm::StringMap<bool> here = llvm::sys::getHostCPUFeatures();
  options.cpu = nameProcessor(llvm::sys::getHostCPUName(), here);
  if (options.features.empty()) {
    // Sorted: the map's order must not leak into cache keys.
    std::vector<std::string> features;
    for (const auto &feature : here) {
      bool usable = feature.second && (!feature.first().starts_with("amx-") ||
                                       requestTileRegisters());
      features.push_back((usable ? "+" : "-") + feature.first().str());
    }
    llvm::sort(features);
    options.features = llvm::join(features, ",");
  }
  return options;
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(const TargetOptions &options) {
  initializeTargets();
  llvm::Triple triple(llvm::Triple::normalize(options.triple));
  if (isForeign(triple))
    initializeOtherTargets();
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple.str(), error);
  if (!target)
    return llvm::createStringError("no code generator for '" + triple.str() +
                                   "': " + error);
  // Asked of no processor, which says nothing of one that it does not know.
  std::unique_ptr<llvm::MCSubtargetInfo> known(
      target->createMCSubtargetInfo(triple, "", ""));
  if (!known || !known->isCPUStringValid(options.cpu))
    return llvm::createStringError("processor '" + options.cpu +
                                   "' is not known for '" + triple.str() + "'");
  llvm::TargetOptions codegen;
  // What is asked for as a multiply-add (vector.fma, which arrives as
  // llvm.fmuladd) becomes one instruction; nothing else is contracted.
  codegen.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  codegen.FunctionSections = false;
  static constexpr llvm::CodeGenOptLevel kLevels[] = {
      llvm::CodeGenOptLevel::None, llvm::CodeGenOptLevel::Less,
      llvm::CodeGenOptLevel::Default, llvm::CodeGenOptLevel::Aggressive};
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, options.cpu, options.features, codegen,
      triple.isWasm() ? llvm::Reloc::Static : llvm::Reloc::PIC_,
      llvm::CodeModel::Small, kLevels[std::min(options.optLevel, 3u)]));
  if (!machine)
    return llvm::createStringError("no code generator for processor '" +
                                   options.cpu + "'");
  return machine;
}

llvm::Expected<std::string> requiredFeatures(const TargetOptions &options) {
  auto machine = makeTargetMachine(resolveTarget(options));
  if (!machine)
    return machine.takeError();
  const llvm::MCSubtargetInfo &subtarget = *(*machine)->getMCSubtargetInfo();
  std::string features;
  for (std::string_view name : runtime::knownFeatures(
           (*machine)->getTargetTriple().getArchName().str()))
    if (subtarget.checkFeatures("+" + std::string(name)))
      features += (features.empty() ? "" : ",") + std::string(name);
  return features;
}

std::string describeTarget(const TargetOptions &options) {
  TargetOptions resolved = resolveTarget(options);
  return resolved.triple + ";" + resolved.cpu + ";" + resolved.features + ";O" +
         std::to_string(resolved.optLevel) + ";llvm" LLVM_VERSION_STRING +
         (resolved.device.empty() ? "" : ";" + resolved.device);
}

void registerTargetTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// Has LLVM add sums of integers up in the order of the code, where products of
/// 16 bits are added by an instruction: a tile of sums has all registers, and
/// regrouped sums of several steps need more.
static void keepOrderOfSums() {
  auto keep = [](llvm::TargetMachine &machine, llvm::PassManagerBase &,
                 llvm::TargetPassConfig *passes) {
    const llvm::MCSubtargetInfo &info = *machine.getMCSubtargetInfo();
    if (machine.getTargetTriple().isX86() &&
        !info.checkFeatures("+avx512vnni") && !info.checkFeatures("+avxvnni"))
      passes->disablePass(&llvm::MachineCombinerID);
  };
  static llvm::RegisterTargetPassConfigCallback callback(keep);
}

/// What the machine makes of `module`, without a change to it.
static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
emit(llvm::Module &module, llvm::TargetMachine &machine,
     llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager codegen;
  keepOrderOfSums();
  if (machine.addPassesToEmitFile(codegen, stream, nullptr, type))
    return llvm::createStringError("the target can't emit this kind of file");
  codegen.run(module);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(bytes), /*RequiresNullTerminator=*/false);
}

/// An object, or assembly.
using Emitted = llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>;

/// What `make` makes, or why LLVM cannot go on with it. It sets the handler of
/// its LLVM context.
static Emitted
makeSafely(llvm::function_ref<Emitted(std::unique_ptr<llvm::DiagnosticHandler>)>
               make) {
  std::optional<Emitted> result;
  std::string errors;
  std::optional<std::string> fatal = recoverFatalErrors(
      [&] { result.emplace(make(std::make_unique<KeepErrors>(errors))); });
  if (!fatal && errors.empty())
    return std::move(*result);
  if (!fatal)
    llvm::consumeError(result->takeError());
  return llvm::make_error<CodegenFailure>(fatal ? *fatal : errors);
}

Emitted compileData(llvm::Module &module, const TargetOptions &given) {
  auto machine = makeTargetMachine(resolveTarget(given));
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  return makeSafely([&](auto handler) {
    module.getContext().setDiagnosticHandler(std::move(handler));
    return emit(module, **machine, llvm::CodeGenFileType::ObjectFile);
  });
}

char CodegenFailure::ID = 0;

llvm::StringRef CodegenFailure::function() const {
  if (!found.empty())
    return found;
  for (llvm::StringRef mark : {"In function: ", "in function ", "function '"}) {
    size_t at = llvm::StringRef(text).find(mark);
    if (at != llvm::StringRef::npos)
      return llvm::StringRef(text)
          .substr(at + mark.size())
          .take_until([](char c) {
            return c == '\n' || c == ' ' || c == '\'' || c == ':';
          });
  }
  return "";
}

void CodegenFailure::log(llvm::raw_ostream &os) const { os << text; }

/// Translates and compiles `module`, whose ops nothing else may touch.
static Emitted compileOne(ModuleOp module, cpu::TargetAttr target,
                          const TargetOptions &options,
                          llvm::CodeGenFileType type,
                          std::unique_ptr<llvm::DiagnosticHandler> handler) {
  auto machine = makeTargetMachine(options);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::move(handler));
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, context, "sardonyx");
  if (!translated)
    return llvm::createStringError(
        "the llvm dialect could not be translated to LLVM IR");
  translated->setTargetTriple((*machine)->getTargetTriple());
  translated->setDataLayout((*machine)->createDataLayout());
  optimize(*translated, **machine, target, options);
  if (isStopped(options))
    return llvm::createStringError("compiling was stopped");
  const bool isWeb = (*machine)->getTargetTriple().isWasm();
  if (isWeb)
    expandShortFloats(*translated);
  for (llvm::Function &function : *translated) {
    splitMaskedLoads(function, target.getVectorBits());
    if (target.getVectorBits() < 512)
      splitMaskedStores(function, target.getVectorBits(),
                        target.has(cpu::TargetTraits::SlowMaskedStores));
    scalarizeSingleLanes(function);
    if (isWeb)
      splitWideCompares(function);
    chooseCacheOfFetches(
        function,
        {target.has(cpu::TargetTraits::FastL1Prefetch), target.hasRoomyL1()});
  }
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(kHostAttr) && !function.isExternal())
      splitLongBlocks(*translated->getFunction(function.getName()));
  return emit(*translated, **machine, type);
}

static Emitted compileOne(ModuleOp module, cpu::TargetAttr target,
                          const TargetOptions &options,
                          llvm::CodeGenFileType type) {
  return makeSafely([&](auto handler) {
    return compileOne(module, target, options, type, std::move(handler));
  });
}

/// Whether LLVM has code for anything at all with these options.
static bool canCompile(MLIRContext *context, cpu::TargetAttr target,
                       const TargetOptions &options) {
  Location loc = UnknownLoc::get(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  auto b = OpBuilder::atBlockEnd(module->getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {});
  auto func = LLVM::LLVMFuncOp::create(b, loc, "nothing", type);
  b.setInsertionPointToStart(func.addEntryBlock(b));
  LLVM::ReturnOp::create(b, loc, ValueRange());
  auto code =
      compileOne(*module, target, options, llvm::CodeGenFileType::ObjectFile);
  if (code)
    return true;
  llvm::consumeError(code.takeError());
  return false;
}

/// What the module says of its machine, or what is known of the options'.
static cpu::TargetAttr targetOf(ModuleOp module, const TargetOptions &options) {
  module.getContext()->getOrLoadDialect<cpu::CPUDialect>();
  if (cpu::TargetAttr target = cpu::getTarget(module))
    return target;
  return getTargetAttr(module.getContext(), options);
}

/// Finds the function that a failure is of, where LLVM does not tell: each of
/// `definitions` is compiled by itself.
static llvm::Error findFunction(llvm::Error error, ModuleOp module,
                                ArrayRef<Operation *> definitions,
                                cpu::TargetAttr target,
                                const TargetOptions &options) {
  auto find = [&](const CodegenFailure &failure) -> llvm::Error {
    std::string name = failure.function().str();
    if (name.empty() && canCompile(module.getContext(), target, options))
      for (Operation *definition : definitions) {
        OwningOpRef<ModuleOp> part = extractPart(module, definition);
        // What nobody calls here is compiled all the same.
        for (auto func : part->getOps<LLVM::LLVMFuncOp>())
          func.setLinkage(LLVM::Linkage::External);
        auto code = compileOne(*part, target, options,
                               llvm::CodeGenFileType::ObjectFile);
        if (code)
          continue;
        llvm::consumeError(code.takeError());
        name = cast<LLVM::LLVMFuncOp>(definition).getName().str();
        break;
      }
    return llvm::make_error<CodegenFailure>(failure.reason(), name);
  };
  return llvm::handleErrors(std::move(error), find);
}

llvm::Expected<std::vector<std::unique_ptr<llvm::MemoryBuffer>>>
compileToObjects(ModuleOp module, const TargetOptions &given) {
  TargetOptions options = resolveTarget(given);
  cpu::TargetAttr target = targetOf(module, options);
  unsigned threads =
      llvm::heavyweight_hardware_concurrency().compute_thread_count();
  if (options.threads)
    threads = std::min(threads, options.threads);
  // More parts than threads even out what the estimate of a part's cost
  // missed; each has a fixed cost of a few milliseconds.
  auto parts = partitionModule(module, threads > 1 ? 2 * threads : 1);
  auto modules = moveParts(module, parts);
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects(parts.size());
  std::mutex mutex;
  llvm::Error errors = llvm::Error::success();
  std::optional<size_t> failed;
  auto compilePart = [&](size_t i) {
    if (isStopped(options))
      return;
    auto object = compileOne(*modules[i], target, options,
                             llvm::CodeGenFileType::ObjectFile);
    if (object) {
      objects[i] = std::move(*object);
      return;
    }
    std::lock_guard<std::mutex> lock(mutex);
    if (failed)
      return llvm::consumeError(object.takeError());
    failed = i;
    errors = object.takeError();
  };
  initializeTargets();
  if (threads == 1 || parts.size() == 1 ||
      !module.getContext()->isMultithreadingEnabled()) {
    for (size_t i = 0; i < parts.size(); ++i)
      compilePart(i);
  } else {
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency(threads));
    for (size_t i = 0; i < parts.size(); ++i)
      pool.async([&compilePart, i] { compilePart(i); });
    pool.wait();
  }
  // The module stays the caller's.
  for (ArrayRef<Operation *> definitions : parts)
    for (Operation *op : definitions)
      op->moveBefore(module.getBody(), module.getBody()->end());
  if (isStopped(options)) {
    llvm::consumeError(std::move(errors));
    return llvm::createStringError("compiling was stopped");
  }
  if (failed)
    return findFunction(std::move(errors), module, parts[*failed], target,
                        options);
  llvm::cantFail(std::move(errors));
  return std::move(objects);
}

llvm::Expected<std::string> compileToAssembly(ModuleOp module,
                                              const TargetOptions &given) {
  TargetOptions options = resolveTarget(given);
  cpu::TargetAttr target = targetOf(module, options);
  OwningOpRef<ModuleOp> copy = cast<ModuleOp>(module->clone());
  auto text =
      compileOne(*copy, target, options, llvm::CodeGenFileType::AssemblyFile);
  if (!text) {
    SmallVector<Operation *> definitions;
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (!function.isExternal())
        definitions.push_back(function);
    return findFunction(text.takeError(), module, definitions, target, options);
  }
  return (*text)->getBuffer().str();
}

} // namespace sardonyx
