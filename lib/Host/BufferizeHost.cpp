//===- BufferizeHost.cpp - Bufferize the host functions ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bufferize.h"
#include "Buffers.h"
#include "sardonyx/Host/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/AllInterfaces.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/MapVector.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXBUFFERIZEHOST
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

void sardonyx::registerHostBufferization(DialectRegistry &registry) {
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  cf::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerAllDialectInterfaceImplementations(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  registerSDXBufferization(registry);
}

/// Tensor arguments become memrefs that are only read. Each operation that
/// reads one sees a tensor of its own: nothing is ever written to it, and to
/// the analysis, whose questions go through all that may be the same memory,
/// they have nothing to do with each other.
static void convertArguments(func::FuncOp func) {
  Block &entry = func.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&entry);
  for (BlockArgument argument : entry.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    argument.setType(bufferOf(type));
    llvm::MapVector<Operation *, SmallVector<OpOperand *>> uses;
    for (OpOperand &use : argument.getUses())
      uses[use.getOwner()].push_back(&use);
    for (auto &[user, operands] : uses) {
      Value tensor = bufferization::ToTensorOp::create(
          b, argument.getLoc(), type, argument, /*restrict=*/true);
      for (OpOperand *operand : operands)
        operand->set(tensor);
    }
  }
  func.setFunctionType(
      b.getFunctionType(entry.getArgumentTypes(), func.getResultTypes()));
}

/// The tensors that `op` changes, each with the result that has the changes.
static SmallVector<std::pair<OpOperand *, Value>> findChanges(Operation &op) {
  SmallVector<std::pair<OpOperand *, Value>> changes;
  if (auto loop = dyn_cast<scf::ForOp>(op))
    for (auto [init, result] :
         llvm::zip(loop.getInitArgsMutable(), loop.getResults()))
      changes.emplace_back(&init, result);
  if (auto call = dyn_cast<sdx::CallOp>(op))
    for (int64_t index : call.getUpdates().value_or(ArrayRef<int64_t>()))
      changes.emplace_back(&call.getOutsMutable()[index],
                           call.getResult(index));
  return changes;
}

/// A tensor that loops write parts of, or kernels elements of, hundreds of them
/// in turn (scatters), is copied now and then: for each the analysis looks at
/// all that came before in the same memory.
static void breakChains(Block &block) {
  constexpr unsigned longest = 32;
  llvm::DenseMap<Value, unsigned> lengths; // of the chain that ends in a value
  for (Operation &op : block) {
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op))
      lengths[op.getResult(0)] = lengths.lookup(op.getOperand(0));
    for (auto [init, result] : findChanges(op)) {
      auto type = dyn_cast<RankedTensorType>(init->get().getType());
      if (!type)
        continue;
      unsigned length = lengths.lookup(init->get()) + 1;
      if (length > longest) {
        OpBuilder b(&op);
        init->set(bufferization::AllocTensorOp::create(
            b, op.getLoc(), type, ValueRange(), init->get()));
        length = 1;
      }
      lengths[result] = length;
    }
  }
}

/// Each use of an empty tensor is a destination of its own.
static void splitEmptyTensors(func::FuncOp func) {
  SmallVector<tensor::EmptyOp> empties;
  func.walk([&](tensor::EmptyOp op) { empties.push_back(op); });
  for (tensor::EmptyOp op : empties) {
    if (op->use_empty())
      continue;
    OpBuilder b(op);
    for (OpOperand &use :
         llvm::make_early_inc_range(llvm::drop_begin(op->getUses())))
      use.set(b.clone(*op)->getResult(0));
  }
}

/// Kernels do not write to strided slices: only memory that is asked for as a
/// whole replaces an empty tensor.
static Value destinationInsteadOf(RewriterBase &rewriter,
                                  SubsetInsertionOpInterface op,
                                  tensor::EmptyOp empty, Operation *user) {
  auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(*op);
  // A tensor there is a loop's argument.
  if (!write || (!isa<TensorType>(write.getDest().getType()) &&
                 !wholeOutput(write.getDest())))
    return {};
  return bufferization::buildSubsetExtraction(rewriter, op, empty, user);
}

/// False where the analysis sees no way: a value must be made in place and
/// can't be.
static bool chooseInPlace(func::FuncOp func,
                          bufferization::OneShotBufferizationOptions &options) {
  // Whoever calls has another way.
  ScopedDiagnosticHandler quiet(func.getContext(),
                                [](Diagnostic &) { return success(); });
  IRRewriter rewriter(func.getContext());
  bufferization::OneShotAnalysisState state(func, options);
  return succeeded(bufferization::analyzeOp(func, state)) &&
         succeeded(bufferization::eliminateEmptyTensors(rewriter, func, state,
                                                        destinationInsteadOf));
}

static LogicalResult bufferize(func::FuncOp func) {
  bufferization::OneShotBufferizationOptions options;
  options.allowReturnAllocsFromLoops = true;
  if (!chooseInPlace(func, options)) {
    undoYieldInPlace(func);
    // The last resort copies everything before it is written to.
    options.copyBeforeWrite = !chooseInPlace(func, options);
  }
  bufferization::BufferizationState state;
  return bufferization::runOneShotBufferize(func, options, state);
}

/// Folds what bufferization leaves: copies of a buffer onto itself, sizes of
/// buffers just made, casts.
static void cleanUp(func::FuncOp func) {
  MLIRContext *context = func.getContext();
  RewritePatternSet patterns(context);
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (isa<memref::MemRefDialect, bufferization::BufferizationDialect,
            scf::SCFDialect>(op.getDialect()))
      op.getCanonicalizationPatterns(patterns, context);
  memref::populateResolveShapedTypeResultDimsPatterns(patterns);
  populateAffineToStdConversionPatterns(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  rewriteGreedily(func, frozen);
  // The same view made twice, and then copied onto itself.
  IRRewriter rewriter(context);
  DominanceInfo dominance(func);
  eliminateCommonSubExpressions(rewriter, dominance, func);
  rewriteGreedily(func, frozen);
}

namespace {

struct BufferizeHostPass
    : sardonyx::impl::SDXBufferizeHostBase<BufferizeHostPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    SDXBufferizeHostBase::getDependentDialects(registry);
    registerHostBufferization(registry);
  }

  void runOnOperation() override {
    for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (!isHostFunction(func))
        continue;
      if (!func.getBody().hasOneBlock()) {
        func.emitOpError("must be one block of structured control flow");
        return signalPassFailure();
      }
      if (failed(writeResults(func)))
        return signalPassFailure();
      reshapeReducedSlices(func);
      convertArguments(func);
      yieldInPlace(func);
      hoistInsertions(func);
      func.walk([](Block *block) { breakChains(*block); });
      splitEmptyTensors(func);
      func.walk([](Block *block) { hoistChecks(*block); });
      // Hides from SSA what a tensor is made of: nothing moves after this.
      assembleSlices(func);
      if (failed(bufferize(func)))
        return signalPassFailure();
      cleanUp(func);
      orderResultCopies(func);
      makeOperandsContiguous(func, [](OpOperand &operand) {
        return isViewOfPlannable(operand.get()) || isPassedByAddress(operand);
      });
    }
    readBroadcasts(getOperation());
  }
};

} // namespace
