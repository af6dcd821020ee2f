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
/// Fewer threads side by side would read parts of sectors.
static constexpr int64_t kFewestLanes = 4;
/// Loads of the right-hand side that are on their way at a time, and those that
/// a thread asks for before it may read what it multiplies them by.
static constexpr int64_t kUnrolled = 4, kPrefetched = 16;
/// Of the L2 cache.
static constexpr int64_t kLineBytes = 128;

/// Elements of a row of the right-hand side that a thread reads together.
static int64_t countWidth(sdx::MatmulOp op) {
  const int64_t size = op.getRhs().getType().getShape().back();
  const int64_t width = countInPiece(op.getRhs().getType().getElementType());
  return !ShapedType::isDynamic(size) && size % width == 0 ? width : 1;
}

static int64_t rowsOf(sdx::MatmulOp op) {
  return op.getInit().getType().getDimSize(op.isBatched());
}

/// Threads that read a row together.
static int64_t chooseLanes(sdx::MatmulOp op, TargetAttr target) {
  const int64_t size = op.getRhs().getType().getShape().back();
  int64_t lanes = kWarp;
  if (ShapedType::isDynamic(size))
    return lanes;
  const int64_t pieces = size / countWidth(op);
  if (op.getTransposed()) {
    while (lanes > kFewestLanes && pieces <= lanes / 2)
      lanes /= 2;
    return lanes;
  }
  const int64_t pairs =
      op.isBatched() ? op.getInit().getType().getDimSize(0) : 1;
  const int64_t multiple = ShapedType::isDynamic(pairs) ? 1 : pairs;
  while (lanes > kFewestLanes &&
         multiple * (pieces / lanes) < target.countMultiprocessors())
    lanes /= 2;
  return lanes;
}

std::optional<FewRowsPlanAttr>
nv::chooseFewRows(Operation *product, TargetAttr target, bool mayBeOpen) {
  auto op = dyn_cast<sdx::MatmulOp>(product);
  if (!op)
    return std::nullopt;
  const int64_t rows = rowsOf(op);
  if (ShapedType::isDynamic(rows) ? !mayBeOpen : rows > kFewRows)
    return std::nullopt;
  Type type = op.getLhs().getType().getElementType();
  if (type != op.getRhs().getType().getElementType() ||
      !(type.isF32() || type.isF16() || type.isBF16()) ||
      !op.getInit().getType().getElementType().isF32())
    return std::nullopt;
  return FewRowsPlanAttr::get(product->getContext(), chooseLanes(op, target));
}

std::string nv::whyNot(sdx::MatmulOp op, FewRowsPlanAttr plan) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  if (!kernel || !HeadEpilogue::isNeeded(op->getResult(0)))
    return "";
  KernelBody body(kernel);
  return FewRows(op, plan, body, rowsOf(op)).isPossible()
             ? ""
             : "its blocks would have one of two columns that an element hangs "
               "on";
}

FewRows::FewRows(ArrayRef<sdx::MatmulOp> products, FewRowsPlanAttr plan,
                 KernelBody &body, int64_t rows)
    : products(products), op(products.front()), body(body), points(body),
      prologue(op.getLhs(), body), lanes(plan.getLanes()), rows(rows),
      isTransposed(op.getTransposed()),
      isOpen(ShapedType::isDynamic(rowsOf(op))), width(countWidth(op)) {
  for (sdx::MatmulOp product : products)
    points.declare(product->getResult(0));
  if (products.size() != 1 || isOpen ||
      !HeadEpilogue::isNeeded(op->getResult(0)))
    return;
  heads.emplace(op->getResult(0), body);
  points.readElsewhere();
  points.declare(op->getResult(0),
                 [this](ImplicitLocOpBuilder &b, ValueRange index) -> Value {
                   Value zero = Indices(b).constant(0);
                   Value c = getBlockColumns().number(b, col0, index[1]);
                   return memref::LoadOp::create(b, partials,
                                                 ValueRange{zero, index[0], c});
                 });
}

bool FewRows::isPossible() {
  const int64_t rank = op.getInit().getType().getRank();
  return (!prologue.isNeeded() || (!isOpen && prologue.isPossible())) &&
         llvm::all_of(products,
                      [&](sdx::MatmulOp product) {
                        return KernelBody::hasBuffer(product.getRhs()) &&
                               points.canEvaluate(product.getInit());
                      }) &&
         (!heads || (heads->isPossible() &&
                     getBlockColumns().fits(isTransposed ? 1 : width))) &&
         llvm::all_of(body.getOutputs(), [&](const KernelBody::Output &out) {
           return (heads ||
                   cast<MemRefType>(out.memref.getType()).getRank() == rank) &&
                  points.canEvaluate(out.tensor);
         });
}

int64_t FewRows::columnsOfBlock() const {
  return isTransposed ? kThreads / lanes : lanes * width;
}

void FewRows::measure(ImplicitLocOpBuilder &b) {
  Indices i(b);
  for (sdx::MatmulOp product : products)
    weights.push_back(body.getBuffer(product.getRhs()));
  if (prologue.isNeeded()) {
    pairs = i.constant(1);
    numRows = i.constant(rows);
  } else {
    lhs = body.getBuffer(op.getLhs());
    pairs = op.isBatched() ? sizeOf(b, lhs, 0) : i.constant(1);
    numRows = sizeOf(b, lhs, op.isBatched());
  }
  depth = sizeOf(b, weights[0], op.getDepthDim());
  columns = sizeOf(b, weights[0], op.getColumnDim());
}

void FewRows::emit(ImplicitLocOpBuilder &b, Value isWanted) {
  Indices i(b);
  measure(b);
  Value blocks = i.mul(pairs, i.ceilDiv(columns, columnsOfBlock()));
  if (isWanted)
    blocks = b.createOrFold<arith::SelectOp>(isWanted, blocks, i.constant(0));
  const int64_t others = heads ? heads->countBlocks(kThreads) : 0;
  OpBuilder::InsertionGuard guard(b);
  scf::ParallelOp loop =
      startBlocks(b, i.add(blocks, others), kThreads, "matmul");
  Value block = loop.getInductionVars()[0];
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  if (others == 0)
    return emitBlock(b, block);
  auto which = scf::IfOp::create(b, i.less(block, blocks),
                                 /*withElseRegion=*/true);
  b.setInsertionPoint(which.thenYield());
  emitBlock(b, block);
  b.setInsertionPoint(which.elseYield());
  heads->emitOthers(b, points, b.createOrFold<arith::SubIOp>(block, blocks),
                    thread, kThreads);
}

void FewRows::emitBlock(ImplicitLocOpBuilder &b, Value block) {
  startBlock(b, block);
  prefetchWeights(b);
  if (prologue.isNeeded())
    lhs = prologue.emit(b, thread);
  combine(b, sumUp(b));
  gpu::BarrierOp::create(b);
  if (heads)
    emitHeads(b);
  else
    emitResults(b);
}

void FewRows::startBlock(ImplicitLocOpBuilder &b, Value block) {
  Indices i(b);
  SmallVector<Value> at =
      i.unflatten(block, {pairs, i.ceilDiv(columns, columnsOfBlock())});
  pair = at[0];
  col0 = getBlockColumns().first(b, at[1]);
  col = columnOf(b, isTransposed ? i.div(thread, lanes)
                                 : i.mul(i.rem(thread, lanes), width));
  // Columns that there are not are read elsewhere and not stored.
  col =
      b.createOrFold<arith::SelectOp>(i.less(col, columns), col, i.constant(0));
  const int64_t parts = isTransposed ? 1 : kWarps;
  const int64_t sumRows = static_cast<int64_t>(products.size()) * rows;
  Value shared = allocateShared(b, parts * sumRows * columnsOfBlock() * 4);
  partials = viewShared(b, shared, 0, {parts, sumRows, columnsOfBlock()},
                        b.getF32Type());
}

static Value toF32(ImplicitLocOpBuilder &b, Value value) {
  return value.getType().isF32()
             ? value
             : arith::ExtFOp::create(b, b.getF32Type(), value).getResult();
}

/// Row `row` of the left-hand side; another one where there is none.
Value FewRows::rowOf(ImplicitLocOpBuilder &b, int64_t row) {
  Indices i(b);
  Value number = i.constant(row);
  if (!isOpen || row == 0)
    return number;
  return b.createOrFold<arith::SelectOp>(i.less(number, numRows), number,
                                         i.constant(0));
}

/// Neighbours from element `at` of `buffer` on.
SmallVector<Value> FewRows::loadPiece(ImplicitLocOpBuilder &b, Value buffer,
                                      Value at) {
  if (width == 1)
    return {toF32(b, loadAt(b, buffer, at))};
  Type type = cast<MemRefType>(buffer.getType()).getElementType();
  Value piece = LLVM::LoadOp::create(b, VectorType::get({width}, type),
                                     addressOf(b, buffer, at),
                                     /*alignment=*/16);
  SmallVector<Value> values;
  for (int64_t j = 0; j < width; ++j)
    values.push_back(toF32(
        b, LLVM::ExtractElementOp::create(
               b, piece, LLVM::ConstantOp::create(b, b.getI32Type(), j))));
  return values;
}

/// Where the thread's elements of row `k` of the right-hand side begin or,
/// where that is [N,K], those from `k` on of its row.
Value FewRows::placeOf(ImplicitLocOpBuilder &b, Value k) {
  Indices i(b);
  Value line = isTransposed ? col : k, place = isTransposed ? k : col;
  Value length = isTransposed ? depth : columns;
  Value at = i.add(i.mul(line, length), place);
  if (op.isRhsBatched())
    at = i.add(i.mul(pair, i.mul(depth, columns)), at);
  return at;
}

int64_t FewRows::depthStep() const {
  return isTransposed ? lanes * width : kThreads / lanes;
}

/// The first that a thread has along K.
Value FewRows::firstDepth(ImplicitLocOpBuilder &b) {
  Indices i(b);
  return isTransposed ? i.mul(i.rem(thread, lanes), width)
                      : i.div(thread, lanes);
}

/// Asks for what the block multiplies by first, one thread for each line of the
/// cache.
void FewRows::prefetchWeights(ImplicitLocOpBuilder &b) {
  std::optional<int64_t> known = getConstantIntValue(depth);
  if (!known || *known == 0 || op.isRhsBatched() || !canPrefetch(op))
    return;
  Indices i(b);
  const int64_t bytes =
      op.getRhs().getType().getElementTypeBitWidth() / 8 * width;
  const int64_t together = std::max<int64_t>(kLineBytes / bytes, 1);
  Value isFirst = i.less(i.rem(i.rem(thread, lanes), together), i.constant(1));
  auto one = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(one.thenYield());
  Value from = firstDepth(b);
  for (int64_t turn = 0; turn < kPrefetched && turn * depthStep() < *known;
       ++turn) {
    Value k = arith::MinSIOp::create(
        b, i.add(from, turn * depthStep()),
        i.constant(std::max<int64_t>(*known - width, 0)));
    for (Value buffer : weights)
      prefetch(b, buffer, placeOf(b, k));
  }
}

/// The sums and the products of row `k` of the right-hand side or, where that
/// is [N,K], of the elements from `k` on of the thread's row.
SmallVector<Value> FewRows::addProducts(ImplicitLocOpBuilder &b, Value k,
                                        ValueRange sums) {
  Indices i(b);
  Value at = placeOf(b, k);
  SmallVector<SmallVector<Value>> pieces; // of each product
  for (Value buffer : weights)
    pieces.push_back(loadPiece(b, buffer, at));
  const int64_t ofProduct = rows * sumsOfRow();
  SmallVector<Value> next(sums);
  for (int64_t r = 0; r < rows; ++r) {
    Value row = rowOf(b, r);
    SmallVector<Value> factors;
    if (isTransposed) {
      Value whole = i.add(i.mul(pair, numRows), row);
      factors = loadPiece(b, lhs, i.add(i.mul(whole, depth), k));
    } else {
      SmallVector<Value> index = {row, k};
      if (op.isBatched())
        index.insert(index.begin(), pair);
      Value factor = toF32(b, memref::LoadOp::create(b, lhs, index));
      factors.assign(width, factor);
    }
    for (auto [number, piece] : llvm::enumerate(pieces))
      for (int64_t j = 0; j < width; ++j) {
        Value &sum =
            next[number * ofProduct + r * sumsOfRow() + (isTransposed ? 0 : j)];
        sum = math::FmaOp::create(b, factors[j], piece[j], sum);
      }
  }
  return next;
}

/// What a thread adds up: each so many-th row of the right-hand side, or each
/// so many-th piece of its row.
SmallVector<Value> FewRows::sumUp(ImplicitLocOpBuilder &b) {
  Indices i(b);
  const int64_t step = depthStep();
  Value first = firstDepth(b);
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  SmallVector<Value> sums(products.size() * rows * sumsOfRow(), zero);
  // Whole turns of several pieces, and then one by one.
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
  const int64_t most = isTransposed ? lanes / 2 : kWarp / 2;
  const int64_t least = isTransposed ? 1 : lanes;
  for (Value &sum : sums)
    for (int32_t distance = most; distance >= least; distance /= 2)
      sum = arith::AddFOp::create(
          b, sum,
          gpu::ShuffleOp::create(b, sum, distance, kWarp, gpu::ShuffleMode::XOR)
              .getShuffleResult());
  Value inWarp = i.rem(thread, kWarp);
  Value isFirst = isTransposed ? i.less(i.rem(thread, lanes), i.constant(1))
                               : i.less(inWarp, i.constant(lanes));
  auto first = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(first.thenYield());
  Value part = isTransposed ? i.constant(0) : i.div(thread, kWarp);
  Value c = isTransposed ? i.div(thread, lanes) : i.mul(inWarp, width);
  const int64_t count = sumsOfRow();
  for (auto [n, sum] : llvm::enumerate(sums))
    memref::StoreOp::create(
        b, sum, partials,
        ValueRange{part, i.constant(n / count), i.add(c, n % count)});
}

/// Elements of the block's columns, some for each thread.
void FewRows::forEachElement(
    ImplicitLocOpBuilder &b,
    llvm::function_ref<void(Value m, Value number)> emit) {
  Indices i(b);
  auto loop = scf::ForOp::create(b, thread, i.constant(rows * columnsOfBlock()),
                                 i.constant(kThreads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value m = i.constant(0), c = loop.getInductionVar();
  if (rows != 1) {
    m = i.div(loop.getInductionVar(), columnsOfBlock());
    c = i.rem(loop.getInductionVar(), columnsOfBlock());
  }
  Value exists = i.less(columnOf(b, c), columns);
  if (isOpen)
    exists = i.both(exists, i.less(m, numRows));
  auto some = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
  b.setInsertionPoint(some.thenYield());
  emit(m, c);
}

/// What the warps have of an element of the product number `number`.
Value FewRows::totalOf(ImplicitLocOpBuilder &b, int64_t number,
                       ValueRange index, Value m, Value c,
                       PointEvaluator::Point &known) {
  Indices i(b);
  Value row = i.add(m, number * rows);
  Value total;
  const int64_t parts = cast<MemRefType>(partials.getType()).getDimSize(0);
  for (int64_t part = 0; part < parts; ++part) {
    Value sum = memref::LoadOp::create(b, partials,
                                       ValueRange{i.constant(part), row, c});
    total = total ? arith::AddFOp::create(b, total, sum).getResult() : sum;
  }
  Value init = products[number].getInit();
  if (!isZeroFilled(init))
    total =
        arith::AddFOp::create(b, total, points.evaluate(b, init, index, known));
  return total;
}

/// A thread adds up what the warps have of an element of the result, and
/// computes what follows.
void FewRows::emitResults(ImplicitLocOpBuilder &b) {
  forEachElement(b, [&](Value m, Value c) {
    SmallVector<SmallVector<Value>> indices = {{m, columnOf(b, c)}};
    if (op.isBatched())
      indices[0].insert(indices[0].begin(), pair);
    SmallVector<PointEvaluator::Point> known(1);
    for (auto [number, product] : llvm::enumerate(products)) {
      Value total = totalOf(b, number, indices[0], m, c, known[0]);
      known[0].add(product->getResult(0), indices[0], total);
    }
    points.store(b, body.getOutputs(), indices, known);
  });
}

/// The same where elements hang on several columns: sums are left where all
/// threads find them.
void FewRows::emitHeads(ImplicitLocOpBuilder &b) {
  Indices i(b);
  forEachElement(b, [&](Value m, Value c) {
    PointEvaluator::Point known;
    Value index[] = {m, columnOf(b, c)};
    Value total = totalOf(b, 0, index, m, c, known);
    memref::StoreOp::create(b, total, partials,
                            ValueRange{i.constant(0), m, c});
  });
  gpu::BarrierOp::create(b);
  forEachElement(b, [&](Value m, Value c) {
    heads->emit(b, points, i.add(i.mul(m, columns), columnOf(b, c)));
  });
}
