//===- onnx-opt.cpp - Run passes and phases on a module -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/InitAll.h"
#include "sardonyx/Objects/Facts.h"
#include "sardonyx/Objects/Passes.h"
#include "sardonyx/Pipelines/Pipelines.h"
#include "sardonyx/Session/Passes.h"
#include "sardonyx/Targets/Passes.h"

#include "mlir/IR/Action.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

#include <atomic>

using namespace mlir;
using namespace sardonyx;

static LogicalResult complain(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "onnx-opt") << message << "\n";
  return failure();
}

namespace {

/// What compiling costs, in numbers that no clock decides.
struct Work {
  std::atomic<uint64_t> operations{0}, patterns{0};
};

/// Counts the operations that each pass is given.
class WorkCounter : public PassInstrumentation {
public:
  explicit WorkCounter(Work &work) : work(work) {}
  void runBeforePass(Pass *, Operation *op) override {
    uint64_t count = 0;
    op->walk([&](Operation *) { ++count; });
    work.operations += count;
  }

private:
  Work &work;
};

} // namespace

static void countWork(PassManager &pm, Work &work) {
  pm.addInstrumentation(std::make_unique<WorkCounter>(work));
  pm.getContext()->registerActionHandler(
      [&work](function_ref<void()> run, const tracing::Action &action) {
        if (action.getTag() == "apply-pattern")
          ++work.patterns;
        run();
      });
}

static LogicalResult parsePhaseOption(StringRef option, StringRef name,
                                      Phase &phase) {
  if (std::optional<Phase> parsed = parsePhase(name)) {
    phase = *parsed;
    return success();
  }
  return complain("--" + option + "=" + name + ": no such phase; there are " +
                  listPhaseNames());
}

/// Names the machine in the module; without a name only where there is none.
static std::unique_ptr<Pass> attachTarget(const std::string &cpu) {
  SDXAttachTargetOptions options;
  options.byDefault = cpu.empty();
  if (cpu != "native")
    options.cpu = cpu;
  return createSDXAttachTarget(options);
}

namespace {

/// What the phases are asked for.
struct PhaseFlags {
  llvm::cl::OptionCategory category{"Phases"};
  llvm::cl::opt<std::string> compileTo{
      "compile-to",
      llvm::cl::desc("Run the phases up to this one; asm: print the assembly"),
      llvm::cl::value_desc("phase"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> compileFrom{
      "compile-from",
      llvm::cl::desc("The input is the output of this phase (default: import)"),
      llvm::cl::value_desc("phase"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> target{
      "target",
      llvm::cl::desc(
          "The processor to compile for, in the place of the module's "
          "sdx.target: a name of LLVM's, or `native`"),
      llvm::cl::value_desc("cpu"), llvm::cl::cat(category)};
  llvm::cl::opt<Numerics> numerics{"numerics", llvm::cl::init(Numerics::F32),
                                   llvm::cl::desc("How exact f32 is"),
                                   getNumericsValues(),
                                   llvm::cl::cat(category)};
  llvm::cl::opt<Precision> precision{
      "precision", llvm::cl::init(Precision::F32),
      llvm::cl::desc("What operands of f32 may be rounded to"),
      getPrecisionValues(), llvm::cl::cat(category)};
  llvm::cl::opt<bool> checkBounds{
      "check-bounds",
      llvm::cl::desc(
          "The codegen phase checks indices before memory is accessed"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> verifyIndices{
      "verify-indices",
      llvm::cl::desc("The codegen phase tells which accesses nothing keeps in "
                     "bounds"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> count{
      "count-work",
      llvm::cl::desc("Say how many operations the passes of the phases were "
                     "given and how many patterns were tried"),
      llvm::cl::cat(category)};

  bool toAssembly() const { return compileTo == "asm"; }
  /// The phases from one to another, and how.
  Phase from = Phase::Import, to = Phase::Llvm;
  PipelineOptions options;

  /// Reads what was given.
  LogicalResult parse();
  /// Has `config` run the phases, or passes for the machine that was given.
  void configure(MlirOptMainConfig &config, Work &work) const;
};

} // namespace

LogicalResult PhaseFlags::parse() {
  if (compileTo.empty())
    return compileFrom.empty()
               ? success()
               : complain("--compile-from wants --compile-to as well");
  if ((!toAssembly() &&
       failed(parsePhaseOption("compile-to", compileTo, to))) ||
      (!compileFrom.empty() &&
       failed(parsePhaseOption("compile-from", compileFrom, from))))
    return failure();
  if (!compileFrom.empty() && !toAssembly() && from >= to)
    return complain("--compile-from=" + compileFrom +
                    " is not before --compile-to=" + compileTo);
  options.numerics = numerics;
  options.precision = precision;
  options.checkBounds = checkBounds;
  options.verifyIndices = verifyIndices;
  return success();
}

void PhaseFlags::configure(MlirOptMainConfig &config, Work &work) const {
  if (!compileTo.empty()) {
    config.setPassPipelineSetupFn([this, &work](PassManager &pm) {
      if (count)
        countWork(pm, work);
      pm.addPass(attachTarget(target));
      for (const PhaseInfo &info : getPhases())
        if (info.phase > from && info.phase <= to)
          info.build(pm, options);
      return success();
    });
  } else if (!target.empty()) {
    config.setPassPipelineSetupFn([this, passes = config](PassManager &pm) {
      pm.addPass(attachTarget(target));
      if (failed(passes.setupPassPipeline(pm)))
        return failure();
      // What --pass-pipeline says takes the place of all that was there.
      if (!pm.empty() && pm.begin()->getArgument() == "sdx-attach-target")
        return success();
      return complain("--target goes with passes and phases by their names; a "
                      "--pass-pipeline begins with sdx-attach-target{cpu=" +
                      target + "}");
    });
  }
}

/// Writes the assembly of what `input` holds.
static LogicalResult printAssembly(std::unique_ptr<llvm::MemoryBuffer> input,
                                   DialectRegistry &registry,
                                   const PhaseFlags &flags,
                                   raw_ostream &output) {
  MLIRContext context(registry);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(input), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(*sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(*sources, &context);
  if (!module)
    return failure();
  PassManager pm(&context);
  pm.addPass(attachTarget(flags.target));
  if (failed(pm.run(*module)))
    return failure();
  if (failed(runPhases(*module, flags.from, flags.to, flags.options)))
    return failure();
  TargetOptions machine;
  if (cpu::TargetAttr known = cpu::getTarget(*module))
    machine = getTargetOptions(known);
  auto assembly = compileToAssembly(*module, machine);
  if (!assembly)
    return complain(llvm::toString(assembly.takeError()));
  output << *assembly;
  return success();
}

/// Keeps the output only where all of it was written.
static LogicalResult keep(llvm::ToolOutputFile &output, StringRef name) {
  output.os().flush();
  if (std::error_code code = output.os().error()) {
    output.os().clear_error();
    return complain("cannot write '" + name + "': " + code.message());
  }
  output.keep();
  return success();
}

static LogicalResult run(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();
  registerSardonyxSessionPasses();

  PhaseFlags flags;
  auto [inputName, outputName] = registerAndParseCLIOptions(
      argc, argv, "Sardonyx: passes and phases for ONNX models", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();

  if (failed(flags.parse()))
    return failure();
  Work work;
  flags.configure(config, work);

  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> input =
      openInputFile(inputName, &message);
  if (!input)
    return complain(message);
  if (bool isSame = false;
      !llvm::sys::fs::equivalent(inputName, outputName, isSame) && isSame)
    return complain("'" + outputName + "' is not written: it is the input");
  std::unique_ptr<llvm::ToolOutputFile> output =
      openOutputFile(outputName, &message);
  if (!output)
    return complain(message);
  if (flags.toAssembly()) {
    if (failed(printAssembly(std::move(input), registry, flags, output->os())))
      return failure();
    return keep(*output, outputName);
  }
  if (failed(MlirOptMain(output->os(), std::move(input), registry, config)))
    return failure();
  if (flags.count)
    llvm::errs() << "work: " << work.operations << " operations, "
                 << work.patterns << " patterns\n";
  return keep(*output, outputName);
}

int main(int argc, char **argv) { return asMainReturnCode(run(argc, argv)); }
