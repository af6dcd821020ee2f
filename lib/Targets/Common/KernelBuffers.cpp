//===- KernelBuffers.cpp - Kernels on tensors to kernels on buffers -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBuffers.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace sardonyx;

bool sardonyx::usesTensors(func::FuncOp func) {
  WalkResult result = func.walk([](Operation *op) {
    auto isTensor = [](Type type) { return isa<TensorType>(type); };
    return llvm::any_of(op->getResultTypes(), isTensor)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

LogicalResult sardonyx::bufferizeKernel(
    func::FuncOp func, Attribute space,
    bufferization::BufferizationOptions::AllocationFn allocate) {
  {
    RewritePatternSet patterns(func.getContext());
    tensor::populateDecomposeTensorConcatPatterns(patterns);
    if (failed(applyPatternsGreedily(func, std::move(patterns))))
      return failure();
  }
  IRRewriter rewriter(func.getContext());
  if (failed(bufferization::eliminateEmptyTensors(rewriter, func)))
    return failure();
  bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = false;
  options.bufferAlignment = 64;
  if (space)
    options.defaultMemorySpaceFn = [space](TensorType) { return space; };
  options.allocationFn = std::move(allocate);
  bufferization::BufferizationState state;
  return bufferization::runOneShotBufferize(func, options, state);
}

bool sardonyx::escapesBlock(Value value, Block *block) {
  for (Operation *user : value.getUsers()) {
    if (user->hasTrait<OpTrait::IsTerminator>())
      return true;
    for (Value result : user->getResults())
      if (isa<BaseMemRefType>(result.getType()) && escapesBlock(result, block))
        return true;
  }
  return false;
}

void sardonyx::insertDeallocs(func::FuncOp func) {
  SmallVector<memref::AllocOp> allocs;
  func.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  for (memref::AllocOp alloc : allocs) {
    Block *block = alloc->getBlock();
    if (llvm::any_of(alloc->getUsers(), llvm::IsaPred<memref::DeallocOp>))
      continue;
    if (escapesBlock(alloc, block))
      continue;
    OpBuilder b(block->getTerminator());
    memref::DeallocOp::create(b, alloc.getLoc(), alloc);
  }
}

LogicalResult sardonyx::lowerTaskLoops(func::FuncOp func) {
  SmallVector<scf::ForallOp> loops;
  func.walk([&](scf::ForallOp loop) { loops.push_back(loop); });
  if (loops.empty())
    return success();
  MLIRContext *context = func.getContext();
  IRRewriter rewriter(context);
  for (scf::ForallOp loop : loops) {
    rewriter.setInsertionPoint(loop);
    if (failed(scf::forallToParallelLoop(rewriter, loop)))
      return failure();
  }
  RewritePatternSet patterns(context);
  scf::ForOp::getCanonicalizationPatterns(patterns, context);
  scf::IfOp::getCanonicalizationPatterns(patterns, context);
  memref::SubViewOp::getCanonicalizationPatterns(patterns, context);
  if (failed(applyPatternsGreedily(func, std::move(patterns))))
    return failure();
  DominanceInfo dominance;
  eliminateCommonSubExpressions(rewriter, dominance, func);
  return success();
}
