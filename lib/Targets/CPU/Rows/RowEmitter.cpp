//===- RowEmitter.cpp - Loops over vectors for a group --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/RowEmitter.h"
#include "Kernel/Vectorize.h"
#include "Rows/Combiner.h"
#include "Rows/RowMemory.h"
#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// Iterations of a long flat loop that form one task.
constexpr int64_t kChunk = 4096;
/// Parallel iterations that are enough to occupy the threads.
constexpr int64_t kEnoughTasks = 256;
/// Loops over the row of up to this many iterations are unrolled when lanes are
/// rows of their own: the windows of a pooling.
constexpr int64_t kUnrolledRow = 16;
/// Values known at some depth of the loop nest.
struct Scope {
  explicit Scope(const Scope *parent = nullptr) : parent(parent) {}

  const Scope *parent;
  llvm::DenseMap<unsigned, SmallVector<Copies>> results;
  llvm::DenseMap<std::pair<unsigned, unsigned>, Copies> loads;

  const SmallVector<Copies> *findResults(unsigned stage) const {
    auto it = results.find(stage);
    if (it != results.end())
      return &it->second;
    return parent ? parent->findResults(stage) : nullptr;
  }
  const Copies *findLoad(unsigned stage, unsigned arg) const {
    auto it = loads.find({stage, arg});
    if (it != loads.end())
      return &it->second;
    return parent ? parent->findLoad(stage, arg) : nullptr;
  }
};

class Emitter : RowMemory {
public:
  using RowMemory::RowMemory;

  void run();

private:
  /// Called with the lane dimension's part of the point filled in.
  using LaneBody = llvm::function_ref<SmallVector<Value>(const Point &point,
                                                         ValueRange accs)>;

  bool isInnerDim(unsigned d) {
    return group.reduced[d] || static_cast<int64_t>(d) == plan.lane ||
           static_cast<int64_t>(d) == plan.transposed;
  }

  bool unrollsRow();
  int64_t chooseChunk(ArrayRef<unsigned> outer);
  void emitTask(Point point, OpFoldResult begin, OpFoldResult end);
  void emitTransposedTask(Point point, Value firstRow);
  void preload(const Point &point, Scope &scope, bool onlyInnerStages,
               llvm::function_ref<bool(unsigned)> varies);
  void emitPasses(Point point, Scope &scope);
  void emitPass(const Point &point, Scope &scope, int level,
                ArrayRef<unsigned> stages);
  SmallVector<Value> emitRowLoops(const Point &point, Scope &scope,
                                  ArrayRef<unsigned> loops,
                                  ArrayRef<unsigned> stages, ValueRange accs);
  SmallVector<Value> emitPoint(const Point &point, Scope &scope,
                               ArrayRef<unsigned> stages, ValueRange accs);
  SmallVector<Value> emitLaneLoop(const Point &outer, OpFoldResult begin,
                                  OpFoldResult end, ValueRange accs,
                                  LaneBody body);

  Value emitSpecial(Operation *op, ArrayRef<Value> operands, RowStage &stage,
                    const Point &point, unsigned copy);
  Copies getArg(unsigned stage, unsigned arg, const Point &point, Scope &scope);
  SmallVector<Copies> compute(unsigned stage, const Point &point, Scope &scope,
                              ArrayRef<Copies> accs = {});
  const SmallVector<Copies> &evaluate(unsigned stage, const Point &point,
                                      Scope &scope);
  void finishReductions(const Point &point, Scope &scope,
                        ArrayRef<unsigned> stages, ValueRange accs);
  void storeResults(unsigned stage, const Point &point, Scope &scope);
};

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Copies Emitter::getArg(unsigned stage, unsigned arg, const Point &point,
                       Scope &scope) {
  const RowAccess &access = group.stages[stage].args[arg];
  switch (access.kind) {
  case RowAccess::None:
    return {Value()};
  case RowAccess::Scalar:
    return {access.value};
  case RowAccess::Memory:
    if (const Copies *known = scope.findLoad(stage, arg))
      return *known;
    return load(access, point);
  case RowAccess::Stage:
    return evaluate(access.stage, point, scope)[access.result];
  }
  return {};
}

/// An element that a body reads at positions that it computes, or a check.
Value Emitter::emitSpecial(Operation *op, ArrayRef<Value> operands,
                           RowStage &stage, const Point &point, unsigned copy) {
  if (auto check = dyn_cast<sardonyx::sdx::CheckOp>(op)) {
    sardonyx::sdx::CheckOp::create(b, loc, operands[0], check.getMessageAttr(),
                                   operands.drop_front(), check.getKindAttr());
    return Value();
  }
  Value memref = stage.extracts.lookup(op);
  SmallVector<Value> indices(operands.drop_front());
  if (indices.empty() || !isa<VectorType>(indices.back().getType()))
    return memref::LoadOp::create(b, loc, memref, indices);
  // The last index is the position along the lanes itself.
  indices.back() = point.ivs[plan.lane];
  if (copy > 0 && !point.isTile)
    indices.back() =
        arith::AddIOp::create(b, loc, indices.back(), index(copy * plan.lanes));
  auto type = VectorType::get(plan.lanes, op->getResult(0).getType());
  if (!point.mask)
    return vector::LoadOp::create(b, loc, type, memref, indices);
  return vector::MaskedLoadOp::create(
      b, loc, type, memref, indices, point.mask,
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
}

/// What makes `value` of a body, be it in an earlier stage or behind a
/// conversion; `stage` becomes the one that it is in.
static Operation *findDefinition(RowGroup &group, unsigned &stage,
                                 Value value) {
  while (true) {
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      RowStage &reader = group.stages[stage];
      if (arg.getOwner() != reader.body)
        return nullptr;
      RowAccess &access = reader.args[arg.getArgNumber()];
      if (access.kind != RowAccess::Stage)
        return nullptr;
      stage = access.stage;
      value =
          group.stages[stage].body->getTerminator()->getOperand(access.result);
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      return op;
    value = op->getOperand(0);
  }
}

/// Whether what `access` reads is a square root, or the sum of exp(x - max x)
/// of a softmax: nothing so small that its reciprocal would be infinite, and
/// for a sum at least 1.
static bool hasFiniteReciprocal(RowGroup &group, const RowAccess &access) {
  unsigned at = access.stage;
  Value result =
      group.stages[at].body->getTerminator()->getOperand(access.result);
  Operation *op = findDefinition(group, at, result);
  if (isa_and_nonnull<math::SqrtOp>(op))
    return true;
  if (!isa_and_nonnull<arith::AddFOp>(op) || !group.stages[at].isReduction)
    return false;
  return llvm::any_of(op->getOperands(), [&](Value term) {
    unsigned stage = at;
    auto exp =
        dyn_cast_or_null<math::ExpOp>(findDefinition(group, stage, term));
    if (!exp)
      return false;
    auto difference = dyn_cast_or_null<arith::SubFOp>(
        findDefinition(group, stage, exp.getOperand()));
    return difference &&
           isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(
               findDefinition(group, stage, difference.getRhs())) &&
           group.stages[stage].isReduction;
  });
}

/// The body of `stage` at `point`; `accs` are the accumulators of a reduction.
SmallVector<Copies> Emitter::compute(unsigned index, const Point &point,
                                     Scope &scope, ArrayRef<Copies> accs) {
  RowStage &stage = group.stages[index];
  SmallVector<Copies> args;
  for (unsigned i = 0; i < stage.args.size(); ++i) {
    if (i >= stage.numInputs && !accs.empty())
      args.push_back(accs[i - stage.numInputs]);
    else
      args.push_back(getArg(index, i, point, scope));
  }
  // Division of a row by what a reduction made of it: one division and a
  // multiplication for each element. The result may differ in the last bit.
  llvm::SmallBitVector reciprocal(args.size());
  for (auto [i, access] : llvm::enumerate(stage.args)) {
    if (access.kind != RowAccess::Stage || !plan.inner[index] ||
        stage.isReduction || !isDivisorOnly(stage.body->getArgument(i)) ||
        !hasFiniteReciprocal(group, access))
      continue;
    Value divisor = args[i].front();
    bool isRowValue =
        group.stages[access.stage].isReduction || !plan.inner[access.stage];
    if (!isRowValue || !plan.laneReduced || isa<VectorType>(divisor.getType()))
      continue;
    Value one = arith::ConstantOp::create(
        b, loc, b.getFloatAttr(divisor.getType(), 1.0));
    args[i] = {arith::DivFOp::create(b, loc, one, divisor)};
    reciprocal.set(i);
  }
  llvm::SmallBitVector numbers(args.size());
  if (stage.isReduction && !accs.empty())
    for (unsigned r = 0; r < stage.resultTypes.size(); ++r)
      numbers[stage.numInputs + r] = startsWithNumber(stage, r);
  SmallVector<Copies> results(stage.resultTypes.size());
  for (unsigned copy = 0; copy < point.copies; ++copy) {
    SmallVector<Value> values;
    for (const Copies &arg : args)
      values.push_back(pick(arg, copy));
    auto position = [&](int64_t loop) -> Value {
      int64_t d = stage.dims[loop];
      if (d < 0 || !point.ivs[d])
        return this->index(0);
      if (point.isTile && d == plan.transposed)
        return arith::AddIOp::create(b, loc, point.ivs[d], this->index(copy))
            .getResult();
      if (d != plan.lane || !point.onVectors)
        return point.ivs[d];
      auto type = VectorType::get(plan.lanes, b.getIndexType());
      Value first = point.ivs[d];
      if (copy > 0 && !point.isTile)
        first = arith::AddIOp::create(b, loc, first,
                                      this->index(copy * plan.lanes));
      return arith::AddIOp::create(
          b, loc, vector::BroadcastOp::create(b, loc, type, first),
          vector::StepOp::create(b, loc, type));
    };
    auto special = [&](Operation *op, ArrayRef<Value> operands) {
      return emitSpecial(op, operands, stage, point, copy);
    };
    SmallVector<Value> yielded =
        emitVectorBody(b, loc, *stage.body, shape(point), values, position,
                       reciprocal, numbers, special);
    for (auto [result, value] : llvm::zip(results, yielded))
      result.push_back(value);
  }
  return results;
}

const SmallVector<Copies> &Emitter::evaluate(unsigned stage, const Point &point,
                                             Scope &scope) {
  if (const SmallVector<Copies> *known = scope.findResults(stage))
    return *known;
  SmallVector<Copies> values;
  if (plan.kept[stage] && plan.level[stage] < point.level)
    for (const RowAccess &access : plan.keptIn[stage])
      values.push_back(load(access, point));
  else
    values = compute(stage, point, scope);
  return scope.results[stage] = std::move(values);
}

void Emitter::storeResults(unsigned stage, const Point &point, Scope &scope) {
  const SmallVector<Copies> &values = *scope.findResults(stage);
  for (auto [i, access] : llvm::enumerate(group.stages[stage].stores))
    if (access.kind == RowAccess::Memory)
      store(access, point, values[i]);
    else if (plan.kept[stage] && plan.level[stage] == point.level)
      store(plan.keptIn[stage][i], point, values[i]);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// A loop along the lanes: whole groups of `unroll` vectors, then single
/// vectors under a mask (or single elements where a mask is not enough).
/// Accumulators come in groups of `plan.unroll`; the tail uses the first.
SmallVector<Value> Emitter::emitLaneLoop(const Point &outer, OpFoldResult begin,
                                         OpFoldResult end, ValueRange accs,
                                         LaneBody body) {
  int64_t step = plan.lanes * plan.unroll;
  SmallVector<Value> values(accs);
  auto first = getConstantIntValue(begin), last = getConstantIntValue(end);
  Value beginValue = getValueOrCreateConstantIndexOp(b, loc, begin);
  Value endValue = getValueOrCreateConstantIndexOp(b, loc, end);
  Value middle;
  bool hasMain = true, hasTail = true;
  if (first && last) {
    int64_t count = std::max<int64_t>(*last - *first, 0);
    middle = index(*first + count / step * step);
    hasMain = count >= step;
    hasTail = count % step != 0;
  } else {
    Value count = arith::SubIOp::create(b, loc, endValue, beginValue);
    Value rest = arith::RemUIOp::create(b, loc, count, index(step));
    middle = arith::SubIOp::create(b, loc, endValue, rest);
  }
  auto loop = [&](Value lb, Value ub, int64_t by, unsigned copies,
                  bool onVectors, bool masked) {
    auto forOp = scf::ForOp::create(b, loc, lb, ub, index(by), values);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    Point point = outer;
    point.ivs[plan.lane] = forOp.getInductionVar();
    point.copies = copies;
    point.onVectors = onVectors;
    if (masked) {
      point.left = arith::SubIOp::create(b, loc, ub, forOp.getInductionVar());
      point.mask = vector::CreateMaskOp::create(
          b, loc, VectorType::get(plan.lanes, b.getI1Type()), point.left);
    }
    SmallVector<Value> next = body(point, forOp.getRegionIterArgs());
    if (!values.empty())
      scf::YieldOp::create(b, loc, next);
    values = llvm::to_vector_of<Value>(forOp.getResults());
  };
  if (hasMain)
    loop(beginValue, middle, step, plan.unroll, true, false);
  if (hasTail)
    loop(middle, endValue, plan.maskedTail ? plan.lanes : 1, 1, plan.maskedTail,
         plan.maskedTail);
  return values;
}

/// Everything of `stages` at one point of the row; returns the accumulators.
SmallVector<Value> Emitter::emitPoint(const Point &point, Scope &scope,
                                      ArrayRef<unsigned> stages,
                                      ValueRange accs) {
  SmallVector<Value> next(accs);
  unsigned at = 0;
  // In a loop along reduced lanes there are `unroll` accumulators, of which
  // the tail updates one.
  unsigned width = plan.laneReduced ? plan.unroll : point.copies;
  for (unsigned s : stages) {
    RowStage &stage = group.stages[s];
    if (!stage.isReduction) {
      (void)evaluate(s, point, scope);
      storeResults(s, point, scope);
      continue;
    }
    SmallVector<Copies> current;
    for (unsigned r = 0; r < stage.resultTypes.size(); ++r)
      current.push_back(
          Copies(ArrayRef(next).slice(at + r * width, point.copies)));
    SmallVector<Copies> updated = compute(s, point, scope, current);
    for (unsigned r = 0; r < stage.resultTypes.size(); ++r)
      for (unsigned i = 0; i < point.copies; ++i) {
        Value value = broadcastTo(b, loc, updated[r][i], shape(point));
        if (plan.laneReduced && point.mask)
          value =
              arith::SelectOp::create(b, loc, point.mask, value, current[r][i]);
        next[at + r * width + i] = value;
      }
    at += stage.resultTypes.size() * width;
  }
  return next;
}

bool Emitter::unrollsRow() {
  int64_t total = 1;
  for (unsigned d = 0; d < group.getNumDims(); ++d)
    if (group.reduced[d] && total > 0)
      total *= group.getStaticSize(d);
  return !plan.laneReduced && total > 0 && total <= kUnrolledRow;
}

SmallVector<Value> Emitter::emitRowLoops(const Point &point, Scope &scope,
                                         ArrayRef<unsigned> loops,
                                         ArrayRef<unsigned> stages,
                                         ValueRange accs) {
  if (!loops.empty() && unrollsRow()) {
    unsigned d = loops.front();
    SmallVector<Value> values(accs);
    for (int64_t i = 0, e = group.getStaticSize(d); i < e; ++i) {
      Point inner = point;
      inner.ivs[d] = index(i);
      values = emitRowLoops(inner, scope, loops.drop_front(), stages, values);
    }
    return values;
  }
  if (!loops.empty()) {
    unsigned d = loops.front();
    auto forOp =
        scf::ForOp::create(b, loc, index(0), getSize(d), index(1), accs);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    Point inner = point;
    inner.ivs[d] = forOp.getInductionVar();
    SmallVector<Value> next = emitRowLoops(inner, scope, loops.drop_front(),
                                           stages, forOp.getRegionIterArgs());
    if (!accs.empty())
      scf::YieldOp::create(b, loc, next);
    return llvm::to_vector_of<Value>(forOp.getResults());
  }
  if (!plan.laneReduced) {
    Scope inner(&scope);
    return emitPoint(point, inner, stages, accs);
  }
  return emitLaneLoop(point, b.getIndexAttr(0), group.sizes[plan.lane], accs,
                      [&](const Point &inner, ValueRange values) {
                        Scope innerScope(&scope);
                        return emitPoint(inner, innerScope, stages, values);
                      });
}

/// Turns accumulators into the reductions' results.
void Emitter::finishReductions(const Point &point, Scope &scope,
                               ArrayRef<unsigned> stages, ValueRange accs) {
  unsigned at = 0;
  unsigned width = plan.laneReduced ? plan.unroll : point.copies;
  for (unsigned s : stages) {
    RowStage &stage = group.stages[s];
    if (!stage.isReduction)
      continue;
    SmallVector<Copies> results;
    for (unsigned r = 0; r < stage.resultTypes.size(); ++r, at += width) {
      Copies values(accs.begin() + at, accs.begin() + at + width);
      if (!plan.laneReduced) {
        results.push_back(values);
        continue;
      }
      Combiner combiner{plan.kinds[s][r], startsWithNumber(stage, r)};
      for (unsigned half = width / 2; half > 0; half /= 2)
        for (unsigned i = 0; i < half; ++i)
          values[i] = combiner.combine(b, loc, values[i], values[i + half]);
      Value total = combiner.reduceLanes(b, loc, values[0]);
      Value init = pick(getArg(s, stage.numInputs + r, point, scope), 0);
      results.push_back({combiner.combine(b, loc, init, total)});
    }
    scope.results[s] = std::move(results);
    storeResults(s, point, scope);
  }
}

/// One pass over the row.
void Emitter::emitPass(const Point &outer, Scope &scope, int level,
                       ArrayRef<unsigned> stages) {
  Point point = outer;
  point.level = level;
  SmallVector<Value> accs;
  for (unsigned s : stages) {
    RowStage &stage = group.stages[s];
    if (!stage.isReduction)
      continue;
    for (unsigned r = 0; r < stage.resultTypes.size(); ++r) {
      if (plan.laneReduced) {
        auto type = VectorType::get(plan.lanes, stage.resultTypes[r]);
        Combiner combiner{plan.kinds[s][r], startsWithNumber(stage, r)};
        Attribute one = combiner.getNeutral(b, stage.resultTypes[r]);
        Value neutral = arith::ConstantOp::create(
            b, loc, DenseElementsAttr::get(type, one));
        accs.append(plan.unroll, neutral);
        continue;
      }
      RowAccess &init = stage.args[stage.numInputs + r];
      Copies values;
      if (init.kind == RowAccess::None)
        values = {arith::ConstantOp::create(
            b, loc, b.getZeroAttr(stage.resultTypes[r]))};
      else
        values = getArg(s, stage.numInputs + r, point, scope);
      for (unsigned i = 0; i < point.copies; ++i)
        accs.push_back(broadcastTo(b, loc, pick(values, i), shape(point)));
    }
  }
  SmallVector<unsigned> loops;
  for (unsigned d = 0; d < group.getNumDims(); ++d)
    if (group.reduced[d] && static_cast<int64_t>(d) != plan.lane)
      loops.push_back(d);
  SmallVector<Value> results = emitRowLoops(point, scope, loops, stages, accs);
  finishReductions(point, scope, stages, results);
}

void Emitter::emitPasses(Point point, Scope &scope) {
  preload(point, scope, /*onlyInnerStages=*/true,
          [&](unsigned d) { return group.reduced[d]; });
  for (int level = -1; level <= plan.maxLevel; ++level) {
    point.level = level;
    SmallVector<unsigned> pass;
    for (unsigned s = 0; s < group.stages.size(); ++s) {
      RowStage &stage = group.stages[s];
      bool stored = llvm::any_of(stage.stores, [](RowAccess &a) {
        return a.kind == RowAccess::Memory;
      });
      if (plan.inner[s] && plan.level[s] == level &&
          (stage.isReduction || stored || plan.kept[s]))
        pass.push_back(s);
    }
    if (!pass.empty())
      emitPass(point, scope, level, pass);
    for (unsigned s = 0; s < group.stages.size(); ++s) {
      if (plan.inner[s] || plan.level[s] != level)
        continue;
      (void)evaluate(s, point, scope);
      storeResults(s, point, scope);
    }
  }
}

/// Loads what does not vary in the loops inside of this point.
void Emitter::preload(const Point &point, Scope &scope, bool onlyInnerStages,
                      llvm::function_ref<bool(unsigned)> varies) {
  for (unsigned s = 0; s < group.stages.size(); ++s) {
    if (onlyInnerStages && !plan.inner[s])
      continue;
    RowStage &stage = group.stages[s];
    for (auto [i, access] : llvm::enumerate(stage.args)) {
      // Initial values are read once, where the reduction starts or ends.
      if (access.kind != RowAccess::Memory || scope.findLoad(s, i) ||
          (stage.isReduction && i >= stage.numInputs))
        continue;
      bool fixed = true;
      for (unsigned d = 0; d < group.getNumDims(); ++d)
        fixed &= !access.map.isFunctionOfDim(d) || !varies(d);
      if (fixed)
        scope.loads[{s, static_cast<unsigned>(i)}] = load(access, point);
    }
  }
}

/// One iteration of the parallel loop; `begin` and `end` are the part of the
/// lane dimension that it works on when lanes are rows of their own.
void Emitter::emitTask(Point point, OpFoldResult begin, OpFoldResult end) {
  for (unsigned s = 0; s < group.stages.size(); ++s)
    if (plan.kept[s])
      for (auto [r, access] : llvm::enumerate(plan.keptIn[s]))
        if (access.kind == RowAccess::None)
          access = makeScratch(group.stages[s].resultTypes[r]);
  Scope top;
  preload(point, top, /*onlyInnerStages=*/false,
          [&](unsigned d) { return isInnerDim(d); });
  if (plan.lane < 0 || plan.laneReduced) {
    emitPasses(point, top);
  } else {
    for (unsigned s = 0; s < group.stages.size(); ++s) {
      RowStage &stage = group.stages[s];
      if (!plan.inner[s] && plan.level[s] < 0 && !stage.domain[plan.lane])
        (void)evaluate(s, point, top);
    }
    emitLaneLoop(point, begin, end, {},
                 [&](const Point &inner, ValueRange) -> SmallVector<Value> {
                   Scope scope(&top);
                   emitPasses(inner, scope);
                   return {};
                 });
  }
  for (Value buffer : buffers)
    memref::DeallocOp::create(b, loc, buffer);
}

/// A block of rows of the transposed dimension: square tiles as far as they
/// go, the rest row by row.
void Emitter::emitTransposedTask(Point point, Value firstRow) {
  Scope top;
  preload(point, top, /*onlyInnerStages=*/false,
          [&](unsigned d) { return isInnerDim(d); });
  int64_t lanes = plan.lanes;
  Value rows = getSize(plan.transposed), columns = getSize(plan.lane);
  Value next = arith::AddIOp::create(b, loc, firstRow, index(lanes));
  Value end = arith::MinSIOp::create(b, loc, next, rows);
  Value isWhole =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, next, rows);
  Value tiled = arith::SubIOp::create(
      b, loc, columns, arith::RemUIOp::create(b, loc, columns, index(lanes)));
  tiled = arith::SelectOp::create(b, loc, isWhole, tiled, index(0));
  {
    auto loop = scf::ForOp::create(b, loc, index(0), tiled, index(lanes));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Point tile = point;
    tile.ivs[plan.transposed] = firstRow;
    tile.ivs[plan.lane] = loop.getInductionVar();
    tile.copies = lanes;
    tile.onVectors = tile.isTile = true;
    Scope scope(&top);
    emitPasses(tile, scope);
  }
  auto loop = scf::ForOp::create(b, loc, firstRow, end, index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  point.ivs[plan.transposed] = loop.getInductionVar();
  emitLaneLoop(point, tiled, columns, {},
               [&](const Point &inner, ValueRange) -> SmallVector<Value> {
                 Scope scope(&top);
                 emitPasses(inner, scope);
                 return {};
               });
}

/// The part of the lane dimension that is one task, or 0 for all of it.
int64_t Emitter::chooseChunk(ArrayRef<unsigned> outer) {
  if (plan.lane < 0 || plan.laneReduced || plan.transposed >= 0)
    return 0;
  int64_t tasks = 1;
  for (unsigned d : outer) {
    int64_t size = group.getStaticSize(d);
    // Other dynamic dimensions are the batch, which is often 1.
    tasks *= size < 0 ? 1 : size;
  }
  int64_t step = plan.lanes * plan.unroll;
  int64_t size = group.getStaticSize(plan.lane);
  if (tasks >= 64)
    return 0;
  int64_t chunk = group.reduced.any() ? step : llvm::alignTo(kChunk, step);
  return size >= 0 && size <= chunk ? 0 : chunk;
}

void Emitter::run() {
  SmallVector<unsigned> outer;
  for (unsigned d = 0; d < group.getNumDims(); ++d)
    if (!isInnerDim(d))
      outer.push_back(d);
  int64_t chunk = chooseChunk(outer);
  // Without lanes, inner dimensions become loops once there are iterations
  // enough: an iteration is more than one element then.
  SmallVector<unsigned> sequential;
  if (plan.lane < 0) {
    int64_t iterations = 1;
    unsigned keep = 0;
    for (; keep + 1 < outer.size() && iterations < kEnoughTasks; ++keep) {
      int64_t size = group.getStaticSize(outer[keep]);
      iterations *= size < 0 ? 4 : std::max<int64_t>(size, 1);
    }
    sequential.assign(outer.begin() + std::min<size_t>(keep, outer.size()),
                      outer.end());
    if (outer.size() < 2)
      sequential.clear();
    outer.resize(outer.size() - sequential.size());
  }
  SmallVector<Value> lbs, ubs, steps;
  for (unsigned d : outer) {
    lbs.push_back(index(0));
    ubs.push_back(getSize(d));
    steps.push_back(index(1));
  }
  OpFoldResult begin = b.getIndexAttr(0), end = begin;
  if (plan.lane >= 0)
    end = group.sizes[plan.lane];
  if (chunk) {
    lbs.push_back(index(0));
    ubs.push_back(getSize(plan.lane));
    steps.push_back(index(chunk));
  }
  if (plan.transposed >= 0) {
    lbs.push_back(index(0));
    ubs.push_back(getSize(plan.transposed));
    steps.push_back(index(plan.lanes));
  }
  Point point;
  point.ivs.resize(group.getNumDims());
  OpBuilder::InsertionGuard guard(b);
  if (!lbs.empty()) {
    auto loop = scf::ParallelOp::create(b, loc, lbs, ubs, steps);
    b.setInsertionPointToStart(loop.getBody());
    for (auto [d, iv] : llvm::zip(outer, loop.getInductionVars()))
      point.ivs[d] = iv;
    if (plan.transposed >= 0)
      return emitTransposedTask(point, loop.getInductionVars().back());
    if (chunk) {
      Value first = loop.getInductionVars().back();
      begin = first;
      int64_t size = group.getStaticSize(plan.lane);
      Value next = arith::AddIOp::create(b, loc, first, index(chunk));
      end = size >= 0 && size % chunk == 0
                ? next
                : arith::MinSIOp::create(b, loc, next, getSize(plan.lane))
                      .getResult();
    }
  }
  for (unsigned d : sequential) {
    auto loop = scf::ForOp::create(b, loc, index(0), getSize(d), index(1));
    b.setInsertionPointToStart(loop.getBody());
    point.ivs[d] = loop.getInductionVar();
  }
  emitTask(point, begin, end);
}

} // namespace

namespace sardonyx::cpu {

void emitRowGroup(OpBuilder &b, RowGroup &group, unsigned vectorBits) {
  collapseDims(b, group);
  RowPlan plan = makeRowPlan(group, vectorBits);
  if (plan.conditions.empty()) {
    Emitter(b, group, plan).run();
    return;
  }
  // Broadcasts that only the run knows of: vectors when there is none.
  Value holds;
  for (auto [value, wanted] : plan.conditions) {
    Value is = value;
    if (!wanted)
      is = arith::XOrIOp::create(
          b, group.loc, value,
          arith::ConstantIntOp::create(b, group.loc, 1, 1));
    holds =
        holds ? arith::AndIOp::create(b, group.loc, holds, is).getResult() : is;
  }
  auto branch = scf::IfOp::create(b, group.loc, holds, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenYield());
  Emitter(b, group, plan).run();
  b.setInsertionPoint(branch.elseYield());
  RowPlan scalar = makeRowPlan(group, /*vectorBits=*/0);
  Emitter(b, group, scalar).run();
}

LogicalResult emitRowLoops(RewriterBase &rewriter, linalg::LinalgOp op,
                           unsigned vectorBits) {
  rewriter.setInsertionPoint(op);
  FailureOr<RowGroup> group = buildGroup(rewriter, op);
  if (failed(group))
    return failure();
  emitRowGroup(rewriter, *group, vectorBits);
  rewriter.eraseOp(op);
  return success();
}

} // namespace sardonyx::cpu
