//===- LowerLoops.cpp - The fallback: bufferise, then loops ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/KernelBuffers.h"
#include "Loops/TestBlocks.h"
#include "Loops/TileProducts.h"
#include "Rows/RowEmitter.h"
#include "dialects/CPU/CPU.h"
#include "lib/Dispatch/KernelWork.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERLOOPS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// Temporaries up to this size live on the stack.
constexpr int64_t kStackBytes = 16384;
/// Elements of a row that are left to `memcpy`.
constexpr int64_t kLongRow = 512;
/// Parallel iterations that are enough to occupy the threads: dimensions
/// inside of them become sequential loops.
constexpr int64_t kMinIterations = 256;

bool usesLinalg(func::FuncOp func) {
  return func.walk([](linalg::LinalgOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Small temporaries live on the stack.
FailureOr<Value> allocate(OpBuilder &b, Location loc, MemRefType type,
                          ValueRange sizes, unsigned alignment) {
  bool small = type.hasStaticShape() && type.getLayout().isIdentity() &&
               type.getElementType().isIntOrFloat() &&
               type.getNumElements() *
                       llvm::divideCeil(type.getElementTypeBitWidth(), 8) <=
                   kStackBytes;
  auto align = b.getI64IntegerAttr(alignment);
  if (small)
    return memref::AllocaOp::create(b, loc, type, sizes, align).getResult();
  return memref::AllocOp::create(b, loc, type, sizes).getResult();
}

/// Makes the inner dimensions of `loop` sequential once the outer ones have
/// iterations enough, so that a task is more than one element.
void splitParallel(scf::ParallelOp loop) {
  unsigned rank = loop.getNumLoops();
  if (rank < 2 || loop.getNumReductions() != 0)
    return;
  int64_t outer = 1;
  unsigned keep = 0;
  while (keep < rank - 1 && outer < kMinIterations) {
    auto lb = getConstantIntValue(loop.getLowerBound()[keep]);
    auto ub = getConstantIntValue(loop.getUpperBound()[keep]);
    outer *= lb && ub ? std::max<int64_t>(*ub - *lb, 1) : 4;
    ++keep;
  }
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto parallel = scf::ParallelOp::create(
      b, loc, loop.getLowerBound().take_front(keep),
      loop.getUpperBound().take_front(keep), loop.getStep().take_front(keep));
  SmallVector<Value> ivs(parallel.getInductionVars());
  b.setInsertionPointToStart(parallel.getBody());
  for (unsigned i = keep; i < rank; ++i) {
    auto inner = scf::ForOp::create(b, loc, loop.getLowerBound()[i],
                                    loop.getUpperBound()[i], loop.getStep()[i]);
    ivs.push_back(inner.getInductionVar());
    b.setInsertionPointToStart(inner.getBody());
  }
  Block *target = b.getInsertionBlock();
  for (auto [from, to] : llvm::zip(loop.getInductionVars(), ivs))
    from.replaceAllUsesWith(to);
  target->getOperations().splice(
      target->begin(), loop.getBody()->getOperations(), loop.getBody()->begin(),
      std::prev(loop.getBody()->end()));
  loop.erase();
}

/// Parallel dimensions first: the loop emitter nests in the order of the
/// iterators and makes one parallel loop of each run of parallel ones.
LogicalResult emitScalarLoops(IRRewriter &rewriter, linalg::LinalgOp op) {
  rewriter.setInsertionPoint(op);
  linalg::GenericOp generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic) {
    auto made = linalg::generalizeNamedOp(rewriter, op);
    if (failed(made))
      return failure();
    generic = *made;
  }
  SmallVector<unsigned> order;
  for (auto [i, type] : llvm::enumerate(generic.getIteratorTypesArray()))
    if (type == utils::IteratorType::parallel)
      order.push_back(i);
  unsigned numParallel = order.size();
  for (auto [i, type] : llvm::enumerate(generic.getIteratorTypesArray()))
    if (type != utils::IteratorType::parallel)
      order.push_back(i);
  if (!llvm::is_sorted(order)) {
    auto moved = linalg::interchangeGenericOp(rewriter, generic, order);
    if (failed(moved))
      return failure();
    generic = *moved;
  }
  rewriter.setInsertionPoint(generic);
  auto loops = linalg::linalgOpToParallelLoops(rewriter, generic);
  if (failed(loops))
    return failure();
  rewriter.eraseOp(generic);
  if (numParallel > 0 && !loops->empty())
    if (auto parallel = dyn_cast<scf::ParallelOp>(loops->front()))
      splitParallel(parallel);
  return success();
}

/// A task's copy of a long row, or of one of open size, for which loops would
/// take longer to begin than most rows take: it is left to `memcpy`.
bool copiesLongRow(memref::CopyOp copy) {
  auto isRow = [](Value memref) {
    auto type = cast<MemRefType>(memref.getType());
    return type.getRank() == 1 && type.areTrailingDimsContiguous(1) &&
           (type.isDynamicDim(0) || type.getDimSize(0) >= kLongRow);
  };
  return copy->getParentOfType<scf::ParallelOp>() && isRow(copy.getSource()) &&
         isRow(copy.getTarget());
}

struct LowerLoopsPass : sardonyx::impl::CPULowerLoopsBase<LowerLoopsPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || !func->hasAttr("sdx.kernel"))
      return;
    // A plan by hand asks for scalars; without one, loops are over vectors.
    auto plan = func->getAttrOfType<LoopsAttr>(kPlanAttr);
    const bool onVectors = !plan || plan.getVectors();
    if (plan)
      func->removeAttr(kPlanAttr);
    func->removeAttr(sardonyx::kPlanReasonAttr);
    if (!usesTensors(func) && !usesLinalg(func))
      return;
    if (failed(bufferizeKernel(func, /*space=*/{}, allocate))) {
      func.emitError("kernel '")
          << func.getName() << "' could not be given buffers";
      return signalPassFailure();
    }
    if (failed(lowerTaskLoops(func))) {
      func.emitError("kernel '")
          << func.getName() << "' could not be given parallel loops";
      return signalPassFailure();
    }
    insertDeallocs(func);
    const TargetAttr target = getTargetOrDefault(func);
    if (onVectors)
      testBlocks(func, target);
    IRRewriter rewriter(&getContext());
    // Strided copies as loops too: the runtime's copy works element by element.
    SmallVector<memref::CopyOp> copies;
    func.walk([&](memref::CopyOp op) { copies.push_back(op); });
    for (memref::CopyOp copy : copies) {
      if (!isa<MemRefType>(copy.getSource().getType()) ||
          !isa<MemRefType>(copy.getTarget().getType()) || copiesLongRow(copy))
        continue;
      rewriter.setInsertionPoint(copy);
      if (copy.getSource() != copy.getTarget())
        linalg::makeMemRefCopyOp(rewriter, copy.getLoc(), copy.getSource(),
                                 copy.getTarget());
      rewriter.eraseOp(copy);
    }
    SmallVector<linalg::LinalgOp> ops;
    func.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops) {
      rewriter.setInsertionPoint(op);
      if (onVectors && (succeeded(emitTiledProduct(rewriter, op, target)) ||
                        succeeded(emitRowLoops(rewriter, op, target))))
        continue;
      if (failed(emitScalarLoops(rewriter, op))) {
        op->emitOpError("could not be lowered to loops");
        return signalPassFailure();
      }
    }
  }
};

} // namespace
