//===- LLVMLowering.cpp - Loops and vectors to the llvm dialect -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LLVMLowering.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void sardonyx::buildLLVMLoweringPipeline(OpPassManager &pm) {
  // What works inside of one function runs on all functions in parallel.
  OpPassManager &loops = pm.nest<func::FuncOp>();
  loops.addPass(createConvertVectorToSCFPass());
  loops.addPass(memref::createExpandStridedMetadataPass());
  loops.addPass(createLowerAffinePass());
  loops.addPass(createCSEPass());
  loops.addPass(createLoopInvariantCodeMotionPass());
  // Declares library functions, therefore on the module.
  pm.addPass(createConvertMathToLibmPass());
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createSCFToControlFlowPass());
  arith::ArithExpandOpsPassOptions expand;
  // LLVM would call a library function for f32 to bf16 where the processor has
  // no instruction, and flush denormals where it has one.
  expand.includeBf16 = true;
  func.addPass(arith::createArithExpandOpsPass(expand));
  func.addPass(createConvertMathToLLVMPass());
  ConvertVectorToLLVMPassOptions vector;
  vector.reassociateFPReductions = true;
  func.addPass(createConvertVectorToLLVMPass(vector));
  func.addPass(createConvertIndexToLLVMPass());
  func.addPass(createUBToLLVMConversionPass());
  func.addPass(createArithToLLVMConversionPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  OpPassManager &llvmFunc = pm.nest<LLVM::LLVMFuncOp>();
  llvmFunc.addPass(createCanonicalizerPass());
  llvmFunc.addPass(createCSEPass());
}
