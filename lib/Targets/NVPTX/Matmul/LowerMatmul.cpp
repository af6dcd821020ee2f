//===- LowerMatmul.cpp - Matrix products by tiles of blocks ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block computes a tile of the result. While it multiplies one pair of tiles
// of the operands, copies of the next ones are on their way to shared memory.
// The sums go through shared memory once more, so that what follows the product
// reads and writes rows.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Kernel/PointEvaluator.h"
#include "Matmul/BlockTile.h"
#include "Matmul/MatmulPlan.h"

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERMATMUL
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Neighbouring elements of the result that a thread writes.
static constexpr int64_t kWidth = 4;

namespace {

/// The kernel of one product.
class MatmulKernel {
public:
  MatmulKernel(sdx::MatmulOp op, MatmulPlanAttr plan, KernelBody &body)
      : op(op), plan(plan), body(body), points(body), types(typesOf(op)) {
    points.declare(op.getResult());
  }

  /// Whether all of it can be computed so; the caller has another way.
  bool isPossible() {
    if (!KernelBody::hasBuffer(op.getLhs()) ||
        !KernelBody::hasBuffer(op.getRhs()) ||
        !points.canEvaluate(op.getInit()))
      return false;
    const int64_t rank = op.getInit().getType().getRank();
    return llvm::all_of(body.getOutputs(), [&](const KernelBody::Output &out) {
      return cast<MemRefType>(out.memref.getType()).getRank() == rank &&
             points.canEvaluate(out.tensor);
    });
  }

  void emit(ImplicitLocOpBuilder &b) {
    lhs = body.getBuffer(op.getLhs());
    rhs = body.getBuffer(op.getRhs());
    findSizes(b);
    Indices i(b);
    Value rows = i.ceilDiv(sizeM, plan.getTileM());
    Value cols = i.ceilDiv(sizeN, plan.getTileN());
    Value steps = i.ceilDiv(sizeK, plan.getTileK());
    Value blocks = i.mul(rows, cols);
    if (batches)
      blocks = i.mul(blocks, batches);
    OpBuilder::InsertionGuard guard(b);
    scf::ParallelOp loop =
        startBlocks(b, blocks, plan.countThreads(), "matmul");
    Value id = loop.getInductionVars()[0];
    Value tileCol = i.rem(id, cols);
    Value rest = i.div(id, cols);
    if (batches) {
      batch = i.div(rest, rows);
      rest = i.rem(rest, rows);
    }
    row0 = i.mul(rest, plan.getTileM());
    col0 = i.mul(tileCol, plan.getTileN());
    thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    tile = plan.isMma() ? createMmaTile(types, plan, thread)
                        : createFmaTile(types, plan, thread);
    emitProduct(b, steps);
    emitResults(b);
  }

  static ProductTypes typesOf(sdx::MatmulOp op) {
    return {op.getLhs().getType().getElementType(),
            op.getRhs().getType().getElementType(),
            op.getInit().getType().getElementType(),
            op.getLhsUnsigned(),
            op.getRhsUnsigned(),
            op.getTransposed()};
  }

private:
  void findSizes(ImplicitLocOpBuilder &b) {
    const int64_t first = op.isBatched();
    if (first)
      batches = sizeOf(b, lhs, 0);
    sizeM = sizeOf(b, lhs, first);
    sizeK = sizeOf(b, lhs, first + 1);
    sizeN = sizeOf(b, rhs, op.getColumnDim());
  }

  int64_t lhsElements() const { return tile->lhsLayout().countElements(); }
  int64_t rhsElements() const { return tile->rhsLayout().countElements(); }
  /// Bytes of the operands' tiles of all stages.
  int64_t lhsBytes() const {
    return plan.getStages() * tile->lhsLayout().countBytes();
  }
  int64_t rhsBytes() const {
    return plan.getStages() * tile->rhsLayout().countBytes();
  }
  /// Of a row of the sums in shared memory: a gap keeps rows out of each
  /// other's banks.
  int64_t sumCols() const { return plan.getTileN() + kWidth; }

  /// Sums in registers, then in shared memory.
  void emitProduct(ImplicitLocOpBuilder &b, Value steps) {
    Indices i(b);
    const int64_t stages = plan.getStages();
    const int64_t sumBytes =
        plan.getTileM() * sumCols() * (types.sum.getIntOrFloatBitWidth() / 8);
    shared = allocateShared(b, std::max(lhsBytes() + rhsBytes(), sumBytes));
    Value sharedLhs =
        viewShared(b, shared, 0, {stages * lhsElements()}, types.lhs);
    Value sharedRhs =
        viewShared(b, shared, lhsBytes(), {stages * rhsElements()}, types.rhs);
    TileCopy copyLhs({lhs, batch, sizeM, sizeK}, tile->lhsLayout(), thread,
                     plan.countThreads());
    Value rhsBatch = op.isRhsBatched() ? batch : Value();
    TileSource rhsSource = types.transposed
                               ? TileSource{rhs, rhsBatch, sizeN, sizeK}
                               : TileSource{rhs, rhsBatch, sizeK, sizeN};
    TileCopy copyRhs(rhsSource, tile->rhsLayout(), thread, plan.countThreads());
    auto copy = [&](Value step, Value stage) {
      Value k = i.mul(step, plan.getTileK());
      copyLhs.emit(b, row0, k, sharedLhs, i.mul(stage, lhsElements()));
      copyRhs.emit(b, types.transposed ? col0 : k, types.transposed ? k : col0,
                   sharedRhs, i.mul(stage, rhsElements()));
    };
    for (int64_t stage = 0; stage < stages - 1; ++stage) {
      copy(i.constant(stage), i.constant(stage));
      NVVM::CpAsyncCommitGroupOp::create(b);
    }
    auto loop = scf::ForOp::create(b, i.constant(0), steps, i.constant(1),
                                   tile->zeros(b));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      NVVM::CpAsyncWaitGroupOp::create(b, stages - 2);
      gpu::BarrierOp::create(b);
      Value next = i.add(loop.getInductionVar(), stages - 1);
      auto more = scf::IfOp::create(b, i.less(next, steps),
                                    /*withElseRegion=*/false);
      {
        OpBuilder::InsertionGuard inner(b);
        b.setInsertionPoint(more.thenYield());
        copy(next, i.rem(next, stages));
      }
      NVVM::CpAsyncCommitGroupOp::create(b);
      Value stage = i.rem(loop.getInductionVar(), stages);
      SmallVector<Value> sums =
          tile->multiply(b, sharedLhs, i.mul(stage, lhsElements()), sharedRhs,
                         i.mul(stage, rhsElements()), loop.getRegionIterArgs());
      scf::YieldOp::create(b, sums);
    }
    NVVM::CpAsyncWaitGroupOp::create(b, 0);
    gpu::BarrierOp::create(b);
    sumTile = viewShared(b, shared, 0, {plan.getTileM(), sumCols()}, types.sum);
    tile->store(b, loop.getResults(), sumTile);
    gpu::BarrierOp::create(b);
  }

  /// What follows the product, on `kWidth` neighbours at a time.
  void emitResults(ImplicitLocOpBuilder &b) {
    Indices i(b);
    const int64_t piecesOfRow = plan.getTileN() / kWidth;
    Value pieces = i.constant(plan.getTileM() * piecesOfRow);
    auto loop =
        scf::ForOp::create(b, thread, pieces, i.constant(plan.countThreads()));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value r = i.div(loop.getInductionVar(), piecesOfRow);
    Value c = i.mul(i.rem(loop.getInductionVar(), piecesOfRow), kWidth);
    Value m = i.add(row0, r), n = i.add(col0, c);
    std::optional<int64_t> known = getConstantIntValue(sizeN);
    const int64_t width = known && *known % kWidth == 0 ? kWidth : 1;
    for (int64_t j = 0; j < kWidth; j += width) {
      Value column = i.add(n, j);
      Value inside = i.both(i.less(m, sizeM), i.less(column, sizeN));
      auto some = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPoint(some.thenYield());
      emitPoints(b, r, i.add(c, j), m, column, width);
    }
  }

  /// All is read before anything is written.
  void emitPoints(ImplicitLocOpBuilder &b, Value r, Value c, Value m, Value n,
                  int64_t width) {
    Indices i(b);
    SmallVector<SmallVector<Value>> indices, values;
    for (int64_t j = 0; j < width; ++j) {
      SmallVector<Value> &index = indices.emplace_back();
      if (batch)
        index.push_back(batch);
      index.append({m, i.add(n, j)});
      PointEvaluator::Point point;
      Value sum =
          memref::LoadOp::create(b, sumTile, ValueRange{r, i.add(c, j)});
      if (!isZeroFilled(op.getInit())) {
        Value init = points.evaluate(b, op.getInit(), index, point);
        sum = isa<FloatType>(types.sum)
                  ? arith::AddFOp::create(b, sum, init).getResult()
                  : arith::AddIOp::create(b, sum, init).getResult();
      }
      point.add(op.getResult(), index, sum);
      SmallVector<Value> &results = values.emplace_back();
      for (const KernelBody::Output &output : body.getOutputs())
        results.push_back(points.evaluate(b, output.tensor, index, point));
    }
    for (auto [number, output] : llvm::enumerate(body.getOutputs()))
      for (auto [index, results] : llvm::zip(indices, values))
        memref::StoreOp::create(b, results[number], output.memref, index);
  }

  sdx::MatmulOp op;
  MatmulPlanAttr plan;
  KernelBody &body;
  PointEvaluator points;
  ProductTypes types;
  Value lhs, rhs;
  Value batches, sizeM, sizeN, sizeK; // batches: null for one matrix
  Value thread, batch, row0, col0;    // of the block's tile
  Value shared, sumTile;
  std::unique_ptr<BlockTile> tile;
};

struct LowerMatmulPass : sardonyx::impl::NVLowerMatmulBase<LowerMatmulPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration())
      return;
    auto roots = llvm::to_vector(func.getOps<sdx::MatmulOp>());
    if (roots.size() != 1 || !roots.front().hasPureTensorSemantics())
      return;
    sdx::MatmulOp root = roots.front();
    std::optional<MatmulPlanAttr> plan =
        chooseMatmulPlan(root, getTargetOrDefault(func));
    KernelBody body(func);
    if (!plan)
      return;
    MatmulKernel kernel(root, *plan, body);
    if (!kernel.isPossible())
      return;
    if (failed(body.replaceDims()))
      return signalPassFailure();
    ImplicitLocOpBuilder b(root.getLoc(),
                           func.getBody().front().getTerminator());
    kernel.emit(b);
    body.eraseTensors();
  }
};

} // namespace
