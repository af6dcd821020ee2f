//===- Optimize.cpp - LLVM's optimiser for kernels ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Optimize.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Error.h"

using namespace sardonyx;

/// What kernels gain from LLVM's first level, in a third of its time. They come
/// vectorised, unrolled and without calls to each other: what addresses and
/// loops are made of is simplified, and loops over scalars become ones over
/// vectors.
static constexpr llvm::StringLiteral kKernelPasses =
    "globalopt,always-inline,cgscc(inline),globaldce,"
    "function(sroa,early-cse<memssa>,simplifycfg,"
    "instcombine<no-verify-fixpoint>,"
    "loop-mssa(licm<no-allowspeculation>,loop-rotate,licm),loop(indvars),"
    "loop-vectorize,instsimplify,simplifycfg),globaldce";

/// Whether a loop, or one in it, computes on vectors.
static bool hasVectors(const llvm::Loop &loop) {
  for (const llvm::BasicBlock *block : loop.blocks())
    for (const llvm::Instruction &instruction : *block)
      if (instruction.getType()->isVectorTy())
        return true;
  return false;
}

void sardonyx::optimize(llvm::Module &module, llvm::TargetMachine &machine,
                        cpu::TargetAttr target, const TargetOptions &options) {
  std::string width = std::to_string(target.getVectorBits());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    // Without these, targets with "prefer 256 bits" split wider vectors.
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
    function.addFnAttr("target-cpu", options.cpu);
    function.addFnAttr("target-features", options.features);
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = options.optLevel >= 1;
  tuning.SLPVectorization = options.optLevel >= 3;
  tuning.LoopUnrolling = options.optLevel >= 2;
  llvm::PassInstrumentationCallbacks callbacks;
  // Which function a pointer calls is not asked here, and asking takes time
  // that grows with the square of a call's arguments.
  callbacks.registerShouldRunOptionalPassCallback(
      [&](llvm::StringRef pass, llvm::Any where) {
        if (pass == "CalledValuePropagationPass" || isStopped(options))
          return false;
        // Simpler induction variables help to make vectors, which is done for
        // most loops, and take a fifth of all time.
        auto *loop = llvm::any_cast<const llvm::Loop *>(&where);
        return pass != "IndVarSimplifyPass" || options.optLevel > 1 || !loop ||
               !hasVectors(**loop);
      });
  llvm::PassBuilder builder(&machine, tuning, /*PGOOpt=*/std::nullopt,
                            &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  static const llvm::OptimizationLevel kLevels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::OptimizationLevel level = kLevels[std::min(options.optLevel, 3u)];
  llvm::ModulePassManager passes;
  if (level == llvm::OptimizationLevel::O0)
    passes = builder.buildO0DefaultPipeline(level);
  else if (level == llvm::OptimizationLevel::O1)
    llvm::cantFail(builder.parsePassPipeline(passes, kKernelPasses));
  else
    passes = builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
}
