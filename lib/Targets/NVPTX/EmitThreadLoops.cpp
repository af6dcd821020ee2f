//===- EmitThreadLoops.cpp - Linalg operations as loops of threads --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadLoops.h"
#include "dialects/NV/NV.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace sardonyx;

void nv::nameStep(scf::ParallelOp loop, StringRef name) {
  if (!loop->hasAttr(kStepAttr))
    loop->setAttr(kStepAttr, StringAttr::get(loop.getContext(), name));
}

namespace {

/// The loops of one linalg.generic on buffers.
class ThreadLoopsEmitter {
public:
  /// `first`: what sums start with, by the positions of operands, where that
  /// isn't what the operand holds.
  ThreadLoopsEmitter(IRRewriter &b, linalg::GenericOp op,
                     DenseMap<unsigned, Value> first)
      : b(b), op(op), loc(op.getLoc()), first(std::move(first)),
        maps(op.getIndexingMapsArray()), iterators(op.getIteratorTypesArray()) {
  }

  void emit(StringRef name) {
    b.setInsertionPoint(op);
    SmallVector<Range> ranges =
        cast<linalg::LinalgOp>(op.getOperation()).createLoopRanges(b, loc);
    positions.resize(ranges.size());
    const bool isInThread = op->getParentOfType<scf::ParallelOp>() != nullptr;
    SmallVector<Value> froms, tos, steps;
    for (unsigned dim : dimsOf(/*reduction=*/false)) {
      froms.push_back(asValue(ranges[dim].offset));
      tos.push_back(asValue(ranges[dim].size));
      steps.push_back(asValue(ranges[dim].stride));
    }
    if (isInThread) {
      for (auto [i, dim] : llvm::enumerate(dimsOf(/*reduction=*/false))) {
        auto loop = scf::ForOp::create(b, loc, froms[i], tos[i], steps[i]);
        positions[dim] = loop.getInductionVar();
        b.setInsertionPointToStart(loop.getBody());
      }
      emitThread(ranges);
      return;
    }
    if (froms.empty()) {
      froms.push_back(asValue(b.getIndexAttr(0)));
      tos.push_back(asValue(b.getIndexAttr(1)));
      steps.push_back(tos.back());
    }
    auto loop = scf::ParallelOp::create(b, loc, froms, tos, steps);
    nv::nameStep(loop, name);
    for (auto [i, dim] : llvm::enumerate(dimsOf(/*reduction=*/false)))
      positions[dim] = loop.getInductionVars()[i];
    b.setInsertionPointToStart(loop.getBody());
    emitThread(ranges);
  }

private:
  SmallVector<unsigned> dimsOf(bool reduction) const {
    SmallVector<unsigned> dims;
    for (auto [i, type] : llvm::enumerate(iterators))
      if ((type == utils::IteratorType::reduction) == reduction)
        dims.push_back(i);
    return dims;
  }
  Value asValue(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  }

  /// Whether all elements of an output that a thread writes are one.
  bool isSum(OpOperand &output) const {
    AffineMap map = maps[output.getOperandNumber()];
    return llvm::none_of(dimsOf(/*reduction=*/true), [&](unsigned dim) {
      return map.isFunctionOfDim(dim);
    });
  }

  SmallVector<Value> indicesOf(OpOperand &operand) {
    SmallVector<Value> indices;
    for (AffineExpr expr : maps[operand.getOperandNumber()].getResults())
      indices.push_back(asValue(affine::makeComposedFoldedAffineApply(
          b, loc, AffineMap::get(positions.size(), 0, expr, b.getContext()),
          getAsOpFoldResult(positions))));
    return indices;
  }

  bool isRead(OpOperand &operand) {
    return op.payloadUsesValueFromOperand(&operand);
  }
  Value load(OpOperand &operand) {
    if (Value known = first.lookup(operand.getOperandNumber()))
      return known;
    if (!isa<MemRefType>(operand.get().getType()))
      return operand.get();
    return memref::LoadOp::create(b, loc, operand.get(), indicesOf(operand));
  }
  void store(Value value, OpOperand &output) {
    memref::StoreOp::create(b, loc, value, output.get(), indicesOf(output));
  }

  /// What a thread computes: its sums start with what the outputs hold, go
  /// through the loops, and are stored after them.
  void emitThread(ArrayRef<Range> ranges) {
    // Positions of dimensions that have no value yet are not asked for.
    Value zero = asValue(b.getIndexAttr(0));
    for (Value &position : positions)
      if (!position)
        position = zero;
    SmallVector<Value> sums;
    for (OpOperand &output : op.getDpsInitsMutable())
      if (isCarried(output))
        sums.push_back(load(output));
    emitNest(ranges, dimsOf(/*reduction=*/true), sums);
  }

  /// Outputs that nothing reads before they are written need the results of
  /// the last iteration: they are stored in each.
  bool isCarried(OpOperand &output) { return isSum(output) && isRead(output); }

  void emitNest(ArrayRef<Range> ranges, ArrayRef<unsigned> dims,
                ArrayRef<Value> sums) {
    SmallVector<scf::ForOp> loops;
    SmallVector<Value> carried(sums);
    for (unsigned dim : dims) {
      auto loop = scf::ForOp::create(b, loc, asValue(ranges[dim].offset),
                                     asValue(ranges[dim].size),
                                     asValue(ranges[dim].stride), carried);
      loops.push_back(loop);
      positions[dim] = loop.getInductionVar();
      carried.assign(loop.getRegionIterArgs().begin(),
                     loop.getRegionIterArgs().end());
      b.setInsertionPointToStart(loop.getBody());
    }
    SmallVector<Value> results = emitBody(carried);
    SmallVector<Value> next;
    for (auto [i, output] : llvm::enumerate(op.getDpsInitsMutable()))
      if (isCarried(output))
        next.push_back(results[i]);
      else
        store(results[i], output);
    for (scf::ForOp loop : llvm::reverse(loops)) {
      if (!sums.empty()) {
        b.setInsertionPointToEnd(loop.getBody());
        scf::YieldOp::create(b, loc, next);
      }
      next.assign(loop.getResults().begin(), loop.getResults().end());
      b.setInsertionPointAfter(loop);
    }
    size_t i = 0;
    for (OpOperand &output : op.getDpsInitsMutable())
      if (isCarried(output))
        store(next[i++], output);
  }

  /// One iteration; what it yields.
  SmallVector<Value> emitBody(ArrayRef<Value> carried) {
    IRMapping mapping;
    Block &body = op.getRegion().front();
    size_t next = 0;
    for (OpOperand &operand : op->getOpOperands()) {
      BlockArgument argument = body.getArgument(operand.getOperandNumber());
      if (!isRead(operand))
        continue;
      bool isState = op.isDpsInit(&operand) && isCarried(operand);
      mapping.map(argument, isState ? carried[next++] : load(operand));
    }
    for (Operation &inner : body.without_terminator()) {
      if (auto index = dyn_cast<linalg::IndexOp>(inner))
        mapping.map(index.getResult(), positions[index.getDim()]);
      else
        replaceIndices(b.clone(inner, mapping));
    }
    return llvm::map_to_vector(
        body.getTerminator()->getOperands(),
        [&](Value value) { return mapping.lookupOrDefault(value); });
  }

  /// Positions in regions of a cloned operation.
  void replaceIndices(Operation *clone) {
    SmallVector<linalg::IndexOp> found;
    clone->walk([&](linalg::IndexOp index) { found.push_back(index); });
    for (linalg::IndexOp index : found) {
      index.replaceAllUsesWith(positions[index.getDim()]);
      index.erase();
    }
  }

  IRRewriter &b;
  linalg::GenericOp op;
  const Location loc;
  const DenseMap<unsigned, Value> first;
  const SmallVector<AffineMap> maps;
  const SmallVector<utils::IteratorType> iterators;
  SmallVector<Value> positions;
};

} // namespace

/// Where a fill is all that `op` reads of `output`, its value; the fill is then
/// not needed any more.
static linalg::FillOp findFill(linalg::GenericOp op, OpOperand &output) {
  Value buffer = output.get();
  linalg::FillOp fill;
  for (Operation *user : buffer.getUsers()) {
    if (user == op || isa<memref::DimOp>(user))
      continue;
    auto other = dyn_cast<linalg::FillOp>(user);
    if (user->getBlock() != op->getBlock())
      return {};
    if (op->isBeforeInBlock(user))
      continue;
    if (!other || fill || other.getOutputs()[0] != buffer)
      return {};
    fill = other;
  }
  return fill;
}

/// Whether each element of the output is one of a thread's.
static bool coversOutput(linalg::GenericOp op, OpOperand &output) {
  AffineMap map = op.getMatchingIndexingMap(&output);
  unsigned parallel =
      llvm::count(op.getIteratorTypesArray(), utils::IteratorType::parallel);
  if (!map.isProjectedPermutation() || map.getNumResults() != parallel)
    return false;
  return llvm::all_of(map.getResults(), [&](AffineExpr expr) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    return op.getIteratorTypesArray()[dim] == utils::IteratorType::parallel;
  });
}

/// The values that sums start with where these are known: those of fills, which
/// are not needed any more. Only of buffers that nothing else is a view of:
/// kernels' own and results.
static DenseMap<unsigned, Value> absorbFills(IRRewriter &rewriter,
                                             linalg::GenericOp op) {
  DenseMap<unsigned, Value> first;
  for (OpOperand &output : op.getDpsInitsMutable()) {
    Value buffer = output.get();
    if (!buffer.getDefiningOp<memref::AllocOp>() && !isa<BlockArgument>(buffer))
      continue;
    if (llvm::count(op->getOperands(), buffer) != 1 ||
        !coversOutput(op, output))
      continue;
    if (linalg::FillOp fill = findFill(op, output)) {
      first[output.getOperandNumber()] = fill.getInputs()[0];
      rewriter.eraseOp(fill);
    }
  }
  return first;
}

LogicalResult nv::emitThreadLoops(IRRewriter &rewriter, linalg::LinalgOp op) {
  rewriter.setInsertionPoint(op);
  StringRef name = isa<linalg::FillOp>(op.getOperation())   ? "fill"
                   : isa<linalg::CopyOp>(op.getOperation()) ? "copy"
                   : op.getNumReductionLoops()              ? "reduce"
                                                            : "elementwise";
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic) {
    auto made = linalg::generalizeNamedOp(rewriter, op);
    if (failed(made))
      return op->emitOpError("has no loops");
    generic = *made;
  }
  ThreadLoopsEmitter(rewriter, generic, absorbFills(rewriter, generic))
      .emit(name);
  rewriter.eraseOp(generic);
  return success();
}
