//===- onnx-opt.cpp - Run passes and phases on a module -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/InitAll.h"
#include "sardonyx/Pipelines/Pipelines.h"

#include "mlir/IR/Action.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
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

static LogicalResult run(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();

  llvm::cl::OptionCategory category("Phases");
  llvm::cl::opt<std::string> compileTo(
      "compile-to", llvm::cl::desc("Run the phases up to this one"),
      llvm::cl::value_desc("phase"), llvm::cl::cat(category));
  llvm::cl::opt<std::string> compileFrom(
      "compile-from",
      llvm::cl::desc("The input is the output of this phase (default: import)"),
      llvm::cl::value_desc("phase"), llvm::cl::cat(category));
  llvm::cl::opt<unsigned> vectorBits(
      "vector-bits", llvm::cl::init(512),
      llvm::cl::desc("Width of the vector registers that phases aim at"),
      llvm::cl::cat(category));
  llvm::cl::opt<bool> checkBounds(
      "check-bounds",
      llvm::cl::desc(
          "The codegen phase checks indices before memory is accessed"),
      llvm::cl::cat(category));
  llvm::cl::opt<bool> verifyIndices(
      "verify-indices",
      llvm::cl::desc("The codegen phase tells which accesses nothing keeps in "
                     "bounds"),
      llvm::cl::cat(category));
  llvm::cl::opt<bool> count(
      "count-work",
      llvm::cl::desc("Say how many operations the passes of the phases were "
                     "given and how many patterns were tried"),
      llvm::cl::cat(category));
  auto [inputName, outputName] = registerAndParseCLIOptions(
      argc, argv, "Sardonyx: passes and phases for ONNX models", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();

  if (compileTo.empty() && !compileFrom.empty())
    return complain("--compile-from wants --compile-to as well");
  Work work;
  if (!compileTo.empty()) {
    Phase from = Phase::Import, to = Phase::Import;
    if (failed(parsePhaseOption("compile-to", compileTo, to)) ||
        (!compileFrom.empty() &&
         failed(parsePhaseOption("compile-from", compileFrom, from))))
      return failure();
    if (!compileFrom.empty() && from >= to)
      return complain("--compile-from=" + compileFrom +
                      " is not before --compile-to=" + compileTo);
    PipelineOptions options;
    options.target.vectorBits = vectorBits;
    options.checkBounds = checkBounds;
    options.verifyIndices = verifyIndices;
    config.setPassPipelineSetupFn([=, &count, &work](PassManager &pm) {
      if (count)
        countWork(pm, work);
      for (const PhaseInfo &info : getPhases())
        if (info.phase > from && info.phase <= to)
          info.build(pm, options);
      return success();
    });
  }

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
  if (failed(MlirOptMain(output->os(), std::move(input), registry, config)))
    return failure();
  if (count)
    llvm::errs() << "work: " << work.operations << " operations, "
                 << work.patterns << " patterns\n";
  output->os().flush();
  if (std::error_code code = output->os().error()) {
    output->os().clear_error();
    return complain("cannot write '" + outputName + "': " + code.message());
  }
  output->keep();
  return success();
}

int main(int argc, char **argv) { return asMainReturnCode(run(argc, argv)); }
