//===- AttentionKernel.cpp - A kernel around attention --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/AttentionKernel.h"
#include "Attention/Numbers.h"

#include "Kernel/Block.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Pairs of tiles of keys and values in shared memory.
static constexpr int64_t kStages = 2;
static constexpr double kLog2E = 1.4426950408889634;

SmallVector<Value> AttentionKernel::State::flatten() const {
  Values all = largest;
  all.append(sums);
  all.append(values);
  return all;
}

AttentionKernel::State AttentionKernel::State::unflatten(ValueRange all) const {
  State state;
  state.largest.assign(all.begin(), all.begin() + largest.size());
  all = all.drop_front(largest.size());
  state.sums.assign(all.begin(), all.begin() + sums.size());
  all = all.drop_front(sums.size());
  state.values.assign(all.begin(), all.end());
  return state;
}

AttentionKernel::AttentionKernel(sdx::AttentionOp op, const AttentionPlan &plan,
                                 KernelBody &body)
    : op(op), plan(plan), body(body), points(body), modifier(op) {
  points.declare(op.getResult());
}

bool AttentionKernel::isPossible() {
  for (Value operand : op->getOperands().drop_back())
    if (!KernelBody::hasBuffer(operand))
      return false;
  const int64_t rank = op.getInit().getType().getRank();
  return llvm::all_of(body.getOutputs(), [&](const KernelBody::Output &out) {
    return cast<MemRefType>(out.memref.getType()).getRank() == rank &&
           points.canEvaluate(out.tensor);
  });
}

/// Sizes of loops are those of dimensions of the operands, or of the result.
void AttentionKernel::findSizes(ImplicitLocOpBuilder &b) {
  Indices i(b);
  sizes.assign(op.getNumLoops(), Value());
  auto add = [&](AffineMap map, Value memref) {
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (!loop)
        continue;
      Value &size = sizes[loop.getPosition()];
      if (!size || !getConstantIntValue(size))
        size = sizeOf(b, memref, dim);
    }
  };
  for (unsigned operand = 0; operand < 3; ++operand)
    add(op.getMap(operand), body.getBuffer(op->getOperand(operand)));
  add(op.getInitMap(), body.getOutputs().front().memref);
  // A copy by hardware is of queries of one head.
  const std::optional<unsigned> queryLoop = findQueryLoop(op);
  for (unsigned loop = 0; loop < op.getNumOuterLoops(); ++loop) {
    const bool isOfPair =
        op.isOfKeys(loop) || (plan.isWgmma() && loop != queryLoop);
    (isOfPair ? pairLoops : rowLoops).push_back(loop);
    (isOfPair ? pairSizes : rowSizes).push_back(sizes[loop]);
  }
  auto multiply = [&](ArrayRef<Value> factors) {
    Value product = i.constant(1);
    for (Value factor : factors)
      product = i.mul(product, factor);
    return product;
  };
  pairs = multiply(pairSizes);
  rows = multiply(rowSizes);
}

void AttentionKernel::emit(ImplicitLocOpBuilder &b, Value onlyIf) {
  Indices i(b);
  isWanted = onlyIf;
  if (sizes.empty())
    findSizes(b);
  tiles = i.ceilDiv(rows, plan.rows);
  parts = countParts(b);
  Value blocks = i.mul(i.mul(pairs, tiles), parts);
  if (isWanted)
    blocks = b.createOrFold<arith::SelectOp>(isWanted, blocks, i.constant(0));
  if (plan.split != 1)
    partials = allocatePartials(b);
  if (plan.isWgmma())
    sources = mapOperands(b);
  {
    OpBuilder::InsertionGuard guard(b);
    scf::ParallelOp loop =
        startBlocks(b, blocks, plan.countThreads(), "attention");
    emitBlock(b, loop.getInductionVars()[0]);
  }
  if (!partials)
    return;
  emitSums(b);
  memref::DeallocOp::create(b, partials);
}

AttentionKernel::Row AttentionKernel::findRow(ImplicitLocOpBuilder &b,
                                              Value pair, Value number) {
  Indices i(b);
  Row row;
  row.number = number;
  row.exists = i.less(number, rows);
  Value inside = b.createOrFold<arith::SelectOp>(row.exists, number, row0);
  row.indices.assign(op.getNumOuterLoops(), Value());
  for (auto [loop, index] :
       llvm::zip_equal(pairLoops, i.unflatten(pair, pairSizes)))
    row.indices[loop] = index;
  for (auto [loop, index] :
       llvm::zip_equal(rowLoops, i.unflatten(inside, rowSizes)))
    row.indices[loop] = index;
  return row;
}

/// The matrix of an operand: of queries, for all that share the keys of `pair`,
/// of keys, or of values.
TileSource AttentionKernel::findSource(unsigned operand, Value pair) {
  TileSource source;
  source.memref = body.getBuffer(op->getOperand(operand));
  auto type = cast<MemRefType>(source.memref.getType());
  const int64_t columns = type.getShape().back();
  source.width = 16 / (type.getElementTypeBitWidth() / 8);
  while (columns % source.width)
    source.width /= 2;
  source.find = [this, operand, pair, columns,
                 memref = source.memref](ImplicitLocOpBuilder &b, Value row,
                                         Value col) -> TileSource::Element {
    Indices i(b);
    const bool isQuery = operand == 0;
    Value count = isQuery ? rows : sizes[op.getKeyLoop()];
    Values indices(op.getNumLoops());
    for (auto [loop, index] :
         llvm::zip_equal(pairLoops, i.unflatten(pair, pairSizes)))
      indices[loop] = index;
    if (isQuery)
      for (auto [loop, index] :
           llvm::zip_equal(rowLoops, i.unflatten(row, rowSizes)))
        indices[loop] = index;
    else
      indices[op.getKeyLoop()] = row;
    indices[op.getDepthLoop()] = indices[op.getColumnLoop()] = col;
    Value flat = i.constant(0);
    for (auto [dim, expr] : llvm::enumerate(op.getMap(operand).getResults())) {
      flat = i.mul(flat, sizeOf(b, memref, dim));
      if (auto loop = dyn_cast<AffineDimExpr>(expr))
        flat = i.add(flat, indices[loop.getPosition()]);
    }
    Value exists = i.less(row, count);
    if (isQuery ? plan.depth != columns
                : (operand == 1 ? plan.depth : plan.columns) != columns)
      exists = i.both(exists, i.less(col, i.constant(columns)));
    return {flat, exists};
  };
  return source;
}

/// How many keys one of the tile's queries has scores with, or all of them.
Value AttentionKernel::countKeys(ImplicitLocOpBuilder &b, bool ofAll) {
  Indices i(b);
  Value keys = sizes[op.getKeyLoop()];
  std::optional<unsigned> loop = modifier.getBoundingLoop();
  if (!loop)
    return keys;
  // Queries follow each other, unless another head begins among them.
  Value most = i.add(sizes[*loop], -1), least = i.constant(0);
  if (!rowLoops.empty() && rowLoops.back() == *loop) {
    Value first = i.rem(row0, sizes[*loop]);
    Value last = i.add(first, plan.rows - 1);
    Value isOneHead = i.less(last, sizes[*loop]);
    least = b.createOrFold<arith::SelectOp>(isOneHead, first, least);
    most = arith::MinSIOp::create(b, most, last);
  }
  Value last = modifier.findLastKey(b, ofAll ? least : most);
  Value count = arith::MaxSIOp::create(b, i.add(last, 1), i.constant(0));
  return arith::MinSIOp::create(b, count, keys);
}

/// The tile of block `id`, and its pair. With a bound the last tiles have most
/// to do, and begin first.
Value AttentionKernel::findTile(ImplicitLocOpBuilder &b, Value id) {
  Indices i(b);
  if (!modifier.getBoundingLoop() || !plan.isWgmma()) {
    pair = i.div(id, tiles);
    Value number = i.rem(id, tiles);
    if (modifier.getBoundingLoop())
      number = arith::SubIOp::create(b, i.add(tiles, -1), number);
    return number;
  }
  // Those of all pairs whose keys and values the L2 cache holds.
  Value bytes = i.mul(sizes[op.getKeyLoop()], 2 * (plan.depth + plan.columns));
  Value one = i.constant(1);
  Value together = i.div(i.constant(plan.cacheBytes / 2),
                         b.createOrFold<arith::MaxSIOp>(bytes, one));
  together = b.createOrFold<arith::MaxSIOp>(together, one);
  Value ofGroup = i.mul(tiles, together);
  Value first = i.mul(i.div(id, ofGroup), together);
  Value rest = i.rem(id, ofGroup);
  together = b.createOrFold<arith::MinSIOp>(
      together, b.createOrFold<arith::SubIOp>(pairs, first));
  pair = i.add(first, i.rem(rest, together));
  return arith::SubIOp::create(b, i.add(tiles, -1), i.div(rest, together));
}

/// The code of block `id`.
void AttentionKernel::emitBlock(ImplicitLocOpBuilder &b, Value id) {
  Indices i(b);
  Value part = i.rem(id, parts);
  row0 = i.mul(findTile(b, i.div(id, parts)), plan.rows);
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value from = i.constant(0);
  Value count = i.ceilDiv(countKeys(b, /*ofAll=*/false), plan.keys);
  if (partials) {
    Value ofPart = i.div(i.add(count, i.add(parts, -1)), parts);
    from = i.mul(part, ofPart);
    Value to = arith::MinSIOp::create(b, count, i.add(from, ofPart));
    to = arith::MaxSIOp::create(b, to, from);
    count = arith::SubIOp::create(b, to, from);
  }
  if (plan.isWgmma())
    return emitWarpgroups(b, part, from, count);
  Type type = op.getQuery().getType().getElementType();
  tile = plan.isMma() ? createMmaAttention(type, plan, thread)
                      : createFmaAttention(plan, thread);
  findRows(b, *tile);
  finish(b, emitKeys(b, from, count), part);
}

void AttentionKernel::findRows(ImplicitLocOpBuilder &b,
                               const AttentionShare &ofThread) {
  Indices i(b);
  share = &ofThread;
  seenByAll = countKeys(b, /*ofAll=*/true);
  rowsOfThread.clear();
  for (Value row : share->rows(b))
    rowsOfThread.push_back(findRow(b, pair, i.add(row0, row)));
}

/// What is done with the sums of a block.
void AttentionKernel::finish(ImplicitLocOpBuilder &b, const State &state,
                             Value part) {
  if (!partials)
    return emitResults(b, state);
  if (plan.split > 1)
    return storePartials(b, state, part);
  Indices i(b);
  Value isShared = i.less(i.constant(1), parts);
  auto shared = scf::IfOp::create(b, isShared, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(shared.thenYield());
  storePartials(b, state, part);
  b.setInsertionPoint(shared.elseYield());
  emitResults(b, state);
}

/// Before the first key.
AttentionKernel::State AttentionKernel::startState(ImplicitLocOpBuilder &b) {
  State state;
  state.largest.assign(rowsOfThread.size(), minusInfinity(b));
  state.sums.assign(rowsOfThread.size(), floatConstant(b, 0));
  state.values.assign(rowsOfThread.size() * share->columns(b).size(),
                      floatConstant(b, 0));
  return state;
}

/// Goes over `count` tiles of keys.
AttentionKernel::State AttentionKernel::emitKeys(ImplicitLocOpBuilder &b,
                                                 Value from, Value count) {
  Indices i(b);
  Type type = op.getQuery().getType().getElementType();
  const TileLayout layouts[] = {tile->queryLayout(), tile->keyLayout(),
                                tile->valueLayout()};
  const int64_t copies[] = {1, kStages, kStages};
  int64_t bytes = 0;
  for (auto [layout, copy] : llvm::zip_equal(layouts, copies))
    bytes += copy * layout.countBytes();
  Value shared = allocateShared(b, bytes + tile->countExchangeBytes());
  int64_t at = 0;
  Value views[3];
  for (auto [view, layout, copy] : llvm::zip_equal(views, layouts, copies)) {
    view = viewShared(b, shared, at, {copy * layout.countElements()}, type);
    at += copy * layout.countBytes();
  }
  Value exchange;
  if (int64_t size = tile->countExchangeBytes())
    exchange = viewShared(b, shared, at, {size / 4}, b.getF32Type());
  const int64_t threads = plan.countThreads();
  TileCopy copyQueries(findSource(0, pair), layouts[0], thread, threads);
  TileCopy copyKeys(findSource(1, pair), layouts[1], thread, threads);
  TileCopy copyValues(findSource(2, pair), layouts[2], thread, threads);
  Value zero = i.constant(0);
  auto copy = [&](Value number, Value stage) {
    Value key = i.mul(i.add(from, number), plan.keys);
    copyKeys.emit(b, key, zero, views[1],
                  i.mul(stage, layouts[1].countElements()));
    copyValues.emit(b, key, zero, views[2],
                    i.mul(stage, layouts[2].countElements()));
    NVVM::CpAsyncCommitGroupOp::create(b);
  };
  copyQueries.emit(b, row0, zero, views[0], zero);
  copy(zero, zero);
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  gpu::BarrierOp::create(b);
  Values queries = tile->loadQueries(b, views[0]);

  State state = startState(b);
  auto loop =
      scf::ForOp::create(b, zero, count, i.constant(1), state.flatten());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value number = loop.getInductionVar();
    Value next = i.add(number, 1);
    auto more =
        scf::IfOp::create(b, i.less(next, count), /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPoint(more.thenYield());
      copy(next, i.rem(next, kStages));
    }
    Value stage = i.rem(number, kStages);
    Values scores = tile->multiply(b, views[0], queries, views[1],
                                   i.mul(stage, layouts[1].countElements()));
    State added =
        emitTile(b, scores, i.mul(i.add(from, number), plan.keys), exchange,
                 views[2], i.mul(stage, layouts[2].countElements()),
                 state.unflatten(loop.getRegionIterArgs()));
    // The next tiles are there, and nobody reads these any more.
    NVVM::CpAsyncWaitGroupOp::create(b, 0);
    gpu::BarrierOp::create(b);
    scf::YieldOp::create(b, added.flatten());
  }
  State all = state.unflatten(loop.getResults());
  combineSums(b, all);
  return all;
}

/// The sums of exponentials of all threads that share rows.
void AttentionKernel::combineSums(ImplicitLocOpBuilder &b, State &state) {
  for (Value &sum : state.sums)
    sum = combineRow(b, sum, /*isSum=*/true);
}

/// `value` of all threads that share rows together, in each of them.
Value AttentionKernel::combineRow(ImplicitLocOpBuilder &b, Value value,
                                  bool isSum) {
  for (int64_t distance = 1; distance < share->threadsOfRow(); distance *= 2) {
    Value other = gpu::ShuffleOp::create(b, value, int32_t(distance), 32,
                                         gpu::ShuffleMode::XOR)
                      .getShuffleResult();
    value = isSum ? arith::AddFOp::create(b, value, other).getResult()
                  : larger(b, value, other);
  }
  return value;
}

/// Applies the body; there is no score past the last key. Where it only takes
/// keys away, tiles of which all queries see all keys are left alone.
void AttentionKernel::modifyScores(ImplicitLocOpBuilder &b, Values &scores,
                                   Value firstKey) {
  Indices i(b);
  std::optional<int64_t> known = getConstantIntValue(sizes[op.getKeyLoop()]);
  const bool mayPass = !known || *known % plan.keys;
  if (modifier.isFactor() && !mayPass)
    return;
  if (!modifier.isFactor() && !modifier.isBound())
    return modifyEach(b, scores, firstKey, mayPass);
  Value isCut = i.less(seenByAll, i.add(firstKey, plan.keys));
  auto cut = scf::IfOp::create(b, ValueRange(scores).getTypes(), isCut,
                               /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(cut.elseBlock());
  scf::YieldOp::create(b, scores);
  b.setInsertionPointToStart(cut.thenBlock());
  modifyEach(b, scores, firstKey, mayPass);
  scf::YieldOp::create(b, scores);
  scores.assign(cut.getResults().begin(), cut.getResults().end());
}

void AttentionKernel::modifyEach(ImplicitLocOpBuilder &b, Values &scores,
                                 Value firstKey, bool mayPass) {
  Indices i(b);
  Values numbers = share->keys(b);
  for (auto [k, number] : llvm::enumerate(numbers)) {
    Value key = i.add(firstKey, number), exists;
    if (mayPass) {
      exists = i.less(key, sizes[op.getKeyLoop()]);
      key = b.createOrFold<arith::SelectOp>(exists, key, i.constant(0));
    }
    for (auto [r, row] : llvm::enumerate(rowsOfThread)) {
      Value &score = scores[r * numbers.size() + k];
      Values indices = row.indices;
      indices.push_back(key);
      if (!modifier.isFactor())
        score = modifier.evaluate(b, score, loadExtras(b, indices), indices);
      if (exists)
        score = arith::SelectOp::create(b, exists, score, minusInfinity(b));
    }
  }
}

/// The elements of the extras that the body needs, at these indices.
AttentionKernel::Values AttentionKernel::loadExtras(ImplicitLocOpBuilder &b,
                                                    ValueRange indices) {
  Values elements;
  for (auto [i, element] : llvm::enumerate(op.getElements())) {
    if (element.use_empty()) {
      elements.emplace_back();
      continue;
    }
    Values at;
    for (AffineExpr expr : op.getMap(3 + i).getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      at.push_back(dim ? indices[dim.getPosition()]
                       : arith::ConstantIndexOp::create(b, 0).getResult());
    }
    elements.push_back(
        memref::LoadOp::create(b, body.getBuffer(op.getExtras()[i]), at));
  }
  return elements;
}

/// Makes exponentials of the scores of a row and counts them in; the factor by
/// which its sums of values become less.
Value AttentionKernel::addRow(ImplicitLocOpBuilder &b, size_t row,
                              MutableArrayRef<Value> scores, State &state) {
  Value scale = floatConstant(b, modifier.getFactor() * kLog2E);
  Value largest = reduce(b, SmallVector<Value>(scores), /*isSum=*/false);
  largest = combineRow(b, largest, /*isSum=*/false);
  largest = arith::MulFOp::create(b, largest, scale);
  Value &before = state.largest[row];
  largest = larger(b, before, largest);
  Value base = finiteBase(b, largest);
  Value factor = exp2(b, arith::SubFOp::create(b, before, base));
  before = largest;
  Value below = arith::NegFOp::create(b, base);
  for (Value &score : scores)
    score = exp2(b, math::FmaOp::create(b, score, scale, below));
  Value sum = reduce(b, SmallVector<Value>(scores), /*isSum=*/true);
  state.sums[row] = math::FmaOp::create(b, state.sums[row], factor, sum);
  return factor;
}

/// All rows of a tile: their factors.
AttentionKernel::Values AttentionKernel::addRows(ImplicitLocOpBuilder &b,
                                                 Values &scores, State &state) {
  Values factors;
  const size_t keys = scores.size() / rowsOfThread.size();
  for (size_t row = 0; row < rowsOfThread.size(); ++row)
    factors.push_back(
        addRow(b, row, MutableArrayRef(scores).slice(row * keys, keys), state));
  return factors;
}

/// Multiplies the sums of values of each row by its factor.
void AttentionKernel::scaleValues(ImplicitLocOpBuilder &b, ValueRange factors,
                                  State &state) {
  const size_t columns = state.values.size() / rowsOfThread.size();
  for (auto [j, value] : llvm::enumerate(state.values))
    value = arith::MulFOp::create(b, value, factors[j / columns]);
}

AttentionKernel::State AttentionKernel::emitTile(ImplicitLocOpBuilder &b,
                                                 Values scores, Value firstKey,
                                                 Value exchange, Value values,
                                                 Value offset,
                                                 const State &state) {
  modifyScores(b, scores, firstKey);
  State next = state;
  Values factors = addRows(b, scores, next);
  scaleValues(b, factors, next);
  next.values =
      tile->accumulate(b, scores, exchange, values, offset, next.values);
  return next;
}

int64_t AttentionKernel::width(int64_t most) {
  const int64_t columns = op.getInit().getType().getShape().back();
  while (columns % most)
    most /= 2;
  return most;
}

/// Visits the columns of the thread's rows that exist, neighbours at a time:
/// the first of them is number `first` of the thread's.
void AttentionKernel::forEachPiece(ImplicitLocOpBuilder &b,
                                   EmitColumns emitColumns) {
  Indices i(b);
  const int64_t columns = op.getInit().getType().getShape().back();
  const int64_t step = width(share->columnWidth());
  Values numbers = share->columns(b);
  for (auto [r, row] : llvm::enumerate(rowsOfThread)) {
    auto some = scf::IfOp::create(b, row.exists, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(some.thenYield());
    for (size_t first = 0; first < numbers.size(); first += step) {
      OpBuilder::InsertionGuard inner(b);
      if (plan.columns != columns) {
        Value inside = i.less(numbers[first], i.constant(columns));
        auto piece = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
        b.setInsertionPoint(piece.thenYield());
      }
      emitColumns(r, first, numbers[first]);
    }
  }
}

/// What follows the operation, at neighbouring columns of a query.
void AttentionKernel::emitPoints(ImplicitLocOpBuilder &b, ValueRange indices,
                                 Value column, ValueRange values) {
  Indices i(b);
  Values first;
  for (AffineExpr expr : op.getInitMap().getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop)
      first.push_back(i.constant(0));
    else if (loop.getPosition() == op.getColumnLoop())
      first.push_back(column);
    else
      first.push_back(indices[loop.getPosition()]);
  }
  // The numbers are those that the operation's own type holds.
  Type type = op.getInit().getType().getElementType();
  SmallVector<Values> at;
  SmallVector<PointEvaluator::Point> known;
  for (auto [j, value] : llvm::enumerate(values)) {
    Values &index = at.emplace_back(first);
    index.back() = i.add(index.back(), j);
    Value rounded = value;
    if (!type.isF32())
      rounded = arith::TruncFOp::create(b, type, value);
    known.emplace_back().add(op.getResult(), index, rounded);
  }
  points.store(b, body.getOutputs(), at, known);
}

void AttentionKernel::emitResults(ImplicitLocOpBuilder &b, State state) {
  Value keys = sizes[op.getKeyLoop()];
  const size_t columns = state.values.size() / rowsOfThread.size();
  for (size_t row = 0; row < rowsOfThread.size(); ++row) {
    Value factor =
        arith::DivFOp::create(b, floatConstant(b, 1), state.sums[row]);
    for (size_t col = 0; col < columns; ++col) {
      Value &value = state.values[row * columns + col];
      value = normalize(b, keys, value, factor);
    }
  }
  const int64_t step = width(share->columnWidth());
  forEachPiece(b, [&](size_t row, size_t first, Value column) {
    emitPoints(b, rowsOfThread[row].indices, column,
               ArrayRef(state.values).slice(row * columns + first, step));
  });
}
