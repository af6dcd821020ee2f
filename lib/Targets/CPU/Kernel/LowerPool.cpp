//===- LowerPool.cpp - Pooling --------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The largest of a window is the largest of its columns' largest, and its sum
// the sum of its columns' sums: rows are combined first, by vectors as they lie
// in memory, and only a line of the results is read with strides. Lines of some
// rows are made before they are read: a load of what several stores have just
// written waits for all of them.
//
// An element may be compared more than once, so that rows outside of the input
// are those at its edge (each window sees that edge then), and the last vector
// of a line overlaps the one before. Sums leave out the rows outside.
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

/// Rows whose lines are made together.
constexpr int64_t kMostLines = 8;

class PoolEmitter {
public:
  PoolEmitter(const PoolFacts &facts, PoolPlanAttr plan, KernelBody &body)
      : facts(facts), plan(plan), body(body),
        evaluator(body, facts.op->getResult(0), 1, 2), width(plan.getWidth()) {}

  LogicalResult verify() {
    if (!KernelBody::hasBuffer(facts.input))
      return facts.op->emitOpError("has an operand that is computed in its own "
                                   "kernel");
    return evaluator.verify(isMax() ? facts.init : Value());
  }

  void emit(ImplicitLocOpBuilder &b);

private:
  bool isMax() const { return facts.kind == PoolKind::Max; }
  int64_t kernel(int64_t d) const { return facts.kernel[d]; }
  int64_t stride(int64_t d) const { return facts.strides[d]; }
  int64_t pad(int64_t d) const { return facts.padsBegin[d]; }
  /// Whether windows may reach beyond the input.
  bool hasEdges(int64_t d) const {
    std::optional<int64_t> in = IndexMath::known(inSize[d]);
    std::optional<int64_t> out = IndexMath::known(outSize[d]);
    return pad(d) > 0 || !in || !out ||
           (*out - 1) * stride(d) + kernel(d) > *in;
  }
  Value combine(ImplicitLocOpBuilder &b, Value x, Value y) const {
    return isMax() ? emitMaximum(b, x, y) : arith::AddFOp::create(b, x, y);
  }
  /// How many of the `kernel(d)` elements from `first` on, of which `pad(d)`
  /// lie before the input's first, lie in the input: numbers or vectors.
  Value emitSeen(ImplicitLocOpBuilder &b, int64_t d, Value first, Value size);
  void emitCounts(ImplicitLocOpBuilder &b);
  void emitLine(ImplicitLocOpBuilder &b, ValueRange plane, Value row);
  void emitColumnLoop(ImplicitLocOpBuilder &b,
                      llvm::function_ref<Value(Value, Value)> emitVector);
  SmallVector<Value> emitColumns(ImplicitLocOpBuilder &b, Value column);
  void emitResults(ImplicitLocOpBuilder &b, ValueRange plane, Value row);

  const PoolFacts &facts;
  const PoolPlanAttr plan;
  KernelBody &body;
  TileEvaluator evaluator;
  /// Results in a vector.
  const int64_t width;
  /// The input, and what the rows that a row of windows sees give, a line for
  /// each row of windows, from the first column of padding on.
  Value input, lines;
  /// The number of the line at hand.
  Value line;
  /// Sizes of planes, and how many columns of the input windows see.
  Value inSize[2], outSize[2], seen;
  /// How many columns of the input each window sees, as f32; null if all see as
  /// many.
  Value counts;
};

void PoolEmitter::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  input = body.getBuffer(facts.input);
  evaluator.prepare(b, isMax() ? facts.init : Value());
  for (int64_t d = 0; d < 2; ++d) {
    inSize[d] = math.dim(input, 2 + d);
    outSize[d] = evaluator.getSize(2 + d);
  }
  // A load of every second column reads up to twice a vector's.
  const int64_t lanes = facts.lanes;
  Value reach = math.roundDown(math.add(outSize[1], 2 * width - 1), width);
  reach = math.add(math.mul(reach, stride(1)), kernel(1));
  Value size = math.roundDown(math.add(reach, lanes - 1), lanes);
  seen = math.add(math.mul(math.sub(outSize[1], math.constant(1)), stride(1)),
                  kernel(1) - pad(1));
  seen = math.max(math.min(inSize[1], seen), math.constant(0));
  // Images without rows show nothing.
  if (!IndexMath::known(inSize[0]))
    seen = arith::SelectOp::create(b, math.less(math.constant(0), inSize[0]),
                                   seen, math.constant(0));
  const int64_t rows = plan.getRows();
  SmallVector<Value> sizes = {evaluator.getSize(0), evaluator.getSize(1),
                              math.ceilDiv(outSize[0], rows)};
  emitParallel(b, sizes, [&](ValueRange ivs) {
    auto allocate = [&](int64_t count, Value size) {
      std::optional<int64_t> known = IndexMath::known(size);
      return emitBuffer(
          b,
          MemRefType::get({count, known.value_or(ShapedType::kDynamic)},
                          b.getF32Type()),
          known ? ValueRange() : ValueRange(size));
    };
    const int64_t numLines = std::min(rows, kMostLines);
    lines = allocate(numLines, size);
    auto type = VectorType::get({lanes}, b.getF32Type());
    Value start = emitFloatSplat(b, type, isMax() ? -INFINITY : 0);
    emitFor(b, math.constant(0), math.constant(numLines), 1, [&](Value i) {
      emitFor(b, math.constant(0), size, lanes,
              [&](Value at) { emitStore(b, start, lines, {i, at}); });
    });
    if (facts.kind == PoolKind::Mean && hasEdges(1)) {
      counts = allocate(1, reach);
      emitCounts(b);
    }
    ValueRange plane = ivs.take_front(2);
    Value first = math.mul(ivs[2], rows);
    Value end = math.min(math.add(first, rows), outSize[0]);
    emitFor(b, first, end, numLines, [&](Value block) {
      Value count = math.min(math.sub(end, block), math.constant(numLines));
      auto forRows = [&](llvm::function_ref<void(Value)> emitRow) {
        emitFor(b, math.constant(0), count, 1, [&](Value i) {
          line = i;
          emitRow(math.add(block, i));
        });
      };
      forRows([&](Value row) { emitLine(b, plane, row); });
      forRows([&](Value row) { emitResults(b, plane, row); });
    });
    if (counts)
      memref::DeallocOp::create(b, counts);
    memref::DeallocOp::create(b, lines);
  });
}

Value PoolEmitter::emitSeen(ImplicitLocOpBuilder &b, int64_t d, Value first,
                            Value size) {
  Type type = first.getType();
  auto constant = [&](int64_t value) -> Value {
    TypedAttr number = b.getIntegerAttr(getElementTypeOrSelf(type), value);
    if (auto vector = dyn_cast<VectorType>(type))
      number = DenseElementsAttr::get(vector, number);
    return arith::ConstantOp::create(b, number);
  };
  Value end = b.createOrFold<arith::MinSIOp>(
      b.createOrFold<arith::AddIOp>(first, constant(kernel(d))),
      b.createOrFold<arith::AddIOp>(size, constant(pad(d))));
  Value begin = b.createOrFold<arith::MaxSIOp>(first, constant(pad(d)));
  return b.createOrFold<arith::SubIOp>(end, begin);
}

/// Writes how many columns each window of a row sees.
void PoolEmitter::emitCounts(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  auto ints = VectorType::get({width}, b.getI32Type());
  auto floats = VectorType::get({width}, b.getF32Type());
  auto broadcast = [&](Value index) -> Value {
    return vector::BroadcastOp::create(
        b, ints, arith::IndexCastOp::create(b, b.getI32Type(), index));
  };
  Value size = broadcast(inSize[1]);
  emitFor(b, math.constant(0), outSize[1], width, [&](Value column) {
    Value first =
        arith::AddIOp::create(b, broadcast(math.mul(column, stride(1))),
                              emitLanes(b, width, stride(1)));
    Value seen = emitSeen(b, /*d=*/1, first, size);
    emitStore(b, arith::SIToFPOp::create(b, floats, seen), counts,
              {math.constant(0), column});
  });
}

/// Has `emitVector` give the line's values at a column of the input, only some
/// if there is a mask, for all columns that windows see.
void PoolEmitter::emitColumnLoop(
    ImplicitLocOpBuilder &b,
    llvm::function_ref<Value(Value, Value)> emitVector) {
  IndexMath math(b);
  const int64_t step = plan.getColumns();
  auto emit = [&](Value column, Value mask) {
    emitStore(b, emitVector(column, mask), lines,
              {line, math.add(column, pad(1))}, mask);
  };
  std::optional<int64_t> columns = IndexMath::known(seen);
  Value whole = math.roundDown(seen, step);
  emitFor(b, math.constant(0), whole, step,
          [&](Value column) { emit(column, nullptr); });
  if (!columns)
    emitIf(b, math.less(whole, seen),
           [&] { emit(whole, emitTailMask(b, math.sub(seen, whole), step)); });
  else if (*columns % step != 0)
    emit(math.constant(*columns - step), nullptr);
}

/// What the rows that the windows of row `row` see give, column by column.
void PoolEmitter::emitLine(ImplicitLocOpBuilder &b, ValueRange plane,
                           Value row) {
  IndexMath math(b);
  Value top = math.mul(row, stride(0));
  const int64_t step = plan.getColumns();
  auto load = [&](Value at, Value column, Value mask) {
    return emitLoad(b, input, {plane[0], plane[1], at, column}, step, mask);
  };
  auto emitRows = [&](bool isInside) {
    SmallVector<Value> rows;
    for (int64_t k = 0; k < kernel(0); ++k) {
      Value at = math.sub(math.add(top, k), math.constant(pad(0)));
      if (!isInside)
        at = math.min(math.max(at, math.constant(0)),
                      math.sub(inSize[0], math.constant(1)));
      rows.push_back(at);
    }
    emitColumnLoop(b, [&](Value column, Value mask) {
      Value result;
      for (Value at : rows) {
        Value x = load(at, column, mask);
        result = result ? combine(b, result, x) : x;
      }
      return result;
    });
  };
  if (isMax() || !hasEdges(0))
    return emitRows(/*isInside=*/!hasEdges(0));
  // The first row that windows see, and how many.
  Value first =
      math.max(math.sub(top, math.constant(pad(0))), math.constant(0));
  Value count = emitSeen(b, /*d=*/0, top, inSize[0]);
  auto isWhole = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, count,
                                       math.constant(kernel(0)));
  auto emitSomeRows = [&] {
    auto type = VectorType::get({step}, b.getF32Type());
    Value zero = emitFloatSplat(b, type, 0);
    Value end = math.add(first, count);
    emitColumnLoop(b, [&](Value column, Value mask) -> Value {
      auto loop = scf::ForOp::create(
          b, first, end, math.constant(1), ValueRange(zero),
          [&](OpBuilder &builder, Location loc, Value at, ValueRange sums) {
            ImplicitLocOpBuilder in(loc, builder);
            Value x = emitLoad(in, input, {plane[0], plane[1], at, column},
                               step, mask);
            scf::YieldOp::create(in, combine(in, sums[0], x));
          });
      return loop.getResult(0);
    });
  };
  emitIf(b, isWhole, [&] { emitRows(/*isInside=*/true); }, emitSomeRows);
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
      result.push_back(emitLoad(b, lines, {line, at}, width));
      continue;
    }
    // The third column is the first, moved by a lane.
    if (stride(1) == 2 && k == 2 && kernel(1) == 3 && width >= 16) {
      Value next = memref::LoadOp::create(
          b, lines, ValueRange{line, math.add(first, 2 * width)});
      next = vector::BroadcastOp::create(b, type, next);
      result.push_back(emitPick(b, result.front(), next, 1, 1, width));
      continue;
    }
    if (stride(1) == 2) {
      Value both = emitLoad(b, lines, {line, at}, 2 * width);
      for (int64_t i = 0; i < 2 && k + i < kernel(1); ++i)
        result.push_back(emitPick(b, both, both, i, 2, width));
      ++k; // the second of a pair
      continue;
    }
    Value all = arith::ConstantOp::create(
        b,
        DenseElementsAttr::get(VectorType::get({width}, b.getI1Type()), true));
    result.push_back(vector::GatherOp::create(
        b, type, lines, ValueRange{line, at}, emitLanes(b, width, stride(1)),
        all, arith::ConstantOp::create(b, b.getZeroAttr(type))));
  }
  return result;
}

/// The results of a row, and what follows from them in the kernel.
void PoolEmitter::emitResults(ImplicitLocOpBuilder &b, ValueRange plane,
                              Value row) {
  IndexMath math(b);
  bool readsInit = false;
  if (isMax()) {
    auto fill = skipCasts(facts.init).getDefiningOp<linalg::FillOp>();
    readsInit =
        !fill || !matchPattern(fill.getInputs().front(), m_NegInfFloat());
  }
  auto floats = VectorType::get({width}, b.getF32Type());
  // Rows that the windows see; their sum is divided by as many for each column.
  Value rows;
  if (facts.kind == PoolKind::Mean) {
    Value count =
        hasEdges(0) ? emitSeen(b, /*d=*/0, math.mul(row, stride(0)), inSize[0])
                    : math.constant(kernel(0));
    count = arith::IndexCastOp::create(b, b.getI32Type(), count);
    count = arith::SIToFPOp::create(b, b.getF32Type(), count);
    rows = vector::BroadcastOp::create(b, floats, count);
  }
  std::optional<int64_t> columns = IndexMath::known(outSize[1]);
  emitFor(b, math.constant(0), outSize[1], width, [&](Value column) {
    Tile tile;
    tile.index.assign(plane.begin(), plane.end());
    tile.position = math.add(math.mul(row, outSize[1]), column);
    tile.width = width;
    if (!columns || *columns % width != 0)
      tile.mask = emitTailMask(b, math.sub(outSize[1], column), width);
    Value result;
    if (readsInit)
      result = evaluator.emitInit(b, facts.init, tile, 1).front();
    for (Value x : emitColumns(b, column))
      result = result ? combine(b, result, x) : x;
    if (!isMax()) {
      Value count = emitFloatSplat(b, floats, kernel(0) * kernel(1));
      if (rows)
        count = arith::MulFOp::create(
            b, rows,
            counts ? emitLoad(b, counts, {math.constant(0), column}, width)
                   : emitFloatSplat(b, floats, kernel(1)));
      result = arith::DivFOp::create(b, result, count);
    }
    evaluator.emitStores(b, tile, result);
  });
}

/// Lowers the kernel around an `OpT`, if `func` is one.
template <typename OpT> LogicalResult lower(func::FuncOp func) {
  FailureOr<OpT> root = findRoot<OpT>(func, "pooling");
  if (failed(root) || !*root)
    return root;
  PoolFacts facts(*root, cpu::getTargetOrDefault(func));
  FailureOr<PoolPlanAttr> plan = getPlan<PoolPlanAttr>(func, *root, facts);
  if (failed(plan))
    return failure();
  func->removeAttr(kPlanAttr);
  KernelBody body(func);
  PoolEmitter emitter(facts, *plan, body);
  return emitKernel(func, *root, body, emitter);
}

struct LowerPoolPass : sardonyx::impl::CPULowerPoolBase<LowerPoolPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(lower<sdx::MaxPoolOp>(getOperation())) ||
        failed(lower<sdx::AveragePoolOp>(getOperation())))
      signalPassFailure();
  }
};

} // namespace
