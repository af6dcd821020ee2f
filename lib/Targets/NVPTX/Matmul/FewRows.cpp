//===- FewRows.cpp - Products of few rows ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/FewRows.h"

#include "Kernel/Block.h"

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kWarp = 32, kWarps = 8, kThreads = kWarp * kWarps;
/// Rows that are worth no tile of the tensor cores.
static constexpr int64_t kMostRows = 4;
/// Fewer threads side by side would read parts of sectors.
static constexpr int64_t kFewestLanes = 4;
/// Loads of the right-hand side that are on their way at a time.
static constexpr int64_t kUnrolled = 4;

/// Columns that a thread reads together.
static int64_t countWidth(sdx::MatmulOp op) {
  const int64_t size = op.getRhs().getType().getShape().back();
  const int64_t width = countInPiece(op.getRhs().getType().getElementType());
  return !ShapedType::isDynamic(size) && size % width == 0 ? width : 1;
}

std::optional<FewRowsPlanAttr> nv::chooseFewRows(Operation *product,
                                                 TargetAttr target) {
  auto op = dyn_cast<sdx::MatmulOp>(product);
  if (!op || op.isBatched() || op.getTransposed())
    return std::nullopt;
  Type type = op.getLhs().getType().getElementType();
  const int64_t rows = op.getInit().getType().getShape().front();
  if (ShapedType::isDynamic(rows) || rows > kMostRows ||
      type != op.getRhs().getType().getElementType() ||
      !(type.isF32() || type.isF16() || type.isBF16()) ||
      !op.getInit().getType().getElementType().isF32())
    return std::nullopt;
  const int64_t size = op.getRhs().getType().getShape().back();
  int64_t lanes = kWarp;
  while (lanes > kFewestLanes && !ShapedType::isDynamic(size) &&
         size / (lanes * countWidth(op)) < target.countMultiprocessors())
    lanes /= 2;
  return FewRowsPlanAttr::get(product->getContext(), lanes);
}

FewRows::FewRows(sdx::MatmulOp op, FewRowsPlanAttr plan, KernelBody &body)
    : op(op), body(body), points(body), lanes(plan.getLanes()),
      rows(op.getInit().getType().getShape().front()), width(countWidth(op)) {
  points.declare(op->getResult(0));
}

bool FewRows::isPossible() {
  return KernelBody::hasBuffer(op.getLhs()) &&
         KernelBody::hasBuffer(op.getRhs()) &&
         points.canEvaluate(op.getInit()) &&
         llvm::all_of(body.getOutputs(), [&](const KernelBody::Output &out) {
           return cast<MemRefType>(out.memref.getType()).getRank() == 2 &&
                  points.canEvaluate(out.tensor);
         });
}

void FewRows::emit(ImplicitLocOpBuilder &b) {
  Indices i(b);
  lhs = body.getBuffer(op.getLhs());
  rhs = body.getBuffer(op.getRhs());
  depth = sizeOf(b, rhs, 0);
  columns = sizeOf(b, rhs, 1);
  const int64_t columnsOfBlock = lanes * width;
  OpBuilder::InsertionGuard guard(b);
  scf::ParallelOp loop =
      startBlocks(b, i.ceilDiv(columns, columnsOfBlock), kThreads, "matmul");
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  col0 = i.mul(loop.getInductionVars()[0], columnsOfBlock);
  // Columns that there are not are read elsewhere and not stored.
  col = i.add(col0, i.mul(i.rem(thread, lanes), width));
  col =
      b.createOrFold<arith::SelectOp>(i.less(col, columns), col, i.constant(0));
  Value shared = allocateShared(b, kWarps * rows * columnsOfBlock * 4);
  partials =
      viewShared(b, shared, 0, {kWarps, rows, columnsOfBlock}, b.getF32Type());
  combine(b, sumRows(b));
  gpu::BarrierOp::create(b);
  emitResults(b);
}

static Value toF32(ImplicitLocOpBuilder &b, Value value) {
  return value.getType().isF32()
             ? value
             : arith::ExtFOp::create(b, b.getF32Type(), value).getResult();
}

/// The sums and the products of row `k` of the right-hand side.
SmallVector<Value> FewRows::addProducts(ImplicitLocOpBuilder &b, Value k,
                                        ValueRange sums) {
  Indices i(b);
  Type type = op.getRhs().getType().getElementType();
  Value at = i.add(i.mul(k, columns), col);
  SmallVector<Value> weights;
  if (width == 1) {
    weights.push_back(toF32(b, loadAt(b, rhs, at)));
  } else {
    Value piece = LLVM::LoadOp::create(b, VectorType::get({width}, type),
                                       addressOf(b, rhs, at), /*alignment=*/16);
    for (int64_t j = 0; j < width; ++j)
      weights.push_back(toF32(
          b, LLVM::ExtractElementOp::create(
                 b, piece, LLVM::ConstantOp::create(b, b.getI32Type(), j))));
  }
  SmallVector<Value> next;
  for (int64_t r = 0; r < rows; ++r) {
    Value factor =
        toF32(b, memref::LoadOp::create(b, lhs, ValueRange{i.constant(r), k}));
    for (int64_t j = 0; j < width; ++j)
      next.push_back(
          math::FmaOp::create(b, factor, weights[j], sums[r * width + j]));
  }
  return next;
}

/// What a thread adds up: each so many-th row of the right-hand side.
SmallVector<Value> FewRows::sumRows(ImplicitLocOpBuilder &b) {
  Indices i(b);
  const int64_t step = kThreads / lanes;
  Value first = i.div(thread, lanes);
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  SmallVector<Value> sums(rows * width, zero);
  // Whole turns of several rows, and then one by one.
  Value turns = i.div(depth, step * kUnrolled);
  auto loop = scf::ForOp::create(b, i.constant(0), turns, i.constant(1), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next(loop.getRegionIterArgs());
    Value k = i.add(i.mul(loop.getInductionVar(), step * kUnrolled), first);
    for (int64_t u = 0; u < kUnrolled; ++u)
      next = addProducts(b, i.add(k, u * step), next);
    scf::YieldOp::create(b, next);
  }
  Value rest = i.add(i.mul(turns, step * kUnrolled), first);
  auto last =
      scf::ForOp::create(b, rest, depth, i.constant(step), loop.getResults());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(last.getBody());
  scf::YieldOp::create(
      b, addProducts(b, last.getInductionVar(), last.getRegionIterArgs()));
  return SmallVector<Value>(last.getResults());
}

/// Adds up what the threads of a warp have of the same columns, and leaves it
/// to the block.
void FewRows::combine(ImplicitLocOpBuilder &b, ValueRange ofThread) {
  Indices i(b);
  SmallVector<Value> sums(ofThread);
  for (Value &sum : sums)
    for (int32_t distance = kWarp / 2; distance >= lanes; distance /= 2)
      sum = arith::AddFOp::create(
          b, sum,
          gpu::ShuffleOp::create(b, sum, distance, kWarp, gpu::ShuffleMode::XOR)
              .getShuffleResult());
  Value inWarp = i.rem(thread, kWarp);
  auto first = scf::IfOp::create(b, i.less(inWarp, i.constant(lanes)),
                                 /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(first.thenYield());
  Value warp = i.div(thread, kWarp), c = i.mul(inWarp, width);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < width; ++j)
      memref::StoreOp::create(b, sums[r * width + j], partials,
                              ValueRange{warp, i.constant(r), i.add(c, j)});
}

/// A thread adds up what the warps have of an element of the result, and
/// computes what follows.
void FewRows::emitResults(ImplicitLocOpBuilder &b) {
  Indices i(b);
  const int64_t columnsOfBlock = lanes * width;
  auto loop = scf::ForOp::create(b, thread, i.constant(rows * columnsOfBlock),
                                 i.constant(kThreads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value m = i.div(loop.getInductionVar(), columnsOfBlock);
  Value c = i.rem(loop.getInductionVar(), columnsOfBlock);
  Value n = i.add(col0, c);
  auto some = scf::IfOp::create(b, i.less(n, columns),
                                /*withElseRegion=*/false);
  b.setInsertionPoint(some.thenYield());
  Value total;
  for (int64_t warp = 0; warp < kWarps; ++warp) {
    Value sum =
        memref::LoadOp::create(b, partials, ValueRange{i.constant(warp), m, c});
    total = total ? arith::AddFOp::create(b, total, sum).getResult() : sum;
  }
  SmallVector<SmallVector<Value>> indices = {{m, n}};
  SmallVector<PointEvaluator::Point> known(1);
  if (!isZeroFilled(op.getInit()))
    total = arith::AddFOp::create(
        b, total, points.evaluate(b, op.getInit(), indices[0], known[0]));
  known[0].add(op->getResult(0), indices[0], total);
  points.store(b, body.getOutputs(), indices, known);
}
