//===- AttentionSoftmax.cpp - The softmax of blocks of scores -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Common/IndexMath.h"
#include "Kernel/Vectorize.h"
#include "dialects/SDX/SoftmaxTerm.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// All lanes of a vector combined, halves first.
static Value reduceLanes(ImplicitLocOpBuilder &b, Value vector,
                         function_ref<Value(Value, Value)> combine) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  for (; lanes > 1; lanes /= 2)
    vector = combine(extractLanes(b, b.getLoc(), vector, 0, lanes / 2),
                     extractLanes(b, b.getLoc(), vector, lanes / 2, lanes / 2));
  return vector::ExtractOp::create(b, vector, 0);
}

Value cpu::emitLargestLane(ImplicitLocOpBuilder &b, Value vector) {
  return reduceLanes(b, vector, [&](Value x, Value y) {
    return emitBetter(b, b.getLoc(), /*larger=*/true, x, y);
  });
}

Value cpu::emitSumOfLanes(ImplicitLocOpBuilder &b, Value vector) {
  return reduceLanes(b, vector, [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(b, x, y);
  });
}

/// What the body is given of a query: its indices, and elements of extras that
/// all keys share; null for the others.
AttentionKernel::Query AttentionKernel::findQuery(ImplicitLocOpBuilder &b,
                                                  const Task &task,
                                                  Value query) {
  Query found;
  found.indices = findIndices(b, task, query);
  for (auto [i, element] : llvm::enumerate(op.getElements())) {
    Value loaded;
    if (element.use_empty()) {
      loaded = arith::ConstantOp::create(
          b, cast<TypedAttr>(b.getZeroAttr(element.getType())));
    } else if (!op.getMap(3 + i).isFunctionOfDim(op.getKeyLoop())) {
      loaded = memref::LoadOp::create(b, body.getBuffer(op.getExtras()[i]),
                                      at(b, 3 + i, found.indices));
    }
    found.elements.push_back(loaded);
  }
  return found;
}

/// Elements of an extra for neighbouring keys; keys that `mask` (null: none)
/// turns off do not exist.
Value AttentionKernel::loadExtra(ImplicitLocOpBuilder &b, unsigned extra,
                                 ArrayRef<Value> loops, Value firstKey,
                                 Value mask) {
  IndexMath math(b);
  Value memref = body.getBuffer(op.getExtras()[extra]);
  AffineMap map = op.getMap(3 + extra);
  Values indices(loops);
  indices.push_back(firstKey);
  if (map.getResults().back() == b.getAffineDimExpr(op.getKeyLoop()))
    return emitLoad(b, memref, at(b, 3 + extra, indices), facts.lanes, mask);
  // Keys that do not follow each other come one by one, the last one again.
  auto type = VectorType::get(
      {facts.lanes}, cast<MemRefType>(memref.getType()).getElementType());
  Value all = emitPadding(b, type);
  for (int64_t lane = 0; lane < facts.lanes; ++lane) {
    Value key = math.add(firstKey, lane);
    indices.back() =
        mask ? math.min(key, math.sub(keys, math.constant(1))) : key;
    Value one = memref::LoadOp::create(b, memref, at(b, 3 + extra, indices));
    all = vector::InsertOp::create(b, one, all, ArrayRef<int64_t>{lane});
  }
  return all;
}

/// What the body makes of the scores of neighbouring keys.
Value AttentionKernel::modify(ImplicitLocOpBuilder &b, Value scores,
                              Value firstKey, const Query &query, Value mask) {
  Values args = {scores};
  for (auto [i, element] : llvm::enumerate(query.elements))
    args.push_back(element ? element
                           : loadExtra(b, i, query.indices, firstKey, mask));
  llvm::append_range(args, query.indices);
  auto type = VectorType::get({facts.lanes}, b.getIndexType());
  args.push_back(
      arith::AddIOp::create(b, vector::BroadcastOp::create(b, type, firstKey),
                            vector::StepOp::create(b, type)));
  Value modified =
      emitVectorBody(b, b.getLoc(), op.getBody().front(), {facts.lanes}, args)
          .front();
  return broadcastTo(b, b.getLoc(), modified, {facts.lanes});
}

/// The larger, lane by lane, of `largest` and of the scores of a panel, which
/// become what `query` (null: nothing) makes of them. Of a panel that is not
/// full there are `count` keys (null: it is full), the others have -inf.
Value AttentionKernel::emitLargestOfPanel(ImplicitLocOpBuilder &b,
                                          const Task &task, Value row,
                                          const Keys &block, Value panel,
                                          const Query *query, Value count,
                                          Value largest) {
  IndexMath math(b);
  Value ofPanel;
  for (int64_t part = 0; part < facts.panel; part += facts.lanes) {
    Value at = math.add(math.mul(panel, facts.panel), part);
    Value scores = emitLoad(b, task.scores, {row, at}, facts.lanes);
    Value mask;
    if (count)
      mask = emitTailMask(b, math.sub(count, math.constant(part)), facts.lanes);
    if (query)
      scores = modify(b, scores, math.add(block.first, at), *query, mask);
    if (mask)
      scores = arith::SelectOp::create(
          b, mask, scores, emitFloatSplat(b, vectorType(b), -INFINITY));
    if (query || mask)
      emitStore(b, scores, task.scores, {row, at});
    // What waits for the panel before is one step.
    ofPanel = ofPanel
                  ? emitBetter(b, b.getLoc(), /*larger=*/true, scores, ofPanel)
                  : scores;
  }
  return emitBetter(b, b.getLoc(), /*larger=*/true, ofPanel, largest);
}

/// The largest score of a row, which becomes what `query` makes of it.
Value AttentionKernel::emitLargest(ImplicitLocOpBuilder &b, const Task &task,
                                   Value row, const Keys &block,
                                   const Query *query) {
  IndexMath math(b);
  Value lowest = emitFloatSplat(b, vectorType(b), -INFINITY);
  Value full = hasTail() ? math.div(block.count, facts.panel) : block.panels;
  auto loop = scf::ForOp::create(b, math.constant(0), full, math.constant(1),
                                 ValueRange{lowest});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(
        b, emitLargestOfPanel(b, task, row, block, loop.getInductionVar(),
                              query, nullptr, loop.getRegionIterArg(0)));
  }
  Value largest = loop.getResult(0);
  if (hasTail()) {
    auto tail =
        scf::IfOp::create(b, largest.getType(), math.less(full, block.panels),
                          /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(tail.elseBlock());
    scf::YieldOp::create(b, largest);
    b.setInsertionPointToStart(tail.thenBlock());
    Value count = math.sub(block.count, math.mul(full, facts.panel));
    scf::YieldOp::create(b, emitLargestOfPanel(b, task, row, block, full, query,
                                               count, largest));
    largest = tail.getResult(0);
  }
  return emitLargestLane(b, largest);
}

/// The exponentials of `scores` - `base`, times the factor; both are scalars or
/// vectors.
Value AttentionKernel::emitExp(ImplicitLocOpBuilder &b, Value scores,
                               Value base) {
  Value difference = arith::SubFOp::create(b, scores, base);
  if (factor != 1)
    difference = arith::MulFOp::create(
        b, difference, emitFloatSplat(b, scores.getType(), float(factor)));
  auto term = math::ExpOp::create(b, difference);
  sdx::markSoftmaxTerm(term);
  return term;
}

/// What scores are taken the difference from: the largest, unless there is none
/// but -inf, whose exponential is 0.
Value AttentionKernel::emitBase(ImplicitLocOpBuilder &b, Value largest) {
  Value lowest = emitFloatSplat(b, b.getF32Type(), -INFINITY);
  Value isNone =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, largest, lowest);
  return arith::SelectOp::create(b, isNone,
                                 emitFloatSplat(b, b.getF32Type(), 0), largest);
}

/// Gives the largest score of a query, `score` included; what has been summed
/// up becomes relative to it.
Value AttentionKernel::growTo(ImplicitLocOpBuilder &b, const Task &task,
                              Value query, Value score) {
  IndexMath math(b);
  Value before = memref::LoadOp::create(b, task.largest, ValueRange{query});
  Value isLarger =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, score, before);
  Value largest = arith::SelectOp::create(b, isLarger, score, before);
  emitIf(b, isLarger, [&] {
    memref::StoreOp::create(b, largest, task.largest, ValueRange{query});
    Value scale = vector::BroadcastOp::create(b, vectorType(b),
                                              emitExp(b, before, largest));
    auto multiply = [&](Value memref, Value at) {
      Value sums = emitLoad(b, memref, {query, at}, facts.lanes);
      emitStore(b, arith::MulFOp::create(b, sums, scale), memref, {query, at});
    };
    multiply(task.totals, math.constant(0));
    emitFor(b, math.constant(0), math.constant(facts.paddedColumns()),
            facts.lanes, [&](Value column) { multiply(task.sums, column); });
  });
  return largest;
}

/// 2^x as far as bf16 have bits (of relative error 1e-4), x of AVX-512: 2 to
/// what x is above the whole number below it, times 2 to that.
static Value emitShortExp2(ImplicitLocOpBuilder &b, Value x) {
  auto constant = [&](Type type, int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, type, b.getIntegerAttr(type, value));
  };
  Value all = constant(b.getI16Type(), -1);
  Value current = constant(b.getI32Type(), 4); // rounding
  Value down = constant(b.getI32Type(), 9);    // without exceptions
  auto call = [&](StringRef name, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, x.getType(), b.getStringAttr(name),
                                         operands)
        .getResult(0);
  };
  Value part =
      call("llvm.x86.avx512.mask.reduce.ps.512", {x, down, x, all, current});
  // Exact at 0 and at 1.
  constexpr float kFactors[] = {0.07826797f, 0.22630768f, 0.69542435f, 1};
  Value power = emitFloatSplat(b, x.getType(), kFactors[0]);
  for (float factor : ArrayRef(kFactors).drop_front())
    power = vector::FMAOp::create(b, power, part,
                                  emitFloatSplat(b, x.getType(), factor));
  return call("llvm.x86.avx512.mask.scalef.ps.512",
              {power, x, power, all, current});
}

/// Stores two vectors of exponentials, from key `at` of a block on.
void AttentionKernel::storeTerms(ImplicitLocOpBuilder &b, const Task &task,
                                 Value row, Value at, ArrayRef<Value> terms) {
  IndexMath math(b);
  auto store = [&] {
    for (auto [i, term] : llvm::enumerate(terms))
      emitStore(b, term, task.scores, {row, math.add(at, i * facts.lanes)});
  };
  if (!facts.areBf16())
    return store();
  chooseByQueries(b, task, store, [&] {
    emitStore(b, emitAsPairs(b, emitRounded(b, terms[0], terms[1])),
              task.probabilities, {row, math.div(at, 2)});
  });
}

/// Makes exponentials of a row of scores and counts them in.
void AttentionKernel::emitExponentials(ImplicitLocOpBuilder &b,
                                       const Task &task, Value row, Value query,
                                       const Keys &block, Value largest) {
  IndexMath math(b);
  Value base =
      vector::BroadcastOp::create(b, vectorType(b), emitBase(b, largest));
  Value before =
      emitLoad(b, task.totals, {query, math.constant(0)}, facts.lanes);
  // Of the base itself the exponential is 1, however large it is: no multiple
  // of it is rounded.
  Value scale =
      emitFloatSplat(b, vectorType(b), float(factor * llvm::numbers::log2e));
  auto exponential = [&](Value scores) -> Value {
    if (!facts.areBf16())
      return emitExp(b, scores, base);
    Value difference = arith::SubFOp::create(b, scores, base);
    return emitShortExp2(b, arith::MulFOp::create(b, difference, scale));
  };
  auto loop = scf::ForOp::create(b, math.constant(0), block.panels,
                                 math.constant(1), ValueRange{before});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value total = loop.getRegionIterArg(0);
    Value first = math.mul(loop.getInductionVar(), facts.panel);
    Values terms;
    for (int64_t part = 0; part < facts.panel; part += facts.lanes) {
      Value at = math.add(first, part);
      Value scores = emitLoad(b, task.scores, {row, at}, facts.lanes);
      terms.push_back(exponential(scores));
    }
    Value sum = arith::AddFOp::create(b, terms[0], terms[1]);
    total = arith::AddFOp::create(b, total, sum);
    storeTerms(b, task, row, first, terms);
    scf::YieldOp::create(b, total);
  }
  emitStore(b, loop.getResult(0), task.totals, {query, math.constant(0)});
}

/// Makes exponentials of some rows of scores. `isWithin` (i1, null: never)
/// tells that no key of the block is excluded for one of them.
void AttentionKernel::emitSoftmax(ImplicitLocOpBuilder &b, const Task &task,
                                  const Rows &rows, const Keys &block,
                                  Value isWithin) {
  IndexMath math(b);
  const bool isChanged = op.getModified() != op.getScore();
  emitFor(b, math.constant(0), rows.count, 1, [&](Value row) {
    Value query = math.add(rows.first, row);
    auto modified = [&]() -> Value {
      Query of = findQuery(b, task, query);
      return emitLargest(b, task, row, block, &of);
    };
    auto plain = [&] { return emitLargest(b, task, row, block, nullptr); };
    Value ofBlock;
    if (!isChanged) {
      ofBlock = plain();
    } else if (!isWithin || !bounds.areAll()) {
      ofBlock = modified();
    } else {
      auto branch = emitIf(
          b, b.getF32Type(), isWithin,
          [&] { return SmallVector<Value>{plain()}; },
          [&] { return SmallVector<Value>{modified()}; });
      ofBlock = branch.getResult(0);
    }
    Value largest = growTo(b, task, query, ofBlock);
    emitExponentials(b, task, row, query, block, largest);
  });
}
