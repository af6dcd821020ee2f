//===- LowerGather.cpp - Copies of pieces whose places data decide --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task that copies a piece, as a row of a table, is shared by threads: each
// has neighbours of it, and finds the piece's place for itself.
//
//===----------------------------------------------------------------------===//

#include "Movement/TaskScalars.h"

#include "dialects/SDX/SDX.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERGATHER
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kThreads = 256;
/// Bytes that a thread copies at a time.
static constexpr int64_t kBytes = 16;

namespace {

/// The kernel of a loop whose tasks copy a piece of a buffer each.
class GatherKernel {
public:
  GatherKernel(func::FuncOp func, KernelBody &body)
      : func(func), body(body), scalars(body) {}

  bool isPossible() {
    for (Operation &op : func.getBody().front()) {
      if (isa<linalg::LinalgOp, sdx::DenseOpInterface, scf::ForOp, scf::IfOp>(
              op))
        return false;
      if (auto loop = dyn_cast<scf::ForallOp>(op)) {
        if (forall)
          return false;
        forall = loop;
      }
    }
    return forall && forall.isNormalized() && forall->getNumResults() == 1 &&
           forall.getOutputs()[0].getDefiningOp<tensor::EmptyOp>() &&
           body.getOutputs().size() == 1 &&
           body.getOutputs().front().tensor == forall->getResult(0) &&
           findPiece() &&
           llvm::all_of(forall.getBody()->without_terminator(),
                        TaskScalars::isPossible);
  }

  void emit(ImplicitLocOpBuilder &b) {
    Indices i(b);
    target = body.getOutputs().front().memref;
    source = body.getBuffer(extract.getSource());
    const int64_t width = chooseWidth();
    SmallVector<Value> grid = getValueOrCreateConstantIndexOp(
        b, b.getLoc(), forall.getMixedUpperBound());
    const size_t tasks = grid.size();
    for (int64_t dim : sourceDims)
      grid.push_back(getValueOrCreateConstantIndexOp(
          b, b.getLoc(), extract.getMixedSizes()[dim]));
    if (grid.size() > tasks)
      grid.back() = i.div(grid.back(), width);
    Value count = i.constant(1);
    for (Value size : grid)
      count = i.mul(count, size);
    OpBuilder::InsertionGuard guard(b);
    scf::ParallelOp loop =
        startBlocks(b, i.ceilDiv(count, kThreads), kThreads, "gather");
    Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    Value number = i.add(i.mul(loop.getInductionVars()[0], kThreads), thread);
    auto some = scf::IfOp::create(b, i.less(number, count),
                                  /*withElseRegion=*/false);
    b.setInsertionPoint(some.thenYield());
    SmallVector<Value> at = i.unflatten(number, grid);
    IRMapping mapping;
    for (auto [variable, value] : llvm::zip(forall.getInductionVars(), at))
      mapping.map(variable, value);
    for (Operation &op : forall.getBody()->without_terminator())
      scalars.clone(b, op, mapping);
    SmallVector<Value> piece(ArrayRef(at).drop_front(tasks));
    if (!piece.empty())
      piece.back() = i.mul(piece.back(), width);
    copy(b, mapping, piece, width);
  }

private:
  /// Finds the copy, and which dimensions of both sides it is of.
  bool findPiece() {
    auto region = forall.getTerminator().getYieldingOps();
    if (!llvm::hasSingleElement(region))
      return false;
    insert = dyn_cast<tensor::ParallelInsertSliceOp>(*region.begin());
    if (!insert)
      return false;
    extract =
        skipCasts(insert.getSource()).getDefiningOp<tensor::ExtractSliceOp>();
    if (!extract || extract->getBlock() != forall.getBody() ||
        !KernelBody::hasBuffer(extract.getSource()))
      return false;
    auto type = extract.getType();
    std::optional<llvm::SmallDenseSet<unsigned>> droppedOfTarget =
        computeRankReductionMask(insert.getStaticSizes(),
                                 insert.getSourceType().getShape());
    if (!droppedOfTarget || llvm::is_contained(type.getShape(), 0))
      return false;
    llvm::SmallBitVector droppedOfSource = extract.getDroppedDims();
    for (int64_t dim = 0; dim < extract.getSourceType().getRank(); ++dim)
      if (!droppedOfSource.test(dim))
        sourceDims.push_back(dim);
    for (int64_t dim = 0; dim < insert.getDestType().getRank(); ++dim)
      if (!droppedOfTarget->contains(dim))
        targetDims.push_back(dim);
    // The host has to know how large pieces are.
    return sourceDims.size() == targetDims.size() &&
           llvm::all_of(extract.getSizes(), [&](Value size) {
             return size.getParentRegion()->isProperAncestor(
                 &forall.getRegion());
           });
  }

  /// Neighbours are copied together where the piece, and rows of both sides,
  /// are a multiple of them.
  int64_t chooseWidth() {
    auto type = extract.getType();
    if (type.getRank() == 0)
      return 1;
    auto isWhole = [](auto slice, ShapedType whole, ArrayRef<int64_t> dims) {
      const int64_t last = whole.getRank() - 1;
      return dims.back() == last && slice.getStaticOffsets()[last] == 0 &&
             slice.getStaticStrides()[last] == 1;
    };
    if (!isWhole(extract, extract.getSourceType(), sourceDims) ||
        !isWhole(insert, insert.getDestType(), targetDims))
      return 1;
    const int64_t bytes =
        std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
    int64_t width = std::max<int64_t>(1, kBytes / bytes);
    auto divides = [&](int64_t size) {
      return !ShapedType::isDynamic(size) && size % width == 0;
    };
    while (width > 1 && !(divides(type.getShape().back()) &&
                          divides(extract.getSourceType().getShape().back()) &&
                          divides(insert.getDestType().getShape().back())))
      width /= 2;
    return width;
  }

  void copy(ImplicitLocOpBuilder &b, const IRMapping &mapping,
            ArrayRef<Value> piece, int64_t width) {
    Indices i(b);
    SmallVector<Value> values, last(piece);
    for (int64_t j = 0; j < width; ++j) {
      if (!piece.empty())
        last.back() = i.add(piece.back(), j);
      values.push_back(memref::LoadOp::create(
          b, source, TaskScalars::placeOf(b, extract, mapping, last)));
    }
    for (auto [j, value] : llvm::enumerate(values)) {
      if (!piece.empty())
        last.back() = i.add(piece.back(), j);
      memref::StoreOp::create(b, value, target,
                              TaskScalars::placeOf(b, insert, mapping, last));
    }
  }

  func::FuncOp func;
  KernelBody &body;
  TaskScalars scalars;
  scf::ForallOp forall;
  tensor::ExtractSliceOp extract;
  tensor::ParallelInsertSliceOp insert;
  /// The dimensions that pieces have, of both sides.
  SmallVector<int64_t> sourceDims, targetDims;
  Value source, target;
};

struct LowerGatherPass : sardonyx::impl::NVLowerGatherBase<LowerGatherPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!mayHaveBlocks(func))
      return;
    KernelBody body(func);
    GatherKernel kernel(func, body);
    if (kernel.isPossible() &&
        failed(body.replaceWith([&](auto &b) { kernel.emit(b); })))
      signalPassFailure();
  }
};

} // namespace
