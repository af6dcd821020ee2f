//===- Compiler.cpp - From a model to an artifact -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/Compiler.h"
#include "lib/Session/Compile/CompilerPages.h"
#include "lib/Session/Compile/CompilerWork.h"
#include "lib/Session/Compile/DeviceWork.h"
#include "lib/Session/Compile/Images.h"
#include "lib/Session/Compile/Options.h"
#include "lib/Session/Compile/Signature.h"
#include "lib/Session/Variants/KnownValues.h"
#include "lib/Session/Variants/OpenSizes.h"
#include "lib/Session/Variants/Variants.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "sardonyx/BoxedResults.h"
#include "sardonyx/Importer/Importer.h"
#include "sardonyx/Objects/Facts.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include "sardonyx/Targets/Plans.h"
#include "sardonyx/Targets/Target.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ThreadPool.h"

#include <chrono>
#include <pthread.h>

using namespace sardonyx;
using namespace mlir;

//===----------------------------------------------------------------------===//
// What compilations share
//===----------------------------------------------------------------------===//

/// Built once: it takes longer than compiling a small model.
static const DialectRegistry &sharedRegistry() {
  static const DialectRegistry *registry = [] {
    auto *result = new DialectRegistry;
    registerCompilerDialects(*result);
    registerLinkedTargets(*result);
    return result;
  }();
  return *registry;
}

/// Threads for passes, shared by all compilations of the process; none in a
/// forked child, where they would be gone.
static llvm::ThreadPoolInterface *sharedThreads() {
  static bool forked = false;
  static llvm::ThreadPoolInterface *pool = []() -> llvm::ThreadPoolInterface * {
    unsigned threads = runtime::ThreadPool::global().defaultThreads();
    if (threads < 2)
      return nullptr;
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
    return new CompilerThreads(threads);
  }();
  return forked ? nullptr : pool;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

Compilation::Compilation(const SessionOptions &options,
                         const std::atomic<bool> *stop)
    : options(options), stop(stop) {
  mlirContext = std::make_unique<MLIRContext>(sharedRegistry(),
                                              MLIRContext::Threading::DISABLED);
  if (options.intraOpThreads != 1)
    if (llvm::ThreadPoolInterface *threads = sharedThreads())
      mlirContext->setThreadPool(*threads);
  customInference = CustomInference::attach(*mlirContext, options.customOps);
  mlirContext->printOpOnDiagnostic(false);
  mlirContext->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      log.add(diagnostic);
    else if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
      log.addWarning(diagnostic);
    return success();
  });
}

Compilation::~Compilation() = default;

void Compilation::record(llvm::StringRef step, double seconds) {
  // What the passes after it find is nobody's model any more.
  if (step == getPhaseName(Phase::Linalg))
    log.enterBackend();
  timings.push_back({step.str(), seconds});
}

static double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

namespace {
struct NameInlined : PassInstrumentation {
  explicit NameInlined(DiagnosticLog &log) : log(log) {}
  void runAfterPass(Pass *pass, Operation *op) override {
    if (pass->getArgument() == "onnx-inline-functions")
      log.nameOperators(cast<ModuleOp>(op));
  }
  DiagnosticLog &log;
};

/// Has the first pass fail that begins after `stop` has become true. A handler
/// of MLIR's actions could leave passes out, but is also called for each
/// attempt to apply a pattern, which is a tenth of the time of all passes.
struct StopPasses : PassInstrumentation {
  explicit StopPasses(const std::atomic<bool> &stop) : stop(stop) {}
  void runBeforePass(Pass *pass, Operation *) override {
    struct Access : Pass {
      using Pass::signalPassFailure;
    };
    if (stop.load())
      (pass->*&Access::signalPassFailure)();
  }
  const std::atomic<bool> &stop;
};
} // namespace

LogicalResult Compilation::run(ModuleOp module, Phase from, Phase to,
                               PhaseObserver observer) {
  auto configure = [&](PassManager &passes) {
    passes.addInstrumentation(std::make_unique<NameInlined>(log));
    if (stop)
      passes.addInstrumentation(std::make_unique<StopPasses>(*stop));
    return success();
  };
  return runPhases(module, from, to, pipeline(), observer, configure);
}

Error Compilation::error(const std::string &otherwise) const {
  if (stopped())
    return Error(ErrorKind::Failed, "compiling the model was stopped");
  return log.toError(otherwise);
}

OwningOpRef<ModuleOp> Compilation::import(const ModelSource &model) {
  auto start = std::chrono::steady_clock::now();
  ImportOptions importOptions;
  importOptions.externalDataDir = options.externalDataDir;
  importOptions.inputShapes = options.inputShapes;
  importOptions.denotedDims = options.denotedDims;
  importOptions.initializers = options.initializers;
  importOptions.outputs = options.outputs;
  if (options.customOps)
    importOptions.functions = options.customOps->functions();
  OwningOpRef<ModuleOp> module =
      model.bytes
          ? importOnnxBytes(
                StringRef(static_cast<const char *>(model.bytes), model.size),
                *mlirContext, importOptions)
          : importOnnxFile(model.path, *mlirContext, importOptions);
  record("import", secondsSince(start));
  if (module)
    log.nameOperators(*module);
  log.enterGraph();
  return module;
}

Expected<OwningOpRef<ModuleOp>>
Compilation::importFixed(const ModelSource &model, Artifact &signature,
                         bool asDeclared) {
  OwningOpRef<ModuleOp> module = import(model);
  if (!module)
    return error("the importer failed");
  if (MaybeError error = readSignature(*module, signature, asDeclared))
    return *error;
  if (options.distinctDims)
    forgetDimNames(*module);
  if (MaybeError error =
          fixDims(*module, options.dims, signature,
                  !options.inputShapes.empty() || !options.denotedDims.empty()
                      ? UnknownDims::AreIgnored
                  : options.mayDimsBeUnknown ? UnknownDims::AreTold
                                             : UnknownDims::AreErrors))
    return *error;
  if (MaybeError error =
          fixValues(*module, options.inputValues, signature.inputs))
    return *error;
  if (MaybeError error = observe(*module))
    return *error;
  auto machine = targetAttr();
  if (!machine)
    return machine.error();
  sdx::setTarget(*module, *machine);
  if (!options.plan.empty()) {
    auto plans = parsePlans(mlirContext.get(), options.plan);
    if (!plans)
      return Error(ErrorKind::InvalidArgument,
                   llvm::toString(plans.takeError()));
    (*module)->setAttr(kPlansAttr, *plans);
  }
  return module;
}

MaybeError Compilation::observe(ModuleOp module) {
  if (options.observe.empty())
    return std::nullopt;
  // Functions' values have names of their own where they are called.
  if (failed(inlineFunctions(module)))
    return error("the importer failed");
  std::vector<ObservedName> tensors;
  for (const auto &[name, tensor] : options.observe)
    tensors.push_back(
        {name, static_cast<sdx::ObservationKinds>(tensor.kinds), tensor.axis});
  std::string wrong = observeTensors(module, tensors);
  if (wrong.empty())
    return std::nullopt;
  return Error(ErrorKind::InvalidArgument, wrong);
}

/// What a person can make of LLVM's words: a line, unless it speaks of its
/// graphs.
static std::string firstWords(StringRef reason) {
  StringRef line = reason.split('\n').first.rtrim(" :");
  bool isOfGraph = line.contains("elect: ") || line.contains(" = ");
  return isOfGraph || line.empty() ? "" : " (" + line.str() + ")";
}

Error Compilation::codegenError(llvm::Error error, ModuleOp module,
                                const ModelSource &model,
                                const TargetOptions &target) const {
  std::optional<Error> refusal;
  std::string others;
  llvm::handleAllErrors(
      std::move(error),
      [&](const CodegenFailure &failure) {
        std::string node;
        if (Operation *function = module.lookupSymbol(failure.function()))
          function->walk<WalkOrder::PreOrder>([&](Operation *op) {
            node = log.describeNode(op->getLoc());
            return node.empty() ? WalkResult::advance()
                                : WalkResult::interrupt();
          });
        std::string name = model.path.empty() ? "" : " '" + model.path + "'";
        if (!refusal)
          refusal.emplace(
              ErrorKind::Unsupported,
              "the model" + name + " cannot be compiled for the processor '" +
                  target.cpu + "' of " + target.triple +
                  ": LLVM makes no code of " + (node.empty() ? "it" : node) +
                  firstWords(failure.reason()),
              failure.reason());
      },
      [&](const llvm::ErrorInfoBase &info) {
        others += info.message() + "; ";
      });
  return refusal ? *refusal
                 : internalError("code generation failed: " + others);
}

TargetOptions Compilation::target() const {
  TargetOptions target = targetOf(options);
  target.stop = stop;
  return resolveTarget(target);
}

Expected<sdx::TargetAttrInterface> Compilation::targetAttr() {
  MachineLimits limits;
  // Accesses of tiles cannot be checked, and LLVM allocates tile registers only
  // where it optimises.
  limits.withoutTiles = options.checkBounds || options.optLevel == 0;
  limits.withoutSplitFloats = !splitsFloats(options);
  sdx::TargetAttrInterface machine =
      targetInfoOf(options)->describe(mlirContext.get(), target());
  if (!machine)
    return Error(ErrorKind::InvalidArgument,
                 "there is no code for the device '" +
                     options.device.architecture +
                     "': it is one as 'sm_90a', and from 'sm_80' on");
  return limitMachine(machine, limits);
}

PipelineOptions Compilation::pipeline() const {
  PipelineOptions result;
  result.numerics = options.numerics;
  result.precision = options.precision;
  result.checkBounds = options.checkBounds;
  result.profile = options.profile;
  // Code that is not this compiler's own is followed more closely.
  result.verifiesEachPass =
      options.checkBounds ||
      (options.customOps && !options.customOps->mlir().empty());
  return result;
}

void Compilation::tellRemarks(ModuleOp module) const {
  if (options.remark)
    for (const std::string &sentence : listFallbacks(module))
      options.remark(sentence);
}

/// Whether a run may find that a tensor has another rank than it was given.
static bool assumesRank(ModuleOp module) {
  return module
      .walk([](sdx::CheckOp check) {
        return check.getKind() == sdx::FailureKind::OtherRank
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Describes results of any rank as what the program gives for them: lists of
/// the one tensor.
static MaybeError readBoxedResults(ModuleOp module, bool isAhead,
                                   Artifact &artifact) {
  auto boxed = module->getAttrOfType<DenseI64ArrayAttr>(kBoxedResultsAttr);
  if (!boxed)
    return std::nullopt;
  for (int64_t index : boxed.asArrayRef()) {
    ValueInfo &info = artifact.outputs[index];
    if (isAhead)
      return Error(ErrorKind::Unsupported,
                   "the model cannot be built ahead of time: the rank of its "
                   "output '" +
                       info.name + "' is known to runs only");
    info.items = {info};
  }
  return std::nullopt;
}

/// Removes the kernels that a module's host functions do not call.
static void dropUncalledKernels(ModuleOp module) {
  llvm::StringSet<> called;
  module.walk([&](sdx::CallOp call) { called.insert(call.getCallee()); });
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (func->hasAttr(sdx::kKernelAttr) && !called.contains(func.getName()))
      func.erase();
}

/// Takes @init out of a module after Phase::Kernels, into one of its own; null
/// where there is none.
static OwningOpRef<ModuleOp> splitInit(ModuleOp module) {
  auto init = module.lookupSymbol<func::FuncOp>("init");
  if (!init)
    return nullptr;
  OwningOpRef<ModuleOp> copy = module.clone();
  copy->lookupSymbol<func::FuncOp>("main").erase();
  init.erase();
  dropUncalledKernels(module);
  dropUncalledKernels(*copy);
  return copy;
}

/// Adds what the module says of plans that no kernel has to `warnings`.
static void takeStalePlans(ModuleOp module,
                           std::vector<std::string> &warnings) {
  auto stale = module->getAttrOfType<ArrayAttr>(kStalePlansAttr);
  if (!stale)
    return;
  for (auto sentence : stale.getAsValueRange<StringAttr>())
    warnings.push_back(sentence.str());
  module->removeAttr(kStalePlansAttr);
}

/// What is built ahead of time takes inputs of known ranks.
static MaybeError requireRanks(const std::vector<ValueInfo> &inputs,
                               bool isAhead) {
  for (const ValueInfo &input : inputs)
    if (isAhead && input.items.empty() && !input.hasRank)
      return Error(ErrorKind::Unsupported,
                   "the model cannot be built ahead of time: the rank of its "
                   "input '" +
                       input.name + "' is known to runs only");
  return std::nullopt;
}

/// Whether the processor may do what the module leaves to it.
static MaybeError checkHostWork(ModuleOp module,
                                const SessionOptions &options) {
  if (!options.device.cuda || options.device.mayUseCpu)
    return std::nullopt;
  return refuseHostWork(findDeviceWork(module));
}

/// What is known of a model before there are inputs to compile it for.
static Artifact deferCompilation(Artifact artifact) {
  Artifact signature;
  signature.deferred = true;
  signature.inputs = std::move(artifact.inputs);
  signature.outputs = std::move(artifact.outputs);
  signature.metadata = std::move(artifact.metadata);
  signature.warnings = std::move(artifact.warnings);
  return signature;
}

static void setTargetWithoutTiles(ModuleOp module,
                                  sdx::TargetAttrInterface machine) {
  MachineLimits limits;
  limits.withoutTiles = true;
  sdx::setTarget(module, limitMachine(machine, limits));
}

/// Has a module be compiled for this machine.
static TargetOptions targetThisMachine(ModuleOp module,
                                       const SessionOptions &options) {
  TargetOptions here;
  here.optLevel = options.optLevel;
  here.threads = options.intraOpThreads;
  here = resolveTarget(here);
  setTargetWithoutTiles(
      module, targetInfoOf(options)->describe(module.getContext(), here));
  return here;
}

/// What stays where it is of a model in memory. What is built ahead of time has
/// all of its weights.
static StringRef bytesOf(const ModelSource &model, bool isAhead) {
  if (!model.bytes || isAhead)
    return StringRef();
  return StringRef(static_cast<const char *>(model.bytes), model.size);
}

/// In seconds.
static constexpr double kLongPhase = 0.2;

Expected<Artifact>
sardonyx::compileModel(const ModelSource &model, const SessionOptions &options,
                       std::vector<Timing> &timings, bool mayDefer,
                       const std::atomic<bool> *stop, AheadOfTime *ahead) {
  Compilation compilation(options, stop);
  Artifact artifact;
  Expected<OwningOpRef<ModuleOp>> imported =
      // Whoever takes sizes from a header has no run to tell him otherwise.
      compilation.importFixed(model, artifact, /*asDeclared=*/!ahead);
  if (!imported)
    return imported.error();
  OwningOpRef<ModuleOp> module = std::move(*imported);

  if (MaybeError error = requireRanks(artifact.inputs, ahead))
    return *error;

  llvm::append_range(artifact.warnings, compilation.warnings());
  const std::string modelPath = model.bytes ? std::string() : model.path;
  if (MaybeError error = readSourceFiles(*module, modelPath, artifact))
    return *error;

  // The code is to run here.
  if (!ahead && !requestTileRegisters())
    setTargetWithoutTiles(*module, sdx::getTarget(*module));
  std::string lastPhase;
  auto observer = [&](StringRef phase, double seconds) {
    lastPhase = phase.str();
    compilation.record(phase, seconds);
    // Most of what a long phase has read the next one needs not.
    if (seconds > kLongPhase)
      forgetCompilerPages();
  };
  // A compilation that was stopped has made no sense of the model.
  auto fail = [&](Error error) -> Expected<Artifact> {
    if (compilation.stopped())
      return Error(ErrorKind::Failed, "compiling the model was stopped");
    if (!mayDefer || error.kind() != ErrorKind::Unsupported ||
        !mayInputsHelp(*module, artifact.inputs))
      return error;
    return deferCompilation(std::move(artifact));
  };
  bool lowered = succeeded(
      compilation.run(*module, Phase::Import, Phase::Kernels, observer));
  if (!lowered || compilation.stopped())
    return fail(compilation.error("the compiler failed after phase '" +
                                  lastPhase + "'"));
  if (MaybeError error = checkHostWork(*module, options))
    return *error;
  if (MaybeError error =
          readArguments(*module, modelPath, bytesOf(model, ahead), artifact))
    return fail(*error);
  if (MaybeError error = readBoxedResults(*module, ahead, artifact))
    return *error;
  takeStalePlans(*module, artifact.warnings);
  compilation.tellRemarks(*module);
  artifact.assumesRank = assumesRank(*module);
  artifact.customCalls = compilation.customCalls();
  auto generate = [&](ModuleOp module, const TargetOptions &target,
                      StringRef prefix,
                      std::vector<std::string> &to) -> MaybeError {
    bool generated = succeeded(
        compilation.run(module, Phase::Kernels, Phase::Llvm, observer));
    if (!generated || compilation.stopped())
      return compilation.error("code generation failed after phase '" +
                               lastPhase + "'");
    auto start = std::chrono::steady_clock::now();
    takeImages(module, artifact.images);
    if (ahead && !llvm::all_of(artifact.images, isForDevice))
      return Error(ErrorKind::Unsupported,
                   "the model cannot be built ahead of time for the target '" +
                       artifact.images.front().target + "'");
    if (!prefix.empty())
      prefixSymbols(module, prefix);
    auto objects = compileToObjects(module, target);
    if (!objects)
      return compilation.codegenError(objects.takeError(), module, model,
                                      target);
    for (const auto &object : *objects)
      to.push_back(object->getBuffer().str());
    compilation.record("objects", secondsSince(start));
    return std::nullopt;
  };
  if (ahead && !options.device.cuda) {
    // Weights are packed here and now, by code for this machine.
    if (OwningOpRef<ModuleOp> init = splitInit(*module)) {
      TargetOptions here = targetThisMachine(*init, options);
      if (MaybeError error = generate(*init, here, "", ahead->initObjects))
        return fail(*error);
    }
  }
  if (MaybeError error = generate(*module, compilation.target(),
                                  ahead ? ahead->prefix : "", artifact.objects))
    return fail(*error);
  timings.insert(timings.end(), compilation.timings.begin(),
                 compilation.timings.end());
  return artifact;
}
