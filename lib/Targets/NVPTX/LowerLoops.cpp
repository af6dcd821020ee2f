//===- LowerLoops.cpp - Any kernel as loops of threads --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/KernelBuffers.h"
#include "Conv/DecomposeLast.h"
#include "ThreadLoops.h"
#include "dialects/NV/NV.h"
#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERLOOPS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

static FailureOr<Value> allocate(OpBuilder &b, Location loc, MemRefType type,
                                 ValueRange sizes, unsigned) {
  return memref::AllocOp::create(b, loc, type, sizes).getResult();
}

/// Whether the host can order this copy as one of bytes.
static bool isCopyOfBytes(memref::CopyOp copy) {
  return !copy->getParentOfType<scf::ParallelOp>() &&
         copy->getParentOp() == copy->getParentOfType<func::FuncOp>() &&
         sdx::isContiguous(cast<MemRefType>(copy.getSource().getType())) &&
         sdx::isContiguous(cast<MemRefType>(copy.getTarget().getType()));
}

/// Copies that aren't bytes in a row become operations on elements.
static LogicalResult expandCopies(IRRewriter &rewriter, func::FuncOp func) {
  SmallVector<memref::CopyOp> copies;
  func.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  for (memref::CopyOp copy : copies) {
    if (!isa<MemRefType>(copy.getSource().getType()) ||
        !isa<MemRefType>(copy.getTarget().getType()))
      return copy.emitOpError("copies a buffer of unknown rank");
    if (copy.getSource() == copy.getTarget()) {
      rewriter.eraseOp(copy);
      continue;
    }
    if (isCopyOfBytes(copy))
      continue;
    rewriter.setInsertionPoint(copy);
    linalg::makeMemRefCopyOp(rewriter, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
    rewriter.eraseOp(copy);
  }
  return success();
}

/// Removes what nothing uses: sizes, and buffers that are only written.
static LogicalResult removeUnused(func::FuncOp func) {
  MLIRContext *context = func.getContext();
  RewritePatternSet patterns(context);
  memref::AllocOp::getCanonicalizationPatterns(patterns, context);
  memref::DimOp::getCanonicalizationPatterns(patterns, context);
  memref::CastOp::getCanonicalizationPatterns(patterns, context);
  memref::SubViewOp::getCanonicalizationPatterns(patterns, context);
  scf::ForOp::getCanonicalizationPatterns(patterns, context);
  scf::IfOp::getCanonicalizationPatterns(patterns, context);
  return applyPatternsGreedily(func, std::move(patterns));
}

static LogicalResult lowerKernel(func::FuncOp func) {
  Attribute space = nv::getTarget(func).getMemorySpace();
  if (failed(bufferizeKernel(func, space, allocate)))
    return func.emitError("kernel '")
           << func.getName() << "' could not be given buffers";
  if (failed(lowerTaskLoops(func)))
    return func.emitError("kernel '")
           << func.getName() << "' could not be given parallel loops";
  SmallVector<scf::ParallelOp> loops;
  func.walk([&](scf::ParallelOp loop) { loops.push_back(loop); });
  for (scf::ParallelOp loop : loops) {
    nv::nameStep(loop, "tasks");
    if (loop->getParentOfType<scf::ParallelOp>())
      nv::makeSequential(loop);
  }
  for (auto loop : func.getOps<scf::ParallelOp>())
    nv::shareTests(loop);
  insertDeallocs(func);
  IRRewriter rewriter(func.getContext());
  return expandCopies(rewriter, func);
}

namespace {

struct LowerLoopsPass : sardonyx::impl::NVLowerLoopsBase<LowerLoopsPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || !func->hasAttr(sdx::kKernelAttr))
      return;
    if (!nv::getTarget(func)) {
      func.emitError("no 'sdx.target' says which device code is for");
      return signalPassFailure();
    }
    if (hasBlocks(func))
      return;
    if (failed(decompose(func)) || failed(lowerKernel(func)) ||
        failed(emitLoops(func)) || failed(nv::wrapDeviceScalars(func)) ||
        failed(nv::placeThreadMemory(func)))
      signalPassFailure();
  }

private:
  /// Whether another pass has taken the kernel.
  static bool hasBlocks(func::FuncOp func) {
    return llvm::any_of(
        func.getOps<scf::ParallelOp>(),
        [](scf::ParallelOp loop) { return loop->hasAttr(nv::kThreadsAttr); });
  }

  /// Dense operations that no other pass has taken are loops, too.
  static LogicalResult decompose(func::FuncOp func) {
    SmallVector<sdx::DenseOpInterface> ops;
    func.walk([&](sdx::DenseOpInterface op) { ops.push_back(op); });
    for (sdx::DenseOpInterface op : ops) {
      OpBuilder b(op);
      Value loops = nv::decomposeLast(b, op);
      if (!loops)
        loops = decomposeToLinalg(b, op);
      if (!loops)
        return op.emitError("has no form as loops");
      op->getResult(0).replaceAllUsesWith(loops);
      op->erase();
    }
    return success();
  }

  static LogicalResult emitLoops(func::FuncOp func) {
    IRRewriter rewriter(func.getContext());
    // Fills last: those that sums start with are gone by then.
    for (bool fills : {false, true}) {
      SmallVector<linalg::LinalgOp> ops;
      func.walk([&](linalg::LinalgOp op) {
        if (isa<linalg::FillOp>(op.getOperation()) == fills)
          ops.push_back(op);
      });
      for (linalg::LinalgOp op : ops)
        if (failed(nv::emitThreadLoops(rewriter, op)))
          return failure();
    }
    return removeUnused(func);
  }
};

} // namespace
