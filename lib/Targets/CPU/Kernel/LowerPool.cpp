//===- LowerPool.cpp - Maximum pooling ------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The largest of a window is the largest of its columns' largest: rows are
// compared first, by vectors as they lie in memory, and only a line of the
// results is read with strides. An element may be compared more than once, so
// that rows outside of the input are those at its edge (each window sees that
// edge then), and the last vector of a line overlaps the one before.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Kernel/Epilogue.h"
#include "Kernel/RootKernel.h"
#include "Kernel/Vectorize.h"
#include "MicroKernels/ContractionLoop.h"
#include "MicroKernels/VectorOps.h"
#include "Plan/Plan.h"
#include "Plan/PoolPlan.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERPOOL
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

class PoolEmitter {
public:
  PoolEmitter(const PoolFacts &facts, PoolPlanAttr plan, KernelBody &body)
      : op(facts.getOp()), facts(facts), plan(plan), body(body),
        evaluator(body, op->getResult(0), 1, 2), width(plan.getWidth()) {}

  LogicalResult verify() {
    if (!KernelBody::hasBuffer(op.getInput()))
      return op.emitOpError("has an operand that is computed in its own "
                            "kernel");
    return evaluator.verify(op.getInit());
  }

  void emit(ImplicitLocOpBuilder &b);

private:
  int64_t kernel(int64_t d) { return op.getKernelShape()[d]; }
  int64_t stride(int64_t d) { return op.getStrides()[d]; }
  int64_t pad(int64_t d) { return op.getPadsBegin()[d]; }
  int64_t inSize(int64_t d) {
    return op.getInput().getType().getDimSize(2 + d);
  }
  int64_t outSize(int64_t d) {
    return op.getInit().getType().getDimSize(2 + d);
  }
  void emitLine(ImplicitLocOpBuilder &b, ValueRange plane, Value row);
  SmallVector<Value> emitColumns(ImplicitLocOpBuilder &b, Value column);
  void emitResults(ImplicitLocOpBuilder &b, ValueRange plane, Value row);

  sdx::MaxPoolOp op;
  const PoolFacts &facts;
  const PoolPlanAttr plan;
  KernelBody &body;
  TileEvaluator evaluator;
  /// Results in a vector.
  const int64_t width;
  /// The input, and the largest elements of the rows that a row of windows
  /// sees, from the first column of padding on.
  Value input, line;
};

void PoolEmitter::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  input = body.getBuffer(op.getInput());
  evaluator.prepare(b, op.getInit());
  const int64_t lanes = facts.lanes;
  // A load of every second column reads up to twice a vector's.
  int64_t reach =
      (llvm::alignTo(outSize(1), width) + width) * stride(1) + kernel(1);
  int64_t size = llvm::alignTo(reach, lanes);
  const int64_t rows = plan.getRows();
  SmallVector<Value> sizes = {
      evaluator.getSize(0), evaluator.getSize(1),
      math.constant(llvm::divideCeil(outSize(0), rows))};
  emitParallel(b, sizes, [&](ValueRange ivs) {
    line = emitBuffer(b, MemRefType::get({size}, b.getF32Type()));
    auto type = VectorType::get({lanes}, b.getF32Type());
    Value lowest = emitFloatSplat(b, type, -INFINITY);
    emitFor(b, math.constant(0), math.constant(size), lanes,
            [&](Value at) { emitStore(b, lowest, line, {at}); });
    ValueRange plane = ivs.take_front(2);
    Value first = math.mul(ivs[2], rows);
    Value end = math.min(math.add(first, rows), math.constant(outSize(0)));
    emitFor(b, first, end, 1, [&](Value row) {
      emitLine(b, plane, row);
      emitResults(b, plane, row);
    });
    memref::DeallocOp::create(b, line);
  });
}

/// The largest elements of the rows that the windows of row `row` see.
void PoolEmitter::emitLine(ImplicitLocOpBuilder &b, ValueRange plane,
                           Value row) {
  IndexMath math(b);
  Value top = math.mul(row, stride(0));
  bool hasEdges = pad(0) > 0 ||
                  (outSize(0) - 1) * stride(0) + kernel(0) - pad(0) > inSize(0);
  SmallVector<Value> rows;
  for (int64_t k = 0; k < kernel(0); ++k) {
    Value at = math.sub(math.add(top, k), math.constant(pad(0)));
    if (hasEdges)
      at = math.min(math.max(at, math.constant(0)),
                    math.constant(inSize(0) - 1));
    rows.push_back(at);
  }
  const int64_t columns = facts.seen, step = plan.getColumns();
  auto emitVector = [&](Value column) {
    Value largest;
    for (Value at : rows) {
      Value x = emitLoad(b, input, {plane[0], plane[1], at, column}, step);
      largest = largest ? emitMaximum(b, largest, x) : x;
    }
    emitStore(b, largest, line, {math.add(column, pad(1))});
  };
  int64_t whole = columns / step * step;
  emitFor(b, math.constant(0), math.constant(whole), step, emitVector);
  if (whole < columns)
    emitVector(math.constant(columns - step));
}

/// What the windows of the results from `column` on see, column by column.
SmallVector<Value> PoolEmitter::emitColumns(ImplicitLocOpBuilder &b,
                                            Value column) {
  IndexMath math(b);
  Value first = math.mul(column, stride(1));
  SmallVector<Value> result;
  auto type = VectorType::get({width}, b.getF32Type());
  for (int64_t k = 0; k < kernel(1); ++k) {
    Value at = math.add(first, k);
    if (stride(1) == 1) {
      result.push_back(emitLoad(b, line, {at}, width));
      continue;
    }
    // The third column is the first, moved by a lane.
    if (stride(1) == 2 && k == 2 && kernel(1) == 3 && width >= 16) {
      Value next = memref::LoadOp::create(
          b, line, ValueRange{math.add(first, 2 * width)});
      next = vector::BroadcastOp::create(b, type, next);
      result.push_back(emitPick(b, result.front(), next, 1, 1, width));
      continue;
    }
    if (stride(1) == 2) {
      Value both = emitLoad(b, line, {at}, 2 * width);
      for (int64_t i = 0; i < 2 && k + i < kernel(1); ++i)
        result.push_back(emitPick(b, both, both, i, 2, width));
      ++k; // the second of a pair
      continue;
    }
    Value all = arith::ConstantOp::create(
        b,
        DenseElementsAttr::get(VectorType::get({width}, b.getI1Type()), true));
    result.push_back(vector::GatherOp::create(
        b, type, line, ValueRange{at}, emitLanes(b, width, stride(1)), all,
        arith::ConstantOp::create(b, b.getZeroAttr(type))));
  }
  return result;
}

/// The results of a row, and what follows from them in the kernel.
void PoolEmitter::emitResults(ImplicitLocOpBuilder &b, ValueRange plane,
                              Value row) {
  IndexMath math(b);
  auto fill = skipCasts(op.getInit()).getDefiningOp<linalg::FillOp>();
  bool isFirst =
      fill && matchPattern(fill.getInputs().front(), m_NegInfFloat());
  emitFor(b, math.constant(0), math.constant(outSize(1)), width,
          [&](Value column) {
            Tile tile;
            tile.index.assign(plane.begin(), plane.end());
            tile.position = math.add(math.mul(row, outSize(1)), column);
            tile.width = width;
            if (outSize(1) % width != 0)
              tile.mask = emitTailMask(
                  b, math.sub(math.constant(outSize(1)), column), width);
            Value largest;
            if (!isFirst)
              largest = evaluator.emitInit(b, op.getInit(), tile, 1).front();
            for (Value x : emitColumns(b, column))
              largest = largest ? emitMaximum(b, largest, x) : x;
            evaluator.emitStores(b, tile, largest);
          });
}

struct LowerPoolPass : sardonyx::impl::CPULowerPoolBase<LowerPoolPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    FailureOr<sdx::MaxPoolOp> root = findRoot<sdx::MaxPoolOp>(func, "pooling");
    if (failed(root))
      return signalPassFailure();
    if (!*root)
      return;
    PoolFacts facts(*root, cpu::getTargetOrDefault(func));
    FailureOr<PoolPlanAttr> plan = getPlan<PoolPlanAttr>(func, *root, facts);
    if (failed(plan))
      return signalPassFailure();
    func->removeAttr(kPlanAttr);
    KernelBody body(func);
    PoolEmitter emitter(facts, *plan, body);
    if (failed(emitKernel(func, *root, body, emitter)))
      signalPassFailure();
  }
};

} // namespace
