//===- LLVMLowering.cpp - Loops and vectors to the llvm dialect -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LLVMLowering.h"

#include "sardonyx/Objects/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void sardonyx::buildLLVMLoweringPipeline(OpPassManager &pm) {
  OpPassManager &loops = pm.nest<func::FuncOp>();
  loops.addPass(createConvertVectorToSCFPass());
  loops.addPass(memref::createExpandStridedMetadataPass());
  loops.addPass(createLowerAffinePass());
  loops.addPass(createCSEPass());
  loops.addPass(createLoopInvariantCodeMotionPass());
  // The rest makes its patterns anew each time that it runs, which takes longer
  // than most functions: it runs on the module.
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createSCFToControlFlowPass());
  arith::ArithExpandOpsPassOptions expand;
  // LLVM would call a library function for f32 to bf16 where the processor has
  // no instruction, and flush denormals where it has one.
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  pm.addPass(createSDXLowerVectors());
  pm.addPass(createSDXConvertToLLVM());
  pm.addPass(createReconcileUnrealizedCastsPass());
  OpPassManager &llvmFunc = pm.nest<LLVM::LLVMFuncOp>();
  GreedyRewriteConfig config;
  // LLVM joins and removes blocks itself, sooner.
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  llvmFunc.addPass(createCanonicalizerPass(config));
  llvmFunc.addPass(createCSEPass());
}
